"""What a machine is to Ingot, as JSON: `python -P -m stages.engine.probe --store URL --key KEY`.

`ingot doctor` runs it as a job on a node of each pool, and compares the answer with its own
machine's. The question and the answer meet in `work/KEY/` of the store, a work folder that the
doctor made and removes; so an answer that arrives shows that both machines see the same store. What
the store must be able to do is tried with the operations that a run uses. No store is ever created.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Self
from urllib.parse import urlsplit

from artifacts_schema.errors import (
    EXIT_FAILED,
    EXIT_OK,
    IngotError,
    StoreError,
    UsageError,
    printable_lines,
)
from artifacts_schema.store import Store, layout
from artifacts_schema.store.backend import Backend
from stages.engine.allotment import available_cores, available_memory
from stages.engine.protocol import stage_named, stage_names
from stages.engine.provenance import code_digest, engine_digest

QUESTION, ANSWER = "question.json", "answer.json"
PREFECT_API = "PREFECT_API_URL"
SECONDS = 10.0
"""How long the Prefect API may take to answer."""
_DATA = b"ingot doctor" * 4096
"""What is written and read back: several pages of any file system."""


@dataclass(frozen=True)
class Machine:
    """What one machine says of itself; a `Machine` of each side is compared."""

    host: str
    time: float
    """Seconds since 1970 by its own clock."""
    python: str
    libraries: dict[str, str]
    """Ingot, and the distributions that bear on some stage's bytes: name → version."""
    stages: dict[str, str]
    """Stage → its version and the digest of its code; or why it does not import."""
    engine: str
    cores: int
    memory: int
    """Bytes that a process may use there."""
    gpus: int | None
    """Devices that torch sees; None where nobody asked."""
    prefect: str | None
    """What is wrong with the Prefect API of its environment: empty if it answers, None without."""
    store: dict[str, str]
    """Operation of the store → what is wrong with it, empty if nothing is."""

    @classmethod
    def from_json(cls, raw: bytes) -> Self:
        """ValueError or TypeError for what another version wrote."""
        return cls(**json.loads(raw))

    def to_json(self) -> bytes:
        """As `from_json` reads it."""
        return json.dumps(asdict(self), indent=1).encode()


def describe_machine(store: Store, key: str, *, gpus: bool = False) -> Machine:
    """This machine; `gpus` imports torch to count them. Its work folder is `work/KEY/`."""
    stages, libraries = _read_stages()
    return Machine(
        host=platform.node(),
        time=time.time(),
        python=platform.python_version(),
        libraries=libraries,
        stages=stages,
        engine=engine_digest(),
        cores=available_cores(),
        memory=available_memory(),
        gpus=_count_gpus() if gpus else None,
        prefect=check_prefect(os.environ.get(PREFECT_API)),
        store=try_store(store.backend, layout.work(key, f"trial-{socket.gethostname()}")),
    )


def _read_stages() -> tuple[dict[str, str], dict[str, str]]:
    stages, names = {}, {"ingot", "pyarrow", "torch"}
    for name in stage_names():
        try:
            stage = stage_named(name)
        except UsageError as error:
            stages[name] = str(error)
            continue
        stages[name] = f"version {stage.version}, code {code_digest(stage)[:12]}"
        names.update(stage.libraries)
    versions = {}
    for name in sorted(names):
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return stages, versions


def _count_gpus() -> int:
    try:
        import torch
    except ImportError:
        return 0
    return torch.cuda.device_count()


def try_store(backend: Backend, folder: str) -> dict[str, str]:
    """Each operation that a run needs, in a new folder that is removed at the end.

    In a folder of a file system: write and fsync, read, a hard link, a rename over an older file,
    the file that only one of two writers makes, fsync of folders, removal. In a bucket the same
    calls are conditional and plain requests.
    """
    problems: dict[str, str] = {}

    def attempt(name: str, work: Callable[[], bool]) -> None:
        try:
            problems[name] = "" if work() else "it did not do what it should"
        except (OSError, IngotError) as error:
            problems[name] = str(error)

    def write() -> bool:
        with backend.create(f"{folder}/written") as file:
            file.write(_DATA)
        return backend.size(f"{folder}/written") == len(_DATA)

    def link() -> bool:
        backend.link([(f"{folder}/written", f"{folder}/linked")])
        return backend.read(f"{folder}/linked") == _DATA

    def rename() -> bool:
        backend.replace(f"{folder}/renamed", b"old")
        backend.replace(f"{folder}/renamed", b"new")
        return backend.read(f"{folder}/renamed") == b"new"

    def create_once() -> bool:
        made = [backend.put_if_absent(f"{folder}/once", word) for word in (b"first", b"second")]
        return made == [True, False] and backend.read(f"{folder}/once") == b"first"

    def sync() -> bool:
        backend.sync(folder)
        return True

    def remove() -> bool:
        backend.remove(folder)
        return not backend.files(folder)

    attempt("write", write)
    attempt("read", lambda: backend.read(f"{folder}/written") == _DATA)
    attempt("hard link" if backend.local else "copy", link)
    attempt("rename" if backend.local else "replace", rename)
    attempt("create once", create_once)
    if backend.local:
        attempt("fsync", sync)
    attempt("remove", remove)
    return problems


def check_prefect(url: str | None) -> str | None:
    """What is wrong with the API at `url`: "" if it answers its health check, None without a URL.

    No credential is sent. The text names scheme and host only: a URL may hold a password.
    """
    if not url:
        return None
    parts = urlsplit(url)
    place = f"{parts.scheme}://{parts.hostname}:{parts.port or ''}".rstrip(":")
    if parts.scheme not in ("http", "https"):
        return f"{PREFECT_API} is no address of http or https"
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    try:
        with urllib.request.urlopen(f"{bare.rstrip('/')}/health", timeout=SECONDS):
            return ""
    except urllib.error.HTTPError as error:
        return "" if error.code in (401, 403) else f"{place} answers {error.code}"
    except (OSError, ValueError) as error:
        return f"{place}: {getattr(error, 'reason', error)}"


def main(arguments: list[str] | None = None) -> int:
    """Answer the question in the store; prints the answer too. Exit code 0 once it is written."""
    parser = argparse.ArgumentParser(prog="python -P -m stages.engine.probe")
    parser.add_argument("--store", required=True, help="URL of the store")
    parser.add_argument("--key", required=True, help="name of the work folder of the question")
    parser.add_argument("--gpus", action="store_true", help="import torch and count GPUs")
    options = parser.parse_args(arguments)
    try:
        store = Store.open(options.store, create=False)
        if store.backend.size(layout.work(options.key, QUESTION)) is None:
            raise StoreError(
                "another store than that of the machine that asks",
                where=store.url,
                hint="is a local folder where the shared one should be mounted?",
            )
        answer = describe_machine(store, options.key, gpus=options.gpus).to_json()
        print(answer.decode())
        store.backend.replace(layout.work(options.key, ANSWER), answer)
    except IngotError as error:
        print(printable_lines(f"error: {platform.node()}: {error}"), file=sys.stderr)
        return EXIT_FAILED
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
