"""What worker processes do in the tests of the shard map: end in every way there is."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from stages.engine import ShardOutput


@dataclass(frozen=True)
class Task:
    """One item: what becomes of the worker that does it."""

    id: str
    does: str = "ends well"


class Unpicklable(Exception):
    """Cannot be carried from a worker to its parent."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(one)


def spin() -> int:
    """Never ends, in one call of native code that holds the interpreter's lock."""
    return sum(range(1 << 60))


def act(task: Task, out: ShardOutput, folder: str, deadly: bool = True) -> dict[str, int]:
    """Do what the task says; a line in `starts` for every time that it was begun."""
    with open(Path(folder) / "starts", "a") as starts:
        starts.write(f"{task.id}\n")
    does = task.does if deadly else "ends well"
    if does.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, does))
    elif does == "stops once" and (Path(folder) / "stopped").exists():
        pass
    elif does in ("stops", "stops once"):
        (Path(folder) / "stopped").write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGSTOP)
    elif does == "ends its parent":
        os.kill(os.getppid(), signal.SIGKILL)
        spin()
    elif does == "exits":
        os._exit(7)
    elif does == "raises":
        raise LookupError(task.id)
    elif does == "raises what cannot be carried":
        raise Unpicklable(task.id, "two")
    elif does == "is told to stop":
        (Path(folder) / "stop").touch()
        os.kill(os.getpid(), signal.SIGTERM)
    elif task.does == "waits for a death":
        with open(Path(folder) / "died") as fifo:  # Opens when somebody opens it for writing.
            fifo.read()
    elif does == "spins":
        with open(Path(folder) / "worker", "w") as fifo:
            fifo.write(str(os.getpid()))
        spin()
    return {"process": os.getpid()}
