"""Which program made an artifact and at what cost, and checks of what a manifest says about both.

The manifest holds a digest of the stage's modules, the versions of its libraries, and the CPU and
GPU seconds of all processes that worked for the run. Processes of this machine are counted by the
operating system once they have ended and were waited for, with all that they started themselves
(pools, torchrun and its ranks). Workers on other machines count the calls that they answer; what a
lost one spent on its last call is not known.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import importlib.util
import inspect
import os
import platform
import pwd
import re
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import UsageError
from artifacts_schema.manifest import Code, Manifest
from artifacts_schema.store import Store, layout
from artifacts_schema.store.verify import Problem, verify
from stages.engine.meter import book, unbooked_seconds
from stages.engine.protocol import Stage, all_stages

if TYPE_CHECKING:
    from artifacts_schema.store.commit import Attempt
    from stages.engine.context import RunReport
    from stages.engine.spec import StageSpec


SHARED_ROOMS = (
    "engine.reading", "language_model", "text", "tokens", "model", "training", "scoring",
    "encoders",
)  # fmt: skip
UNCOUNTED = ("page.py", "figures.py")
PARSES = 10
_MEMO = re.compile(rb"([0-9a-f]{64}) ([0-9a-f]{64})\n")
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
    must agree on it. In a long-lived process it stays what it was at the first call.
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
    rooms, waiting = [room], [room]
    while waiting:
        for name in sorted(_uses(waiting.pop())):
            part = shared / name.replace(".", "/")
            if part not in rooms and part.is_dir():
                rooms.append(part)
                waiting.append(part)
    return [room, *sorted(rooms[1:])]


def _sources(room: Path) -> list[Path]:
    """The modules of a room that can bear on its output: its page only shows what was made."""
    if room.is_file():
        return [room]
    return sorted(path for path in room.rglob("*.py") if path.name not in UNCOUNTED)


def _data(room: Path) -> list[Path]:
    """Data files that the modules of a room read: weights and lists."""
    return [] if room.is_file() else sorted(room.rglob("*.json"))


@cache
def _uses(room: Path) -> frozenset[str]:
    text = "\n".join(path.read_text(encoding="utf-8") for path in _sources(room))
    return frozenset(_USES.findall(text))


@cache
def _room_digest(room: Path) -> str:
    """The digest of one room, from the memo beside its compiled modules if the sources are those.

    To parse and write out the syntax takes 1 s for the larger stages, to hash the sources .01 s.
    """
    folder = room.parent if room.is_file() else room
    sources = [(path.relative_to(folder).as_posix(), path.read_bytes()) for path in _sources(room)]
    data = [(path.relative_to(folder).as_posix(), path.read_bytes()) for path in _data(room)]
    key = _memo_key([*sources, *data])
    memo = _memo_place(room)
    known = _read_memo(memo, key)
    if known is not None:
        return known
    digest = hashlib.sha256()
    for name, content in sources:
        tree = _syntax(content)
        _drop_docstrings(tree)
        digest.update(f"{name}\n{ast.dump(tree)}\n".encode())
    for name, content in data:
        digest.update(f"{name}\n{hashlib.sha256(content).hexdigest()}\n".encode())
    _write_memo(memo, key, digest.hexdigest())
    return digest.hexdigest()


def _syntax(source: bytes) -> ast.Module:
    """The syntax tree, tried anew where another thread's parse spoilt this one.

    CPython 3.11 counts the depth of all trees under construction in one place: where a garbage
    collection lets another thread parse in between, the count is wrong and `SystemError` is raised
    though the source is good (python/cpython issue 106905).
    """
    for _ in range(PARSES - 1):
        with suppress(SystemError):
            return ast.parse(source)
    return ast.parse(source)


def _memo_key(files: Iterable[tuple[str, bytes]]) -> str:
    """sha256 of all that a digest depends on: the files, Python's syntax tree and this module."""
    key = hashlib.sha256(platform.python_version().encode() + Path(__file__).read_bytes())
    for name, content in files:
        key.update(f"\n{name} {hashlib.sha256(content).hexdigest()}".encode())
    return key.hexdigest()


def _memo_place(room: Path) -> Path | None:
    """Beside the compiled modules, wherever this Python keeps them; None where it keeps none."""
    source = room if room.is_file() else room / "__room__.py"
    try:
        return Path(importlib.util.cache_from_source(str(source))).with_suffix(".syntax")
    except NotImplementedError:
        return None


def _read_memo(memo: Path | None, key: str) -> str | None:
    try:
        held = memo.read_bytes() if memo is not None else b""
    except OSError:
        return None
    match = _MEMO.fullmatch(held)
    return match[2].decode() if match is not None and match[1].decode() == key else None


