"""What an imported tokenizer contributes to a report."""

from __future__ import annotations

from typing import Any

from stages.engine.page import Artifact, Cell, Figure, TableFigure, make_table


def page(artifact: Artifact) -> list[Figure]:
    """Facts, tokens by role, and texts that do not survive."""
    record: dict[str, Any] = artifact.output("tokenizer").read_json("training.json")
    figures: list[Figure] = [facts(record), roles(record["special_tokens"])]
    return [*figures, lost(record["lost_texts"])] if record["lost_texts"] else figures


def facts(record: dict[str, Any]) -> TableFigure:
    """What it is, where it came from, what was added."""
    added = ", ".join(record["added_tokens"]) or "none"
    spelt = ", ".join(record["special_ids_in_text"]) or "none"
    rows: tuple[tuple[Cell, ...], ...] = (
        ("snapshot", record["origin"]["snapshot"]),
        ("algorithm", record["algorithm"]),
        ("pre-tokenizer, by llama.cpp's name", record["pre_tokenizer"] or "none"),
        ("vocabulary", record["vocabulary_size"]),
        ("rows of an embedding", record["padded_vocabulary_size"]),
        ("tokens added at the end", added),
        ("special tokens that a text can spell", spelt),
        ("texts tried are restored", "yes" if record["restores_text"] else "no"),
        ("chat template", "its own, kept as it is" if record["has_chat_template"] else "none"),
        *(("changed", change) for change in record["changes"]),
    )
    return make_table("A tokenizer brought along", " | ", rows)


def roles(special: dict[str, int | None]) -> TableFigure:
    """Id of each role."""
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (role.replace("_", " "), "none" if index is None else index)
        for role, index in special.items()
    )
    return make_table("Special tokens by role", "role | id", rows)


def lost(texts: list[str]) -> TableFigure:
    """Texts that are decoded to other texts."""
    rows: tuple[tuple[Cell, ...], ...] = tuple((ascii(text),) for text in texts)
    note = "What a model of this tokenizer can neither be taught nor write."
    return make_table("Texts that do not survive", "text", rows, note)
