"""Figures of packing that need more than shards.json: pieces of documents, tokens in use."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError
from stages.engine.figures import (
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
    from stages.engine.page import Artifact

    Ints = npt.NDArray[np.int64]

PIECES = 2_000_000
"""About so many pieces are read; of more, tables at even distances are."""

BINS = 40
"""Bin i counts what is at least 2^i and below 2^(i + 1)."""

LANGUAGES, FREQUENT, RANKS = 20, 30, 1_000


@dataclass
class Pieces:
    """What the index tables of a split tell: bins of sizes by source."""

    tables_read: int = 0
    tables: int = 0
    document_tokens: dict[str, Ints] = field(default_factory=dict)
    sequence_pieces: dict[str, Ints] = field(default_factory=dict)

    @classmethod
    def of(cls, split: Input, shards: Mapping[str, Any], most: int = PIECES) -> Pieces:
        """Read the index tables of `split` one by one; `shards` is its shards.json.

        A document lies in one shard of one source, so its pieces are in one table.
        """
        paths = [
            (source, f"{shard['file'].removesuffix('.tokens')}.index.parquet")
            for source, one in sorted(shards["sources"].items())
            for shard in one["shards"]
        ]
        every = max(1, -(-split.rows // most))
        found = cls(len(paths[::every]), len(paths))
        for source, path in paths[::every]:
            table = split.read_table(path, ["sequence", "length", "doc_id"])
            tokens = table.group_by("doc_id").aggregate([("length", "sum")])["length_sum"]
            pieces = table.group_by("sequence").aggregate([("length", "count")])["length_count"]
            for bins, sizes in (
                (found.document_tokens, tokens),
                (found.sequence_pieces, pieces),
            ):
                bins[source] = bins.get(source, 0) + binned(sizes)
        return found

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
