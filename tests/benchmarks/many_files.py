"""What a store costs whose artifact has many files: to list, to plan with, to trace, to read.

    python -m tests.benchmarks.many_files [--files 1000 10000 100000] [--rounds 3]

The payload is made up: empty files, one artifact a store. Each
operation runs in a process of its own; reported are the least CPU seconds of the rounds without the
start-up, and the bytes that were read from the store.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from artifacts_schema.file_table import File
from artifacts_schema.identity import artifact_key
from artifacts_schema.manifest import Code, Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.backend import LocalBackend
from artifacts_schema.store.commit import Attempt, commit
from artifacts_schema.store.gc import plan_gc
from artifacts_schema.store.store import descendants
from artifacts_schema.store.verify import damage_records, find_committed

STAGE = "made_up"
EMPTY = hashlib.sha256(b"").hexdigest()


def fill(url: str, files: int) -> Store:
    """A store whose only artifact has so many empty files."""
    store = Store.open(url)
    key = artifact_key(STAGE, 1, {"files": files}, {})
    attempt = Attempt(store.backend, STAGE, key, {"documents": "documents"})
    folder = Path(store.backend.full(store_folder(attempt)))
    folder.mkdir(parents=True)
    for number in range(files):
        name = f"{number:06d}-from-some-archive.parquet"
        os.close(os.open(folder / name, os.O_CREAT | os.O_WRONLY, 0o644))
        attempt.register("documents", File(path=name, bytes=0, sha256=EMPTY, rows=0))
    commit(
        store,
        Manifest(
            stage=STAGE,
            version=1,
            key=key,
            reproducible="bytes",
            config={"files": files},
            identity={"files": files},
            inputs={},
            outputs=attempt.outputs(),
            attempt=attempt.name,
            code=Code(digest="0" * 64, libraries={}),
        ),
    )
    return store


def store_folder(attempt: Attempt) -> str:
    """The folder of the output that is made up."""
    return f"data/{STAGE}/{attempt.key}/{attempt.name}/documents"


def list_all(store: Store) -> None:
    """What `ingot ls` asks: every manifest, sizes and rows of outputs."""
    for manifest in store.manifests():
        for output in manifest.outputs.values():
            _ = output.bytes, output.rows


def plan(store: Store) -> None:
    """What a plan asks of each step: whether its artifact is whole."""
    records = damage_records(store)
    names = store.keys()
    for stage, key in names:
        assert find_committed(store, stage, key, records=records).whole


def trace(store: Store) -> None:
    """What `why` and `trace` ask: manifests, and what was made of what."""
    for manifest in store.manifests():
        descendants(store, manifest)


def collect(store: Store) -> None:
    """What `gc` lists."""
    plan_gc(store, min_age_seconds=0)


def read_files(store: Store) -> None:
    """What a stage asks of an input: each of its files."""
    for manifest in store.manifests():
        for output in manifest.outputs.values():
            assert output.files


OPERATIONS: tuple[Callable[[Store], None], ...] = (list_all, plan, trace, collect, read_files)


def measure(url: str, operation: Callable[[Store], None]) -> tuple[float, int]:
    """CPU seconds and bytes read from the store by one operation, in a process of its own."""
    read = LocalBackend.read
    total = [0]

    def counting(self: LocalBackend, path: str, start: int = 0) -> bytes:
        raw = read(self, path, start)
        total[0] += len(raw)
        return raw

    LocalBackend.read = counting  # type: ignore[method-assign]
    store = Store(url)
    began = time.process_time()
    operation(store)
    return time.process_time() - began, total[0]


def main() -> None:
    """Make stores and print what each operation costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    for files in options.files:
        with tempfile.TemporaryDirectory() as folder:
            url = f"{folder}/store"
            fill(url, files)
            for operation in OPERATIONS:
                with context.Pool(1, maxtasksperchild=1) as pool:
                    tries = [pool.apply(measure, (url, operation)) for _ in range(options.rounds)]
                seconds, read = min(tries)
                print(f"{files:>8,} files  {operation.__name__:<11} {seconds:7.3f} s {read:>12,} B")


if __name__ == "__main__":
    main()
