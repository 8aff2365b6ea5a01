"""Corpora of made documents, as `dedup` knows them after signing; for tests of what comes after."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from artifacts_schema.store.backend import HashingWriter, LocalBackend
from stages.dedup.exact import Classes, find_exact_classes
from stages.dedup.index import Corpus, number_documents
from stages.dedup.index_files import (
    PARTS,
    SHINGLES,
    Generation,
    IndexShard,
    IndexWriter,
    Signed,
)
from stages.engine import ShardOutput, ShardResult

FILES: tuple[str, ...] = (*PARTS, SHINGLES)


@dataclass(frozen=True)
class Doc:
    """A document. Documents of equal `words` must have equal keys, as signing gives them."""

    id: int
    """128 bits."""
    words: int = 0
    text: int = 0
    keys: tuple[int, ...] | None = None
    """None: without shingles."""
    shingles: tuple[int, ...] = ()


def corpus_of(
    folder: Path,
    generations: Sequence[Sequence[Sequence[Doc]]],
    *,
    bands: int,
    old: int = 0,
    run: int = 1 << 16,
    most: int = 1 << 20,
) -> Corpus:
    """Index files of generations of shards of documents; the `old` first ones are not new."""
    sources = []
    for place, shards in enumerate(generations):
        found = tuple(
            _shard(folder, f"{place}/{number}", shard, bands, run, most)
            for number, shard in enumerate(shards)
        )
        sources.append(Generation(f"{place:064x}", str(place), (), found, indexed=place < old))
    first_new = sum(source.size for source in sources[:old])
    return Corpus(number_documents(sources), first_new, bands, most)


def signed(docs: Sequence[Doc], bands: int, most: int) -> Signed:
    """What signing would find of these documents."""
    sets = [sorted(set(doc.shingles)) for doc in docs]
    kept = [one[:most] for one in sets]
    return Signed(
        ids=_halves([doc.id for doc in docs]),
        words=_halves([doc.words for doc in docs]),
        texts=_halves([doc.text for doc in docs]),
        keys=np.array([doc.keys or (0,) * bands for doc in docs], np.uint64).reshape(-1, bands),
        compared=np.array([doc.keys is not None for doc in docs], dtype=bool),
        sizes=np.array([len(one) for one in sets], np.int64),
        kept=np.array([len(one) for one in kept], np.int64),
        shingles=np.array([value for one in kept for value in one], np.uint64),
    )


def _halves(values: Sequence[int]) -> Any:
    pairs = [(value >> 64, value & (1 << 64) - 1) for value in values]
    return np.array(pairs, np.uint64).reshape(-1, 2)


def _shard(
    folder: Path, stem: str, docs: Sequence[Doc], bands: int, run: int, most: int
) -> IndexShard:
    out = output(folder, stem)
    with ExitStack() as stack:
        files = {part: stack.enter_context(out.open_scratch(part)) for part in FILES}
        writer = IndexWriter(files, bands, run)
        for begin in range(0, len(docs), 7):
            writer.add(signed(docs[begin : begin + 7], bands, most))
        writer.flush()
    return indexed_shard(result(out, {}), writer, stem, run)


def indexed_shard(source: ShardResult, writer: IndexWriter, stem: str, run: int) -> IndexShard:
    found = {(None, f"{stem}.{part}"): source.files[None, part] for part in FILES}
    return IndexShard(
        id="",
        generation=0,
        start=0,
        documents=writer.documents,
        run=run,
        compared=tuple(writer.compared),
        stem=stem,
        source=ShardResult(stem, {}, source.backend, found),
        output=None,
    )


class _Folder(LocalBackend):
    """A folder that need not survive a power cut: a test makes thousands of files."""

    @contextmanager
    def create(self, path: str, *, block: int = 0) -> Iterator[HashingWriter]:
        target = self.local_path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(target, "wb") as raw:
            yield HashingWriter(raw, block)


def output(folder: Path, name: str) -> ShardOutput:
    """Where a shard writes, in a folder instead of a store."""
    return ShardOutput(_Folder(str(folder)), f"work/key/shards/{name}", {})


def result(out: ShardOutput, value: dict[str, Any]) -> ShardResult:
    """What the map of a stage would give of it."""
    files = {(item.output, item.file.path): item for item in out.written}
    return ShardResult(out.folder.rsplit("/", 1)[1], value, out.backend, files)


@dataclass
class Maps:
    """The `map` of a stage's context, in this process and without a record."""

    folder: Path

    def map(
        self, function: Callable[..., Any], items: Sequence[Any], **shared: Any
    ) -> list[ShardResult]:
        """Call `function(item, output, **shared)` for each item."""
        found = []
        for item in items:
            out = output(self.folder, f"{function.__name__}/{item.id}")
            found.append(result(out, function(item, out, **shared) or {}))
        return found


def classes_of(folder: Path, corpus: Corpus, rows: int = 1 << 20) -> Classes:
    """The exact classes of a corpus."""
    return find_exact_classes(Maps(folder), corpus, rows)  # type: ignore[arg-type]
