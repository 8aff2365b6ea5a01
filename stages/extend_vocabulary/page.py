"""What an extended vocabulary contributes to a report."""

from __future__ import annotations

from typing import Any

from artifacts_schema.identity import short
from stages.engine.page import Artifact, Figure, make_bars, make_facts, make_table
from stages.tokens.vocabulary import decode_vocabulary, format_token

TOKENS = 40
"""New tokens that are listed, the first."""


def page(artifact: Artifact) -> list[Figure]:
    """Sizes, how held documents are cut before and after, and the first new tokens."""
    from tokenizers import Tokenizer

    output = artifact.output("tokenizer")
    training: dict[str, Any] = output.read_json("training.json")
    extended = training["extended"]
    (old, size), (old_rows, rows) = extended["vocabulary_size"], extended["rows"]
    facts = (
        ("checkpoint", short(extended["base"])),
        ("tokens before", old),
        ("new tokens, listed", len(extended["listed"])),
        ("new tokens, between pieces of those listed", extended["tokens_between"] or None),
        ("new tokens, learnt", extended["learnt"]),
        ("rows of the embedding before", old_rows),
        ("rows of the embedding", rows),
        ("documents learnt from", extended["documents"]),
        ("bytes learnt from", extended["bytes"]),
    )
    tokenizer = Tokenizer.from_str(output.read_bytes("tokenizer.json").decode("utf-8"))
    spelt = {index: format_token(token) for index, token in decode_vocabulary(tokenizer).items()}
    rows_of_tokens = [
        (old + number, spelt[old + number], "│".join(spelt[piece] for piece in pieces))
        for number, pieces in enumerate(extended["pieces"][:TOKENS])
    ]
    note = "Its row in the embedding is the mean of its pieces' rows."
    if size - old > TOKENS:
        note += f" The first {TOKENS} of {size - old:,}."
    return [
        make_facts("Extended vocabulary", facts),
        *_held_figures(training),
        make_table("New tokens", "id: | token | pieces", rows_of_tokens, note),
    ]


def _held_figures(training: dict[str, Any]) -> list[Figure]:
    """Bytes per token of documents that were not learnt from, before and after."""
    before, after = training["held_before"], training["held"]
    sources = [one for one in sorted(after) if after[one]["tokens"]]
    if not sources:
        return []
    return [
        make_bars(
            "Bytes per token before and after",
            sources,
            "bytes per token:.3f",
            {
                name: [held[source]["bytes_per_token"] for source in sources]
                for name, held in (("before", before), ("after", after))
            },
            label="source",
            note="Of documents that were not learnt from; more bytes per token make shorter "
            "sequences.",
        )
    ]
