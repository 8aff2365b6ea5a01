"""Progress of a run: bars on a terminal, lines elsewhere; always on stderr."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from artifacts_schema.store.runs import RunStep
from flows.cli.output import clean, duration, echo, size
from flows.recipe.observers import LiveProgress, Observer, RunSteps, StepView
from flows.recipe.plan import MISSING, Plan, PlannedStep, join_names
from flows.recipe.time_left import TimeLeft, estimate_left

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

STOPPING = "stopping: running steps save what they have; once more to leave immediately\n"

WIDE = 120
"""Columns of a terminal from which a bar has its full width."""
NAMES = 8
"""Most names of reused steps in a line."""
LINE_SECONDS = 15.0
"""Time between two progress lines of one step without a terminal."""
REFRESHES = 4.0
"""Times a second that a terminal is redrawn."""
DAYS_FROM = 48
"""Hours from which a time left is in days."""
BLOCKS = "▁▂▃▄▅▆▇█"
CURVE_WIDTH = 60
METRICS = (
    ("loss", "loss", ".3f"), ("held_out/all", "held out", ".3f"), ("learning_rate", "lr", ".2e"),
)  # fmt: skip


def print_line(line: str) -> None:
    """One line on stderr."""
    echo(line, err=True)


@contextmanager
def show_progress() -> Iterator[Observer]:
    """An observer that prints a run's progress while the context is open."""
    with open_display(err=True) as display:
        yield ProgressObserver(display)


@contextmanager
def open_display(*, err: bool) -> Iterator[ProgressDisplay]:
    """A display on stdout, or on stderr with `err`; a terminal is redrawn while it is open."""
    if not (sys.stderr if err else sys.stdout).isatty():
        yield ProgressDisplay(err=err)
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=err)
    display = ProgressDisplay(console, err=err)
    with Live(
        get_renderable=display.render,
        console=console,
        refresh_per_second=REFRESHES,
        transient=True,
    ):
        yield display


