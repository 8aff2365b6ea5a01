"""Shards of documents aligned with their sidecar tables: signals, views, contamination."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from artifacts_schema.errors import InputError
from artifacts_schema.identity import short
from artifacts_schema.kinds import sidecar_folder
from stages.text.chat_rows import FOLDER

if TYPE_CHECKING:
    from stages.engine import Input, Shard

T = TypeVar("T")


@dataclass(frozen=True)
class Sidecars:
    """The shards that describe one; `id` sorts in the order of decision."""

    id: str
    signals: tuple[Shard, ...]
    """Several where several stages measured; no two have a column of one name."""
    views: tuple[Shard, ...]
    contamination: Shard | None


@dataclass(frozen=True)
class AlignedShard(Sidecars):
    """A shard of documents and the shards that describe it."""

    documents: Shard
    duplicates: Shard | None = None
    """What its documents are copies of."""


def align_tables(
    documents: Sequence[Input],
    signals: Sequence[Input],
    views: Sequence[Input],
    contamination: Input | None,
) -> list[AlignedShard]:
    """The shards of all documents in the order of the inputs, each with its sidecar tables.

    Signals may come several times: all of one stage in the order of the documents, then all of the
    next. InputError unless there are signals, and views without folders, for every documents input
    in the same order, and contamination, and views with folders, cover them.
    """
    signals = [input_ for input_ in signals if not describes_chat(input_)]
    views = [input_ for input_ in views if not describes_chat(input_)]
    plain = [input_ for input_ in views if not has_folders(input_)]
    cover = [input_ for input_ in views if has_folders(input_)]
    sets = signal_sets(signals, len(documents))
    for role, count, sound in (
        ("signals", len(signals), len(sets) * len(documents) == len(signals)),
        ("views", len(plain), len(plain) in (0, len(documents))),
    ):
        if not sound:
            raise InputError(
                f"{count} inputs of role '{role}' for {len(documents)} of role 'documents'",
                where="filter",
                hint=f"give none, or the {role} of each documents input, in the same order",
            )
    width = max(2, len(str(len(documents) - 1)))
    overlaps = [] if contamination is None else [contamination]
    tables = {
        id(input_): {shard.path: shard for shard in input_.shards()}
        for input_ in (*signals, *views, *overlaps)
    }

    def find_table(input_: Input, path: str) -> Shard:
        if path not in tables[id(input_)]:
            raise _misaligned(input_)
        return tables[id(input_)][path]

    aligned = []
    for index, input_ in enumerate(documents):
        folder, shards = f"{sidecar_folder(input_.digest)}/", input_.shards()
        here = [view for view in cover if sidecar_folder(input_.digest) in document_folders(view)]
        if cover and shards and not here:
            raise InputError(
                f"no views with folders cover documents {input_label(input_)}",
                where="filter",
                hint="give the views that dedup made of each documents input, or of none",
            )
        for shard in shards:
            measured = [find_table(one[index], shard.path) for one in sets]
            overlap = [find_table(one, folder + shard.path) for one in overlaps]
            edits = [find_table(one, shard.path) for one in plain[index : index + 1]]
            edits += [find_table(view, folder + shard.path) for view in here]
            aligned.append(
                AlignedShard(
                    id=f"{index:0{width}d}-{shard.id}",
                    documents=shard,
                    signals=tuple(measured),
                    views=tuple(edits),
                    contamination=next(iter(overlap), None),
                )
            )
    return aligned


def signal_sets(signals: Sequence[T], documents: int) -> list[Sequence[T]]:
    """Signals of so many documents inputs, those of each stage together; a rest is left out."""
    ends = range(documents, len(signals) + 1, documents) if documents else ()
    return [signals[end - documents : end] for end in ends]


def describes_chat(input_: Input) -> bool:
    """Whether an input describes conversations and preferences, and no documents."""
    paths = input_.paths("*.parquet")
    return bool(paths) and all(path.startswith(f"{FOLDER}/") for path in paths)


def has_folders(input_: Input) -> bool:
    """Whether an input's tables are in a folder for each documents output that they describe."""
    return any("/" in file.path for file in input_.files)


def read_sidecar(shard: Shard, ids: pa.ChunkedArray, columns: list[str] | None = None) -> pa.Table:
    """The table of a shard, once its rows are known to be those of the documents."""
    table = shard.read(columns)
    if not table["doc_id"].equals(ids):
        raise _misaligned(shard.input)
    return table


def read_signals(
    shards: Sequence[Shard], ids: pa.ChunkedArray, wanted: Collection[str] | None = None
) -> pa.Table | None:
    """The signals of a shard side by side, or those that are `wanted`; None if nothing measured.

    InputError if they are those of other documents, or if two stages wrote one signal.
    """
    joined: pa.Table | None = None
    for shard in shards:
        with shard.input.open(shard.path) as file:
            present = pq.read_schema(file).names
        names = [name for name in present if wanted is None or name in wanted]
        table = read_sidecar(shard, ids, list(dict.fromkeys(["doc_id", *names])))
        if joined is None:
            joined = table
            continue
        for name in table.column_names:
            if name != "doc_id" and name in joined.column_names:
                raise InputError(
                    f"signal '{name}' is measured twice, by {input_label(shard.input)} too",
                    where="filter",
                    hint="give each model a `name` of its own",
                )
            if name != "doc_id":
                joined = joined.append_column(table.field(name), table[name])
    return joined


def covering_input(documents: Input, side: Sequence[Input], role: str) -> Input:
    """The one input of `side` whose folder describes `documents`.

    InputError if there is none, or more than one, or if it lacks a shard.
    """
    folder = sidecar_folder(documents.digest)
    matches = [input_ for input_ in side if folder in document_folders(input_)]
    if len(matches) > 1:
        raise InputError(
            f"documents {input_label(documents)} are covered twice, by {role} "
            + " and ".join(map(input_label, matches)),
            where="filter",
            hint=f"give {role} that each cover other documents",
        )
    paths = {file.path for input_ in matches for file in input_.files}
    if not matches or not all(f"{folder}/{shard.path}" in paths for shard in documents.shards()):
        raise InputError(
            f"the {role} do not cover documents {input_label(documents)}",
            where="filter",
            hint="give dedup the same documents as filter",
        )
    return matches[0]


def document_folders(input_: Input) -> list[str]:
    """The folders of an input's tables about documents, sorted."""
    folders = {path.partition("/")[0] for path in input_.paths("*/*.parquet")}
    return sorted(folders - {FOLDER})


def input_label(input_: Input) -> str:
    """Stage and key, for messages."""
    return f"{input_.stage} {short(input_.key)}"


def _misaligned(input_: Input) -> InputError:
    return InputError(
        f"{input_label(input_)} describes other documents than those it is given with",
        where="filter",
        hint=f"give the {input_.kind} that were made of these documents, in the order of the "
        "documents",
    )
