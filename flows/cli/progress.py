"""Progress of a run: bars on a terminal, lines elsewhere; always on stderr."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import IngotError, Stopped
from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from flows.cli.output import clean, duration, echo, size
from flows.recipe.observers import LiveProgress, Observer
from flows.recipe.plan import Plan, PlannedStep

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

STOPPING = "stopping: running steps save what they have; once more to leave immediately\n"

WIDE = 120
"""Columns of a terminal from which a bar has its full width."""
NAMES = 8
"""Most names of reused steps in a line."""
LINE_SECONDS = 15.0
"""Time between two progress lines of one step without a terminal."""
METRICS = (
    ("loss", "loss", ".3f"), ("held_out/all", "held out", ".3f"), ("learning_rate", "lr", ".2e"),
)  # fmt: skip


def print_line(line: str) -> None:
    """One line on stderr."""
    echo(line, err=True)


@contextmanager
def show_progress() -> Iterator[Observer]:
    """An observer that prints a run's progress while the context is open."""
    if not sys.stderr.isatty():
        yield LineObserver()
        return
    from rich.console import Console

    console = Console(stderr=True)
    with make_bars(console) as progress:
        yield BarObserver(progress)


def make_bars(console: Console) -> Progress:
    """Bars of one line each: on a narrow terminal the bar is short and the status is cut."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column as BarPart

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False, table_column=BarPart(no_wrap=True)),
        BarColumn(bar_width=24 if console.width >= WIDE else 8),
        TextColumn(
            "{task.fields[status]}", markup=False,
            table_column=BarPart(no_wrap=True, overflow="ellipsis", ratio=1),
        ),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        expand=True,
    )  # fmt: skip


class LineObserver(Observer):
    """A line when a step starts and ends, and a few between."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._last: dict[str, float] = {}
        self._live: dict[str, LiveProgress] = {}

    def started(self, step: PlannedStep) -> None:
        """Print which step starts, and why."""
        self._last[step.instance] = self._now()
        self._live[step.instance] = LiveProgress()
        cause = "" if step.cause == "missing" else f" ({step.cause})"
        print_line(f"{step.instance}: {step.action} {short(step.key or '')}{cause}")

    def event(self, step: PlannedStep, event: dict[str, Any]) -> None:
        """Print what becomes of its job, and its progress every few seconds."""
        if event.get("type") == "job":
            print_line(f"{step.instance}: {event['text']}")
        live = self._live.setdefault(step.instance, LiveProgress())
        live.add(event)
        if event.get("type") != "progress" or not live.progress:
            return
        if self._now() - self._last.get(step.instance, 0.0) >= LINE_SECONDS:
            self._last[step.instance] = self._now()
            print_line(f"{step.instance}: {format_live(live)}")

    def finished(self, step: PlannedStep, manifest: Manifest, seconds: float) -> None:
        """Print what was made."""
        print_line(format_finished(step, manifest, seconds))

    def failed(self, step: PlannedStep, error: IngotError) -> None:
        """Print that it failed; the error itself is the command's last line."""
        print_line(format_failed(step, error))


