"""Earlier documents that candidates need: which they are, and their shingles, from their texts.

An index holds no shingles. A pair with an earlier document is measured on its text, which lies in
the documents output that the index describes. Needed are the documents that a band proposed beside
a new one, and their partners in earlier runs, to which closure may lead: these are all, so one pass
reads each once, out of the row groups that hold one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from artifacts_schema.errors import CorruptArtifact, InputError, UsageError
from artifacts_schema.identity import short
from stages.dedup.document_bits import BlockTask, DocumentBits, TaskFiles, block_tasks, write_bits
from stages.dedup.index import PLACED, EarlierShingles
from stages.dedup.index_files import SHINGLES
from stages.dedup.minhash import shingle_sets
from stages.dedup.pairs import NUMBER, PairFiles, write_numbers
from stages.dedup.shingling import shingler
from stages.dedup.signing import document_batches

if TYPE_CHECKING:
    from stages.dedup.index import Corpus
    from stages.dedup.index_record import Index
    from stages.dedup.presets import Settings
    from stages.dedup.verification import PairTask
    from stages.engine import Context, Input, Shard, ShardOutput, ShardResult

_AT_ONCE = 1 << 16
_TASK_DOCUMENTS = 1 << 13
"""Small shards are read together until they have so many documents."""


def match_documents(
    indexes: Sequence[Index], inputs: Sequence[Input], *, verify: bool
) -> dict[str, Input]:
    """The documents outputs that the indexes describe, by digest.

    Raises UsageError for one that `inputs` lack though the run verifies, or that no index
    describes; CorruptArtifact for one that has not as many documents as its index says.
    """
    by_digest = {one.digest: one for one in inputs}
    matched: dict[str, Input] = {}
    for index in indexes:
        for generation in index.generations:
            documents = by_digest.pop(generation.documents, None)
            if documents is not None:
                if documents.rows != generation.size:
                    raise CorruptArtifact(
                        f"documents {short(documents.digest)} has {documents.rows:,} rows, its "
                        f"index says {generation.size:,}",
                        where=index.where,
                        hint="make the index again",
                    )
                matched[documents.digest] = documents
            elif verify:
                raise UsageError(
                    f"the documents {short(generation.documents)} of an index are missing "
                    f"(snapshot {', '.join(generation.snapshots)})",
                    where=f"earlier_documents, for {index.where}",
                    hint="pairs with earlier documents are verified on their texts: pass them as "
                    "earlier_documents (`ingest[earlier]:documents` in a recipe)",
                )
    if by_digest:
        raise UsageError(
            f"no index describes documents {', '.join(map(short, by_digest))}",
            where="earlier_documents",
            hint="pass its index as dedup_index, or leave the documents out",
        )
    return matched


@dataclass(frozen=True, eq=False)
class TextTask:
    """Consecutive shards of an earlier documents output."""

    id: str
    place: int
    """Which task, from 0."""
    shards: tuple[tuple[int, Shard], ...]
    """Number of the first document, and the shard."""


def text_tasks(corpus: Corpus, documents: Mapping[str, Input]) -> list[TextTask]:
    """All shards of earlier documents, in the order of their numbers."""
    groups: list[list[tuple[int, Shard]]] = []
    for source, start in zip(corpus.sources, corpus.starts.tolist(), strict=False):
        if not source.indexed:
            continue
        held = _TASK_DOCUMENTS
        for shard in documents[source.documents].shards():
            if held + shard.rows > _TASK_DOCUMENTS:
                groups.append([])
                held = 0
            groups[-1].append((start, shard))
            start, held = start + shard.rows, held + shard.rows
    return [TextTask(f"text-{n:06d}", n, tuple(group)) for n, group in enumerate(groups)]


def list_earlier(
    task: PairTask, out: ShardOutput, *, corpus: Corpus, candidates: PairFiles
) -> None:
    """Leave the earlier documents among the candidates of a task: scratch `numbers` of NUMBER."""
    lefts = [piece["left"] for piece in candidates.slices(task.low, task.high, _AT_ONCE)]
    left = np.concatenate([np.empty(0, np.int64), *lefts])
    write_numbers(out, "numbers", left[left < corpus.first_new])


def mark_documents(task: BlockTask, out: ShardOutput, *, numbers: PairFiles) -> None:
    """Leave the bits of a block: which of its documents are among `numbers`."""
    bits = np.zeros(task.high - task.low, dtype=np.bool_)
    for piece in numbers.slices(task.low, task.high, _AT_ONCE):
        bits[piece["right"] - task.low] = True
    write_bits(out, bits)


def mark_candidates(
    context: Context, corpus: Corpus, candidates: PairFiles, tasks: Sequence[PairTask]
) -> DocumentBits:
    """The earlier documents that a band proposed beside a new one."""
    results = context.map(list_earlier, tasks, corpus=corpus, candidates=candidates)
    numbers = PairFiles.from_results(results, "numbers", NUMBER)
    marked = context.map(mark_documents, block_tasks(corpus.first_new), numbers=numbers)
    return DocumentBits(tuple(map(TaskFiles, marked)), corpus.first_new)


def read_texts(
    task: TextTask,
    out: ShardOutput,
    *,
    corpus: Corpus,
    candidates: DocumentBits,
    partners: PairFiles,
    settings: Settings,
) -> dict[str, Any]:
    """Leave the shingles of the needed documents of some shards: scratch `shingles` and `placed`.

    A batch of text is held, a byte for each document of a shard, and 36 for each needed one.
    Returns how many were `read`.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    shingle = shingler(settings)
    read = kept = 0
    with out.open_scratch(SHINGLES) as shingles, out.open_scratch("placed") as placed:
        for start, shard in task.shards:
            needed = candidates.between(start, start + shard.rows)
            for piece in partners.slices(start, start + shard.rows, _AT_ONCE):
                needed[piece["right"] - start] = True
            if not needed.any():
                continue
            numbers = start + np.flatnonzero(needed)
            sizes = np.zeros(len(numbers), np.int64)
            records = np.zeros(len(numbers), PLACED)
            records["right"], records["file"] = numbers, task.place
            done = 0
            for batch in document_batches(shard, ["text"], needed=needed):
                shingled = shingle(batch["text"])
                sets, offsets, own = shingle_sets(shingled.hashes, shingled.offsets, settings.most)
                sizes[done : done + len(own)] = own
                records["start"][done : done + len(own)] = kept + offsets[:-1]
                shingles.write(sets.tobytes())
                done, kept = done + len(own), kept + len(sets)
            _check_sizes(numbers, sizes, corpus, shard)
            placed.write(records.tobytes())
            read += done
    return {"read": read}


