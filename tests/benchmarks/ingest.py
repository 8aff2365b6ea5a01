"""How fast a crawl becomes documents, beside the libraries that do parts of the work alone.

    python -m tests.benchmarks.ingest [--data ../shared/data] [--copies 3] [--extractor blocks]

Reading is held against bare fastwarc; a unit of work (a file to its tables on the disk) against its
extractor alone on the same pages, which are decoded already, file by file in turn, in one process;
the stage with two workers against one; and the memory of one file against that of one four times as
large. CPU seconds; what is compared runs in turn, several rounds; medians, with the least and the
greatest ratio of a round. The machine may be busy: times say little, ratios more.

The quality of the extractor is `python -m tests.benchmarks.extraction`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from tests.benchmarks.extraction import table

ROUNDS = 3
MEMORY_TIMES = 4


def side_by_side(
    works: dict[str, Callable[[], object]], rounds: int = ROUNDS
) -> dict[str, list[float]]:
    """CPU seconds of this process for each work, in turn, after one round that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds + 1):
        for name, work in works.items():
            start = time.process_time()
            work()
            if number:
                seconds[name].append(time.process_time() - start)
    return seconds


def ratio(of: Sequence[float], to: Sequence[float]) -> str:
    """The ratio of the medians, and the least and greatest of the rounds."""
    rounds = [one / other for one, other in zip(of, to, strict=True)]
    middle = statistics.median(of) / statistics.median(to)
    return f"{middle:.2f} ({min(rounds):.2f} to {max(rounds):.2f})"


def archives(data: Path, folder: Path, copies: int) -> list[Path]:
    """The first crawl's files, so many times over, under names of their own."""
    folder.mkdir(parents=True)
    made = []
    for copy in range(copies):
        for source in sorted((data / "warc").glob("crawl-2024-A-*.warc.gz")):
            made.append(folder / f"copy-{copy}-{source.name}")
            shutil.copyfile(source, made[-1])
    return made


def read_by_fastwarc(path: Path) -> int:
    """Records of a file, each with its body."""
    from fastwarc.warc import ArchiveIterator

    count = 0
    with path.open("rb") as stream:
        for record in ArchiveIterator(stream, parse_http=False):
            record.reader.read()
            count += 1
    return count


def read_by_ingot(path: Path) -> int:
    """The same through `ArchiveReader`, which also tells places, damage and expansion."""
    from stages.ingest.archive import ArchiveReader

    size = path.stat().st_size
    with path.open("rb") as stream:
        return sum(1 for _ in ArchiveReader(stream, size, limit=10_000_000, expansion=200))


def _all(read: Callable[[Path], int], files: Sequence[Path]) -> None:
    for path in files:
        read(path)


def reading_table(files: Sequence[Path], plain: Sequence[Path]) -> str:
    """`ArchiveReader` beside fastwarc, on gzip members and on the same bytes unpacked."""
    rows = []
    for name, chosen in (("gzip, a member a record", files), ("plain", plain)):
        readers = {"fastwarc": read_by_fastwarc, "ingot": read_by_ingot}
        seconds = side_by_side({by: partial(_all, read, chosen) for by, read in readers.items()})
        records = sum(map(read_by_fastwarc, chosen))
        speeds = [records / statistics.median(seconds[by]) for by in ("fastwarc", "ingot")]
        speed = ratio(seconds["fastwarc"], seconds["ingot"])
        rows.append((name, records, *(f"{speed:,.0f}" for speed in speeds), speed))
    header = ("reading", "records", "fastwarc / CPU s", "ingot / CPU s", "speed, x fastwarc")
    return table(header, rows)


def decoded_pages(path: Path) -> list[str]:
    """The HTML that the stage gives to its extractor, in the order of the records."""
    from stages.ingest.archive import ArchiveReader
    from stages.ingest.config import IngestConfig
    from stages.ingest.pages import Page, page_from_capture

    size = path.stat().st_size
    with path.open("rb") as stream:
        captures = ArchiveReader(stream, size, limit=10_000_000, expansion=200)
        pages = [page_from_capture(capture, IngestConfig()) for capture in captures]
    return [page.decoded.text for page in pages if isinstance(page, Page) and page.markup]


@dataclass(frozen=True)
class LocalFile:
    """A file as a unit of work opens it."""

    name: str
    path: Path

    def open(self) -> IO[bytes]:
        """Open for reading."""
        return self.path.open("rb")

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.path.stat().st_size


