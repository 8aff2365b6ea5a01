"""What follows from a config and what it will read, before any data exists. No numpy, no torch.

Errors of a pretraining step are reported in the plan. The run checks the same of the real inputs
(run_setup.py, plan.py); here the data may not exist yet, so sources are known by name and sequences
by length alone.

Milestones are where a run commits permanent checkpoints, and their names: `1.6M`, `2.0B`. Both
follow from the plan alone, so that a recipe can name a checkpoint that does not exist yet. Tokens
are positions of the sample clock, padding included: known before the first step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import InputError, UsageError
from stages.engine import Milestone
from stages.engine.protocol import Inputs, Upstream, check_all
from stages.model.config import ModelConfig, ModelShape
from stages.parallel.layout import Layout
from stages.pretrain.config import CheckpointsConfig, PhaseConfig, PretrainConfig
from stages.training.run_plan import (
    changes_rope,
    check_adapter_layout,
    check_phase,
    check_tokenizers,
    model_shape,
    raised_context,
    sequence_lengths,
)
from stages.training.schedule import Phase, Schedule, Timeline, schedule, stream_name


def check_architecture(
    own: ModelConfig, wanted: ModelShape, but: frozenset[str] = frozenset()
) -> None:
    """Raise UsageError if the config asks for another architecture than the checkpoint's `own`.

    `but` are fields that are not compared.
    """
    different = [name for name in own.unlike(wanted) if name not in but]
    if different:
        name = different[0]
        raise UsageError(
            f"{name} is {getattr(wanted, name)}, that of the input checkpoint {getattr(own, name)}",
            where=f"model.{name}",
            hint="leave model out: the checkpoint decides it",
        )


def check_length(longest: int, context: int) -> None:
    """Raise UsageError if sequences of `longest` tokens are beyond the model's context."""
    if longest > context:
        raise UsageError(
            f"sequences of {longest} tokens, model context {context}",
            where="model.context",
            hint="raise model.context, or pack shorter sequences",
        )


def epoch_caps(
    sources: Sequence[str], most: float | None, by_source: Mapping[str, float]
) -> dict[str, float]:
    """The most epochs of each source that has a limit; `by_source` wins over `most`.

    UsageError for a source that is none of `sources`.
    """
    for name in by_source:
        if name not in sources:
            near = did_you_mean(name, sources)
            raise UsageError(f"no source '{name}' in the token shards{near}", where="epochs")
    limits = {} if most is None else dict.fromkeys(sources, most)
    return {**limits, **by_source}


def phases_of_run(
    run: PretrainConfig, sources: Mapping[str, int], lengths: Mapping[str, int]
) -> list[Phase]:
    """The phases of a run; arguments and errors as for `plan.clock_of_run`."""
    return [
        _phase_of(one, sources, lengths, f"phases.{index}") for index, one in enumerate(run.phases)
    ]


def _phase_of(
    plan: PhaseConfig, sources: Mapping[str, int], lengths: Mapping[str, int], where: str
) -> Phase:
    """A phase over the sources of its length, which the plan calls by their plain names."""
    known = sorted(set(lengths.values())) or [1]  # No source at all is `check_phase`'s to refuse.
    if plan.sequence_length is None and len(known) > 1:
        raise UsageError(
            f"the token shards have sequences of {', '.join(map(str, known))} tokens",
            where=where,
            hint=f"set sequence_length to one of them, as {known[0]}",
        )
    length = known[0] if plan.sequence_length is None else plan.sequence_length
    if length not in known:
        raise UsageError(
            f"no token shards have sequences of {length} tokens, there are those of "
            f"{', '.join(map(str, known))}",
            where=f"{where}.sequence_length",
            hint="give the train role the output of a pack step of that length",
        )
    several = len(known) > 1
    begin, end = (
        {stream_name(name, length, several): weight for name, weight in weights.items()}
        for weights in (plan.mixture, plan.mixture_end)
    )
    if several and not begin:
        sizes = {name: size for name, size in sources.items() if lengths[name] == length}
        begin = {name: size / sum(sizes.values()) for name, size in sizes.items() if size}
    tokens = plan.tokens
    if tokens is None:
        assert plan.epochs is not None, "a phase has either"
        tokens = length * _sequences_of(plan.epochs, begin, sources)
    return Phase.of_tokens(tokens, plan.batch_sizes, length, begin, end)


def _sequences_of(epochs: float, weights: Mapping[str, float], sizes: Mapping[str, int]) -> int:
    """Sequences of which the source that is read most often is read `epochs` times."""
    if not weights:
        return max(1, round(epochs * sum(sizes.values())))
    most = [sizes[name] / weight for name, weight in weights.items() if weight and name in sizes]
    return max(1, round(epochs * min(most, default=0)))


