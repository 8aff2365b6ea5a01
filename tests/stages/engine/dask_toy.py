"""A stage for a cluster: tables of squares, made by shards to which things happen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field
from toy import exclusions_table

from artifacts_schema.config import Config, MapExecution
from artifacts_schema.errors import InputError
from stages.engine import Context, ShardOutput, Stage


@dataclass(frozen=True)
class Square:
    """One table to make; `happens` comes between its first bytes and its last."""

    id: str
    number: int
    happens: str = ""


class Unkind(InputError):
    """An error of the stage's own."""


def make_square(square: Square, out: ShardOutput, folder: str, laid: Path) -> dict[str, int]:
    """Write two tables; a line in `starts` for every attempt."""
    assert laid.read_text() == "for the shards"
    place = Path(folder)
    with open(place / "starts", "a") as starts:
        starts.write(f"{square.id}\n")
    values = [square.number**2 + i for i in range(50)]
    out.write_table("exclusions", f"{square.id}-0.parquet", exclusions_table(values))
    happen(square.happens, place)
    out.write_table("exclusions", f"{square.id}-1.parquet", exclusions_table(values[::-1]))
    return {"process": os.getpid(), "sum": sum(values)}


def happen(what: str, folder: Path) -> None:
    """End this process, or another one, or wait."""
    if what == "dies" or (what == "dies once" and _first(folder / "died")):
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "waits once" and _first(folder / "begun"):
        until((folder / "released").exists)
    elif what == "waits":
        (folder / "begun").touch()
        until((folder / "released").exists)
    elif what == "ends the scheduler" and _first(folder / "ended"):
        os.kill(int((folder / "scheduler").read_text()), signal.SIGKILL)
        time.sleep(1)  # The answer, if there were one, would come after the end.
    elif what == "alone":
        assert _first(folder / "busy"), "another shard is at work"
        time.sleep(0.2)
        (folder / "busy").unlink()
    elif what == "waits for a second worker":
        (folder / f"worker-{os.getpid()}").touch()
        until(lambda: len(list(folder.glob("worker-*"))) > 1)
    elif what == "burns":
        burn(0.4)
        subprocess.run([sys.executable, "-c", BURN], check=True)
    elif what == "raises":
        raise Unkind("this cannot be squared", where="here", hint="try another")


BURN = "import time\nwhile time.process_time() < 0.4: pass"


def burn(seconds: float) -> None:
    """Use so much of a processor."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def until(there: Callable[[], object], alive: Callable[[], bool] = lambda: True) -> None:
    """Wait for something, as long as what brings it is alive.

    A shard that waits for the second attempt outlives a slow one on a busy machine.
    """
    end = time.monotonic() + 200
    while not there():
        assert alive(), "what should bring it has ended"
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def _first(mark: Path) -> bool:
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class SquaresConfig(Config):
    """What is made."""

    happens: tuple[str, ...] = Field(default=("",) * 4, description="To each shard.")
    folder: str = Field(default="", description="Of marks.")


class Squares(Stage):
    """A table for each number."""

    name, version, reproducible = "toy_squares", 1, "bytes"
    outputs = {"exclusions": "exclusions"}
    libraries = ("numpy", "pyarrow")
    Config, Execution = SquaresConfig, MapExecution

    def run(self, context: Context) -> None:
        squares = [Square(f"{i}", i, what) for i, what in enumerate(context.config.happens)]
        laid = context.work / "laid"
        laid.write_text("for the shards")
        made = context.map(make_square, squares, folder=context.config.folder, laid=laid)
        context.count(sum=sum(result.value["sum"] for result in made))
        context.telemetry(processes=sorted({result.value["process"] for result in made}))
