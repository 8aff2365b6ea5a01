"""Ways to disturb a run in a forked copy of this process, where everything is imported already."""

from __future__ import annotations

import errno
import os
import random
import signal
import threading

from forks import in_fork

from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store, backend, failpoints
from artifacts_schema.store.verify import verify
from flows.recipe.plan import PlannedStep
from stages.engine.runner import run_stage
from stages.engine.shards import ShardMap
from stages.engine.spec import StageSpec

KILLED = -signal.SIGKILL


def die() -> None:
    """End this process as `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def run_counting(store: Store, spec: StageSpec) -> list[str]:
    """Run undisturbed in a fork; the named points that it passed, in order."""
    read, write = os.pipe()

    def action() -> None:
        failpoints.on_failpoint = lambda point: os.write(write, f"{point}\n".encode()) and None
        run_stage(store, spec)

    code = in_fork(action)
    os.close(write)
    with os.fdopen(read) as file:
        passed = file.read().splitlines()
    assert code == 0
    return passed


def is_same_artifact(store: Store, step: PlannedStep, before: Manifest) -> Manifest:
    """The committed artifact is whole and equals the undisturbed one; it is returned."""
    manifest = store.manifest(step.stage, step.key)
    assert manifest is not None
    digests = {name: output.digest for name, output in manifest.outputs.items()}
    assert digests == {name: output.digest for name, output in before.outputs.items()}
    assert verify(store, manifest) == []
    assert manifest.counts == before.counts
    assert manifest.conservation == before.conservation
    return manifest


def run_killed_at(store: Store, spec: StageSpec, point: str, *, times: int = 1) -> int:
    """Run in a fork that dies when it has passed the named point so many times."""
    left = [times]

    def strike(passed: str) -> None:
        left[0] -= passed == point
        if left[0] == 0:
            die()

    def action() -> None:
        failpoints.on_failpoint = strike
        run_stage(store, spec)

    return in_fork(action)


def run_killed_after(store: Store, spec: StageSpec, seconds: float) -> int:
    """Run in a fork that dies after some time, wherever it is then, native code included."""

    def action() -> None:
        timer = threading.Timer(seconds, die)
        timer.daemon = True
        timer.start()
        run_stage(store, spec)

    return in_fork(action)


def fill_disk_after(monkeypatch: object, bytes_left: int) -> None:
    """From now on this process can write so many payload bytes, then the disk is full."""
    left = [bytes_left]
    write = backend.HashingWriter.write

    def limited(self: backend.HashingWriter, data: object) -> int:
        left[0] -= len(memoryview(data).cast("B"))  # type: ignore[arg-type]
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(self, data)

    monkeypatch.setattr(backend.HashingWriter, "write", limited)  # type: ignore[attr-defined]
    # A stage that guards its workers has some even if it needs one; only this process is limited.
    inline = ShardMap._run_inline
    monkeypatch.setattr(ShardMap, "_run_pool", inline)  # type: ignore[attr-defined]


def seeded(*names: object) -> random.Random:
    """A generator whose draws are named in a failure by its seed."""
    seed = "/".join(str(name) for name in names)
    print(f"seed: {seed!r}")
    return random.Random(seed)
