"""The plan of a run, made and checked before its first step: data and learning rate."""

from __future__ import annotations

from dataclasses import dataclass

from artifacts_schema.errors import InputError
from artifacts_schema.identity import short
from stages.engine import Input
from stages.pretrain.config import PretrainConfig
from stages.training.account import Stock, TokenAccount, caps_of, check_caps
from stages.training.clock import SampleClock, clock_of_run
from stages.training.data import TokenShards
from stages.training.schedule import Schedule, schedule


@dataclass(frozen=True)
class Plan:
    """What each training step reads, its learning rate, and what that makes of the tokens."""

    clock: SampleClock
    schedule: Schedule
    account: TokenAccount


def make_plan(config: PretrainConfig, shards: TokenShards, start: Input | None = None) -> Plan:
    """Phases as training steps over the sources that `shards` hold; `start` is the checkpoint.

    Raises UsageError, with the numbers, for a mixture that these sources cannot fill, or a source
    that would be read more often than `max_epochs` or `epochs` allow.
    """
    plan = unchecked_plan(config, shards, start)
    check_caps(plan.clock, caps(config, shards))
    return plan


def unchecked_plan(config: PretrainConfig, shards: TokenShards, start: Input | None = None) -> Plan:
    """As `make_plan`, though it reads some source too often."""
    clock = clock_of_run(config, shards.sequences, shards.lengths)
    segments = [
        (phase, settings.learning_rate)
        for phase, settings in zip(clock.phases, config.phases, strict=True)
    ]
    account = TokenAccount.of(clock, Stock.of(shards), caps(config, shards))
    rate = starting_rate(config, start)
    return Plan(clock, schedule(segments, where="phases", start=rate), account)


def starting_rate(config: PretrainConfig, start: Input | None) -> float:
    """The learning rate that a first phase without a peak goes on from: the checkpoint's last."""
    if start is None or config.clock == "continue":
        return 0.0
    return float(start.read_json("state.json").get("learning_rate", 0.0))


def caps(config: PretrainConfig, shards: TokenShards) -> dict[str, float]:
    """The most epochs by source, where there is a limit."""
    return caps_of(shards.sources, config.max_epochs, config.epochs)


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
