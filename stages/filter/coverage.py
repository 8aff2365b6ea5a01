"""Which inputs describe which documents, and shards of documents with what lies beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from artifacts_schema.errors import InputError
from artifacts_schema.identity import short
from artifacts_schema.kinds import beside
from stages.text.chat_rows import FOLDER

if TYPE_CHECKING:
    from stages.engine import Input, Shard


@dataclass(frozen=True)
class Beside:
    """A shard of documents and the shards that describe it; `id` sorts in the order of decision."""

    id: str
    documents: Shard
    signals: Shard | None
    views: tuple[Shard, ...]
    contamination: Shard | None


def line_up(
    documents: Sequence[Input],
    signals: Sequence[Input],
    views: Sequence[Input],
    contamination: Input | None,
) -> list[Beside]:
    """The shards of all documents in the order of the inputs, each with what lies beside it.

    InputError unless signals, and views whose tables lie in no folder, are given for every
    documents input, in the same order, and contamination, and views whose tables lie in folders,
    cover them.
    """
    signals = [given for given in signals if not about_chat(given)]
    views = [given for given in views if not about_chat(given)]
    plain = [given for given in views if not in_folders(given)]
    cover = [given for given in views if in_folders(given)]
    for role, count in (("signals", len(signals)), ("views", len(plain))):
        if count not in (0, len(documents)):
            raise InputError(
                f"{count} inputs of role '{role}' for {len(documents)} of role 'documents'",
                where="filter",
                hint=f"give none, or the {role} of each documents input, in the same order",
            )
    width = max(2, len(str(len(documents) - 1)))
    tables = {id(given): _Tables(given) for given in (*signals, *views, *_one(contamination))}
    lined_up = []
    for index, given in enumerate(documents):
        folder, shards = f"{beside(given.digest)}/", given.shards()
        here = [view for view in cover if beside(given.digest) in folders_of(view)]
        if cover and shards and not here:
            raise InputError(
                f"no views with folders cover documents {name_of(given)}",
                where="filter",
                hint="give the views that dedup made of each documents input, or of none",
            )
        for shard in shards:
            measured = [tables[id(one)].at(shard.path) for one in signals[index : index + 1]]
            overlap = [tables[id(one)].at(folder + shard.path) for one in _one(contamination)]
            edits = [tables[id(one)].at(shard.path) for one in plain[index : index + 1]]
            edits += [tables[id(view)].at(folder + shard.path) for view in here]
            lined_up.append(
                Beside(
                    id=f"{index:0{width}d}-{shard.id}",
                    documents=shard,
                    signals=next(iter(measured), None),
                    views=tuple(edits),
                    contamination=next(iter(overlap), None),
                )
            )
    return lined_up


def about_chat(given: Input) -> bool:
    """Whether an input describes conversations and preferences, and no documents."""
    paths = given.paths("*.parquet")
    return bool(paths) and all(path.startswith(f"{FOLDER}/") for path in paths)


def in_folders(given: Input) -> bool:
    """Whether an input's tables lie in a folder for each documents output that they describe."""
    return any("/" in file.path for file in given.files)


def read_beside(shard: Shard, ids: pa.ChunkedArray, columns: list[str] | None = None) -> pa.Table:
    """The table of a shard, once its rows are known to be those of the documents."""
    table = shard.read(columns)
    if not table["doc_id"].equals(ids):
        raise _not_beside(shard.input)
    return table


def covering(documents: Input, side: Sequence[Input], role: str) -> Input:
    """The one input of `side` whose folder describes `documents`.

    InputError if there is none, or more than one, or if it lacks a shard.
    """
    folder = beside(documents.digest)
    found = [given for given in side if folder in folders_of(given)]
    if len(found) > 1:
        raise InputError(
            f"documents {name_of(documents)} are covered twice, by {role} "
            + " and ".join(map(name_of, found)),
            where="filter",
            hint=f"give {role} that each cover other documents",
        )
    paths = {file.path for given in found for file in given.files}
    if not found or not all(f"{folder}/{shard.path}" in paths for shard in documents.shards()):
        raise InputError(
            f"the {role} do not cover documents {name_of(documents)}",
            where="filter",
            hint="give dedup the same documents as filter",
        )
    return found[0]


def folders_of(given: Input) -> list[str]:
    """The folders of an input's tables about documents, sorted."""
    folders = {path.partition("/")[0] for path in given.paths("*/*.parquet")}
    return sorted(folders - {FOLDER})


def name_of(given: Input) -> str:
    """Stage and key, as people are shown them."""
    return f"{given.stage} {short(given.key)}"


class _Tables:
    """The tables of an input by path."""

    def __init__(self, given: Input) -> None:
        self._given = given
        self._shards = {shard.path: shard for shard in given.shards()}

    def at(self, path: str) -> Shard:
        """The table at `path`; InputError if there is none."""
        if path not in self._shards:
            raise _not_beside(self._given)
        return self._shards[path]


def _one(given: Input | None) -> list[Input]:
    return [] if given is None else [given]


def _not_beside(given: Input) -> InputError:
    return InputError(
        f"{name_of(given)} describes other documents than those it is given with",
        where="filter",
        hint=f"give the {given.kind} that were made of these documents, in the order of the "
        "documents",
    )