def skipped_steps(run: PretrainConfig, timeline: Timeline) -> list[tuple[int, int]]:
    """First and last training step of each range that a run skips.

    UsageError for a range that skips nothing.
    """
    results = []
    for index, skip in enumerate(run.skip):
        tokens = skip.unit == "tokens"
        most = timeline.tokens - 1 if tokens else timeline.steps
        if skip.first > most:
            raise UsageError(
                f"begins at {skip.first:,}, but the run's last of {skip.unit.replace('_', ' ')} is "
                f"{most:,}",
                where=f"skip.{index}",
            )
        first, last = skip.first, min(skip.last, most)
        if tokens:
            first, last = timeline.step_of_token(first), timeline.step_of_token(last)
        results.append((first, last))
    return results


MOST = 1000
"""Permanent checkpoints of one run; more are a slip of the number of tokens between them."""

_UNITS = ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "K"), (1, ""))


def milestones(
    timeline: Timeline, schedule: Schedule, settings: CheckpointsConfig
) -> tuple[Milestone, ...]:
    """The permanent checkpoints of a run in order, its end last; `at` is the training step.

    UsageError for more than `MOST`.
    """
    wanted = {*_steps(timeline, schedule, settings), timeline.steps}
    steps = sorted(step for step in wanted if 1 <= step <= timeline.steps)
    labels = token_labels([timeline.tokens_until(step) for step in steps])
    return tuple(Milestone(step, label) for step, label in zip(steps, labels, strict=True))


def _steps(timeline: Timeline, schedule: Schedule, settings: CheckpointsConfig) -> Iterator[int]:
    if settings.phase_edges:
        yield from (first - 1 for first in timeline.first_steps[1:])
    if settings.before_decay:
        yield from decay_starts(schedule)
    if settings.every is not None:
        if timeline.tokens // settings.every > MOST:
            raise UsageError(
                f"{timeline.tokens // settings.every:,} permanent checkpoints, one every "
                f"{settings.every:,} of {timeline.tokens:,} tokens",
                where="checkpoints.every",
                hint=f"at most {MOST:,}: raise it",
            )
        for tokens in range(settings.every, timeline.tokens, settings.every):
            yield timeline.step_of_token(tokens - 1)


def decay_starts(schedule: Schedule) -> Iterator[int]:
    """Training steps after which a decay begins; 0 for one that begins the run."""
    before = 0
    for segment in schedule.segments:
        if segment.decay_steps:
            yield before + segment.steps - segment.decay_steps
        before += segment.steps


def token_labels(tokens: Sequence[int]) -> list[str]:
    """Short names of ascending numbers, of two digits or as many as tell all of them apart.

    1,597,440 is `1.6M`; beside 1,600,000 it is `1.597M`.
    """
    for digits in range(2, 20):
        results = [_label(number, digits) for number in tokens]
        if len(set(results)) == len(set(tokens)):
            return results
    raise AssertionError("whole numbers are told apart by their digits")


