"""Whether a program passes tests, decided where it cannot reach.

The solution runs in one sandbox, the tests in another one; calls and plain values pass between them
(`exchange.py`), and the verdict comes over a descriptor of the tests' side. So nothing that the
solution does to its own process counts: an exit before the tests, an object that equals everything,
a printed "passed", a changed file. It can still tell from its arguments that it is tested: no
sandbox prevents answers learnt by heart.
"""

from __future__ import annotations

import json
import os
import signal
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stages.sandbox.sandbox import (
    STATUS_BYTES,
    Isolation,
    Limits,
    Sandbox,
    collect,
    read_outcome,
)

Result = Literal["passed", "failed", "timeout", "memory"]
VERDICT_BYTES = 4096
EXCHANGE = Path(__file__).with_name("exchange.py")


@dataclass(frozen=True)
class Verdict:
    """What came of the tests. `detail` says why they failed; the solution may have written it."""

    result: Result
    detail: str = ""


def check_program(
    solution: str,
    tests: str,
    *,
    limits: Limits | None = None,
    isolation: Isolation = "namespaces",
) -> Verdict:
    """Run `tests`, in whose globals are the names that `solution` defines; they pass at their end.

    Names that Python has itself (`abs`) are Python's own, unless the tests use nothing else of
    the solution. IngotError where this machine cannot isolate it.
    """
    limits = limits or Limits()
    exchange = EXCHANGE.read_text(encoding="utf-8")
    with ExitStack() as stack:
        descriptors = _Descriptors(stack)
        requests_read, requests = descriptors.pipe()
        replies_read, replies = descriptors.pipe()
        verdict, decided = descriptors.pipe()
        nothing = descriptors.open_null()

        def start(role: str, text: str, *more: int) -> Sandbox:
            name = f"{role}.py"
            main = f"import os, exchange\nexchange.{_ACTS[role]}(os.path.join({_HERE}, {name!r}))\n"
            files = {"main.py": main, "exchange.py": exchange, name: text}
            inside = [nothing, nothing, nothing, *more]
            return stack.enter_context(Sandbox(files, inside, limits, isolation))

        solver = start("solution", solution, requests_read, replies)
        tester = start("tests", tests, replies_read, requests, decided)
        # Each pipe ends when the side that writes to it ends, so no end of it stays open here.
        descriptors.close(requests_read, requests, replies_read, replies, decided, nothing)
        read, reason = collect({verdict: VERDICT_BYTES}, limits.wall_seconds, until=verdict)
        if reason == "time":
            return Verdict("timeout", f"{limits.wall_seconds:g} s passed")
        return _judge(read[verdict], tester, solver)


_ACTS = {"solution": "serve", "tests": "test"}
_HERE = "os.path.dirname(os.path.abspath(__file__))"


class _Descriptors:
    """Descriptors of this process, closed at the end of the block at the latest."""

    def __init__(self, stack: ExitStack) -> None:
        self._open: set[int] = set()
        stack.callback(lambda: self.close(*self._open))

    def pipe(self) -> tuple[int, int]:
        ends = os.pipe()
        self._open |= set(ends)
        return ends

    def open_null(self) -> int:
        descriptor = os.open(os.devnull, os.O_RDWR)
        self._open.add(descriptor)
        return descriptor

    def close(self, *descriptors: int) -> None:
        for one in descriptors:
            self._open.discard(one)
            os.close(one)


def _judge(verdict: bytes, tester: Sandbox, solver: Sandbox) -> Verdict:
    """The verdict; of a solution or tests that ended too early, how they did."""
    if not verdict:
        return _judge_end(tester, "the tests")
    values = json.loads(verdict)
    if values["passed"]:
        return Verdict("passed")
    if values["error"] == "SolutionEnded":
        return _judge_end(solver, "the solution")
    detail = f"{values['error']}: {values['message']}" if values["message"] else values["error"]
    return Verdict("memory" if values["error"] == "MemoryError" else "failed", detail)


def _judge_end(sandbox: Sandbox, name: str) -> Verdict:
    """What the end of a side means: the kernel sends SIGKILL where memory ends."""
    read, reason = collect({sandbox.status: STATUS_BYTES}, sandbox.limits.wall_seconds)
    if reason == "time":
        return Verdict("timeout", f"{name} closed its descriptors and went on")
    end = read_outcome(read[sandbox.status])
    if end.code == -signal.SIGXCPU:
        return Verdict("timeout", f"{sandbox.limits.cpu_seconds} s of processor time passed")
    if end.code == -signal.SIGKILL:
        return Verdict("memory", f"{name} was killed")
    how = f"signal {-(end.code or 0)}" if end.reason == "signal" else f"exit code {end.code}"
    return Verdict("failed", f"{name} ended with {how}")
