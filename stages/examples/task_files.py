"""Task files: YAML, read without executing anything, by the name of the task that they define.

A file may define variants of one task, such as a language each: `variants` maps a suffix to words,
and `<<word>>` in any text stands for the variant's. The file xnli.yaml defines xnli_de, xnli_en, ….
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import yaml

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.files import open_regular
from stages.engine.sources import SourceFile
from stages.examples.task import Task

ENDING = ".yaml"
MAX_BYTES = 1_000_000
VARIANT = "variant"
"""The word that is the variant's own suffix."""
_PLACEHOLDER = re.compile(r"<<(\w+)>>")
_WORD = re.compile(r"[^\"\\{}<>\x00-\x1f]*")
"""A variant's word may stand inside a string of a template, so it must not end that."""


class _Loader(yaml.SafeLoader):
    """SafeLoader with no aliases, no duplicate keys, and no `yes`, `no` or dates that are not text.

    Prompts hold such words: in YAML 1.1, `[no, yes]` are truth values.
    """

    yaml_implicit_resolvers = {
        first: [
            (tag, pattern)
            for tag, pattern in resolvers
            if tag.rpartition(":")[2] in ("null", "int", "float")
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Refuse aliases, by which a short file can stand for a huge value."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.constructor.ConstructorError(
                None, None, "aliases (*name) are not read", self.peek_event().start_mark
            )
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Refuse a key that is there twice."""
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for place, key in enumerate(keys):
            if key in keys[:place]:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key '{key}' is there twice", node.start_mark
                )
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(?:true|false)$"), ["t", "f"])


def parse_tasks(raw: bytes, stem: str, where: str) -> dict[str, Task]:
    """The tasks of a file called `stem`.yaml, by name.

    Raises UsageError for what is wrong, with the line or the field.
    """
    if len(raw) > MAX_BYTES:
        raise UsageError(f"a task file of more than {MAX_BYTES:,} bytes", where=where)
    try:
        value = yaml.load(raw.decode(), Loader=_Loader)
    except UnicodeDecodeError:
        raise UsageError("it is not UTF-8", where=where) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"no YAML: {_one_line(error)}", where=where) from None
    if not isinstance(value, dict):
        raise UsageError("it is no mapping", where=where, hint="see docs/how-to/own-task.md")
    variants = value.pop("variants", None)
    if "name" in value:
        raise UsageError("unknown key 'name'", where=where, hint="a task is named by its file")
    if variants is None:
        return {stem: Task.parse({"name": stem, **value}, where=where)}
    tasks = {}
    for suffix, words in _variants(variants, where):
        name = f"{stem}_{suffix}"
        filled = _fill(value, {**words, VARIANT: suffix}, where)
        tasks[name] = Task.parse({"name": name, **filled}, where=f"{where} ({suffix})")
    return tasks


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def _variants(value: Any, where: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each variant's suffix and words; of a list, suffixes without words."""
    entries = dict.fromkeys(value) if isinstance(value, list) else value
    if not isinstance(entries, dict) or not entries:
        raise UsageError("variants: a list of names, or names with their words", where=where)
    for suffix, words in entries.items():
        words = words or {}
        if not isinstance(words, dict) or not all(isinstance(w, str) for w in words.values()):
            raise UsageError(f"variants.{suffix}: words are texts", where=where)
        for word in (*words.values(), str(suffix)):
            if not _WORD.fullmatch(word):
                raise UsageError(f'variants.{suffix}: a word holds one of "\\{{}}<>', where=where)
        yield str(suffix), words


def _fill(value: Any, words: Mapping[str, str], where: str) -> Any:
    """`value` with every `<<word>>` replaced."""
    if isinstance(value, str):

        def word(match: re.Match[str]) -> str:
            if match[1] not in words:
                known = did_you_mean(match[1], words)
                raise UsageError(f"no word '{match[1]}' in this variant{known}", where=where)
            return words[match[1]]

        return _PLACEHOLDER.sub(word, value)
    if isinstance(value, list):
        return [_fill(one, words, where) for one in value]
    if isinstance(value, dict):
        return {_fill(key, words, where): _fill(one, words, where) for key, one in value.items()}
    return value


def _folder() -> Traversable:
    return files("stages.examples") / "tasks"


def shipped_files() -> list[str]:
    """Stems of the task files that come with Ingot, sorted."""
    names = (entry.name for entry in _folder().iterdir())
    return sorted(name.removesuffix(ENDING) for name in names if name.endswith(ENDING))


@cache
def shipped_tasks(stem: str) -> dict[str, Task]:
    """The tasks of a file that comes with Ingot."""
    raw = (_folder() / f"{stem}{ENDING}").read_bytes()
    return parse_tasks(raw, stem, where=f"task {stem}")


def is_shipped(name: str) -> bool:
    """Whether a task of this name comes with Ingot."""
    return any(name in shipped_tasks(stem) for stem in _stems(name))


def _stems(name: str) -> list[str]:
    """Files that may define a task of this name."""
    return [stem for stem in shipped_files() if name == stem or name.startswith(f"{stem}_")]


def shipped_task(name: str) -> Task:
    """A task that comes with Ingot. UsageError with the nearest name if there is none."""
    for stem in _stems(name):
        if name in shipped_tasks(stem):
            return shipped_tasks(stem)[name]
    raise unknown_task(name, shipped_names(name))


def shipped_names(near: str = "") -> list[str]:
    """Names of all tasks; of a file with variants only where `near` may mean one of them."""
    names: list[str] = []
    for stem in shipped_files():
        tasks = shipped_tasks(stem)
        names += tasks if len(tasks) == 1 or near.startswith(stem) else [stem]
    return names


def unknown_task(name: str, known: list[str]) -> UsageError:
    """What to say of a task that nobody defines."""
    return UsageError(
        f"no task '{name}'{did_you_mean(name, known)}",
        hint="`ingot tasks` lists them; a file of your own enters by the role `tasks`",
    )


def read_task_file(path: str) -> dict[str, Task]:
    """The tasks of a file on this machine. UsageError or InputError."""
    try:
        with open_regular(path) as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=path) from None
    return parse_tasks(raw, _stem(path), where=path)


def find_task(name: str, sources: list[SourceFile]) -> Task:
    """The task `name` of a snapshot's files. InputError or UsageError if it has none of it."""
    stems = {_stem(source.name): source for source in sources if source.name.endswith(ENDING)}
    known: list[str] = []
    for stem in sorted(stems, key=len, reverse=True):
        if name != stem and not name.startswith(f"{stem}_"):
            known.append(stem)
            continue
        with stems[stem].open() as stream:
            raw = stream.read(MAX_BYTES + 1)
        tasks = parse_tasks(raw, stem, where=stems[stem].name)
        if name in tasks:
            return tasks[name]
        known += tasks
    raise unknown_task(name, known)


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(ENDING)