class ProgressDisplay:
    """Lines for what starts, ends and fails; on a terminal also a bar for each step that runs.

    The same for a run of this process and for one that is watched. Without a terminal a step has a
    line every few seconds in place of its bar.
    """

    def __init__(
        self,
        console: Console | None = None,
        *,
        err: bool = True,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.console, self.jobs = console, 1
        self._err, self._now = err, now
        self._views: dict[str, StepView] = {}
        self._job_texts: dict[str, str] = {}
        self._printed: dict[str, float] = {}
        self.lock = threading.RLock()
        """Held while steps change, since a terminal is redrawn by a thread of its own."""

    def show(self, one: StepView) -> None:
        """Take the state of one step, and print what is new in it."""
        name, live = one.step.instance, one.live
        before = self._views.get(name)
        self._views[name] = one
        if (before.step.state if before else "waiting") != one.step.state:
            self._printed[name] = self._now()
            if line := self._format_change(one):
                self.print(line)
        if live is None:
            return
        if live.job != self._job_texts.get(name, ""):
            self._job_texts[name] = live.job
            self.print(f"{name}: {live.job}")
        is_due = self._now() - self._printed.get(name, 0.0) >= LINE_SECONDS
        if self.console is None and live.progress and is_due:
            self._printed[name] = self._now()
            self.print("; ".join(filter(None, [f"{name}: {format_live(live)}", self.left()])))

    def keep(self, names: Collection[str]) -> None:
        """Forget all steps but these: a plan has replaced them."""
        self._views = {name: self._views[name] for name in names if name in self._views}

    def print(self, line: str) -> None:
        """Print a line, above the bars."""
        if self.console is None:
            echo(line, err=self._err)
        else:
            self.console.print(clean(line), markup=False, highlight=False)

    def left(self) -> str:
        """`about 12 min left in all`, of several steps, if it is known."""
        if len(self._views) < 2:
            return ""
        left = estimate_left(list(self._views.values()), self.jobs, self._now())
        return f"{format_left(left)} in all" if left else ""

    def _format_change(self, one: StepView) -> str:
        """The line of a step that has reached a state; a terminal has a bar for what runs."""
        if one.step.state == "running":
            return "" if self.console is not None else format_started(one.step)
        if one.step.state not in ("made", "failed", "stopped"):
            return ""
        left = self.left() if self.console is None and one.step.state == "made" else ""
        return "; ".join(filter(None, [format_end(one), left]))

    def render(self) -> RenderableType:
        """A line for the whole run and one for each running step; below them the losses."""
        from rich.console import Group

        with self.lock:
            views, now = list(self._views.values()), self._now()
            width = self.console.width if self.console else WIDE
            table = make_grid(width)
            if len(views) > 1:
                table.add_row(*self._total_row(views, now))
            running = [one for one in views if one.step.state == "running"]
            for one in running:
                table.add_row(*_step_row(one, now))
            return Group(table, *(curve for one in running if (curve := _draw_losses(one, width))))

    def _total_row(self, views: Sequence[StepView], now: float) -> Row:
        done = sum(one.step.state in ("made", "reused") for one in views)
        left = estimate_left(views, self.jobs, now)
        parts = [format_left(left)] if left else []
        parts.append(f"{done} of {len(views)} steps")
        began = min((one.step.began for one in views if one.step.began is not None), default=now)
        return _row("all steps", done, len(views), ", ".join(parts), now - began)


Row = tuple["Text", "ProgressBar", "Text", "Text"]


def make_grid(width: int) -> Table:
    """Columns of a line: name, bar, status, time. A narrow terminal cuts name and status."""
    from rich.table import Table

    table = Table.grid(padding=(0, 1, 0, 0), expand=True)
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=max(12, width // 3))
    table.add_column(width=24 if width >= WIDE else 8)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column(no_wrap=True, justify="right")
    return table


def _row(name: str, done: float, total: float | None, status: str, seconds: float) -> Row:
    from rich.progress_bar import ProgressBar
    from rich.text import Text

    spent = str(timedelta(seconds=max(0, int(seconds))))
    return Text(clean(name)), ProgressBar(total, done), Text(clean(status)), Text(spent)


def _step_row(one: StepView, now: float) -> Row:
    step, live = one.step, one.live or LiveProgress()
    status = format_live(live) or live.job
    status = status or ("starting" if step.cause in ("", MISSING) else step.cause)
    done, total = (
        (float(live.progress[n]) for n in ("done", "total")) if live.progress else (0, None)
    )
    return _row(step.instance, done, total, status, now - (step.began or now))


def _draw_losses(one: StepView, width: int) -> Text | None:
    from rich.text import Text

    losses = one.live.losses if one.live is not None else []
    if len(losses) < 2 or width < CURVE_WIDTH + 40:
        return None
    curve = Text(clean(f"{one.step.instance} loss  "), style="dim")
    curve.append(format_blocks(losses), style="cyan")
    curve.append(f"  {losses[0]:.3f} → {losses[-1]:.3f}", style="dim")
    return curve


class ProgressObserver(RunSteps):
    """Shows the run of this process; the error of a step that failed is the command's last line."""

    def __init__(self, display: ProgressDisplay) -> None:
        super().__init__()
        self._display = display
        self._live: dict[str, LiveProgress] = {}
        self._manifests: dict[str, Manifest] = {}

    def planned(self, plan: Plan) -> None:
        """Take the steps of a plan."""
        with self._display.lock:
            super().planned(plan)
            self._display.jobs = self.jobs
            self._display.keep(self.steps)
            for step in self.steps.values():
                self.changed(step)

    def started(self, step: PlannedStep) -> None:
        """Show that a step runs."""
        self._live[step.instance] = LiveProgress()
        super().started(step)

    def event(self, step: PlannedStep, event: dict[str, Any]) -> None:
        """Show what an event says; a step that has ended has none."""
        with self._display.lock:
            if self.steps[step.instance].state == "running":
                self._live[step.instance].add(event)
                self.changed(self.steps[step.instance])

    def finished(self, step: PlannedStep, manifest: Manifest, seconds: float) -> None:
        """Show what was made."""
        self._manifests[step.instance] = manifest
        super().finished(step, manifest, seconds)

    def changed(self, step: RunStep) -> None:
        """Show a step as it is now."""
        live = self._live.get(step.instance) if step.state == "running" else None
        plain = step.model_copy(update={"error": None})
        with self._display.lock:
            self._display.show(StepView(plain, live, self._manifests.get(step.instance)))


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
    if live.silent_seconds:
        return ", ".join([f"no sign of life for {duration(live.silent_seconds)}", *parts])
    if live.seconds_left:  # Before the metrics: a narrow terminal cuts the end.
        parts.append(f"{duration(live.seconds_left)} left")
    return ", ".join(parts + format_metrics(live))


def format_reused(plan: Plan) -> str | None:
    """`reused: web, code and 3 more`, of a plan in which some steps are not; else None."""
    names = [step.instance for step in plan.steps if step.action == "reuse"]
    return f"reused: {join_names(names, NAMES)}" if names and not plan.is_done else None


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


def format_started(step: RunStep) -> str:
    """`pretrain: resume 1a2b3c4d5e6f (work begun)`."""
    cause = "" if step.cause in ("", MISSING) else f" ({step.cause})"
    return f"{step.instance}: {step.action or 'run'} {short(step.key or '')}{cause}"


def format_end(one: StepView) -> str:
    """The result of a step in a line, or that it failed or was stopped, and its error if known."""
    step, manifest = one.step, one.manifest
    if step.state != "made":
        return f"{step.instance}: {step.state}" + (f": {step.error}" if step.error else "")
    spent = "" if step.seconds is None else f" in {duration(step.seconds)}"
    parts = [f"{step.instance}: made {short(step.key or '')}{spent}"]
    if manifest is None:  # Removed since.
        return parts[0]
    if manifest.conservation is not None:
        account = manifest.conservation
        parts.append(f"{account.records_in:,} in, {account.out:,} out")
    parts.append(size(sum(output.bytes for output in manifest.outputs.values())))
    return ", ".join(parts)


def format_left(left: TimeLeft) -> str:
    """`about 12 min left`, rounded up; `at least` where not all steps are known."""
    if left.seconds <= 50.0:
        text = f"{10 * math.ceil(left.seconds / 10)} s"
    elif left.seconds <= 59 * 60:
        text = f"{math.ceil(left.seconds / 60)} min"
    else:
        hours, tens = divmod(math.ceil(left.seconds / 600), 6)
        text = f"{hours} h {10 * tens:02d} min" if hours < DAYS_FROM else f"{hours / 24:.1f} days"
    return f"{'about' if left.is_complete else 'at least'} {text} left"


def format_blocks(values: Sequence[float], width: int = CURVE_WIDTH) -> str:
    """Values as blocks of eight heights, the mean of each of at most `width` buckets."""
    finite = [value for value in values if value == value and abs(value) != float("inf")]
    if not finite:
        return ""
    size = max(1, -(-len(finite) // width))
    means = [
        sum(part) / len(part)
        for start in range(0, len(finite), size)
        if (part := finite[start : start + size])
    ]
    low, high = min(means), max(means)
    span = (high - low) or 1.0
    return "".join(BLOCKS[min(7, int(8 * (value - low) / span))] for value in means)


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
