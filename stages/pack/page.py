"""What packed tokens contribute to a report."""

from __future__ import annotations

from typing import Any

from stages.engine.figures import Axis, BarFigure, Bars, Cell, Column, Figure, TableFigure, number
from stages.engine.page import Artifact

SPLITS = {"train": "train", "held_out": "held out"}


def page(artifact: Artifact) -> list[Figure]:
    """Tokens and fill by source and split, lengths of documents, pieces, languages, tokens used."""
    from stages.pack import figures as own

    shards = {split: artifact.output(split).read_json("shards.json") for split in SPLITS}
    pieces = own.Pieces.of(artifact.output("train"), shards["train"])
    return [
        facts(artifact, shards),
        by_source(shards),
        *bars(shards),
        *own.document_lengths(pieces, shards["train"]["sequence_length"]),
        *own.sequence_pieces(pieces),
        *own.languages(pieces),
        *own.token_frequencies(artifact),
    ]


def facts(artifact: Artifact, shards: dict[str, Any]) -> TableFigure:
    """What was packed, and how much of it is held out."""
    counts, train = artifact.manifest.counts, shards["train"]
    tokens = {split: counts[f"{split}_tokens"] for split in SPLITS}
    documents = {split: counts[f"{split}_documents"] for split in SPLITS}
    conserved = artifact.manifest.conservation
    empty = conserved.dropped.get("empty", 0) if conserved else 0
    rows: tuple[tuple[Cell, ...], ...] = (
        ("sequence length, tokens", train["sequence_length"]),
        ("strategy", artifact.manifest.config.get("strategy")),
        ("vocabulary", train["vocabulary_size"]),
        ("tokens to train on", tokens["train"]),
        ("tokens held out", tokens["held_out"]),
        ("share of tokens held out", _percent(tokens["held_out"], sum(tokens.values()))),
        ("share of documents held out", _percent(documents["held_out"], sum(documents.values()))),
        ("documents without text", empty),
    )
    note = (
        "Documents are held out by class of near-duplicates, so that none has a near copy in train."
    )
    return TableFigure("Packed tokens", (Column(""), number("value")), rows, note)


def by_source(shards: dict[str, Any]) -> TableFigure:
    """Documents, tokens, sequences and how full they are, by source and split."""
    rows: list[tuple[Cell, ...]] = []
    for split, name in SPLITS.items():
        length, sources = shards[split]["sequence_length"], shards[split]["sources"]
        total = sum(one["tokens"] for one in sources.values())
        rows += [
            (
                source,
                name,
                one["documents"],
                one["tokens"],
                one["tokens"] / total,
                one["sequences"],
                one["tokens"] / (one["sequences"] * length),
                one["bytes"] / one["tokens"],
            )
            for source, one in sorted(sources.items())
        ]
    columns = (
        Column("source"),
        Column("split"),
        number("documents"),
        number("tokens"),
        number("share", ".1%"),
        number("sequences"),
        number("fill", ".1%"),
        number("bytes per token", ".3f"),
    )
    note = "Share: of the tokens of the split. Fill: positions that are not padding."
    return TableFigure("Tokens by source and split", columns, tuple(rows), note)


def bars(shards: dict[str, Any]) -> list[Figure]:
    """Tokens by source, and how full its sequences are."""
    sources = sorted({name for one in shards.values() for name in one["sources"]})
    if not sources:
        return []
    splits = {name: shards[split] for split, name in SPLITS.items() if shards[split]["sources"]}
    return [
        BarFigure(
            "Tokens by source",
            tuple(sources),
            Axis("tokens", format=",.0f"),
            tuple(
                Bars(name, tuple(_of(one, source, "tokens") for source in sources))
                for name, one in splits.items()
            ),
            stacked=True,
            label="source",
        ),
        BarFigure(
            "Fill of sequences by source",
            tuple(sources),
            Axis("share of positions", format=".1%"),
            tuple(
                Bars(name, tuple(_fill(one, source) for source in sources))
                for name, one in splits.items()
            ),
            label="source",
            note="Share of positions that hold a token; the rest is padding that costs compute.",
        ),
    ]


def _of(table: dict[str, Any], source: str, name: str) -> int | None:
    value: int | None = table["sources"].get(source, {}).get(name)
    return value


def _fill(table: dict[str, Any], source: str) -> float | None:
    tokens, sequences = _of(table, source, "tokens"), _of(table, source, "sequences")
    return tokens / (sequences * table["sequence_length"]) if tokens and sequences else None


def _percent(part: float, whole: float) -> Cell:
    return f"{part / whole:.2%}" if whole else None
