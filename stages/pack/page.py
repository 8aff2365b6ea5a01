"""What packed tokens contribute to a report: tables and bars from shards.json, pieces from the
index tables, and the tokens in use.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError
from stages.engine.page import (
    Artifact,
    Axis,
    Cell,
    CurveFigure,
    Figure,
    Series,
    TableFigure,
    TextFigure,
    make_bars,
    make_facts,
    make_histogram,
    make_table,
)
from stages.engine.tally import most_common

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from stages.engine.inputs import Input
    from stages.training.masks import Piece

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
            for bins, group, function in (
                (pieces_read.document_tokens, "doc_id", "sum"),
                (pieces_read.sequence_pieces, "sequence", "count"),
            ):
                sizes = table.group_by(group).aggregate([("length", function)])
                bins[source] = bins.get(source, 0) + binned(sizes[f"length_{function}"])
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


def document_lengths(pieces: Pieces, sequence_length: int, marked: bool = False) -> list[Figure]:
    """Documents, or conversations (`marked`), by their number of tokens."""
    import numpy as np

    if not pieces.document_tokens:
        return []
    filled = np.flatnonzero(sum(pieces.document_tokens.values()))
    first, last = int(filled[0]), int(filled[-1]) + 1
    note = f"Bins double. A document of more than {sequence_length:,} tokens spans sequences."
    title = "Documents by length in tokens, train"
    if marked:
        note = "Bins double. A conversation lies whole in a sequence."
        title = "Conversations by length in tokens, train"
    return [
        make_histogram(
            title,
            "tokens:,.0f",
            (2.0**i for i in range(first, last + 1)),
            {name: sizes[first:last].tolist() for name, sizes in pieces.document_tokens.items()},
            scale="log",
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
        make_bars(
            "Sequences by number of pieces, train",
            ("1", *(f"{2**i} to {2 ** (i + 1) - 1}" for i in range(1, last))),
            "share of the source's sequences:.1%",
            {name: counts[:last] / counts.sum() for name, counts in pieces.sequence_pieces.items()},
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
    names, counts = zip(*most_common(tokens, LANGUAGES + 1), strict=True)
    return [
        make_bars(
            "Tokens by language, train",
            [name or "not declared" for name in names],
            "share of tokens:.1%",
            {"train": (count / tokens.total() for count in counts)},
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
    note = "␣ is a space. Shares are of all tokens, those that begin and end a document included."
    return make_table("Most frequent tokens, train", "id: | token | uses:, | share:.2%", rows, note)


CONVERSATIONS, CHARACTERS = 3, 2_000
"""Conversations that are shown, and characters of each."""


def masks(artifact: Artifact) -> list[Figure]:
    """Tokens by speaker, and some conversations with what is learnt of them marked."""
    from stages.tokens.vocabulary import load_plain_tokenizer
    from stages.training.masks import first_masks
    from stages.training.token_shards import TokenShards

    try:
        (tokenizer,) = artifact.input("tokenizer")
    except InputError:
        return []
    loaded = load_plain_tokenizer(tokenizer.read_bytes("tokenizer.json").decode("utf-8"))
    read = first_masks(TokenShards([artifact.output("train")]), loaded, CONVERSATIONS)
    rows = [(one.speaker, one.tokens, one.learnt, one.learnt / one.tokens) for one in read.shares]
    note = "Of the first sequences. `ingot show-masks` shows more, and those of a training step."
    headings = "speaker | tokens:, | learnt:, | share learnt:.1%"
    figures: list[Figure] = [make_table("Tokens by speaker, train", headings, rows, note)]
    written: list[tuple[str, str, tuple[tuple[Piece, ...] | None, ...]]] = [
        (one.source, one.conversation_id, (one.pieces,)) for one in read.conversations
    ]
    written += [(one.source, one.preference_id, one.sides) for one in read.pairs]
    for number, (source, name, sides) in enumerate(written, start=1):
        text = "\n— rejected —\n".join(
            "".join(f"⟦{p.text}⟧" if p.learnt else p.text for p in side or ()) for side in sides
        )
        more = (
            f" … and {len(text) - CHARACTERS:,} more characters" if len(text) > CHARACTERS else ""
        )
        title = f"What is learnt of {'pair' if len(sides) > 1 else 'conversation'} {number}"
        text = text[:CHARACTERS] + more
        note = f"{source} {name}: what stands between ⟦ and ⟧."
        figures.append(TextFigure(title, text, note))
    return figures


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
        *document_lengths(
            pieces, shards["train"]["sequence_length"], bool(shards["train"].get("marks"))
        ),
        *sequence_pieces(pieces),
        *(masks(artifact) if shards["train"].get("marks") else []),
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
    rows: list[tuple[str, Cell]] = [
        ("sequence length, tokens", train["sequence_length"]),
        ("strategy", train["strategy"]),
        ("vocabulary", train["vocabulary_size"]),
        ("rows of the embedding", train["padded_vocabulary_size"]),
        ("tokens to train on", tokens["train"]),
        ("tokens held out", tokens["held_out"]),
        ("share of tokens held out", _percent(tokens["held_out"], sum(tokens.values()))),
    ]
    held_out = _percent(documents["held_out"], sum(documents.values()))
    if train.get("marks"):
        learnt = counts["learnt_tokens"]
        noun = "pairs" if train.get("pairs") else "conversations"
        rows += [
            ("tokens that are learnt", learnt),
            ("share of tokens that are learnt", _percent(learnt, sum(tokens.values()))),
            (f"share of {noun} held out", held_out),
            (f"{noun} cut at their end", counts.get("truncated", 0)),
            (f"{noun} left out as too long", dropped.get("too_long", 0)),
            (f"{noun} without a learnt token", dropped.get("nothing_to_learn", 0)),
            (f"{noun} that the template does not render", dropped.get("not_rendered")),
            (f"{noun} of which it drops something", dropped.get("content_dropped")),
            ("pairs of equal answers", dropped.get("equal_answers")),
            ("pairs with an answer in several rows", dropped.get("several_rows")),
            ("conversations with a row for each answer", counts.get("rows_by_turn") or None),
        ]
        return make_facts("Packed tokens", rows, f"Held out by a hash of the id of {noun}.")
    rows += [
        ("share of documents held out", held_out),
        ("documents without text", dropped.get("empty", 0)),
        ("segments left out as repetitive", _sum(counts, "repetitive") or None),
        ("tokens in them", _sum(counts, "repetitive_tokens") or None),
        ("documents of which nothing is left", dropped.get("repetitive")),
        ("documents near some of both splits", dropped.get("between_splits")),
        ("documents cut that fit into a sequence", _sum(counts, "cut") or None),
        ("tokens cropped away", _sum(counts, "cropped_tokens") or None),
        ("documents turned to fill in the middle", counts.get("fim_documents") or None),
    ]
    note = (
        "Documents are held out by class of near-duplicates, so that none has a near copy in train."
    )
    return make_facts("Packed tokens", rows, note)


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
                _fill(one, length),
                one["bytes"] / one["tokens"],
                one["cut"],
                one["repetitive"],
            )
            for source, one in sorted(sources.items())
        ]
    note = (
        "Share: of the tokens of the split. Fill: positions that are not padding. Documents cut: "
        "those that would fit into a sequence. Segments left out: those that repeat themselves."
    )
    return make_table(
        "Tokens by source and split",
        "source | split | documents:, | tokens:, | share:.1% | sequences:, | fill:.1%"
        " | bytes per token:.3f | documents cut:, | segments left out:,",
        rows,
        note,
    )


def bars(shards: dict[str, Any]) -> list[Figure]:
    """Tokens by source, and how full its sequences are."""
    sources = sorted({name for one in shards.values() for name in one["sources"]})
    if not sources:
        return []
    splits = {name: shards[split] for split, name in SPLITS.items() if shards[split]["sources"]}
    tokens, fill = {}, {}
    for name, split in splits.items():
        rows = [split["sources"].get(source) for source in sources]
        tokens[name] = [one and one["tokens"] for one in rows]
        fill[name] = [one and _fill(one, split["sequence_length"]) for one in rows]
    return [
        make_bars("Tokens by source", sources, "tokens:,.0f", tokens, stacked=True, label="source"),
        make_bars(
            "Fill of sequences by source",
            sources,
            "share of positions:.1%",
            fill,
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


def _fill(source: dict[str, int], sequence_length: int) -> float | None:
    """Share of the positions that hold a token; None without sequences."""
    positions = source["sequences"] * sequence_length
    return source["tokens"] / positions if positions else None


def _percent(part: float, whole: float) -> Cell:
    return f"{part / whole:.2%}" if whole else None
