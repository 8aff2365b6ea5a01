"""What is known of a run before its data exists, for plan checks: phases, lengths, tokenizers.

Functions that take an `Upstream` walk up from an input through configs and manifests; None means
that a value is not known. No numpy: plans import this.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import InputError, UsageError
from stages.engine.protocol import Inputs, Upstream, check_all
from stages.model.config import ModelShape
from stages.parallel.layout import Layout
from stages.training.config import AdapterConfig
from stages.training.schedule import Phase, check_one_phase

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


def check_tuning(config: Any, inputs: Inputs) -> None:
    """UsageError for a learning rate that one phase of unknown length cannot have, and for a
    checkpoint without a tokenizer."""
    (start,) = inputs["checkpoint"]
    check_all(lambda: check_one_phase(config.learning_rate), lambda: tokenizer_checksum(start))


def check_tuning_layout(layout: Layout, inputs: Inputs) -> None:
    """UsageError where a layout cannot divide the model that `dpo` starts from."""
    (start,) = inputs["checkpoint"]
    shape = model_shape(start)
    if layout.world > 1 and shape is not None:
        # What the vocabulary is padded to is known when tokens are packed.
        layout.check_model(shape.with_vocabulary(layout.tensor), [shape.context])


def check_adapter_layout(adapter: AdapterConfig | None, layout: Layout) -> None:
    """UsageError for an adapter on ranks that would have a part of a matrix each."""
    if adapter is None:
        return
    if adapter.quantised is not None and layout.world > 1:
        raise UsageError(
            "matrices in four bits are for one process",
            where="execution.layout",
            hint="leave the layout out, or adapter.quantised",
        )
    for name in ("tensor", "pipeline", "context", "expert"):
        if getattr(layout, name) > 1:
            raise UsageError(
                "adapters are trained on data-parallel ranks",
                where=f"execution.layout.{name}",
                hint="use data and shard, or train the weights",
            )
