"""Token shards of drawn documents, written by rules of a few lines, with the truth about each row.

Nothing of the pack stage is used: what a loader says of them is checked against what was written.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from artifacts_schema.kinds import KINDS

BEGIN, END, PADDING = 0, 1, 2
Ints = NDArray[np.int64]
INDEX = KINDS["token_shards"].tables["*/*.index.parquet"]
LANGUAGES = ("en", "de", None)


@dataclass(frozen=True)
class Document:
    """Ids with begin and end."""

    doc_id: str
    ids: tuple[int, ...]
    language: str | None

    @property
    def content_hash(self) -> str:
        """Of the ids, which stand for the text here."""
        return blake2b(repr(self.ids).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class Run:
    """Tokens of a document within a row."""

    document: Document
    document_start: int
    start: int
    ids: tuple[int, ...]


@dataclass(frozen=True)
class HeldFile:
    """A file of an output, as a manifest lists it."""

    path: str
    bytes: int


@dataclass
class WrittenShards:
    """Stands in for an engine Input: an output that lies in a folder, and the truth about it.

    `rows[source]` are the runs of each sequence, through all shards.
    """

    folder: Path
    rows: dict[str, list[list[Run]]] = field(default_factory=dict)
    files: tuple[HeldFile, ...] = ()
    stage: str = "pack"
    key: str = "k" * 64
    output: str = "train"

    @property
    def digest(self) -> str:
        return str(self.folder)

    @property
    def table(self) -> dict[str, Any]:
        """shards.json."""
        return self.read_json("shards.json")

    def read_json(self, path: str) -> Any:
        return json.loads((self.folder / path).read_bytes())

    def read_bytes(self, path: str) -> bytes:
        return (self.folder / path).read_bytes()

    def read_table(self, path: str, columns: list[str] | None = None) -> pa.Table:
        return pq.read_table(self.folder / path, columns=columns)

    def local_path(self, path: str) -> Path:
        return self.folder / path

    def open_sparse(self, path: str) -> None:
        """Nothing is remote here."""

    def describe(self, **changed: Any) -> WrittenShards:
        """With other facts in shards.json."""
        (self.folder / "shards.json").write_text(json.dumps({**self.table, **changed}))
        return self

    def listed(self) -> WrittenShards:
        """With the files that are there now as those of the manifest."""
        paths = sorted(path for path in self.folder.rglob("*") if path.is_file())
        self.files = tuple(
            HeldFile(path.relative_to(self.folder).as_posix(), path.stat().st_size)
            for path in paths
        )
        return self


def documents(draw: random.Random, count: int, prefix: str, vocabulary: int) -> list[Document]:
    """[begin] + 1 to 40 ids + [end]."""
    return [
        Document(
            f"{prefix}-{number}",
            (BEGIN, *draw.choices(range(5, vocabulary), k=draw.randint(1, 40)), END),
            draw.choice(LANGUAGES),
        )
        for number in range(count)
    ]


def concatenated(given: Sequence[Document], length: int) -> list[list[Run]]:
    """One stream, cut at every `length` tokens."""
    rows: list[list[Run]] = [[]]
    used = 0
    for document in given:
        at = 0
        while at < len(document.ids):
            if used == length:
                rows.append([])
                used = 0
            ids = document.ids[at : at + length - used]
            rows[-1].append(Run(document, at, used, ids))
            at, used = at + len(ids), used + len(ids)
    return rows if rows[0] else []


def fitted(given: Sequence[Document], length: int) -> list[list[Run]]:
    """Parts of at most `length`, each into the first row with room for it, longest first."""
    parts = [
        (document, at, document.ids[at : at + length])
        for document in given
        for at in range(0, len(document.ids), length)
    ]
    rows: list[list[Run]] = []
    used: list[int] = []
    for document, at, ids in sorted(parts, key=lambda part: -len(part[2])):
        row = next((i for i, u in enumerate(used) if u + len(ids) <= length), len(rows))
        if row == len(rows):
            rows.append([])
            used.append(0)
        rows[row].append(Run(document, at, used[row], ids))
        used[row] += len(ids)
    return rows


STRATEGIES = {"concatenate": concatenated, "best_fit": fitted}


def write_shards(
    folder: Path,
    sources: Mapping[str, Sequence[int]],
    *,
    length: int = 16,
    vocabulary: int = 50,
    dtype: str = "uint16",
    strategy: str = "best_fit",
    seed: int = 0,
    **changed: Any,
) -> WrittenShards:
    """Shards of drawn documents: `sources` maps each to the documents of its shards."""
    draw = random.Random(seed)
    made = WrittenShards(folder)
    table: dict[str, Any] = {
        "dtype": dtype,
        "sequence_length": length,
        "strategy": strategy,
        "vocabulary_size": vocabulary,
        "padded_vocabulary_size": -(-vocabulary // 64) * 64,
        "tokenizer": "t" * 64,
        "begin_id": BEGIN,
        "end_id": END,
        "padding_id": PADDING,
        "sources": {},
    }
    folder.mkdir(parents=True, exist_ok=True)
    for source, counts in sources.items():
        (folder / source).mkdir()
        entry: dict[str, Any] = {"shards": []}
        languages = Counter[str]()
        held: list[Document] = []
        made.rows[source] = []
        for number, count in enumerate(counts):
            drawn = documents(draw, count, f"{seed}-{source}-{number}", vocabulary)
            rows = STRATEGIES[strategy](drawn, length)
            draw.shuffle(rows)
            shard = _write(folder, f"{source}/{number:05d}", rows, length, dtype)
            entry["shards"].append(shard)
            made.rows[source] += rows
            held += drawn
            for one in drawn:
                languages[one.language or ""] += len(one.ids)
        entry |= {
            "sequences": sum(shard["sequences"] for shard in entry["shards"]),
            "tokens": sum(shard["tokens"] for shard in entry["shards"]),
            "documents": len(held),
            "bytes": sum(len(one.ids) for one in held) * 4,
            "languages": dict(languages),
            "repetitive": 0,
            "cut": 0,
        }
        table["sources"][source] = entry
    (folder / "shards.json").write_text(json.dumps({**table, **changed}))
    (folder / "token_bytes.bin").write_bytes(np.arange(vocabulary, dtype="<u2").tobytes())
    (folder / "train_counts.bin").write_bytes(np.arange(vocabulary, dtype="<i8").tobytes())
    return made.listed()


def every(shards: Any, source: str) -> tuple[Ints, Ints]:
    """Source and number of every sequence of a source, as `TokenShards.batch` takes them."""
    count = shards.sequences[source]
    return np.full(count, shards.sources.index(source)), np.arange(count)


def _write(
    folder: Path, name: str, rows: Sequence[Sequence[Run]], length: int, dtype: str
) -> dict[str, Any]:
    laid = np.full((len(rows), length), PADDING, dtype=np.dtype(dtype).newbyteorder("<"))
    index = []
    for number, row in enumerate(rows):
        for run in row:
            laid[number, run.start : run.start + len(run.ids)] = run.ids
            index.append(
                {
                    "sequence": number,
                    "start": run.start,
                    "length": len(run.ids),
                    "doc_id": run.document.doc_id,
                    "document_start": run.document_start,
                    "language": run.document.language,
                    "content_hash": run.document.content_hash,
                }
            )
    (folder / f"{name}.tokens").write_bytes(laid.tobytes())
    pq.write_table(pa.Table.from_pylist(index, INDEX.arrow()), folder / f"{name}.index.parquet")
    return {
        "file": f"{name}.tokens",
        "sequences": len(rows),
        "tokens": sum(row["length"] for row in index),
    }
