"""What a plan says of a chat template that fine-tuning replaces."""

from __future__ import annotations

from collections.abc import Sequence

from stages.engine import Inputs, Upstream


def template_notes(inputs: Inputs) -> Sequence[str]:
    """A note where ChatML replaces the template that an imported model brought along."""
    return [note for start in inputs.get("checkpoint", ()) for note in _notes(start)]


def _notes(start: Upstream) -> list[str]:
    """Follow the checkpoint back: sft and dpo have replaced it already, pretrain keeps it."""
    if start.stage is None:
        return []
    if start.stage.name == "pretrain":
        return [note for before in start.inputs.get("checkpoint", ()) for note in _notes(before)]
    if start.stage.name != "import_model":
        return []
    if start.manifest is None:
        return [f"ChatML replaces the chat template of {start.name}, if it has one"]
    if start.manifest.counts.get("chat_templates"):
        return [f"ChatML replaces the chat template of {start.name}"]
    return []
