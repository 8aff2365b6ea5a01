"""What a tokenizer contributes to a report."""

from __future__ import annotations

from typing import Any

from stages.engine.figures import Axis, BarFigure, Bars, Cell, Column, Figure, TableFigure, number
from stages.engine.page import Artifact


def page(artifact: Artifact) -> list[Figure]:
    """Facts, training sample, fertility on held documents, tokens by length, texts in pieces."""
    from tokenizers import Tokenizer

    from stages.text.token_bytes import token_byte_lengths
    from stages.tokenizer import figures as own

    given = artifact.output("tokenizer")
    training: dict[str, Any] = given.read_json("training.json")
    tokenizer = Tokenizer.from_str(given.read_bytes("tokenizer.json").decode("utf-8"))
    lengths = token_byte_lengths(tokenizer)
    return [
        facts(artifact, training, special=int((lengths == 0).sum())),
        sample(training),
        *fertility(training),
        own.tokens_by_length(lengths),
        own.texts_in_pieces(tokenizer),
        own.longest_tokens(tokenizer, lengths),
    ]


def facts(artifact: Artifact, training: dict[str, Any], special: int) -> TableFigure:
    """What the tokenizer is, and on how much text it was trained."""
    config = artifact.manifest.config
    rows: tuple[tuple[Cell, ...], ...] = (
        ("vocabulary", training["vocabulary_size"]),
        ("vocabulary asked for", config.get("vocabulary_size")),
        ("special tokens", special),
        ("algorithm", training["algorithm"]),
        ("pre-tokenizer, by llama.cpp's name", training["pre_tokenizer"]),
        ("least occurrences of a merged pair", config.get("min_frequency")),
        ("documents trained on", training["documents"]),
        ("bytes trained on", training["bytes"]),
        ("share of the text that was drawn", f"{training['drawn_share']:.1%}"),
    )
    shown = tuple(row for row in rows if row[1] is not None)
    return TableFigure("Tokenizer", (Column(""), number("value")), shown)


def sample(training: dict[str, Any]) -> TableFigure:
    """What the tokenizer was trained on, by source."""
    total = training["bytes"]
    rows = tuple(
        (source, one["documents"], one["bytes"], one["bytes"] / total if total else None)
        for source, one in sorted(training["sources"].items())
    )
    columns = (
        Column("source"),
        number("documents"),
        number("bytes"),
        number("share of bytes", ".1%"),
    )
    note = "A source with a larger share gets more of the vocabulary."
    return TableFigure("Training sample by source", columns, rows, note)


def fertility(training: dict[str, Any]) -> list[Figure]:
    """Tokens per word and bytes per token on documents that were not trained on, by source."""
    held: dict[str, dict[str, Any]] = training["held"]
    if not held:
        return []
    sources = tuple(sorted(held))
    counts = ("documents", "bytes", "words", "tokens")
    names = (*counts, "tokens_per_word", "bytes_per_token")
    columns = (
        Column("source"),
        *(number(name) for name in counts),
        number("tokens per word", ".3f"),
        number("bytes per token", ".3f"),
    )
    rows = tuple((source, *(held[source][name] for name in names)) for source in sources)
    return [
        TableFigure(
            "Fertility on held documents",
            columns,
            rows,
            "Fertility is tokens per word, words being runs of what is not white space; low is "
            "good. More bytes per token make shorter sequences.",
        ),
        BarFigure(
            "Bytes per token by source",
            sources,
            Axis("bytes per token", format=".3f"),
            (Bars("held documents", tuple(held[source]["bytes_per_token"] for source in sources)),),
            label="source",
            note="Of documents that were not trained on; a source far below the others is cut fine "
            "and costs more compute for its text.",
        ),
    ]