class BarObserver(Observer):
    """A bar for the run and for each running step; finished ones become lines above."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}
        self._live: dict[str, LiveProgress] = {}
        self._run: TaskID | None = None

    def planned(self, plan: Plan) -> None:
        """Move the bar of the run: steps that exist, of all."""
        total, done = len(plan.steps), sum(step.action == "reuse" for step in plan.steps)
        if self._run is None:
            self._run = self._progress.add_task("all steps", total=total, status="")
        self._progress.update(
            self._run, total=total, completed=done, status=f"{done} of {total} steps"
        )

    def started(self, step: PlannedStep) -> None:
        """Add a bar."""
        cause = "starting" if step.cause == "missing" else step.cause
        task = self._progress.add_task(clean(step.instance), total=None, status=clean(cause))
        self._tasks[step.instance] = task
        self._live[step.instance] = LiveProgress()

    def event(self, step: PlannedStep, event: dict[str, Any]) -> None:
        """Move the bar; what becomes of its job is a line above, and beside the bar."""
        if step.instance not in self._tasks:
            return
        task, live = self._tasks[step.instance], self._live[step.instance]
        live.add(event)
        if event.get("type") == "job":
            line = clean(f"{step.instance}: {event['text']}")
            self._progress.console.print(line, markup=False, highlight=False)
            self._progress.update(task, status=clean(event["text"]))
        elif live.progress:
            self._progress.update(
                task,
                completed=live.progress["done"],
                total=live.progress["total"],
                status=format_live(live),
            )

    def finished(self, step: PlannedStep, manifest: Manifest, seconds: float) -> None:
        """Turn the bar into a line."""
        self._end(step, format_finished(step, manifest, seconds))

    def failed(self, step: PlannedStep, error: IngotError) -> None:
        """Take the bar away."""
        self._end(step, format_failed(step, error))

    def _end(self, step: PlannedStep, line: str) -> None:
        if step.instance in self._tasks:
            self._progress.remove_task(self._tasks.pop(step.instance))
        self._progress.console.print(clean(line), markup=False, highlight=False)


def format_progress(event: dict[str, Any]) -> str:
    """`12 of 40 shards`, `0.5 GB of 1.1 GB`, from a progress event."""
    unit, label = event.get("unit", ""), event.get("label", "")
    text = f"{event['done']:,.0f} of {event['total']:,.0f} {unit}".rstrip()
    if unit == "bytes":
        text = f"{size(event['done'])} of {size(event['total'])}"
    return clean(f"{label}: {text}" if label and label != unit else text)


def format_live(live: LiveProgress) -> str:
    """Progress of a running step, its loss and speed, and the time that is left."""
    parts = [format_progress(live.progress)] if live.progress else []
    if live.seconds_left is not None:  # Before the metrics: a narrow terminal cuts the end.
        parts.append(f"{duration(live.seconds_left)} left")
    return ", ".join(parts + format_metrics(live))


def format_reused(plan: Plan) -> str | None:
    """`reused: web, code and 3 more`, of a plan in which some steps are not; else None."""
    names = [step.instance for step in plan.steps if step.action == "reuse"]
    if not names or plan.is_done:
        return None
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return f"reused: {', '.join(names[:NAMES])}{more}"


def format_metrics(live: LiveProgress) -> list[str]:
    """Loss, held-out loss, learning rate and tokens a second, those that are known."""
    parts = [
        f"{label} {live.metric[name]:{digits}}"
        for name, label, digits in METRICS
        if isinstance(live.metric.get(name), int | float)
    ]
    if live.tokens_per_second is not None:
        parts.append(f"{live.tokens_per_second:,.0f} tokens/s")
    return parts


def format_finished(step: PlannedStep, manifest: Manifest, seconds: float) -> str:
    """The result of a step, in a line."""
    parts = [f"{step.instance}: made {short(manifest.key)} in {duration(seconds)}"]
    if manifest.conservation is not None:
        account = manifest.conservation
        parts.append(f"{account.records_in:,} in, {account.out:,} out")
    parts.append(size(sum(output.bytes for output in manifest.outputs.values())))
    return ", ".join(parts)


def format_failed(step: PlannedStep, error: IngotError) -> str:
    """That a step failed, or was stopped."""
    return f"{step.instance}: {'stopped' if isinstance(error, Stopped) else 'failed'}"


@contextmanager
def show_hashing() -> Iterator[Callable[..., None]]:
    """Progress of pinning sources: a bar on a terminal, elsewhere a line if it takes long.

    It is called with bytes that were hashed, or `files` whose servers were queried.
    """
    if not sys.stderr.isatty():
        since, printed = time.monotonic(), set[str]()

        def line(done: int, total: int, unit: str = "bytes") -> None:
            if unit not in printed and time.monotonic() - since > 2.0:
                print_line(
                    f"hashing {size(total)} of source files"
                    if unit == "bytes"
                    else f"querying servers about {total:,} source files"
                )
                printed.add(unit)

        yield line
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        words = {"bytes": "hashing sources", "files": "querying servers about sources"}
        tasks = {
            unit: progress.add_task(text, total=None, visible=False) for unit, text in words.items()
        }
        yield lambda done, total, unit="bytes": progress.update(
            tasks[unit], completed=done, total=total, visible=True
        )


@contextmanager
def show_count(label: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Progress of one thing, called with done and total: a bar on a terminal, else a few lines."""
    if not sys.stderr.isatty():
        last = time.monotonic()

        def line(done: int, total: int) -> None:
            nonlocal last
            if time.monotonic() - last >= LINE_SECONDS:
                last = time.monotonic()
                print_line(f"{label}: {done:,} of {total:,} {unit}")

        yield line
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def stop_on_signals() -> Iterator[Callable[[], bool]]:
    """SIGINT and SIGTERM ask for a stop; a second one interrupts immediately."""
    stop = threading.Event()

    def ask(_number: int, _frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        # Not by `echo`: this may interrupt a write to the same buffer, which Python refuses.
        os.write(sys.stderr.fileno(), STOPPING.encode())

    if threading.current_thread() is not threading.main_thread():
        yield stop.is_set
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
