"""One pass over the text of a shard: everything that later steps know of its documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from artifacts_schema.kinds import kind_named, sidecar_folder
from stages.dedup.index_files import (
    ID_BYTES,
    PARTS,
    SHINGLES,
    VERIFYING,
    Generation,
    IndexShard,
    IndexWriter,
    Signed,
    run_documents,
)
from stages.dedup.minhash import MinHash, shingle_sets
from stages.dedup.presets import Settings
from stages.dedup.shingling import shingler
from stages.engine.arrays import PAGES_BYTES, arrow_array, rows_at_once, text_cuts

if TYPE_CHECKING:
    from stages.engine import Input, Shard, ShardOutput, ShardResult

OUTPUT = "dedup_index"
TEXT_BYTES = 1 << 20
"""Text that is signed together; a longer document is signed alone. More is not faster."""
_COLUMNS = ["doc_id", "snapshot", "text"]


@dataclass(frozen=True)
class DocumentShard:
    """A shard of one of several documents inputs, with an id that is unique over all of them."""

    id: str
    shard: Shard
    generation: int
    """Which of the inputs, from 0."""

    @property
    def stem(self) -> str:
        """Path of its index files within their output, without their endings."""
        return f"{sidecar_folder(self.shard.input.digest)}/{self.shard.path.rsplit('.', 1)[0]}"


def document_shards(documents: Sequence[Input]) -> list[DocumentShard]:
    """The shards of all inputs, in order."""
    return [
        DocumentShard(f"{place:03d}-{shard.id}", shard, place)
        for place, input_ in enumerate(documents)
        for shard in input_.shards()
    ]


def sign_shard(
    item: DocumentShard,
    out: ShardOutput,
    *,
    settings: Settings,
    index: bool,
    verify: bool,
    text_bytes: int = TEXT_BYTES,
) -> dict[str, Any]:
    """Write the index files of a shard (`index_files`): to the index, or as scratch without one.

    The shingles are a scratch file; without `verify` nothing of them is kept but the keys. At most
    one run of documents and the shingles of `text_bytes` of text are held, whatever the shard's
    size. Returns how many documents there are, their `shingles` (repeats included; `distinct` ones
    with `verify`), by run how many have any (`compared`), and the names of their snapshots.
    """
    # Arrow's own allocator keeps some 40 MB more of what batches took.
    pa.set_memory_pool(pa.system_memory_pool())
    shingle, minhash = shingler(settings), MinHash(settings)
    parts = [part for part in PARTS if verify or part not in VERIFYING]
    run = run_documents(settings.bands)
    snapshots: set[str] = set()
    with ExitStack() as stack:
        files: dict[str, Any] = {
            part: stack.enter_context(_opened(out, f"{item.stem}.{part}", index=index))
            for part in parts
        }
        if verify:
            files[SHINGLES] = stack.enter_context(out.open_scratch(f"{item.stem}.{SHINGLES}"))
        writer = IndexWriter(files, settings.bands, run)
        shingles = 0
        for batch in document_batches(item.shard, _COLUMNS, text_bytes):
            snapshots.update(batch["snapshot"].unique().to_pylist())
            shingled = shingle(batch["text"])
            hashes, offsets = shingled.hashes, shingled.offsets
            shingles += len(hashes)
            sets = shingle_sets(hashes, offsets, settings.most) if verify else None
            writer.add(
                Signed(
                    ids=id_halves(batch["doc_id"], where=f"{item.shard.path}"),
                    words=shingled.words,
                    texts=shingled.texts,
                    keys=minhash.keys(hashes, offsets),
                    compared=offsets[1:] > offsets[:-1],
                    sizes=sets and sets[2],
                    kept=sets and np.diff(sets[1]),
                    shingles=sets and sets[0],
                )
            )
        writer.flush()
    return {
        "documents": writer.documents,
        "shingles": shingles,
        "distinct": writer.distinct,
        "compared": writer.compared,
        "run": run,
        "snapshots": sorted(snapshots),
    }


def generations(
    documents: Sequence[Input],
    items: Sequence[DocumentShard],
    signed: Sequence[ShardResult],
    *,
    index: bool,
) -> list[Generation]:
    """What was signed, for `index.build_corpus`: one generation for each documents input."""
    shards: list[list[IndexShard]] = [[] for _ in documents]
    snapshots: list[set[str]] = [set() for _ in documents]
    for item, result in zip(items, signed, strict=True):
        value = result.value
        shards[item.generation].append(
            IndexShard(
                id="",
                generation=0,
                start=0,
                documents=value["documents"],
                run=value["run"],
                compared=tuple(value["compared"]),
                stem=item.stem,
                source=result,
                output=OUTPUT if index else None,
            )
        )
        snapshots[item.generation].update(value["snapshots"])
    return [
        Generation(
            input_.digest, sidecar_folder(input_.digest), tuple(sorted(names)), tuple(index_shards)
        )
        for input_, names, index_shards in zip(documents, snapshots, shards, strict=True)
    ]


def id_halves(ids: pa.Array, *, where: str) -> NDArray[np.uint64]:
    """Ids of 32 hex digits as numbers: upper and lower half, [ids, 2].

    Raises InputError for an id of another form.
    """
    is_id = pc.match_substring_regex(ids, rf"\A[0-9a-f]{{{2 * ID_BYTES}}}\z")
    if wrong := ids.filter(pc.invert(is_id)):
        raise InputError(
            f"doc_id '{wrong[0]}' is not 32 hex digits",
            where=where,
            hint="documents get their ids from `ingest`; use "
            "`artifacts_schema.identity.document_id`",
        )
    numbers = np.frombuffer(bytes.fromhex("".join(ids.to_pylist())), ">u8")
    return numbers.astype(np.uint64).reshape(-1, 2)


def _opened(out: ShardOutput, path: str, *, index: bool) -> Any:
    return out.open(OUTPUT, path) if index else out.open_scratch(path)


def document_batches(
    shard: Shard,
    columns: Sequence[str],
    text_bytes: int = TEXT_BYTES,
    needed: NDArray[np.bool_] | None = None,
) -> Iterator[dict[str, pa.Array]]:
    """Batches of documents of a shard, in order, whose texts take about `text_bytes`.

    `columns` names `text` and whatever else is read. A row group is read in pieces, so that one of
    long documents need not fit into memory. `needed` says for each row whether it is wanted; row
    groups without such a row are not read, and the wanted rows of several pieces are one batch.
    """
    with shard.input.open(shard.path) as file:
        waiting: list[pa.RecordBatch] = []
        held = 0
        for batch in _row_batches(_parquet(file, shard), columns, text_bytes, needed):
            size = batch["text"].nbytes
            if held + size > text_bytes:
                yield from _cut(waiting, columns, text_bytes)
                waiting, held = [], 0
            waiting.append(batch)
            held += size
            if needed is None or held > text_bytes:
                yield from _cut(waiting, columns, text_bytes)
                waiting, held = [], 0
        yield from _cut(waiting, columns, text_bytes)


def _row_batches(
    parquet: pq.ParquetFile,
    columns: Sequence[str],
    text_bytes: int,
    needed: NDArray[np.bool_] | None,
) -> Iterator[pa.RecordBatch]:
    """All rows or those that are needed, in order, from pieces of about `text_bytes`.

    A row group's pages are unpacked up to its last needed row.
    """
    end_of_group = 0
    for group in range(parquet.num_row_groups):
        metadata = parquet.metadata.row_group(group)
        first, end_of_group = end_of_group, end_of_group + metadata.num_rows
        if needed is not None and not needed[first:end_of_group].any():
            continue
        for batch in parquet.iter_batches(
            batch_size=rows_at_once(metadata, text_bytes),
            row_groups=[group],
            columns=list(columns),
            use_threads=False,
        ):
            if needed is None:
                yield batch
                continue
            some = np.flatnonzero(needed[first : first + batch.num_rows])
            if len(some):
                yield batch.take(arrow_array(some))
            first += batch.num_rows
            if not needed[first:end_of_group].any():
                break


def _cut(
    batches: Sequence[pa.RecordBatch], columns: Sequence[str], text_bytes: int
) -> Iterator[dict[str, pa.Array]]:
    """The columns of some batches as one, cut where its texts take more than `text_bytes`."""
    if not batches:
        return
    joined = {name: _concat([batch[name] for batch in batches]) for name in columns}
    for begin, end in text_cuts(joined["text"], text_bytes):
        yield {name: column.slice(begin, end - begin) for name, column in joined.items()}


def _concat(arrays: Sequence[pa.Array]) -> pa.Array:
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)  # That would copy one too.


def _parquet(file: IO[bytes], shard: Shard) -> pq.ParquetFile:
    """The table, read page by page, so that a row group need not fit into memory."""
    parquet = pq.ParquetFile(file)
    table = kind_named(shard.input.kind).table_for(shard.path)
    if table is not None:
        table.check(parquet.schema_arrow, where=shard.path)
    return pq.ParquetFile(
        file,
        metadata=parquet.metadata,
        read_dictionary=["snapshot"],
        buffer_size=PAGES_BYTES,
        pre_buffer=False,  # pyarrow's default reads all that a row group has of a column.
    )
