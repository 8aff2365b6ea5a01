"""Records which files of Ingot a process runs; a folder for PYTHONPATH, loaded by every Python.

Each function is recorded once, by `sys.setprofile`; calls made while a module is imported are left
out. A compiled kernel that a recorded function names counts as Python would run it, with all
kernels that it names in turn. Of a training process, two things more: the files on the call stack
of `Optimizer.step`, and the functions from asking for a batch to the callbacks in training steps 3
to 8, in the main thread and in the one that prepares batches. Where a process starts
`python -m stages pretrain`, the files on its call stacks are recorded.

Lines go to `$INGOT_TRACE/STAGE-PID` immediately, because worker processes end in many ways. Each
is `PART PATH QUALNAME`; the part is `run`, `step`, `child` or `parent`. The stage is `none` in a
process that works for none.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = f"{Path(__file__).resolve().parents[3]}/"
TREES = tuple(f"{ROOT}{name}/" for name in ("artifacts_schema", "stages", "flows"))
STEPS = range(3, 9)
STEP_THREADS = ("MainThread", "prefetch")
FUNCTION = 0x1
"""`CO_OPTIMIZED`: modules and bodies of classes lack it."""


class Tracer:
    """Writes down each function once for each part."""

    def __init__(self, folder: Path) -> None:
        self.file = open(f"{folder}-{os.getpid()}", "a", buffering=1)  # noqa: SIM115
        self.recorded: set[tuple[str, CodeType]] = set()
        self.foreign: set[CodeType] = set()
        self.in_step, self.batches = False, 0

    def profile(self, frame: FrameType, event: str, argument: object) -> None:
        """What `sys.setprofile` calls."""
        if event != "call":
            return
        code = frame.f_code
        if code in self.foreign:
            return
        if not code.co_filename.startswith(TREES) or not code.co_flags & FUNCTION:
            self.foreign.add(code)
            if code.co_filename.endswith("numba/core/dispatcher.py"):
                leave_out_compiling()
            return
        if code.co_qualname == "Prefetch.__call__":
            self.batches += 1
            self.in_step = self.batches in STEPS
        elif code.co_filename.endswith("stages/training/callbacks.py"):
            self.in_step = False
        part = "run"
        if self.in_step and threading.current_thread().name in STEP_THREADS:
            part = "step"
            if code.co_qualname == "Optimizer.step":
                self.record_stack("child", frame)
        if (part, code) in self.recorded or is_importing(frame):
            return
        self.record(part, code)
        for name in code.co_names:
            for kernel in reachable_kernels(frame.f_globals.get(name), set()):
                self.record(part, kernel.__code__)

    def record(self, part: str, code: CodeType) -> None:
        """Write a function down."""
        if (part, code) not in self.recorded:
            self.recorded.add((part, code))
            self.file.write(f"{part} {code.co_filename.removeprefix(ROOT)} {code.co_qualname}\n")

    def record_stack(self, part: str, frame: FrameType | None) -> None:
        """Write down the functions of Ingot on a call stack."""
        while frame is not None:
            if frame.f_code.co_filename.startswith(TREES):
                self.record(part, frame.f_code)
            frame = frame.f_back

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """What `sys.addaudithook` calls."""
        if event == "subprocess.Popen" and {"stages", "pretrain"} <= set(map(str, arguments[1])):
            for frame in sys._current_frames().values():
                self.record_stack("parent", frame)


def leave_out_compiling() -> None:
    """Let numba compile without a profile function, with which it takes ten times as long."""
    dispatcher = getattr(sys.modules["numba.core.dispatcher"], "Dispatcher", None)
    if dispatcher is None or "compile_for_arguments" in vars(dispatcher):
        return
    dispatcher.compile_for_arguments = dispatcher._compile_for_args

    def compile_quietly(self: Any, *arguments: Any, **named: Any) -> Any:
        profile = sys.getprofile()
        sys.setprofile(None)
        try:
            return self.compile_for_arguments(*arguments, **named)
        finally:
            sys.setprofile(profile)

    dispatcher._compile_for_args = compile_quietly


def is_importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported further up the stack."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def reachable_kernels(function: object, known: set[object]) -> Iterator[Any]:
    """The Python functions of a compiled kernel and of all kernels that it names."""
    python = getattr(function, "py_func", None)
    if python is None or python in known:
        return
    known.add(python)
    yield python
    for name in python.__code__.co_names:
        yield from reachable_kernels(python.__globals__.get(name), known)


def start(folder: Path) -> None:
    """Trace this process, its threads and its forks."""
    tracer = Tracer(folder)
    sys.addaudithook(tracer.audit)
    threading.setprofile(tracer.profile)
    sys.setprofile(tracer.profile)


def stage_name() -> str:
    """The stage that this process works for; `ingest-code` is ingest of another source than web."""
    arguments = sys.orig_argv
    if "stages" in arguments and "--spec" in arguments:
        spec = Path(arguments[arguments.index("--spec") + 1]).read_text()
        name = arguments[arguments.index("stages") + 1]
        os.environ["INGOT_TRACE_STAGE"] = f"{name}-code" if '"source":"code"' in spec else name
    return os.environ.get("INGOT_TRACE_STAGE", "none")


if "INGOT_TRACE" in os.environ:
    start(Path(os.environ["INGOT_TRACE"], stage_name()))
