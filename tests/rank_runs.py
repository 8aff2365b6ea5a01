"""Runs on several ranks as `ingot run` starts them: their processes, and when to kill one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from artifacts_schema.store import Store
from artifacts_schema.store.lease import local_work
from stages.engine.spec import StageSpec


def start(store: Store, spec: StageSpec, folder: Path) -> subprocess.Popen[str]:
    """The stage as `ingot run` starts it."""
    path = folder / "spec.json"
    path.write_bytes(spec.to_json())
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "stages", spec.stage, "--store", store.url,
         "--spec", str(path), "--key", spec.key],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def wait_for_checkpoint(
    store: Store, spec: StageSpec, process: subprocess.Popen[str], step: int
) -> None:
    """Until a rolling checkpoint of `step` or a later one exists."""
    folder = local_work(store.backend, spec.key)
    while process.poll() is None:
        names = [path.parent.name for path in folder.rglob("training-step-*/sealed.json")]
        if any(int(name[14:26]) >= step and "-0" not in name[26:] for name in names):
            return
        time.sleep(0.05)
    raise AssertionError(process.communicate()[0])


def ranks(store: Store, spec: StageSpec) -> dict[int, int]:
    """Processes of the run's ranks, by number."""
    job = str(local_work(store.backend, spec.key, "ranks", "job.json"))
    numbers = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    arguments = file.read().split(b"\0")
                with open(f"/proc/{entry}/environ", "rb") as file:
                    environment = dict(
                        one.split(b"=", 1) for one in file.read().split(b"\0") if b"=" in one
                    )
            except OSError:
                continue
            if job.encode() in arguments and b"RANK" in environment:
                numbers[int(environment[b"RANK"])] = int(entry)
    return numbers
