"""A process that forks the workers of one run, and what a worker does.

A fresh interpreter that imports NumPy, Arrow, numba and a stage's modules takes a second of CPU
time and 150 MB. Here that is spent once a run: the server imports, its forks share the pages. It
has one thread and has opened nothing, so forking it is safe, unlike forking a stage, which has
threads (its lease, libraries). Where the stage has no thread yet, the server is a fork of the stage
itself, which needs the same modules; else it is a fresh interpreter.

`multiprocessing`'s own fork server is not used: it outlives the run, and nobody waits for it, so
the CPU seconds of its workers would be in no account.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from multiprocessing import get_context
from multiprocessing import process as processes
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any

from artifacts_schema.store import failpoints
from stages.engine.transfers import report_to

PATIENCE_SECONDS = 5.0
"""How long a process that was asked to end is waited for."""
_LOOK_SECONDS = 0.01
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_DESCRIPTORS = 3
"""Sent with a request: where a worker reads calls, writes answers, and reports fetches."""


class ForkServer:
    """Forks workers, and waits for them. `modules` are imported once, before the first fork.

    OSError from any method: the server has ended, and with it all of its workers.
    """

    def __init__(self, modules: Sequence[str] = ()) -> None:
        self._control, theirs = socket.socketpair()
        method = "fork" if _has_one_thread() else "spawn"
        if method == "fork":
            for name in modules:
                import_module(name)
            _start_compiler()
        context: Any = get_context(method)
        arguments = (theirs, self._control if method == "fork" else None, os.getpid(), modules)
        self._process: BaseProcess = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()

    def fork(self, calls: Connection, answers: Connection, fetches: Connection) -> int:
        """The process id of a new worker, which reads `calls` and writes the other two."""
        descriptors = [pipe.fileno() for pipe in (calls, answers, fetches)]
        return int(self._ask({"fork": True}, descriptors))

    def wait(self, process: int, seconds: float = PATIENCE_SECONDS) -> int | None:
        """The exit code of a worker, or the negative number of the signal that ended it.

        None if it has not ended after `seconds`. Asked for once: then its id is free again.
        """
        code = self._ask({"wait": process, "seconds": seconds})
        return None if code is None else int(code)

    def end(self) -> None:
        """End the server, whose workers have ended."""
        self._control.close()
        self._process.join(PATIENCE_SECONDS)
        self._process.kill()
        self._process.join(PATIENCE_SECONDS)
        if self._process.is_alive():
            # Stuck in the kernel, which ends it when it comes back. The interpreter must not wait
            # for it at its own end.
            processes._children.discard(self._process)  # type: ignore[attr-defined]

    def _ask(self, request: dict[str, Any], descriptors: Sequence[int] = ()) -> Any:
        message = json.dumps(request).encode() + b"\n"
        socket.send_fds(self._control, [message], descriptors)
        answer, _ = _receive(self._control)
        if answer is None:
            raise BrokenPipeError("the process that forks workers has ended")
        return answer["answer"]


def _start_compiler() -> None:
    """Where a module has kernels, numba starts here and not in each worker."""
    if kernels := sys.modules.get("stages.engine.kernels"):
        kernels.start_compiler()


def _has_one_thread() -> bool:
    """Whether this process has one thread, those of native code included; False if unknown."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


def _receive(control: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """A message, a line of JSON, and the descriptors that came with it; None at the end."""
    line, descriptors = b"", list[int]()
    while not line.endswith(b"\n"):
        part, received, _, _ = socket.recv_fds(control, 4096, _DESCRIPTORS)
        if not part:
            return None, descriptors
        line, descriptors = line + part, descriptors + received
    return json.loads(line), descriptors


# In the server ------------------------------------------------------------------------------------


def _serve(
    control: socket.socket, parent_end: socket.socket | None, parent: int, modules: Sequence[str]
) -> None:
    """The life of a server: fork and wait as asked, until the stage closes its end."""
    if parent_end is not None:
        parent_end.close()
    _end_with(parent)
    for number in (signal.SIGTERM, signal.SIGUSR2):  # Those of the stage only set a flag.
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the stage decides.
    failpoints.on_failpoint = None  # A fault is for the stage's own process.
    for name in modules:
        with suppress(ImportError):  # The call that needs it says so.
            import_module(name)
    _start_compiler()
    gc.freeze()  # A collection in a worker would copy every page.
    while True:
        request, descriptors = _receive(control)
        if request is None:
            os._exit(0)
        answer = _fork(control, descriptors) if "fork" in request else _wait(**request)
        control.sendall(json.dumps({"answer": answer}).encode() + b"\n")


def _fork(control: socket.socket, descriptors: Sequence[int]) -> int:
    server = os.getpid()
    process = os.fork()
    if process == 0:
        try:
            control.close()
            calls, answers, fetches = descriptors
            _work(
                Connection(calls, writable=False),
                Connection(answers, readable=False),
                Connection(fetches, readable=False),
                server,
            )
        finally:
            os._exit(1)
    for descriptor in descriptors:
        os.close(descriptor)
    return process


def _wait(wait: int, seconds: float) -> int | None:
    end = time.monotonic() + seconds
    while True:
        try:
            process, status = os.waitpid(wait, os.WNOHANG)
        except ChildProcessError:  # Of an earlier server, which was killed, and it with that.
            return -signal.SIGKILL
        if process:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= end:
            return None
        time.sleep(_LOOK_SECONDS)


def _end_with(parent: int) -> None:
    """Have the kernel end this process when its parent is killed, even in native code (Linux)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)


# In a worker --------------------------------------------------------------------------------------


def _work(calls: Connection, answers: Connection, fetches: Connection, server: int) -> None:
    """The life of a worker: say that it is there, then answer calls until the pipe ends."""
    _end_with(server)
    threading.Thread(target=_watch, args=(server,), daemon=True, name="parent-watch").start()
    report_to(fetches)
    answers.send_bytes(b"")
    while True:
        try:
            call = calls.recv_bytes()
        except (EOFError, OSError):
            return
        answers.send_bytes(execute_call(call))


def _watch(server: int) -> None:
    """End this process within a second of the server, where the kernel does not."""
    while os.getppid() == server:
        time.sleep(0.5)
    os._exit(1)


def execute_call(call: bytes) -> Any:
    """In a worker: make a pickled call; its value, or what it raised, as bytes."""
    return execute(_make_call, call)


def _make_call(call: bytes) -> Any:
    function, arguments = pickle.loads(call)
    return function(*arguments)


def execute(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function; its value, or what it raised, as bytes."""
    try:
        return ForkingPickler.dumps((function(*arguments), None))
    except BaseException as error:
        note = "in a worker process:\n" + traceback.format_exc()
        try:
            error.add_note(note)
            failed = pickle.dumps((None, error))
            pickle.loads(failed)
        except Exception:  # An exception that cannot be pickled is sent as text.
            plain = RuntimeError(f"{type(error).__name__}: {error}")
            plain.add_note(note)
            failed = pickle.dumps((None, plain))
        return failed


def unpack_answer(message: bytes) -> Any:
    """The value that `execute_call` packed; raises what it packed as raised."""
    value, error = pickle.loads(message)
    if error is not None:
        raise error
    return value
