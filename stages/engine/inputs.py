"""What a stage reads: committed outputs, each file checked against its manifest before use."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from artifacts_schema.errors import InputError
from artifacts_schema.file_table import File
from artifacts_schema.identity import short
from artifacts_schema.kinds import kind_named
from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store, layout
from artifacts_schema.store.backend import Backend
from artifacts_schema.store.sparse import SparseCopy, SparseFile, open_sparse
from artifacts_schema.store.store import ancestors
from artifacts_schema.store.verify import checked_path

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


@dataclass(frozen=True)
class Input:
    """One output of an earlier artifact. Picklable; opens nothing until asked."""

    backend: Backend
    folder: str
    stage: str
    key: str
    output: str
    kind: str
    digest: str
    files: tuple[File, ...]
    full_check: bool = True
    copied: bool = False
    """Whether files of a store in a folder are read from copies in this machine's cache."""
    shared: bool = False
    """Whether other processes of this machine read it too, so that one hashes a file for all."""
    _checked: set[str] = field(default_factory=set, compare=False, repr=False)

    @classmethod
    def load(
        cls,
        store: Store,
        reference: InputRef,
        *,
        full_check: bool = True,
        copied: bool = False,
        shared: bool = False,
    ) -> Input:
        """The output that `reference` names; InputError if it was collected or changed since."""
        manifest = store.manifest(reference.stage, reference.key)
        if manifest is None or reference.output not in manifest.outputs:
            raise InputError(
                f"{reference.stage} {short(reference.key)} is not in the store any more",
                where=store.url,
                hint="run its recipe again",
            )
        loaded = cls.from_manifest(store, manifest, reference.output, full_check=full_check)
        loaded = replace(loaded, copied=copied, shared=shared)
        if loaded.digest != reference.digest:
            raise InputError(
                f"'{reference.output}' of {reference.stage} {short(reference.key)} has digest "
                f"{short(loaded.digest)}, the run expects {short(reference.digest)}",
                hint="plan again: the artifact was made again",
            )
        return loaded

    @classmethod
    def from_manifest(
        cls, store: Store, manifest: Manifest, output: str, *, full_check: bool = True
    ) -> Input:
        """An output of a manifest at hand."""
        entry = manifest.output(output)
        return cls(
            backend=store.backend,
            folder=store.payload(manifest, output),
            stage=manifest.stage,
            key=manifest.key,
            output=output,
            kind=entry.kind,
            digest=entry.digest,
            files=entry.files,
            full_check=full_check,
        )

    def lineage(self) -> list[Manifest]:
        """The manifest of its artifact, then those of everything that was made of, nearest first.

        What was collected since is missing, with all that only it names.
        """
        store = Store(self.backend.url)
        own = store.manifest(self.stage, self.key)
        if own is None:
            return []
        parents = dict.fromkeys(edge.parent for edge in ancestors(store, own))
        return [own, *(parent for name in parents if (parent := store.manifest(*name)) is not None)]

    @cached_property
    def _by_path(self) -> dict[str, File]:
        return {file.path: file for file in self.files}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_by_path"}

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(file.rows or 0 for file in self.files)

    @property
    def size(self) -> int:
        """Size of all files in bytes."""
        return sum(file.bytes for file in self.files)

    def paths(self, pattern: str = "*") -> list[str]:
        """Files that match an fnmatch pattern, sorted."""
        return sorted(file.path for file in self.files if fnmatchcase(file.path, pattern))

    def shards(self, pattern: str = "*.parquet") -> list[Shard]:
        """One shard for each table that matches, sorted by path."""
        rows = {file.path: file.rows or 0 for file in self.files}
        return [Shard(self, path, rows[path]) for path in self.paths(pattern)]

    def has(self, path: str) -> bool:
        """Whether the output holds this file."""
        return path in self._by_path

    def open(self, path: str) -> IO[bytes]:
        """Open a file for reading, once its bytes have been checked."""
        return open(self.local_path(path), "rb")

    def local_path(self, path: str) -> Path:
        """A checked file on this machine, to be opened soon: the store's own, or the cache's copy.

        Its bytes are hashed once, where `full_check` asks (by one process for all that share it);
        its size is looked at every time.
        """
        file = self._by_path.get(path)
        if file is None:
            raise InputError(
                f"output '{self.output}' of {self.stage} {short(self.key)} has no file '{path}'"
            )
        checked = checked_path(
            self.backend,
            f"{self.folder}/{path}",
            file,
            full=self.full_check and path not in self._checked,
            owner=f"{self.stage} {self.key}",
            copied=self.copied,
            shared=self.shared,
        )
        self._checked.add(path)
        return checked

    def open_sparse(self, path: str) -> SparseCopy | None:
        """The blocks of a file of a remote store that are on this machine, for `sparse.fetch`.

        None where the file is read whole, by `local_path`.
        """
        file = self._by_path.get(path)
        if file is None or file.blocks is None or self.backend.local:
            return None
        place = f"{self.folder}/{path}"
        table = layout.block_table(place, self.output, path)
        owner = f"{self.stage} {self.key}"
        return open_sparse(self.backend, place, file, table=table, owner=owner)

    def open_part(self, path: str) -> IO[bytes]:
        """Open a file of which some parts are read: of a remote store those are fetched alone."""
        copy = self.open_sparse(path)
        return self.open(path) if copy is None else cast(IO[bytes], SparseFile(copy))

    @contextmanager
    def open_table(self, path: str) -> Iterator[pq.ParquetFile]:
        """A table of which some columns or row groups are read, which are near to each other in the
        file: what lies together is one request to a remote store."""
        import pyarrow.parquet as pq

        with self.open_part(path) as file:
            yield pq.ParquetFile(file, pre_buffer=isinstance(file, SparseFile))

    def read_bytes(self, path: str) -> bytes:
        """A whole file."""
        with self.open(path) as file:
            return file.read()

    def read_json(self, path: str) -> Any:
        """A whole JSON file."""
        return json.loads(self.read_bytes(path))

    def read_table(self, path: str, columns: list[str] | None = None) -> pa.Table:
        """A whole table, or some of its columns; its schema is checked against the kind."""
        with self._checked_table(path, columns) as parquet:
            return parquet.read(columns=columns, use_threads=False)

    def row_groups(self, path: str, columns: list[str] | None = None) -> Iterator[pa.Table]:
        """A table one row group at a time, so that its text need not fit into memory."""
        with self._checked_table(path, columns) as parquet:
            for number in range(parquet.num_row_groups):
                yield parquet.read_row_group(number, columns=columns, use_threads=False)

    @contextmanager
    def _checked_table(self, path: str, columns: list[str] | None) -> Iterator[pq.ParquetFile]:
        """The table, its schema checked; read whole unless columns are named."""
        import pyarrow.parquet as pq

        with ExitStack() as opened:
            if columns is None:
                parquet = pq.ParquetFile(opened.enter_context(self.open(path)))
            else:
                parquet = opened.enter_context(self.open_table(path))
            table = kind_named(self.kind).table_for(path)
            if table is not None:
                table.check(parquet.schema_arrow, where=f"{self.folder}/{path}")
            yield parquet


@dataclass(frozen=True)
class Shard:
    """One table of an input: the unit of parallel work and of restart."""

    input: Input
    path: str
    rows: int

    @property
    def id(self) -> str:
        """The path without its ending, '/' as '-': unique within the input."""
        return self.path.rsplit(".", 1)[0].replace("/", "-")

    def read(self, columns: list[str] | None = None) -> pa.Table:
        """The table, or some of its columns."""
        return self.input.read_table(self.path, columns)

    def row_groups(self, columns: list[str] | None = None) -> Iterator[pa.Table]:
        """The table one row group at a time."""
        return self.input.row_groups(self.path, columns)


REPAIR = "repair the source, or raise max_bad_share if this is expected"


def check_bad_share(
    bad: int, total: int, limit: float, samples: Sequence[str], where: str, hint: str = REPAIR
) -> None:
    """Raise InputError if more than `limit` of `total` records are bad; a few samples are shown."""
    if total and bad / total > limit:
        examples = "; ".join(sample[:200] for sample in samples[:3])
        raise InputError(
            f"{bad:,} of {total:,} records are bad "
            f"({bad / total:.1%}, allowed {limit:.1%}): {examples}",
            where=where,
            hint=hint,
        )
