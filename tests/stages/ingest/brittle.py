"""A stage whose pages end their worker in every way that a parser can."""

from __future__ import annotations

import ctypes
import os
import select
import signal
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from artifacts_schema.config import Config, MapExecution
from stages.engine import Context, ShardOutput, Stage
from stages.ingest.guard import CrashingPages, Watch, page_name


class BrittleConfig(Config):
    """Which pages are bad, and how."""

    units: int = Field(default=4, description="Units of work.")
    pages: int = Field(default=5, description="Pages of each.")
    bad: dict[str, str] = Field(default={}, description="`UNIT/PAGE` → what it does.")
    folder: str = Field(default="", description="Where pages leave traces of themselves.")


class BrittleExecution(MapExecution):
    """As that of `ingest`."""

    page_seconds: float = Field(default=0.1, description="CPU seconds a page.")
    limit: int = Field(default=1_000, description="Most crashing pages.")


@dataclass(frozen=True)
class Pages:
    """A unit of work."""

    id: str
    number: int


def spin() -> None:
    """Never ends, in one call of native code that holds the interpreter's lock."""
    sum(range(1 << 60))


def parse(name: str, does: str, folder: Path) -> str:
    """What stands for a parser."""
    if does == "spins":
        spin()
    elif does == "spins in Python":
        while True:
            pass
    elif does == "writes out of bounds":
        ctypes.string_at(0)
    elif does == "aborts":
        os.abort()
    elif does == "waits":
        select.select([], [], [], 0.3)
    elif does == "is told of, then spins":
        with open(folder / "reached", "w") as fifo:
            fifo.write(str(os.getpid()))
        spin()
    elif does == "is killed once" and not (folder / "killed").exists():
        (folder / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "good"


def read_pages(
    unit: Pages, out: ShardOutput, *, config: BrittleConfig, watch: Watch
) -> dict[str, int]:
    """Rows of page and what became of it, in order."""
    import pyarrow as pa

    from artifacts_schema.kinds import KINDS

    rows = []
    with watch.over(unit.id) as guard:
        for number in range(config.pages):
            name = page_name("crawl.warc.gz", number)
            does = config.bad.get(f"{unit.number}/{number}", "")
            if does == "crashes between pages":
                os.abort()
            outcome = guard.reason_to_skip(name)
            if outcome is None:
                with guard.page(name):
                    outcome = parse(name, does, Path(config.folder))
            rows.append(
                {"doc_id": f"{unit.number * config.pages + number:032x}", "reason": outcome}
            )
    schema = KINDS["exclusions"].tables["*.parquet"].arrow()
    out.write_table("exclusions", f"{unit.id}.parquet", pa.Table.from_pylist(rows, schema=schema))
    return {"lost": sum(row["reason"] != "good" for row in rows)}


class Brittle(Stage):
    """Pages in, and of each whether it could be parsed."""

    name, version, reproducible = "brittle", 1, "bytes"
    outputs = {"exclusions": "exclusions"}
    Config, Execution = BrittleConfig, BrittleExecution

    def run(self, context: Context) -> None:
        execution = context.execution
        crashing_pages = CrashingPages(
            context.state, seconds=execution.page_seconds, limit=execution.limit
        )
        known = len(crashing_pages.pages)
        units = [Pages(f"{number:05d}", number) for number in range(context.config.units)]
        watch = crashing_pages.watch()
        results = context.map(
            read_pages,
            units,
            config=context.config,
            watch=watch,
            on_death=crashing_pages.on_crash,
            mark_of=watch.page_at,
        )
        context.count(lost=sum(result.value["lost"] for result in results))
        context.telemetry(known=known, found=len(crashing_pages.pages) - known)