def _check_sizes(
    numbers: NDArray[np.int64], sizes: NDArray[np.int64], corpus: Corpus, shard: Shard
) -> None:
    """Raise InputError where a text has not as many shingles as the index says."""
    expected = corpus.sizes(numbers)
    if len(other := np.flatnonzero(sizes != expected)):
        first = int(other[0])
        raise InputError(
            f"document {corpus.ids(numbers[[first]])[0]} has {sizes[first]:,} distinct shingles, "
            f"its index says {expected[first]:,}",
            where=shard.path,
            hint="the index was made by other libraries: make it again",
        )


def read_shingles(
    context: Context,
    corpus: Corpus,
    documents: Mapping[str, Input],
    candidates: DocumentBits,
    partners: Sequence[ShardResult],
) -> EarlierShingles:
    """The shingles of earlier documents among `candidates`, and of their partners.

    `partners` is what `two_hop.translate_pairs` returned.
    """
    results = context.map(
        read_texts,
        text_tasks(corpus, documents),
        corpus=corpus,
        candidates=candidates,
        partners=PairFiles.from_results(partners, "partners", NUMBER),
        settings=context.config.settings(),
    )
    return EarlierShingles(
        tuple(map(TaskFiles, results)), PairFiles.from_results(results, "placed", PLACED)
    )
