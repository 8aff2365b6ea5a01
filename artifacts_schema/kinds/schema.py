"""How a kind is described: its files, its tables, and every column with a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
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
            _field(column.name, column.type).with_metadata({"description": column.description})
            for column in (*self.columns, *extra)
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


def make_table(*columns: Column, open: bool = False) -> Table:
    """A table of these columns."""
    return Table(columns, open)


@dataclass(frozen=True)
class Kind:
    """The type of an output.

    `tables` maps a file pattern (fnmatch, relative to the output) to the table that such files
    hold; `files` maps the other file patterns to one sentence each. Every file must match one of
    them.
    """

    name: str
    description: str
    tables: Mapping[str, Table] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    version: int = 1

    def table_for(self, path: str) -> Table | None:
        """The table that a file at `path` must hold, or None for a file of another sort."""
        return next((t for pattern, t in self.tables.items() if fnmatchcase(path, pattern)), None)

    def allows(self, path: str) -> bool:
        """Whether an output of this kind may hold a file at `path`."""
        return any(fnmatchcase(path, pattern) for pattern in (*self.tables, *self.files))


def arrow_type(name: str) -> Any:
    """The Arrow type of a short name: string, int64, list<T>, struct<name: T, …> and so on."""
    import pyarrow as pa

    if name.startswith("list<"):
        return pa.list_(pa.field("item", arrow_type(name[5:-1]), nullable=False))
    if name.startswith("struct<"):
        members = (part.partition(":") for part in _split(name[7:-1]))
        return pa.struct([_field(key.strip(), type_.strip()) for key, _, type_ in members])
    return pa.type_for_alias(name)


def _field(name: str, type_: str) -> pa.Field:
    import pyarrow as pa

    return pa.field(name, arrow_type(type_.removesuffix("?")), nullable=type_.endswith("?"))


def _split(members: str) -> list[str]:
    """Split at the commas outside angle brackets."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(members):
        depth += (char == "<") - (char == ">")
        if char == "," and depth == 0:
            parts.append(members[start:i])
            start = i + 1
    return [*parts, members[start:]]
