"""What is known of a run before its data exists, for plan checks: phases, lengths, tokenizers.

Functions that take an `Upstream` walk up from an input through configs and manifests; None means
that a value is not known. No numpy: plans import this.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import InputError, UsageError
from stages.engine.protocol import Inputs, Upstream, check_all
from stages.model.config import ModelShape
from stages.training.schedule import Phase, Sizes, Timeline, stream_name

TOLERANCE = 1e-3
"""How far the sum of a mixture's weights may be from one."""


def check_phase(phase: Phase, sources: Mapping[str, int], *, where: str) -> None:
    """Raise UsageError, with the numbers, for a phase that cannot be run on these sources.

    `sources` maps each to its number of sequences.
    """
    sizes = [one.sequences for one in phase.stretches]
    if phase.steps < 1 or min(sizes) < 1:
        raise UsageError(
            f"{phase.steps} training steps of {min(sizes)} sequences: "
            "a phase has at least one step and one sequence",
            where=where,
        )
    if not any(sources.values()):
        raise UsageError("the token shards hold no sequence", where=where)
    for name, weights in (("mixture", phase.weights), ("mixture_end", phase.weights_end)):
        check_mixture(weights, where=f"{where}.{name}")
        for source, weight in weights.items():
            if source not in sources:
                near = did_you_mean(source, sources)
                raise UsageError(
                    f"no source '{source}' in the token shards{near}", where=f"{where}.{name}"
                )
            if weight > 0 and not sources[source]:
                raise UsageError(
                    f"source '{source}' has weight {weight:g} but no tokens",
                    where=f"{where}.{name}",
                    hint="leave it out, or pack documents of it",
                )


def check_mixture(weights: Mapping[str, float], *, where: str) -> None:
    """Raise UsageError for weights that are negative or do not sum to one; none at all are fine."""
    for source, weight in weights.items():
        if not (math.isfinite(weight) and weight >= 0):
            raise UsageError(
                f"the weight of '{source}' is {weight:g}, but weights are finite and not negative",
                where=where,
            )
    total = math.fsum(weights.values())
    if weights and abs(total - 1) > TOLERANCE:
        raise UsageError(f"weights sum to {total:g}, not to 1", where=where)


class PhasePlan(Protocol):
    """What a run's config says of the data of a phase."""

    @property
    def tokens(self) -> int:
        """Token positions to read."""

    @property
    def sequence_length(self) -> int | None:
        """Tokens of its sequences; None where there is one length only."""

    @property
    def mixture(self) -> Mapping[str, float]:
        """Weights at its begin."""

    @property
    def mixture_end(self) -> Mapping[str, float]:
        """Weights at its end; empty where they stay."""

    @property
    def batch_sizes(self) -> int | Sizes:
        """Sequences of a training step, from which token of the phase on."""


class Skip(Protocol):
    """A range that a run leaves out, both ends included."""

    @property
    def first(self) -> int:
        """Training step from 1, or token position from 0."""

    @property
    def last(self) -> int:
        """The same unit."""

    @property
    def unit(self) -> str:
        """`training_steps` or `tokens`."""


class RunPlan(Protocol):
    """What a run's config says of its data."""

    @property
    def phases(self) -> Sequence[PhasePlan]:
        """One after another."""

    @property
    def skip(self) -> Sequence[Skip]:
        """What is left out."""

    @property
    def seed(self) -> int:
        """Decides the order."""


def phases_of_run(
    run: RunPlan, sources: Mapping[str, int], lengths: Mapping[str, int]
) -> list[Phase]:
    """The phases of a run; arguments and errors as for `sample_clock.clock_of_run`."""
    return [
        _phase_of(one, sources, lengths, f"phases.{index}") for index, one in enumerate(run.phases)
    ]


def skipped_steps(run: RunPlan, timeline: Timeline) -> list[tuple[int, int]]:
    """First and last training step of each range that a run leaves out.

    UsageError for a range that leaves nothing out.
    """
    return [_steps_of(one, timeline, f"skip.{index}") for index, one in enumerate(run.skip)]


