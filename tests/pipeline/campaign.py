"""Random disturbances of whole runs of `tiny.yaml`, one after another, in one store.

A round starts (or continues) `ingot run` and disturbs it: processes are killed, stopped or run
twice, gc deletes beside it, or calls to the system fail below Python (`failing_io.py`). Then must
hold: no artifact that stood is lost, a failure is one clear error, and when a run ends well its
artifacts have the digests of an undisturbed run. When the recipe is done the next round begins in
an empty store. `test_campaign.py` runs fifty rounds in the full tier.
"""

from __future__ import annotations

import errno
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from failing_io import LASTING, FailingIO, Fault

from artifacts_schema.store import Store
from artifacts_schema.store.gc import plan_gc
from artifacts_schema.store.verify import verify

TINY = Path(__file__).parent / "tiny.yaml"
INGOT = [sys.executable, "-c", "from flows.cli.main import main; main()"]
LONGEST_SECONDS = 600.0
"""A run that has not ended by then hangs."""
LEASE_SECONDS = 40.0
"""Longer than a lease lives without a heartbeat."""

Digests = dict[str, dict[str, str]]

IO_FAULTS: dict[str, tuple[str, int, int]] = {
    "EACCES on listings": ("list", errno.EACCES, LASTING),
    "EIO on one listing": ("list", errno.EIO, 1),
    "ESTALE on one stat": ("stat", errno.ESTALE, 1),
    "EACCES on stats": ("stat", errno.EACCES, LASTING),
    "EMFILE on one open": ("open", errno.EMFILE, 1),
    "EACCES on opens": ("open", errno.EACCES, LASTING),
    "EIO on one read": ("read", errno.EIO, 1),
    "EIO on reads": ("read", errno.EIO, LASTING),
    "short reads": ("read", 0, LASTING),
    "full disk at a write": ("write", errno.ENOSPC, LASTING),
    "full disk at a new name": ("name", errno.ENOSPC, LASTING),
    "EIO on one write": ("write", errno.EIO, 1),
    "short writes": ("write", 0, LASTING),
    "EIO on one sync": ("sync", errno.EIO, 1),
}
"""Name of a kind → class of calls, errno (0: half of the bytes), how many calls fail."""

HARMLESS = ("short reads", "short writes")
"""What a program must go through without an error."""


