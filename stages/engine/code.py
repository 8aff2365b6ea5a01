"""Which program made an artifact: digest of the stage's modules, versions of its libraries."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import inspect
import platform
import re
from functools import cache
from pathlib import Path

from stages.engine.protocol import Stage

SHARED_ROOMS = ("engine.reading", "language_model", "text", "model", "training", "scoring")
UNCOUNTED = ("page.py", "figures.py")
_USES = re.compile(r"\bstages\.(" + "|".join(map(re.escape, SHARED_ROOMS)) + r")\b")


def code_digest(stage: type[Stage]) -> str:
    """sha256 over the syntax of the stage's room and of the shared rooms it uses.

    Comments, formatting, docstrings and the stage's page do not count; a room's JSON (weights,
    lists) does. Of the engine only what reads files from outside does: the rest moves bytes. A
    stage outside `stages/` counts its own module, or its package if it has one to itself.
    """
    home = Path(inspect.getfile(stage)).resolve()
    room = home.parent if home.name == "stage.py" else home
    digest = hashlib.sha256()
    for part in _closure(room):
        digest.update(_room_digest(part).encode())
    return digest.hexdigest()


def engine_digest() -> str:
    """sha256 over the syntax of the engine and of what passes between stages.

    It bears on no output, so no manifest names it; but processes that hand shards to each other
    must agree on it. Of a process that lives on it stays what it was when first asked for.
    """
    home = Path(__file__).resolve().parent
    rooms = (home, home.parents[1] / "artifacts_schema")
    return hashlib.sha256("".join(_room_digest(room) for room in rooms).encode()).hexdigest()


def library_versions(stage: type[Stage]) -> dict[str, str]:
    """Python's version and those of the distributions that bear on the stage's bytes."""
    return {
        "python": platform.python_version(),
        **{name: _version(name) for name in sorted(stage.libraries)},
    }


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def _closure(room: Path) -> list[Path]:
    shared = Path(__file__).resolve().parent.parent
    found, waiting = [room], [room]
    while waiting:
        for name in sorted(_uses(waiting.pop())):
            part = shared / name.replace(".", "/")
            if part not in found and part.is_dir():
                found.append(part)
                waiting.append(part)
    return [room, *sorted(found[1:])]


def _sources(room: Path) -> list[Path]:
    """The modules of a room that can bear on its output: its page only shows what was made."""
    if room.is_file():
        return [room]
    return sorted(path for path in room.rglob("*.py") if path.name not in UNCOUNTED)


def _data(room: Path) -> list[Path]:
    """What the modules of a room read from beside them: weights and lists."""
    return [] if room.is_file() else sorted(room.rglob("*.json"))


@cache
def _uses(room: Path) -> frozenset[str]:
    text = "\n".join(path.read_text(encoding="utf-8") for path in _sources(room))
    return frozenset(_USES.findall(text))


@cache
def _room_digest(room: Path) -> str:
    digest = hashlib.sha256()
    for path in _sources(room):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        _drop_docstrings(tree)
        name = path.name if room.is_file() else path.relative_to(room).as_posix()
        digest.update(f"{name}\n{ast.dump(tree)}\n".encode())
    for path in _data(room):
        held = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(room).as_posix()}\n{held}\n".encode())
    return digest.hexdigest()


def _drop_docstrings(tree: ast.AST) -> None:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list) or not body:
            continue
        first = body[0]
        if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
            node.body = body[1:]  # type: ignore[attr-defined]