def unit_table(files: Sequence[Path], folder: Path, extractor: str, rounds: int = ROUNDS) -> str:
    """WARC to documents beside the extractor alone, file by file in turn."""
    from artifacts_schema.store.remote import backend_at
    from stages.engine.outputs import ShardOutput
    from stages.ingest.config import IngestConfig
    from stages.ingest.extraction import PageTooLarge, extract
    from stages.ingest.guard import Watch
    from stages.ingest.reader import Part, Unit
    from stages.ingest.shards import ingest_unit
    from stages.ingest.stage import Ingest

    config = IngestConfig.model_validate({"extractor": extractor})
    backend = backend_at(str(folder))
    kinds, watch = dict(Ingest.outputs), Watch(folder, seconds=60)

    def unit(path: Path) -> None:
        out = ShardOutput(backend, f"work/{'0' * 64}/shards/read/{path.name}", kinds)
        part = Part(LocalFile(path.name, path))  # type: ignore[arg-type]
        work = Unit(path.name, (part,))
        ingest_unit(work, out, snapshot="s", config=config, watch=watch, licences={})

    def alone(pages: Sequence[str]) -> None:
        for html in pages:
            try:
                extract(html, config)
            except PageTooLarge:
                continue

    seconds: dict[str, list[float]] = {"extractor": [], "unit": []}
    count = 0
    for number in range(rounds + 1):
        taken = dict.fromkeys(seconds, 0.0)
        for path in files:
            pages = decoded_pages(path)
            count += len(pages) if number else 0
            for name, work in (("extractor", partial(alone, pages)), ("unit", partial(unit, path))):
                start = time.process_time()
                work()
                taken[name] += time.process_time() - start
        for name in seconds if number else ():
            seconds[name].append(taken[name])
    each = [1000 * statistics.median(seconds[name]) * rounds / count for name in seconds]
    row = (extractor, count // rounds, *(f"{one:.2f}" for one in each))
    header = (
        "WARC to documents",
        "pages",
        "extractor alone, ms",
        "whole, ms",
        "speed, x extractor",
    )
    return table(header, [(*row, ratio(seconds["extractor"], seconds["unit"]))])


class Trial:
    """Runs of the stage in a store of their own."""

    def __init__(self, folder: Path, extractor: str) -> None:
        folder.mkdir(exist_ok=True)
        self.store, self.extractor, self.runs = folder / "store", extractor, 0

    def run(self, files: Sequence[Path], workers: int) -> dict[str, Any]:
        """Telemetry of a run over `files`: CPU seconds of all its processes, peak memory."""
        self.runs += 1
        name = f"trial-{self.runs}"
        self._ingot("snapshot", "add", name, *map(str, files))
        profile = self.store.parent / f"{name}.yaml"
        profile.write_text(json.dumps({"stages": {"ingest": {"workers": workers}}}))
        self._ingot(
            *("stage", "ingest", "--input", f"snapshot=snapshots/{name}", "--as", name, "--force"),
            *("--set", f"extractor={self.extractor}", "--profile", str(profile)),
        )
        shown = json.loads(self._ingot("show", name, "--json"))
        telemetry: dict[str, Any] = shown["telemetry"]
        return telemetry

    def _ingot(self, *arguments: str) -> str:
        ingot = str(Path(sys.executable).with_name("ingot"))
        command = [ingot, *arguments, "--store", str(self.store)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def workers_table(files: Sequence[Path], folder: Path, extractor: str, rounds: int = ROUNDS) -> str:
    """CPU seconds of the whole stage with two workers beside one."""
    seconds: dict[int, list[float]] = {1: [], 2: []}
    trial = Trial(folder, extractor)
    for _ in range(rounds):
        for workers, taken in seconds.items():
            taken.append(trial.run(files, workers)["cpu_seconds"])
    medians = (f"{statistics.median(taken):.1f}" for taken in seconds.values())
    header = ("the stage", "1 worker, CPU s", "2 workers, CPU s", "2 workers, x 1")
    return table(header, [(f"{len(files)} files", *medians, ratio(seconds[2], seconds[1]))])


def memory_table(files: Sequence[Path], folder: Path, extractor: str) -> str:
    """The peak memory of one worker over one file, and over one of several times its size."""
    folder.mkdir()
    rows = []
    for times in (1, MEMORY_TIMES):
        joined = folder / f"joined-{times}.warc.gz"
        joined.write_bytes(b"".join(path.read_bytes() for path in files) * times)
        peak = Trial(folder, extractor).run([joined], 1)["peak_memory_bytes"]
        rows.append((f"{joined.stat().st_size / 1e6:.0f} MB in one file", f"{peak / 1e6:.0f}"))
    return table(("memory", "peak of the largest process, MB"), rows)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--copies", type=int, default=3, help="how often the crawl is read")
    parser.add_argument("--extractor", default="blocks")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ingot-benchmark-") as name:
        folder = Path(name)
        packed = archives(chosen.data, folder / "packed", chosen.copies)
        once = packed[: len(packed) // chosen.copies]
        plain = [path.with_suffix("") for path in packed]
        for path, target in zip(packed, plain, strict=True):
            target.write_bytes(gzip.decompress(path.read_bytes()))
        tables = (
            partial(reading_table, packed, plain),
            partial(unit_table, once, folder / "unit", chosen.extractor),
            partial(workers_table, packed, folder / "stage", chosen.extractor),
            partial(memory_table, once, folder / "memory", chosen.extractor),
        )
        for made in tables:
            print(made(), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