def _write_memo(memo: Path | None, key: str, digest: str) -> None:
    """Leave it for the next process; where it cannot be written, that one computes it again."""
    if memo is None or sys.dont_write_bytecode:
        return
    part = memo.with_name(f"{memo.name}.{secrets.token_hex(4)}")
    with suppress(OSError):
        try:
            memo.parent.mkdir(exist_ok=True)
            part.write_text(f"{key} {digest}\n", encoding="ascii")
            part.replace(memo)
        finally:
            part.unlink(missing_ok=True)


def _drop_docstrings(tree: ast.Module) -> None:
    """Remove each text that begins a body; bodies are in statements, which alone are visited."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_text(body[0]):
            node.body = body[1:]  # type: ignore[attr-defined]
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            inside = getattr(node, block, None)
            if isinstance(inside, list):
                waiting += inside


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(
        getattr(statement.value, "value", None), str
    )


def build_manifest(
    spec: StageSpec,
    stage: type[Stage],
    attempt: Attempt,
    *,
    key: str,
    telemetry: Mapping[str, Any],
    **fields: Any,
) -> Manifest:
    """The manifest of what `attempt` wrote under `key`; `fields` are its other fields.

    Who asked for it is added to its telemetry.
    """
    return Manifest(
        stage=spec.stage,
        version=spec.version,
        key=key,
        reproducible=stage.reproducible,
        config=spec.config,
        identity=spec.identity,
        inputs=spec.inputs,
        outputs=attempt.outputs(),
        attempt=attempt.name,
        code=Code(digest=code_digest(stage), libraries=library_versions(stage)),
        telemetry={**telemetry, "by": spec.by or login_name()},
        **fields,
    )


CLUSTER_CPU_SECONDS = "dask_cpu_seconds"
"""Of a manifest's telemetry: the part of `cpu_seconds` that processes of other parents spent."""


def run_cost(report: RunReport, seconds: float) -> dict[str, float]:
    """For the manifest's telemetry, at the end of a run that took `seconds` by the clock.

    `cpu_seconds` are all since the process began, or since the stage before it in this process
    ended. `gpu_seconds` are those that devices were held, busy or not: 0 for work on CPUs.
    """
    used = unbooked_seconds() + float(report.notes.get(CLUSTER_CPU_SECONDS, 0.0))
    book()
    return {
        "cpu_seconds": round(used, 3),
        "gpu_seconds": round(seconds * report.devices_held, 3),
    }


def login_name() -> str:
    """The name of this process's user, or its number where it has none."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def check_artifact(store: Store, manifest: Manifest, *, full: bool = True) -> list[Problem]:
    """Everything that is wrong with an artifact; without `full`, by file sizes alone.

    Raises StoreError if the store cannot be read.
    """
    problems = verify(store, manifest, full=full)
    if full and not problems:
        place = layout.manifest(manifest.stage, manifest.key)
        problems = [Problem(place, what) for what in _wrong_statements(manifest)]
    return problems


def _wrong_statements(manifest: Manifest) -> Iterator[str]:
    """What the stage would not have said; nothing where another version of it is installed."""
    stage = all_stages().get(manifest.stage)
    if stage is None or stage.version != manifest.version:
        return
    if manifest.reproducible != stage.reproducible:
        yield f"it says reproducible: {manifest.reproducible}, its stage: {stage.reproducible}"
    whole = manifest.interim_of is None
    kinds = {name: output.kind for name, output in manifest.outputs.items()}
    if not kinds.items() <= stage.outputs.items() or (whole and len(kinds) < len(stage.outputs)):
        yield "its outputs are not those of its stage"
    if whole and stage.handles_documents and manifest.conservation is None:
        yield "it does not account for its records"
    try:
        config = stage.Config.parse(manifest.identity, where=stage.name).plain()
    except UsageError as error:
        yield f"its identity is not a config of its stage: {error.what}"
        return
    if not _agrees(manifest.config, config):
        yield "its config differs from the defaults where its identity names no value"


def _agrees(stored: Any, expected: Any) -> bool:
    """Whether all values of a stored config are expected; fields that came later are not in it."""
    if isinstance(stored, Mapping) and isinstance(expected, Mapping):
        return all(
            name in expected and _agrees(value, expected[name]) for name, value in stored.items()
        )
    if isinstance(stored, list) and isinstance(expected, list):
        return len(stored) == len(expected) and all(map(_agrees, stored, expected))
    return bool(stored == expected)
