"""`index.json`, the record of an index: written, read and refused.

Every reason to refuse an index is found from its own record and the sizes of its files, before
anything is read; that the bytes are those that were committed is checked where a file is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from artifacts_schema.errors import CorruptArtifact, InputError
from artifacts_schema.identity import short
from stages.dedup.index import Corpus, EarlierPairs, number_documents
from stages.dedup.index_files import PARTS, VERIFYING, Generation, IndexShard, Part, part_bytes
from stages.dedup.presets import Settings
from stages.engine.inputs import Input

FORMAT = 3
"""Raised whenever files or record mean something else: since 3 an index holds no shingles."""
RECORD = "index.json"


@dataclass(frozen=True, eq=False)
class Index:
    """An earlier index that a run may use."""

    input: Input
    generations: tuple[Generation, ...]
    verified: bool
    """Whether its run verified pairs."""
    knew: tuple[tuple[str, int], ...]
    """Digest and number of documents of each generation its run knew, earlier ones first."""
    pairs: tuple[str, ...]
    """Its files of pairs."""

    @property
    def where(self) -> str:
        """For messages."""
        return _index_label(self.input)


def index_record(
    generations: Sequence[Generation],
    knew: Sequence[tuple[str, int]],
    settings: Settings,
    *,
    verified: bool,
    pairs: Sequence[tuple[str, int]] = (),
    kept: bool = True,
) -> dict[str, Any]:
    """The content of `index.json` for an index of `generations`; `kept`: whether files go with it.

    `knew` lists the documents by whose numbers its pairs name them: digest and number of documents
    of each generation, earlier ones first. `pairs` are its files of pairs (`pairs/NAME.pairs`) and
    how many each has.
    """
    if not kept:
        return {"format": FORMAT, "kept": False}
    parts = [part for part in PARTS if verified or part not in VERIFYING]
    return {
        "format": FORMAT,
        "kept": True,
        "settings": asdict(settings),
        "verified": verified,
        "knows": [[digest, size] for digest, size in knew],
        "generations": [
            {
                "documents": source.documents,
                "folder": source.folder,
                "snapshots": list(source.snapshots),
                "shards": [
                    {
                        "stem": shard.stem,
                        "documents": shard.documents,
                        "run": shard.run,
                        "compared": list(shard.compared),
                    }
                    for shard in source.shards
                ],
            }
            for source in generations
        ],
        "pairs": [[name, count] for name, count in pairs],
        "bytes": {
            part: sum(
                _part_bytes(part, shard, settings.bands)
                for source in generations
                for shard in source.shards
            )
            for part in parts
        },
    }


def read_settings(input_: Input) -> tuple[Settings, bool]:
    """The settings of an index, and whether its run verified; errors as in `read_record`."""
    record = read_record(input_)
    return Settings(**record["settings"]), record["verified"]


def read_indexes(
    inputs: Sequence[Input], settings: Settings, *, verify: bool, documents: Sequence[str]
) -> tuple[Index, ...]:
    """The earlier indexes, each after those that its run knew, else in the order of `inputs`.

    `documents` are the digests of the documents outputs to be signed. Raises InputError, which
    names the index, for one of another format or of other settings, for one of a run without
    verification where `verify` needs it, and for documents that come twice; CorruptArtifact for
    one whose files are not those of its record.
    """
    indexes = [_read_index(one, settings, verify=verify) for one in inputs]
    held: dict[str, str] = {}
    for digest in documents:
        _check_unique(held, digest, "the documents of this run")
    for index in indexes:
        for generation in index.generations:
            _check_unique(held, generation.documents, index.where)
    return _in_order(indexes)


def build_corpus(indexes: Sequence[Index], new: Sequence[Generation], settings: Settings) -> Corpus:
    """All documents of the run: those of `indexes`, in their order, then the `new` ones."""
    old = [generation for index in indexes for generation in index.generations]
    sources = number_documents([*old, *new])
    starts = {source.documents: source.shards[0].start for source in sources if source.shards}
    return Corpus(
        sources=sources,
        first_new=sum(generation.size for generation in old),
        bands=settings.bands,
        most=settings.most,
        earlier_pairs=tuple(_earlier_pairs(index, starts) for index in indexes if index.pairs),
    )


def _earlier_pairs(index: Index, starts: dict[str, int]) -> EarlierPairs:
    return EarlierPairs(
        index.input,
        index.pairs,
        np.cumsum([0, *(size for _, size in index.knew)]),
        np.array([starts.get(digest, -1) for digest, _ in index.knew], dtype=np.int64),
    )


def read_record(input_: Input) -> dict[str, Any]:
    """`index.json` of a kept index. Raises InputError for another format, or for none."""
    record: dict[str, Any] = input_.read_json(RECORD) if input_.has(RECORD) else {}
    if record.get("format") != FORMAT:
        raise InputError(
            f"the index has format {record.get('format', 'unknown')}, this program reads {FORMAT}",
            where=_index_label(input_),
            hint="make it again, or use the program that made it",
        )
    if not record["kept"]:
        raise InputError(
            "no index was kept by the run that made it",
            where=_index_label(input_),
            hint="run that step with index: true, or leave its index out",
        )
    return record


def _read_index(input_: Input, settings: Settings, *, verify: bool) -> Index:
    record = read_record(input_)
    _check_settings(input_, record["settings"], settings)
    if verify and not record["verified"]:
        raise InputError(
            "the index was made without verification",
            where=_index_label(input_),
            hint="make it again with verify: true, or run with verify: false",
        )
    generations = tuple(_read_generation(input_, plain) for plain in record["generations"])
    parts = [part for part in PARTS if record["verified"] or part not in VERIFYING]
    _check_files(input_, generations, parts, settings.bands)
    knew = tuple((digest, size) for digest, size in record["knows"])
    pairs = tuple(name for name, _ in record["pairs"])
    return Index(input_, generations, record["verified"], knew, pairs)


def _read_generation(input_: Input, plain: dict[str, Any]) -> Generation:
    shards = tuple(
        IndexShard(
            id="",
            generation=0,
            start=0,
            documents=shard["documents"],
            run=shard["run"],
            compared=tuple(shard["compared"]),
            stem=shard["stem"],
            source=input_,
            output=None,
        )
        for shard in plain["shards"]
    )
    return Generation(
        plain["documents"], plain["folder"], tuple(plain["snapshots"]), shards, indexed=True
    )


def _check_settings(input_: Input, theirs: dict[str, Any], settings: Settings) -> None:
    ours = asdict(settings)
    differing = [
        f"{name} {theirs.get(name)} (this run: {ours.get(name)})"
        for name in dict.fromkeys([*(field.name for field in fields(settings)), *theirs])
        if theirs.get(name) != ours.get(name)
    ]
    if differing:
        raise InputError(
            "the index was made with other settings: " + ", ".join(differing),
            where=_index_label(input_),
            hint="give this run the same settings, or leave the index out",
        )


def _check_files(
    input_: Input, generations: Sequence[Generation], parts: Sequence[Part], bands: int
) -> None:
    sizes = {file.path: file.bytes for file in input_.files}
    for generation in generations:
        for shard in generation.shards:
            for part in parts:
                path = f"{shard.stem}.{part}"
                expected = _part_bytes(part, shard, bands)
                if sizes.get(path) != expected:
                    held = f"{sizes[path]:,} bytes" if path in sizes else "is not there"
                    raise CorruptArtifact(
                        f"{path} should have {expected:,} bytes, but {held}",
                        where=_index_label(input_),
                        hint="make the index again",
                    )


def _part_bytes(part: Part, shard: IndexShard, bands: int) -> int:
    return part_bytes(part, shard.documents, shard.compared, bands, shard.run)


def _check_unique(held: dict[str, str], digest: str, where: str) -> None:
    if digest in held:
        raise InputError(
            f"documents {short(digest)} come twice: in {held[digest]} and in {where}",
            where="dedup",
            hint="leave one of them out",
        )
    held[digest] = where


def _in_order(indexes: Sequence[Index]) -> tuple[Index, ...]:
    """Each index after those whose documents its run knew, so that numbers rise as they did."""
    waiting, ordered = list(indexes), list[Index]()
    while waiting:
        missing = {g.documents for index in waiting for g in index.generations}
        for index in waiting:
            own = {generation.documents for generation in index.generations}
            if not missing & ({digest for digest, _ in index.knew} - own):
                break
        else:
            raise CorruptArtifact(
                "each of the indexes says that it was made after another one of them",
                where=", ".join(index.where for index in waiting),
                hint="make them again",
            )
        waiting.remove(index)
        ordered.append(index)
    return tuple(ordered)


def _index_label(input_: Input) -> str:
    return f"dedup_index {short(input_.digest)} of {input_.stage} {short(input_.key)}"
