"""The plan of a run, made and checked before its first step: data and learning rate."""

from __future__ import annotations

from dataclasses import dataclass

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.identity import short
from stages.engine import Input
from stages.pretrain.config import PretrainConfig
from stages.training.clock import Phase, SampleClock
from stages.training.data import TokenShards
from stages.training.schedule import Schedule, schedule


@dataclass(frozen=True)
class Plan:
    """What each training step reads, and its learning rate."""

    clock: SampleClock
    schedule: Schedule


def make_plan(config: PretrainConfig, shards: TokenShards) -> Plan:
    """Phases as training steps over the sources that `shards` hold.

    Raises UsageError for an unknown source, or a source that would be read more often than
    `max_epochs` allows.
    """
    phases = [
        Phase.of_tokens(
            phase.tokens, phase.sequences_per_batch, shards.sequence_length, phase.mixture
        )
        for phase in config.phases
    ]
    clock = SampleClock(shards.sequences, phases, config.seed)
    for one in clock.account():
        if config.max_epochs is not None and one.epochs > config.max_epochs:
            raise UsageError(
                f"source '{one.source}' would be read {one.epochs:.2f} times, "
                f"max_epochs is {config.max_epochs:g}",
                where="phases",
                hint="lower tokens or its share in the mixture, or add data",
            )
    segments = [
        (phase.steps, settings.learning_rate)
        for phase, settings in zip(phases, config.phases, strict=True)
    ]
    return Plan(clock, schedule(segments, where="phases"))


def check_tokenizer(tokenizer: Input, *shards: TokenShards | None) -> None:
    """Raise InputError unless all shards were packed with `tokenizer`."""
    for one in shards:
        if one is not None and one.tokenizer != tokenizer.digest:
            raise InputError(
                f"token shards were packed with tokenizer {short(one.tokenizer)}, "
                f"given is {short(tokenizer.digest)}",
                where="tokenizer",
                hint="give the tokenizer that packed them, or pack again",
            )
