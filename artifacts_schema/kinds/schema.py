"""How a kind is described: its files, its tables, and every column with a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import CorruptArtifact

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Column:
    """A column: name, type (see `arrow_type`), one sentence; '?' behind the type allows null."""

    name: str
    type: str
    description: str

    @property
    def nullable(self) -> bool:
        """Whether the column may hold nulls."""
        return self.type.endswith("?")


@dataclass(frozen=True)
class Table:
    """A table of a kind. `open` tables may carry more columns than are listed (signals do)."""

    columns: tuple[Column, ...]
    open: bool = False

    def arrow(self, extra: Sequence[Column] = ()) -> pa.Schema:
        """The Arrow schema with descriptions as metadata; `extra` follow in an open table."""
        import pyarrow as pa

        if extra and not self.open:
            raise ValueError("this table takes no further columns")
        return pa.schema(
            [
                pa.field(
                    column.name,
                    arrow_type(column.type.removesuffix("?")),
                    nullable=column.nullable,
                    metadata={"description": column.description},
                )
                for column in (*self.columns, *extra)
            ]
        )

    def check(self, schema: pa.Schema, *, where: str) -> None:
        """Raise CorruptArtifact unless `schema` has this table's columns with their types."""
        for column in self.columns:
            index = schema.get_field_index(column.name)
            if index < 0:
                raise CorruptArtifact(f"column '{column.name}' is missing", where=where)
            actual, expected = schema.field(index).type, arrow_type(column.type.removesuffix("?"))
            if actual != expected:
                raise CorruptArtifact(
                    f"column '{column.name}' is {actual}, expected {expected}", where=where
                )


@dataclass(frozen=True)
class Kind:
    """The type of an output.

    `tables` maps a file pattern (fnmatch, relative to the output) to the table that such files
    hold; `files` maps the other file patterns to one sentence each. Every file must match one of
    them.
    """

    name: str
    version: int
    description: str
    tables: Mapping[str, Table] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def table_for(self, path: str) -> Table | None:
        """The table that a file at `path` must hold, or None for a file of another sort."""
        from fnmatch import fnmatchcase

        return next((t for pattern, t in self.tables.items() if fnmatchcase(path, pattern)), None)

    def allows(self, path: str) -> bool:
        """Whether an output of this kind may hold a file at `path`."""
        from fnmatch import fnmatchcase

        return any(fnmatchcase(path, pattern) for pattern in (*self.tables, *self.files))


def arrow_type(name: str) -> Any:
    """The Arrow type of a short name: string, int64, list<T>, struct<name: T, …> and so on."""
    import pyarrow as pa

    if name.startswith("list<"):
        return pa.list_(pa.field("item", arrow_type(name[5:-1]), nullable=False))
    if name.startswith("struct<"):
        members = (part.split(":", 1) for part in _split(name[7:-1]))
        return pa.struct(
            [
                pa.field(
                    key.strip(),
                    arrow_type(kind.strip().removesuffix("?")),
                    nullable=kind.strip().endswith("?"),
                )
                for key, kind in members
            ]
        )
    return {
        "string": pa.string(),
        "large_string": pa.large_string(),
        "bool": pa.bool_(),
        "int8": pa.int8(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "uint32": pa.uint32(),
        "uint64": pa.uint64(),
        "float32": pa.float32(),
        "float64": pa.float64(),
        "binary": pa.binary(),
    }[name]


def _split(members: str) -> list[str]:
    """Split at the commas outside angle brackets."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(members):
        depth += (char == "<") - (char == ">")
        if char == "," and depth == 0:
            parts.append(members[start:i])
            start = i + 1
    return [*parts, members[start:]]
