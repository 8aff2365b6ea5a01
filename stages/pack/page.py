"""What packed tokens contribute to a report: tables and bars from shards.json, pieces from the
index tables, and the tokens in use.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError
from stages.engine.page import (
    Artifact,
    Axis,
    BarFigure,
    Bars,
    Cell,
    Column,
    CurveFigure,
    Figure,
    HistogramFigure,
    Series,
    TableFigure,
    number,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from stages.engine.inputs import Input

    Ints = npt.NDArray[np.int64]


PIECES = 2_000_000
"""About so many pieces are read; of more, tables at even distances are."""

BINS = 40
"""Bin i counts what is at least 2^i and below 2^(i + 1)."""

LANGUAGES, FREQUENT, RANKS = 20, 30, 1_000


@dataclass
class Pieces:
    """What the index tables of a split hold: bins of sizes by source."""

    tables_read: int = 0
    tables: int = 0
    document_tokens: dict[str, Ints] = field(default_factory=dict)
    sequence_pieces: dict[str, Ints] = field(default_factory=dict)

    @classmethod
    def read(cls, split: Input, shards: Mapping[str, Any], most: int = PIECES) -> Pieces:
        """Read the index tables of `split` one by one; `shards` is its shards.json.

        A document lies in one shard of one source, so its pieces are in one table.
        """
        paths = [
            (source, f"{shard['file'].removesuffix('.tokens')}.index.parquet")
            for source, one in sorted(shards["sources"].items())
            for shard in one["shards"]
        ]
        every = max(1, -(-split.rows // most))
        pieces_read = cls(len(paths[::every]), len(paths))
        for source, path in paths[::every]:
            table = split.read_table(path, ["sequence", "length", "doc_id"])
            tokens = table.group_by("doc_id").aggregate([("length", "sum")])["length_sum"]
            piece_counts = table.group_by("sequence").aggregate([("length", "count")])[
                "length_count"
            ]
            for bins, sizes in (
                (pieces_read.document_tokens, tokens),
                (pieces_read.sequence_pieces, piece_counts),
            ):
                bins[source] = bins.get(source, 0) + binned(sizes)
        return pieces_read

    @property
    def note(self) -> str:
        """Which tables were read, if not all."""
        if self.tables_read == self.tables:
            return ""
        return f" From {self.tables_read:,} of {self.tables:,} shards, at even distances."


def binned(sizes: pa.ChunkedArray) -> Ints:
    """[BINS] how many sizes are in each bin; sizes are at least 1."""
    import numpy as np

    exponents = np.frexp(sizes.to_numpy().astype(np.float64))[1] - 1
    return np.bincount(exponents, minlength=BINS)[:BINS]


def document_lengths(pieces: Pieces, sequence_length: int) -> list[Figure]:
    """Documents by their number of tokens."""
    import numpy as np

    if not pieces.document_tokens:
        return []
    filled = np.flatnonzero(sum(pieces.document_tokens.values()))
    first, last = int(filled[0]), int(filled[-1]) + 1
    note = f"Bins double. A document of more than {sequence_length:,} tokens spans sequences."
    return [
        HistogramFigure(
            "Documents by length in tokens, train",
            Axis("tokens", "log", ",.0f"),
            tuple(float(2**i) for i in range(first, last + 1)),
            tuple(
                Bars(source, tuple(counts[first:last].tolist()))
                for source, counts in pieces.document_tokens.items()
            ),
            note=note + pieces.note,
        )
    ]


def sequence_pieces(pieces: Pieces) -> list[Figure]:
    """Sequences by their number of pieces."""
    import numpy as np

    if not pieces.sequence_pieces:
        return []
    last = int(np.flatnonzero(sum(pieces.sequence_pieces.values()))[-1]) + 1
    note = "A piece is a run of one document's tokens; attention stays within it." + pieces.note
    return [
        BarFigure(
            "Sequences by number of pieces, train",
            ("1", *(f"{2**i} to {2 ** (i + 1) - 1}" for i in range(1, last))),
            Axis("share of the source's sequences", format=".1%"),
            tuple(
                Bars(source, tuple((counts[:last] / counts.sum()).tolist()))
                for source, counts in pieces.sequence_pieces.items()
            ),
            label="pieces",
            note=note,
        )
    ]


def languages(shards: Mapping[str, Any]) -> list[Figure]:
    """Shares of the tokens by declared language; nothing where none is declared."""
    tokens: Counter[str] = Counter()
    for source in shards["sources"].values():
        tokens.update(source["languages"])
    if not any(tokens):
        return []
    total = tokens.total()
    ranked = sorted(tokens.items(), key=lambda item: (-item[1], item[0]))
    shares = [(name or "not declared", many / total) for name, many in ranked[:LANGUAGES]]
    if rest := ranked[LANGUAGES:]:
        shares.append((f"{len(rest)} others", sum(many for _, many in rest) / total))
    return [
        BarFigure(
            "Tokens by language, train",
            tuple(name for name, _ in shares),
            Axis("share of tokens", format=".1%"),
            (Bars("train", tuple(share for _, share in shares)),),
            label="language",
            note="As documents declare it; nothing here detects languages.",
        )
    ]


def token_frequencies(artifact: Artifact) -> list[Figure]:
    """Uses of each token in the train split: by rank, and the most frequent ones spelt out."""
    import numpy as np

    raw = artifact.output("train").read_bytes("train_counts.bin")
    counts = np.frombuffer(raw, dtype="<i8")
    order = np.argsort(-counts, kind="stable")
    used, total = int((counts > 0).sum()), int(counts.sum())
    if not used:
        return []
    ranks = np.unique(np.geomspace(1, used, RANKS).round().astype(int))
    uses = counts[order[ranks - 1]]
    figures: list[Figure] = [
        CurveFigure(
            "Uses of each token by rank, train",
            Axis("rank", "log", ",.0f"),
            Axis("uses", "log", ",.0f"),
            (Series("tokens", tuple(map(float, ranks)), tuple(map(float, uses))),),
            note=f"{used:,} of {len(counts):,} tokens are used. A steep fall at the end means a "
            "vocabulary too large for its text.",
        )
    ]
    try:
        (tokenizer,) = artifact.input("tokenizer")
    except InputError:
        return figures
    return [*figures, _frequent(tokenizer, order[:FREQUENT], counts, total)]


def _frequent(tokenizer: Input, most: Ints, counts: Ints, total: int) -> TableFigure:
    from tokenizers import Tokenizer

    loaded = Tokenizer.from_str(tokenizer.read_bytes("tokenizer.json").decode("utf-8"))
    rows: list[tuple[Cell, ...]] = []
    for index in most.tolist():
        text = json.dumps(loaded.decode([index], skip_special_tokens=False), ensure_ascii=False)
        uses = int(counts[index])
        rows.append((index, text[1:-1].replace(" ", "␣"), uses, uses / total))
    columns = (number("id", ""), Column("token"), number("uses"), number("share", ".2%"))
    note = "␣ is a space. Shares are of all tokens, those that begin and end a document included."
    return TableFigure("Most frequent tokens, train", columns, tuple(rows), note)


SPLITS = {"train": "train", "held_out": "held out"}

FEW_SEQUENCES = 1000
"""Among fewer sequences the padding of one is a thousandth or more."""


def page(artifact: Artifact) -> list[Figure]:
    """Tokens, fill and what was left out by source and split, lengths, languages, tokens used."""

    shards = {split: artifact.output(split).read_json("shards.json") for split in SPLITS}
    pieces = Pieces.read(artifact.output("train"), shards["train"])
    return [
        facts(artifact, shards),
        by_source(shards),
        *bars(shards),
        *document_lengths(pieces, shards["train"]["sequence_length"]),
        *sequence_pieces(pieces),
        *languages(shards["train"]),
        *token_frequencies(artifact),
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
        *_skipped_rows(counts, dropped),
    )
    note = (
        "Documents are held out by class of near-duplicates, so that none has a near copy in train."
    )
    return TableFigure("Packed tokens", (Column(""), number("value")), rows, note)


def _skipped_rows(
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
                Bars(name, tuple(_source_value(one, source, "tokens") for source in sources))
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
            if one["sequences"] < FEW_SEQUENCES
        }
    )
    if not small:
        return ""
    named = ", ".join(small[:5]) + (f" and {len(small) - 5} others" if len(small) > 5 else "")
    return (
        " The last sequence of a source can not always be filled, which shows where there are few: "
        f"{named}."
    )


def _source_value(table: dict[str, Any], source: str, name: str) -> int | None:
    value: int | None = table["sources"].get(source, {}).get(name)
    return value


def _fill(table: dict[str, Any], source: str) -> float | None:
    tokens, sequences = (
        _source_value(table, source, "tokens"),
        _source_value(table, source, "sequences"),
    )
    return tokens / (sequences * table["sequence_length"]) if tokens and sequences else None


def _percent(part: float, whole: float) -> Cell:
    return f"{part / whole:.2%}" if whole else None