@dataclass
class Campaign:
    """A store that is disturbed, and what an undisturbed run made."""

    url: str
    expected: Digests
    draw: random.Random
    environment: dict[str, str]
    io: FailingIO | None
    """Strikes files below the store, or for a bucket below the node's cache."""
    clear: Callable[[], None]
    """Empties the store."""
    calls: dict[str, int] = field(default_factory=dict)
    """Calls of each class that an undisturbed run makes."""
    log: Callable[[str], None] = print
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    whole_runs: int = 0

    def kinds(self) -> dict[str, Callable[[], int]]:
        """Every kind of round; each gives the exit code of its run."""
        kinds: dict[str, Callable[[], int]] = {
            "kill all": lambda: self._signal(signal.SIGKILL, lambda run: tree(run.pid)),
            "kill the parent": lambda: self._signal(signal.SIGKILL, lambda run: [run.pid]),
            "kill a stage": lambda: self._signal(signal.SIGKILL, lambda run: stages(self.url)[:1]),
            "kill a worker": lambda: self._signal(signal.SIGKILL, lambda run: self._worker()),
            "SIGTERM to the parent": lambda: self._signal(signal.SIGTERM, lambda run: [run.pid]),
            "SIGTERM to a stage": lambda: self._signal(
                signal.SIGTERM, lambda run: stages(self.url)[:1]
            ),
            "SIGINT": lambda: self._signal(signal.SIGINT, lambda run: [run.pid]),
            "stop, then kill": self._stop_and_kill,
            "stop beyond the lease": self._stop_beyond_the_lease,
            "two runs at once": self._twice,
            "gc beside the run": lambda: self._gc(),
            "gc --work beside the run": lambda: self._gc("--work"),
        }
        if self.io is not None:
            for name, (call, error, times) in IO_FAULTS.items():
                kinds[name] = lambda call=call, error=error, times=times, name=name: self._io(  # type: ignore[misc]
                    name, call, error, times
                )
        return kinds

    def round(self, kind: str) -> None:
        """One disturbed run, and all that must hold after it."""
        before = {(m.stage, m.key): m.attempt for m in self.store.manifests()}
        code = self.kinds()[kind]()
        after = {(m.stage, m.key) for m in self.store.manifests()}
        assert before.keys() <= after, f"lost: {sorted(before.keys() - after)}"
        for manifest in self.store.manifests():
            assert verify(self.store, manifest) == [], f"damaged: {manifest.stage}"
        self.outcomes[kind, "went through" if code == 0 else f"ended with {code}"] += 1
        if code == 0:
            self.check_whole()
            self.clear()

    def finish(self) -> None:
        """Run undisturbed to the end and compare; system calls are counted."""
        if self.io is not None:
            self.io.heal()
        output, code = self._wait(self.start(faulty=self.io is not None))
        assert code == 0, output
        self.check_whole()
        if self.io is not None:
            self.calls = self.io.calls

    def rounds(self, count: int) -> None:
        """An undisturbed run, which also counts calls; then random rounds, and one to the end."""
        self.finish()
        self.clear()
        for number in range(count):
            kind = self.draw.choice(list(self.kinds()))
            self.log(f"{number + 1}/{count} {kind}")
            self.round(kind)
        self.finish()

    def check_whole(self) -> None:
        """Every artifact has its digest, and nothing is left beside them."""
        self.whole_runs += 1
        assert digests(self.store) == self.expected
        garbage = plan_gc(self.store, min_age_seconds=0, idle_work=True)
        assert garbage.artifacts == []
        unfinished = [name for name in self.store.backend.files("") if UNFINISHED.search(name)]
        assert unfinished == []

    @property
    def store(self) -> Store:
        """The store, opened anew."""
        return Store.open(self.url)

    def start(self, *, faulty: bool = False) -> subprocess.Popen[bytes]:
        """`ingot run tiny.yaml` in a session of its own, its output in a file."""
        environment = {**os.environ, **self.environment}
        if faulty:
            assert self.io is not None
            environment |= self.io.environment
        with tempfile.NamedTemporaryFile(suffix=".txt", delete=False) as output:
            process = subprocess.Popen(
                [*INGOT, "run", str(TINY), "--store", self.url, "--jobs", "2", "--no-prefect"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=environment,
            )
        process.output_path = Path(output.name)  # type: ignore[attr-defined]
        return process

    def _wait(self, run: subprocess.Popen[bytes]) -> tuple[str, int]:
        """What it printed and its exit code, at its end."""
        try:
            code = run.wait(LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            kill(tree(run.pid))
            raise AssertionError(f"a run hangs: {run.output_path.read_text()}") from None  # type: ignore[attr-defined]
        path: Path = run.output_path  # type: ignore[attr-defined]
        output = path.read_text(errors="replace")
        path.unlink()
        return output, code

    def _after_a_while(self, run: subprocess.Popen[bytes]) -> None:
        """Let it run for 0.6 to 14 seconds, or to its end."""
        with suppress(subprocess.TimeoutExpired):
            run.wait(self.draw.uniform(0.6, 14.0))

    def _signal(self, number: int, whom: Callable[[subprocess.Popen[bytes]], list[int]]) -> int:
        run = self.start()
        self._after_a_while(run)
        kill(whom(run), number)
        output, code = self._wait(run)
        check_output(output)
        return code

    def _worker(self) -> list[int]:
        workers = [child for stage in stages(self.url) for child in children(stage)]
        return self.draw.sample(workers, min(1, len(workers)))

    def _stop_and_kill(self) -> int:
        run = self.start()
        self._after_a_while(run)
        stopped = stages(self.url)
        kill(stopped, signal.SIGSTOP)
        time.sleep(self.draw.uniform(0.1, 2.0))
        kill(stopped, signal.SIGCONT)
        kill(tree(run.pid) + stopped)
        return self._wait(run)[1]

    def _stop_beyond_the_lease(self) -> int:
        """A second run takes over from a stage that was stopped, which then wakes up."""
        run = self.start()
        self._after_a_while(run)
        stopped = stages(self.url)
        kill(stopped, signal.SIGSTOP)
        kill([run.pid])
        second = self.start()
        with suppress(subprocess.TimeoutExpired):
            second.wait(LEASE_SECONDS)
        kill(stopped, signal.SIGCONT)
        self._wait(run)
        output, code = self._wait(second)
        assert code == 0, output
        return code

    def _twice(self) -> int:
        runs = [self.start(), self.start()]
        codes = []
        for run in runs:
            output, code = self._wait(run)
            assert code == 0, output
            codes.append(code)
        return max(codes)

    def _gc(self, *flags: str) -> int:
        run = self.start()
        command = [*INGOT, "gc", "--delete", "--min-age", "0", *flags, "--store", self.url]
        for _ in range(self.draw.randint(1, 4)):
            with suppress(subprocess.TimeoutExpired):
                run.wait(self.draw.uniform(0.6, 5.0))
            environment = {**os.environ, **self.environment}
            subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        output, code = self._wait(run)
        assert code == 0, output
        return code

    def _io(self, kind: str, call: str, error: int, times: int) -> int:
        """The nth call fails, n drawn so that early and late ones are as likely."""
        assert self.io is not None
        most = max(self.calls[call], 1)
        first = 1 if kind in HARMLESS else round(most ** self.draw.random())
        fault = Fault(call, error, first, times)
        self.log(f"  {fault}")
        self.io.strike(fault)
        output, code = self._wait(self.start(faulty=True))
        kill(stages(self.url))
        struck = self.io.struck
        self.io.heal()
        if kind in HARMLESS:
            assert code == 0, output
        if code:
            assert struck, output
            check_output(output)
            assert "error: " in output, output
        return code


UNFINISHED = re.compile(r"\.tmp$|\.unfinished$|\.part(ial)?$")


def check_output(output: str) -> None:
    """A person is told what happened, not shown a traceback or asked to report a bug."""
    assert "bug in Ingot" not in output, output
    assert "Traceback" not in output, output


def digests(store: Store) -> Digests:
    """Of every output that stands, by artifact."""
    return {
        f"{manifest.stage} {manifest.key}": {n: o.digest for n, o in manifest.outputs.items()}
        for manifest in store.manifests()
    }


def stages(url: str) -> list[int]:
    """Processes that run a stage in the store."""
    return [
        process
        for process, command in commands()
        if b"stages" in command and b"-m" in command and url.encode() in command
    ]


def tree(process: int) -> list[int]:
    """A process and all below it."""
    return [process, *(below for child in children(process) for below in tree(child))]


def children(process: int) -> list[int]:
    """The processes that it started."""
    found = []
    for other, _ in commands():
        with suppress(OSError, IndexError):
            fields = Path(f"/proc/{other}/stat").read_text().rsplit(")", 1)[1].split()
            if int(fields[1]) == process:
                found.append(other)
    return found


def commands() -> Iterator[tuple[int, list[bytes]]]:
    """Every process and its command line."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                yield int(folder.name), (folder / "cmdline").read_bytes().split(b"\0")


def kill(processes: list[int], number: int = signal.SIGKILL) -> None:
    """Send a signal to those that are still there."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def table(outcomes: Counter[tuple[str, str]]) -> str:
    """Rounds by kind and how their runs ended."""
    kinds: dict[str, list[str]] = {}
    for (kind, outcome), count in sorted(outcomes.items()):
        kinds.setdefault(kind, []).append(f"{count} {outcome}")
    return "\n".join(f"{kind:<26} {', '.join(ends)}" for kind, ends in kinds.items())
