"""What packed tokens contribute to a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stages.engine.figures import Axis, BarFigure, Bars, Cell, Column, Figure, TableFigure, number
from stages.engine.page import Artifact

SPLITS = {"train": "train", "held_out": "held out"}

SHOWS = 1000
"""Among fewer sequences the padding of one is a thousandth or more."""


def page(artifact: Artifact) -> list[Figure]:
    """Tokens, fill and what was left out by source and split, lengths, languages, tokens used."""
    from stages.pack import figures as own

    shards = {split: artifact.output(split).read_json("shards.json") for split in SPLITS}
    pieces = own.Pieces.of(artifact.output("train"), shards["train"])
    return [
        facts(artifact, shards),
        by_source(shards),
        *bars(shards),
        *own.document_lengths(pieces, shards["train"]["sequence_length"]),
        *own.sequence_pieces(pieces),
        *own.languages(shards["train"]),
        *own.token_frequencies(artifact),
    ]


def facts(artifact: Artifact, shards: dict[str, Any]) -> TableFigure:
    """What was packed, and how much of it is held out."""
    counts, train = artifact.manifest.counts, shards["train"]
    tokens = {split: counts[f"{split}_tokens"] for split in SPLITS}
    documents = {split: counts[f"{split}_documents"] for split in SPLITS}
    conserved = artifact.manifest.conservation
    dropped = conserved.dropped if conserved else {}
    rows: tuple[tuple[Cell, ...], ...] = (
        ("sequence length, tokens", train["sequence_length"]),
        ("strategy", train["strategy"]),
        ("vocabulary", train["vocabulary_size"]),
        ("rows of the embedding", train["padded_vocabulary_size"]),
        ("tokens to train on", tokens["train"]),
        ("tokens held out", tokens["held_out"]),
        ("share of tokens held out", _percent(tokens["held_out"], sum(tokens.values()))),
        ("share of documents held out", _percent(documents["held_out"], sum(documents.values()))),
        ("documents without text", dropped.get("empty", 0)),
        *_left_out(counts, dropped),
    )
    note = (
        "Documents are held out by class of near-duplicates, so that none has a near copy in train."
    )
    return TableFigure("Packed tokens", (Column(""), number("value")), rows, note)


def _left_out(
    counts: Mapping[str, float], dropped: Mapping[str, int]
) -> Iterator[tuple[Cell, ...]]:
    """Rows of what is in no sequence, and of documents turned; none where there is nothing."""
    for title, many in (
        ("sequences left out as repetitive", _sum(counts, "repetitive")),
        ("tokens in them", _sum(counts, "repetitive_tokens")),
        ("documents of which nothing is left", dropped.get("repetitive", 0)),
        ("documents near some of both splits", dropped.get("between_splits", 0)),
        ("documents cut that fit into a sequence", _sum(counts, "cut")),
        ("tokens cropped away", _sum(counts, "cropped_tokens")),
        ("documents turned to fill in the middle", counts.get("fim_documents", 0)),
    ):
        if many:
            yield title, many


def _sum(counts: Mapping[str, float], name: str) -> float:
    return sum(counts[f"{split}_{name}"] for split in SPLITS)


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
                one["cut"],
                one["repetitive"],
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
        number("documents cut"),
        number("sequences left out"),
    )
    note = (
        "Share: of the tokens of the split. Fill: positions that are not padding. Documents cut: "
        "those that would fit into a sequence. Sequences left out: those that repeat themselves."
    )
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
            note="Share of positions that hold a token; the rest is padding that costs compute."
            + _unavoidable(splits),
        ),
    ]


def _unavoidable(splits: dict[str, Any]) -> str:
    """Names sources so small that the padding of one last sequence shows."""
    small = sorted(
        {
            name
            for table in splits.values()
            for name, one in table["sources"].items()
            if one["sequences"] < SHOWS
        }
    )
    if not small:
        return ""
    named = ", ".join(small[:5]) + (f" and {len(small) - 5} others" if len(small) > 5 else "")
    return (
        " The last sequence of a source can not always be filled, which shows where there are few: "
        f"{named}."
    )


def _of(table: dict[str, Any], source: str, name: str) -> int | None:
    value: int | None = table["sources"].get(source, {}).get(name)
    return value


def _fill(table: dict[str, Any], source: str) -> float | None:
    tokens, sequences = _of(table, source, "tokens"), _of(table, source, "sequences")
    return tokens / (sequences * table["sequence_length"]) if tokens and sequences else None


def _percent(part: float, whole: float) -> Cell:
    return f"{part / whole:.2%}" if whole else None
