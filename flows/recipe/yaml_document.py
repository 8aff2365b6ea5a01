"""YAML as recipes use it: YAML 1.2 scalars, no duplicate keys, and the line of every value.

PyYAML reads YAML 1.1, where `no` is false, `010` is 8, `1:30` is 90 and `3e-3` is text. A recipe
that lists the languages `[en, no]` or a learning rate of `3e-3` means what YAML 1.2 says, so that
is what this module reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.files import open_regular

KeyPath = tuple[str | int, ...]
"""The path to a value: keys and list positions from the top."""

MAX_NODES = 100_000
"""Most values of a recipe, aliases and merges expanded: a limit against YAML bombs."""
MAX_BYTES = 4_000_000
MAX_INT_BITS = 64
_SCALARS = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str")
)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True)
class Place:
    """Where a value was written: a file and a line, or a `--set` of the command line."""

    source: str
    line: int | None = None

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"


@dataclass
class Document:
    """Plain values and the place of each."""

    values: dict[str, Any]
    places: dict[KeyPath, Place] = field(default_factory=dict)

    def place(self, *where: str | int) -> Place:
        """The place of the value at `where`, or of the nearest enclosing value that has one."""
        for end in range(len(where), -1, -1):
            if where[:end] in self.places:
                return self.places[where[:end]]
        return Place("recipe")

    def section(self, name: str) -> dict[str, Any]:
        """The mapping under a key of the top; empty if there is something else."""
        value = self.values.get(name)
        return value if isinstance(value, dict) else {}


class _TooMany(Exception):
    """More values than a recipe may have."""


class _Loader(yaml.SafeLoader):
    """SafeLoader with the scalars of YAML 1.2's core schema (and `_` between digits)."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._nodes, self._flat = 0, set[int]()

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a node and count it."""
        self._count(1)
        return super().compose_node(parent, index)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merge the mappings under `<<`, counting their values: each merge can multiply them."""
        if id(node) in self._flat:
            return
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                for one in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    if isinstance(one, yaml.MappingNode):
                        self.flatten_mapping(one)
                        self._count(len(one.value))
        super().flatten_mapping(node)
        self._flat.add(id(node))

    def _count(self, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise _TooMany


_DIGITS = list("-+0123456789")
for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9][0-9_]*|0o[0-7]+|0x[0-9a-fA-F]+", _DIGITS),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf)|\.nan",
        [*_DIGITS, "."],
    ),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first
    )


def _construct_int(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    text = node.value.replace("_", "")
    base = 0 if text[:2] in ("0x", "0o") else 10
    # Python rejects thousands of digits only, and is slow before.
    if len(text) > MAX_INT_BITS or (value := int(text, base)).bit_length() > MAX_INT_BITS:
        raise ValueError(f"a whole number of more than {MAX_INT_BITS} bits")
    return value


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)


def read_yaml(path: Path) -> Document:
    """The mapping in the file at `path`.

    Raises InputError if it cannot be read, UsageError (with the line) if it is not YAML, holds a
    key twice, a key that is not text, or is not a mapping.
    """
    try:
        with open_regular(path) as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise UsageError(f"not a recipe: more than {MAX_BYTES:,} bytes", where=str(path))
        text = raw.decode("utf-8")
    except FileNotFoundError:
        raise InputError("no such file", where=str(path)) from None
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 at byte {error.start}", where=str(path)) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None
    return parse_yaml(text, str(path))


def parse_yaml(text: str, source: str) -> Document:
    """The mapping in `text`; `source` names it in errors. An empty text is an empty mapping."""
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return Document({}, {(): Place(source)})
        if not isinstance(node, yaml.MappingNode):
            raise UsageError("expected keys and values", where=str(_place(node, source)))
        walk = _Walk(loader, source)
        return Document(walk.value(node, ()), walk.places)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = Place(source, mark.line + 1 if mark else None)
        quotes = "put a value that begins with @ in quotes" if "'@'" in str(error.problem) else None
        raise UsageError(f"not YAML: {error.problem}", where=str(where), hint=quotes) from None
    except yaml.YAMLError as error:
        raise UsageError(f"not YAML: {str(error).splitlines()[0]}", where=source) from None
    except _TooMany:
        raise UsageError(f"not a recipe: more than {MAX_NODES:,} values", where=source) from None
    except RecursionError:
        raise UsageError("not a recipe: nested too deeply", where=source) from None
    finally:
        if loader is not None:
            loader.dispose()


