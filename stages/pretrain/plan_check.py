"""What is wrong with a pretraining step by its config and what it will read: told in the plan.

The run checks the same of the real inputs (start.py, plan.py); here the data may not exist yet, so
sources are known by name and sequences by length alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from artifacts_schema.errors import InputError, UsageError
from stages.engine.upstream import Inputs, Upstream, all_problems
from stages.pretrain.architecture import check_architecture, check_length
from stages.training.account import caps_of
from stages.training.milestones import milestones
from stages.training.phases import Timeline, check_phase, stream_of
from stages.training.planned_inputs import (
    changes_rope,
    check_tokenizers,
    model_shape,
    raised_context,
    sequence_lengths,
)
from stages.training.run_plan import phases_of_run, skipped_steps
from stages.training.schedule import schedule

if TYPE_CHECKING:
    from stages.pretrain.config import PretrainConfig

FILL_INS = frozenset(("rope_base", "rope_scaling"))


def check_plan(config: PretrainConfig, inputs: Inputs) -> None:
    """Raise UsageError with all that is wrong."""
    start = next(iter(inputs.get("checkpoint", ())), None)
    train, held_out = inputs.get("train", ()), inputs.get("held_out", ())
    all_problems(
        lambda: _check_start(config, start),
        lambda: _check_phases(config, train, start),
        lambda: _check_model(config, start),
        lambda: _check_context(config, train, start),
        lambda: _check_held_out(held_out),
        lambda: _check_reserved_tokens(config, train, inputs.get("tokenizer", ())),
        lambda: _check_groups(config, start),
        lambda: check_tokenizers(
            [*inputs.get("tokenizer", ()), *inputs.get("checkpoint", ()), *train, *held_out]
        ),
    )


def _check_start(config: PretrainConfig, start: Upstream | None) -> None:
    """What asks for a checkpoint needs one."""
    if start is None and config.clock == "continue":
        raise UsageError(
            "there is no input checkpoint to go on from",
            where="clock",
            hint="give one to the role checkpoint, or use restart",
        )
    if start is None and config.optimizer_state == "keep":
        raise UsageError("there is no input checkpoint to keep it from", where="optimizer_state")
    if config.optimizer_state == "keep" and start is not None and start.manifest is not None:
        files = {file.path for file in start.manifest.output(start.output).files}
        if "optimizer.safetensors" not in files:
            raise UsageError(
                f"{start.name} carries no optimizer state",
                where="optimizer_state",
                hint="use fresh",
            )


def _check_phases(
    config: PretrainConfig, train: Sequence[Upstream], start: Upstream | None
) -> None:
    """Sources, lengths, learning rate, skipped steps, averages and permanent checkpoints."""
    lengths = sequence_lengths(train)
    if not lengths:
        return
    named = {name for one in config.phases for name in (*one.mixture, *one.mixture_end)}
    several = len(set(lengths)) > 1
    of_stream: dict[str, int] = {}
    for one, length in zip(train, lengths, strict=True):
        # Where sources are not known, all that are named may be there.
        for source in named if one.sources is None else one.sources:
            of_stream[stream_of(source, length, several)] = length
        if one.sources is None and not named:
            of_stream[stream_of("", length, several)] = length
    sources = dict.fromkeys(of_stream, 1)
    phases = phases_of_run(config, sources, of_stream)
    for index, phase in enumerate(phases):
        check_phase(phase, sources, where=f"phases.{index}")
    if all(one.sources is not None for one in train):
        caps_of(list(sources), config.max_epochs, config.epochs)
    timeline = Timeline(phases)
    skipped_steps(config, timeline)
    config.averages.first_snapshot(timeline.steps)
    # A first phase without a peak goes on at the checkpoint's rate, which is not known here.
    rate = 1.0 if start is not None and config.clock == "restart" else 0.0
    segments = [
        (phase, one.learning_rate) for phase, one in zip(phases, config.phases, strict=True)
    ]
    milestones(timeline, schedule(segments, where="phases", start=rate), config.checkpoints)


def _check_model(config: PretrainConfig, start: Upstream | None) -> None:
    shape = None if start is None else model_shape(start)
    if start is None or shape is None:
        return
    context = raised_context(shape, config.model)
    own = shape.model_copy(update={"context": context}).with_vocabulary(1)
    check_architecture(own, config.model, but=FILL_INS if changes_rope(start) else frozenset())


def _check_context(
    config: PretrainConfig, train: Sequence[Upstream], start: Upstream | None
) -> None:
    """The longest sequences that phases read fit into the model."""
    shape = config.model if start is None else model_shape(start)
    packed = sequence_lengths(train)
    wanted = [one.sequence_length or (packed or [0])[0] for one in config.phases]
    if shape is not None:
        check_length(max(wanted), raised_context(shape, config.model))


def _check_held_out(held_out: Sequence[Upstream]) -> None:
    lengths = sorted(set(sequence_lengths(held_out) or ()))
    if len(lengths) > 1:
        raise InputError(
            f"held-out sequences have {', '.join(map(str, lengths))} tokens",
            where="held_out",
            hint="give those of one length, as the last phase has",
        )


def _check_reserved_tokens(
    config: PretrainConfig, train: Sequence[Upstream], tokenizers: Sequence[Upstream]
) -> None:
    """Of a tokenizer that the recipe trains, the config says how many tokens are reserved."""
    lengths = sequence_lengths(train)
    reserved = [getattr(one.config, "reserved_tokens", None) for one in tokenizers]
    if not lengths or not reserved or reserved[0] is None:
        return
    if all(part.name == "causal" for part in config.objective.parts):
        return
    from stages.training.objectives import check_reserved

    # The first of them is the mask token (`ReservedTokens.of`), the others are sentinels.
    has_mask, sentinels = reserved[0] > 0, max(0, reserved[0] - 1)
    check_reserved(config.objective, max(lengths), has_mask=has_mask, sentinels=sentinels)


def _check_groups(config: PretrainConfig, start: Upstream | None) -> None:
    """Groups of parameters that match something, which the names in the model decide."""
    shape = config.model if start is None else model_shape(start)
    if shape is None or not config.optimizer.groups:
        return
    import torch  # Only a config with groups pays for it.

    from stages.model.decoder import Decoder
    from stages.training.parameter_groups import treatments

    with torch.device("meta"):
        treatments(Decoder(shape.with_vocabulary(64)), config.optimizer)
