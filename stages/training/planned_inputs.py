"""What is known of token shards, tokenizers and checkpoints before they exist, for plan checks.

Each function walks up from an input through configs and manifests; None means that it is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from artifacts_schema.errors import InputError
from stages.engine.upstream import Inputs, Upstream, all_problems
from stages.model.config import ModelShape

TOKENIZER_FILE = "tokenizer.json"


def sequence_lengths(given: Sequence[Upstream]) -> list[int] | None:
    """Tokens of a sequence in each of these token shards."""
    found = [getattr(one.config, "sequence_length", None) for one in given]
    return [length for length in found if length is not None] if None not in found else None


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


def tokenizer_checksum(given: Upstream) -> str | None:
    """sha256 of the tokenizer.json of a tokenizer, or that of token shards or of a checkpoint.

    InputError for a checkpoint that exists and carries no tokenizer.
    """
    if given.kind in ("tokenizer", "checkpoint") and given.manifest is not None:
        files = {file.path: file.sha256 for file in given.manifest.output(given.output).files}
        if TOKENIZER_FILE not in files:
            raise InputError(
                f"{given.name} carries no tokenizer",
                where="checkpoint",
                hint="give import_model the tokenizer of the model",
            )
        return files[TOKENIZER_FILE]
    for role in ("tokenizer", "checkpoint"):
        for one in given.inputs.get(role, ()):
            return tokenizer_checksum(one)
    return None


def check_tokenizers(given: Sequence[Upstream]) -> None:
    """Raise InputError if some of these are known to come from different tokenizers."""
    known = [(one.name, found) for one in given if (found := tokenizer_checksum(one)) is not None]
    for name, found in known[1:]:
        if found != known[0][1]:
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
    all_problems(lambda: check_one_phase(config.learning_rate), lambda: tokenizer_checksum(start))
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