def _label(number: int, digits: int) -> str:
    """A number to so many significant digits (more where it is whole), with K, M, B or T."""
    for index, (unit, letter) in enumerate(_UNITS):
        if number >= unit or unit == 1:
            whole = len(str(number // unit))
            text = f"{number / unit:.{max(0, digits - whole)}f}"
            if float(text) >= 1000 and index:  # 999,960 to two digits is a million.
                return _label(_UNITS[index - 1][0], digits)
            return text + letter
    raise AssertionError


FILL_INS = frozenset(("rope_base", "rope_scaling"))


def check_plan(config: PretrainConfig, inputs: Inputs) -> None:
    """Raise UsageError with all that is wrong."""
    start = next(iter(inputs.get("checkpoint", ())), None)
    train, held_out = inputs.get("train", ()), inputs.get("held_out", ())
    check_all(
        lambda: _check_start(config, start),
        lambda: _check_phases(config, train, start),
        lambda: _check_model(config, start),
        lambda: _check_context(config, train, start),
        lambda: _check_held_out(held_out),
        lambda: _check_reserved_tokens(config, train, inputs.get("tokenizer", ())),
        lambda: _check_groups(config, start),
        lambda: _check_teacher(config, inputs),
        lambda: check_tokenizers(
            [
                *inputs.get("tokenizer", ()),
                *inputs.get("checkpoint", ()),
                *train,
                *held_out,
                *inputs.get("teacher", ()),
            ]
        ),
    )


def check_layout(config: PretrainConfig, layout: Layout, inputs: Inputs) -> None:
    """Raise UsageError where a layout cannot divide the model, or the sequences of a phase."""
    if config.distillation is not None and layout.world > 1:
        raise UsageError(
            "a teacher's records are read by one process",
            where="execution.layout",
            hint="leave the layout out, or learn the tokens alone",
        )
    start = next(iter(inputs.get("checkpoint", ())), None)
    shape = config.model if start is None else model_shape(start)
    if layout.world == 1 or shape is None:
        return
    packed = sequence_lengths(inputs.get("train", ()))
    lengths = [one.sequence_length or (packed or [0])[0] for one in config.phases]
    # What the vocabulary is padded to is known when tokens are packed.
    layout.check_model(shape.with_vocabulary(layout.tensor), lengths)
    check_adapter_layout(config.adapter, layout)


def _check_teacher(config: PretrainConfig, inputs: Inputs) -> None:
    """A teacher for each of the token shards, or none; and a loss that has room for it."""
    teachers, train = len(inputs.get("teacher", ())), len(inputs.get("train", ()))
    if config.distillation is None:
        if teachers:
            raise UsageError(
                "is not set, but there is a teacher",
                where="distillation",
                hint="set it, as {divergence: forward}, or leave the teacher out",
            )
        return
    if teachers != train:
        raise UsageError(
            f"{train} token shards have {teachers} teachers",
            where="teacher",
            hint="give one for each of train, in the same order",
        )
    if config.objective.z_loss or any(one.name != "causal" for one in config.objective.parts):
        raise UsageError("a teacher predicts each next token, without a z_loss", where="objective")


def _check_start(config: PretrainConfig, start: Upstream | None) -> None:
    """Settings that need an input checkpoint."""
    if start is None and config.clock == "continue":
        raise UsageError(
            "there is no input checkpoint to go on from",
            where="clock",
            hint="give one to the role checkpoint, or use restart",
        )
    if start is None and config.adapter is not None:
        raise UsageError(
            "there is no input checkpoint to put an adapter beside",
            where="adapter",
            hint="give one to the role checkpoint, or train the weights",
        )
    if config.adapter is not None and config.precision == "fp8":
        raise UsageError("fp8 is for the weights themselves", where="adapter", hint="use bf16")
    if config.adapter is not None and config.adapter.quantised and config.averages.kept:
        raise UsageError(
            "there are no averages of matrices in four bits",
            where="adapter.quantised",
            hint="leave averages out",
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
            of_stream[stream_name(source, length, several)] = length
        if one.sources is None and not named:
            of_stream[stream_name("", length, several)] = length
    by_epochs = any(one.epochs is not None for one in config.phases)
    # Sizes are not known here. A phase in epochs has enough steps for any learning rate.
    sources = dict.fromkeys(of_stream, 2**20 if by_epochs else 1)
    phases = phases_of_run(config, sources, of_stream)
    for index, phase in enumerate(phases):
        check_phase(phase, sources, where=f"phases.{index}")
    if all(one.sources is not None for one in train):
        epoch_caps(list(sources), config.max_epochs, config.epochs)
    timeline = Timeline(phases)
    skipped_steps(config, timeline)
    config.averages.first_snapshot(timeline.steps)
    # A first phase without a peak goes on at the checkpoint's rate, which is not known here.
    rate = 1.0 if start is not None and config.clock == "restart" else 0.0
    segments = [
        (phase, one.learning_rate) for phase, one in zip(phases, config.phases, strict=True)
    ]
    planned = schedule(segments, where="phases", start=rate)
    if not by_epochs:
        milestones(timeline, planned, config.checkpoints)


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
    """Reserved tokens of a tokenizer that the recipe trains; its config has their number."""
    lengths = sequence_lengths(train)
    reserved = [getattr(one.config, "reserved_tokens", None) for one in tokenizers]
    if not lengths or not reserved or reserved[0] is None:
        return
    if all(part.name == "causal" for part in config.objective.parts):
        return
    from stages.pretrain.objectives import check_reserved

    # The first is the mask token (`ReservedTokens.from_tokenizer`), the others are sentinels.
    has_mask, sentinels = reserved[0] > 0, max(0, reserved[0] - 1)
    check_reserved(config.objective, max(lengths), has_mask=has_mask, sentinels=sentinels)


def _check_groups(config: PretrainConfig, start: Upstream | None) -> None:
    """Groups of parameters must match names in the model."""
    shape = config.model if start is None else model_shape(start)
    if shape is None or not config.optimizer.groups or config.adapter is not None:
        return  # Names of an adapter's parameters are known when it is attached.
    import torch  # Only a config with groups pays for it.

    from stages.model.decoder import Decoder
    from stages.training.optimizer import treatments

    with torch.device("meta"):
        treatments(Decoder(shape.with_vocabulary(64)), config.optimizer)