def parse_value(text: str, source: str) -> Any:
    """One YAML value of a command line: `0.7`, `true`, `[a, b]`, `{x: 1}`, plain words as text."""
    document = parse_yaml(f"value: {text}", source) if text.strip() else Document({"value": ""})
    if set(document.values) != {"value"}:
        raise UsageError(f"not one YAML value: {text}", where=source)
    return document.values["value"]


class _Walk:
    """Turns YAML nodes into plain values and records the place of each."""

    def __init__(self, loader: yaml.SafeLoader, source: str) -> None:
        self.loader, self.source = loader, source
        self.places: dict[KeyPath, Place] = {}
        self.open: set[int] = set()

    def value(self, node: yaml.Node, where: KeyPath) -> Any:
        """The plain value of `node`, whose path is `where`."""
        self.places.setdefault(where, _place(node, self.source))
        if len(self.places) > MAX_NODES:
            raise _TooMany
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node)
        if node.tag not in ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            raise self.problem(f"tag {node.tag} is not known", node)
        if id(node) in self.open:
            raise self.problem("an alias contains itself", node)
        self.open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item, (*where, i)) for i, item in enumerate(node.value)]
            assert isinstance(node, yaml.MappingNode)
            return self.mapping(node, where)
        finally:
            self.open.discard(id(node))

    def scalar(self, node: yaml.ScalarNode) -> Any:
        """The plain value of a scalar."""
        if node.tag not in _SCALARS:
            raise self.problem(f"tag {node.tag} is not known", node)
        try:
            value = self.loader.construct_object(node)
        except (ValueError, LookupError) as error:  # As of `!!int abc`.
            kind = node.tag.rpartition(":")[2]
            reason = str(error) if isinstance(error, ValueError) else "no such value"
            what = f"{node.value[:40]!r} is not a valid {kind}: {reason[:80]}"
            raise self.problem(what, node) from None
        if isinstance(value, str) and _UNSTORABLE.search(value):
            raise self.problem("text holds a NUL or a lone surrogate", node)
        return value

    def mapping(self, node: yaml.MappingNode, where: KeyPath) -> dict[str, Any]:
        """The dict of a mapping node, with `<<` merged below its own keys."""
        lines: dict[Any, int] = {}
        for key, _ in node.value:
            name = key.value if key.tag == "tag:yaml.org,2002:merge" else self.key(key)
            if name in lines:
                what = f"key '{name}' is written twice (first in line {lines[name]})"
                raise self.problem(what, key)
            lines[name] = key.start_mark.line + 1
        self.loader.flatten_mapping(node)
        # A merged key that the node also has comes twice; the node's own comes last.
        items = {self.key(key): (key, item) for key, item in node.value}
        values: dict[str, Any] = {}
        for name, (key, item) in items.items():
            self.places[(*where, name)] = _place(key, self.source)
            values[name] = self.value(item, (*where, name))
        return values

    def key(self, node: yaml.Node) -> str:
        """The text of a key."""
        name, text = None, "(a collection)"
        if isinstance(node, yaml.ScalarNode):
            name, text = self.scalar(node), node.value
        if not isinstance(name, str):
            raise self.problem(f"key {text} is not text", node, hint="put it in quotes")
        return name

    def problem(self, what: str, node: yaml.Node, hint: str | None = None) -> UsageError:
        """An error about a node."""
        return UsageError(what, where=str(_place(node, self.source)), hint=hint)


def _place(node: yaml.Node, source: str) -> Place:
    return Place(source, node.start_mark.line + 1)


def merge(base: Document, over: Document) -> Document:
    """`base` with `over` merged into it: mappings key by key, everything else replaced."""
    values = _merged(base.values, over.values)
    replaced = {w for w in over.places if not isinstance(_at(over.values, w), Mapping)}
    kept = {
        path: place
        for path, place in base.places.items()
        if not any(path[:end] in replaced for end in range(len(path) + 1))
    }
    return Document(values, {**kept, **over.places})


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        if both and key == "model" and "preset" in value:
            both = False  # A preset is a whole model: it replaces the base's numbers.
        result[key] = _merged(old, value) if both else value  # type: ignore[arg-type]
    return result


def _at(values: Any, where: KeyPath) -> Any:
    for part in where:
        values = values[part]
    return values