def _phase_of(
    plan: PhasePlan, sources: Mapping[str, int], lengths: Mapping[str, int], where: str
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
    return Phase.of_tokens(plan.tokens, plan.batch_sizes, length, begin, end)


def _steps_of(skip: Skip, timeline: Timeline, where: str) -> tuple[int, int]:
    """The training steps of a range that is left out."""
    tokens = skip.unit == "tokens"
    most = timeline.tokens - 1 if tokens else timeline.steps
    if skip.first > most:
        raise UsageError(
            f"begins at {skip.first:,}, but the run's last of {skip.unit.replace('_', ' ')} is "
            f"{most:,}",
            where=where,
        )
    last = min(skip.last, most)
    if not tokens:
        return skip.first, last
    return timeline.step_of_token(skip.first), timeline.step_of_token(last)


TOKENIZER_FILE = "tokenizer.json"


def sequence_lengths(upstream: Sequence[Upstream]) -> list[int] | None:
    """Tokens of a sequence in each of these token shards."""
    results = [getattr(one.config, "sequence_length", None) for one in upstream]
    return [length for length in results if length is not None] if None not in results else None


def model_shape(checkpoint: Upstream) -> ModelShape | None:
    """The architecture of a checkpoint: that of the run where its weights were made.

    A continuation may have raised the context; rotary positions may have changed by phase.
    """
    own = getattr(checkpoint.config, "model", None)
    before = checkpoint.inputs.get("checkpoint", ())
    if not before:
        return own if isinstance(own, ModelShape) else None
    shape = model_shape(before[0])
    if shape is None or not isinstance(own, ModelShape):
        return shape
    return shape.model_copy(update={"context": raised_context(shape, own)})


def raised_context(shape: ModelShape, wanted: ModelShape) -> int:
    """The context of a checkpoint of `shape` in a run whose config says `wanted`."""
    return max(shape.context, wanted.context) if "context" in wanted.identity() else shape.context


def changes_rope(checkpoint: Upstream) -> bool:
    """Whether a phase on the way to a checkpoint sets its rotary positions."""
    phases = getattr(checkpoint.config, "phases", ())
    if any(getattr(one, "rope_base", None) or getattr(one, "rope_scaling", None) for one in phases):
        return True
    return any(changes_rope(one) for one in checkpoint.inputs.get("checkpoint", ()))


def tokenizer_checksum(upstream: Upstream) -> str | None:
    """sha256 of the tokenizer.json of a tokenizer, or that of token shards or of a checkpoint.

    InputError for a checkpoint that exists and carries no tokenizer.
    """
    if upstream.kind in ("tokenizer", "checkpoint") and upstream.manifest is not None:
        files = {file.path: file.sha256 for file in upstream.manifest.output(upstream.output).files}
        if TOKENIZER_FILE not in files:
            raise InputError(
                f"{upstream.name} carries no tokenizer",
                where="checkpoint",
                hint="give import_model the tokenizer of the model",
            )
        return files[TOKENIZER_FILE]
    for role in ("tokenizer", "checkpoint"):
        for one in upstream.inputs.get(role, ()):
            return tokenizer_checksum(one)
    return None


def check_tokenizers(upstream: Sequence[Upstream]) -> None:
    """Raise InputError if some of these are known to come from different tokenizers."""
    known = [
        (one.name, checksum)
        for one in upstream
        if (checksum := tokenizer_checksum(one)) is not None
    ]
    for name, checksum in known[1:]:
        if checksum != known[0][1]:
            raise InputError(
                f"{known[0][0]} and {name} have different tokenizers",
                hint="pack with the tokenizer that the checkpoint carries",
            )


def check_tuning(config: Any, inputs: Inputs) -> Sequence[str]:
    """What `sft` and `dpo` ask of a plan; returns notes.

    UsageError for a learning rate that one phase of unknown length cannot have, and for a
    checkpoint without a tokenizer. The note: ChatML replaces an imported model's own template.
    """
    from stages.training.schedule import check_one_phase

    (start,) = inputs["checkpoint"]
    check_all(lambda: check_one_phase(config.learning_rate), lambda: tokenizer_checksum(start))
    return _replaced_templates(start)


def _replaced_templates(start: Upstream) -> list[str]:
    """Follow the checkpoint back: sft and dpo have replaced it already, pretrain keeps it."""
    if start.stage is None:
        return []
    if start.stage.name == "pretrain":
        return [
            note
            for before in start.inputs.get("checkpoint", ())
            for note in _replaced_templates(before)
        ]
    if start.stage.name != "import_model":
        return []
    if start.manifest is None:
        return [f"ChatML replaces the chat template of {start.name}, if it has one"]
    if start.manifest.counts.get("chat_templates"):
        return [f"ChatML replaces the chat template of {start.name}"]
    return []
