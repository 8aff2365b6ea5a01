"""A stage as a child process: the same entry that a node of a cluster runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from itertools import takewhile
from pathlib import Path
from typing import Any

from artifacts_schema.identity import short
from artifacts_schema.store import Store
from artifacts_schema.store.refusals import explained
from artifacts_schema.store.work import local_work
from stages.engine.events import EVENTS_FILE, EventReader
from stages.engine.spec import StageSpec

OUTPUT_FILE = "output.txt"
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)

WAITING = {"OMP_WAIT_POLICY": "PASSIVE"}
"""How OpenMP's threads wait for each other: asleep. Those of GNU's runtime, which torch brings,
spin by default; where other processes want the cores, a step of training then took 30 times as long
and 12 times the CPU seconds (`python -m tests.benchmarks.spinning`). It is read when the library is
loaded, and no result depends on it."""


NOT_FOR_STAGES = ("PREFECT_API_AUTH_STRING", "PREFECT_SERVER_API_AUTH_STRING", "PREFECT_API_KEY")
"""Credentials of the Prefect API, which no stage calls; a plugin or its log shall not hold them."""


class Child:
    """A running stage. It outlives its parent; the next run of the key waits for it."""

    def __init__(
        self, store: Store, spec: StageSpec, process: subprocess.Popen[bytes], output: Path
    ) -> None:
        self.spec, self.process, self.output = spec, process, output
        events = local_work(store.backend, spec.key, EVENTS_FILE)
        self._reader = EventReader(events, from_end=events.exists())

    def events(self) -> list[dict[str, Any]]:
        """What it told since the last call."""
        return self._reader.read()

    def poll(self) -> int | None:
        """Its exit code, or None while it runs. What it printed is kept only if it failed."""
        code = self.process.poll()
        if code == 0:
            self.output.unlink(missing_ok=True)
            self.output.with_suffix(".json").unlink(missing_ok=True)
        return code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its exit code."""
        return self.process.wait(timeout)

    def stop(self, grace: float = 60.0) -> int:
        """Ask it to save and end (exit 75); end it by force after `grace` seconds."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(grace)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()

    def last_words(self) -> str:
        """Its last error, all its lines, if it failed; else the last line that it printed."""
        try:
            return last_error(self.output.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            return ""


def last_error(printed: str) -> str:
    """The last `error:` line of `printed` with the indented lines that belong to it.

    Libraries print after it what they find at the end of the process. Without such a line: the
    last one.
    """
    lines = printed.strip().split("\n")
    begins = [number for number, line in enumerate(lines) if line.startswith("error: ")]
    if not begins:
        return lines[-1]
    rest = takewhile(lambda line: line.startswith("  "), lines[begins[-1] + 1 :])
    return "\n".join([lines[begins[-1]], *rest])


def start_child(
    store: Store, spec: StageSpec, *, force: bool = False, accept_code: bool = False
) -> Child:
    """Start `python -P -m stages` for `spec` in a session of its own."""
    name = f"{short(spec.key)}-{os.getpid()}-{time.monotonic_ns()}"
    spec_path = local_work(store.backend, "launch", f"{name}.json")
    output = spec_path.with_suffix(".txt")
    with explained(str(spec_path)):
        spec_path.parent.mkdir(parents=True, exist_ok=True)
        spec_path.write_bytes(spec.to_json())
    command = [
        sys.executable, "-P", "-m", "stages", spec.stage,
        "--store", store.url, "--spec", str(spec_path), "--key", spec.key,
    ]  # fmt: skip
    flags = [name for name, on in (("--force", force), ("--accept-code", accept_code)) if on]
    with open(output, "wb") as sink:
        process = subprocess.Popen(
            command + flags,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=child_environment(spec),
        )
    return Child(store, spec, process, output)


def child_environment(spec: StageSpec) -> dict[str, str]:
    """This process's environment with the thread counts that the stage's Execution states."""
    threads = str(spec.execution.get("threads", 1))
    return {
        **WAITING,  # A value of the user's own wins.
        **{name: value for name, value in os.environ.items() if name not in NOT_FOR_STAGES},
        **dict.fromkeys(THREAD_VARIABLES, threads),
        "TOKENIZERS_PARALLELISM": "true" if threads != "1" else "false",
        "PYTHONHASHSEED": "0",
    }
