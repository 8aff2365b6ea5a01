"""How fast a crawl becomes documents, beside the libraries that do parts of the work alone.

    python -m tests.benchmarks.ingest [--data ../shared/data] [--copies 3] [--extractor blocks]

Reading is held against bare fastwarc, the whole stage against its extractor alone on the same pages
(already decoded, in one process), two workers against one, and the memory of four times the input
against that of one. CPU seconds of all processes; of the stage the marginal ones, that is of the
larger input less those of the smaller, so that the start of interpreters is no page's time. What is
compared runs in turn, several rounds; medians, with the least and the greatest ratio.

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
from collections.abc import Callable, Iterator, Sequence
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
    """The same through `read_archive`, which also tells places, damage and expansion."""
    from stages.ingest.archives.archive import read_archive

    size = path.stat().st_size
    with path.open("rb") as stream:
        return sum(1 for _ in read_archive(stream, size, limit=10_000_000, expansion=200))


def reading_table(files: Sequence[Path], plain: Sequence[Path]) -> str:
    """`read_archive` beside fastwarc, on gzip members and on the same bytes unpacked."""
    rows = []
    for name, chosen in (("gzip, a member a record", files), ("plain", plain)):
        seconds = side_by_side(
            {
                "fastwarc": lambda chosen=chosen: [read_by_fastwarc(path) for path in chosen],  # type: ignore[misc]
                "ingot": lambda chosen=chosen: [read_by_ingot(path) for path in chosen],  # type: ignore[misc]
            }
        )
        records = sum(map(read_by_fastwarc, chosen))
        speeds = [records / statistics.median(seconds[by]) for by in ("fastwarc", "ingot")]
        speed = ratio(seconds["fastwarc"], seconds["ingot"])
        rows.append((name, records, *(f"{speed:,.0f}" for speed in speeds), speed))
    header = ("reading", "records", "fastwarc / CPU s", "ingot / CPU s", "speed, x fastwarc")
    return table(header, rows)


def decoded_pages(files: Sequence[Path]) -> Iterator[str]:
    """The HTML that the stage gives to its extractor, in the order of the records."""
    from stages.ingest.archives.archive import read_archive
    from stages.ingest.pages import Page, PageRules, page_of

    for path in files:
        stream: IO[bytes]
        with path.open("rb") as stream:
            size = path.stat().st_size
            for capture in read_archive(stream, size, limit=10_000_000, expansion=200):
                page = page_of(capture, PageRules())
                if isinstance(page, Page) and page.markup:
                    yield page.decoded.text


def extract_alone(pages: Sequence[str], extractor: str) -> float:
    """CPU seconds of the extractor on pages that are there already."""
    from stages.ingest.extraction import ExtractionRules, PageTooLarge, extract
    from stages.ingest.stage import IngestConfig

    rules = ExtractionRules(
        extractor=extractor,  # type: ignore[arg-type]
        careful_from=IngestConfig().careful_from,
    )
    extract("<html><body><p>One short page.</p></body></html>", rules)
    start = time.process_time()
    for html in pages:
        try:
            extract(html, rules)
        except PageTooLarge:
            continue
    return time.process_time() - start


class Trial:
    """Runs of the stage in a store of their own."""

    def __init__(self, folder: Path, extractor: str) -> None:
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


def stage_table(data: Path, folder: Path, copies: int, extractor: str, rounds: int = ROUNDS) -> str:
    """The whole stage beside its extractor alone, and two workers beside one."""
    small = archives(data, folder / "small", 1)
    large = archives(data, folder / "large", 1 + copies)
    pages = list(decoded_pages(small)) * copies
    seconds: dict[str, list[float]] = {"alone": [], "one": [], "two": []}
    trial = Trial(folder, extractor)
    for _ in range(rounds):
        seconds["alone"].append(extract_alone(pages, extractor))
        for name, workers in (("one", 1), ("two", 2)):
            less, more = (trial.run(files, workers)["cpu_seconds"] for files in (small, large))
            seconds[name].append(more - less)
    rows = [
        (
            f"{extractor}, {len(pages):,} pages",
            *(f"{1000 * statistics.median(seconds[n]) / len(pages):.2f}" for n in seconds),
            ratio(seconds["alone"], seconds["one"]),
            ratio(seconds["two"], seconds["one"]),
        )
    ]
    header = (
        *("WARC to documents", "extractor alone, CPU ms a page", "stage, 1 worker", "2 workers"),
        *("speed, x extractor alone", "CPU of 2 workers, x 1"),
    )
    return table(header, rows)


def memory_table(data: Path, folder: Path, extractor: str) -> str:
    """The peak memory of one worker over the crawl, and over one file of several times its size."""
    sizes = (1, MEMORY_TIMES)
    rows = []
    for times in sizes:
        joined = folder / f"joined-{times}.warc.gz"
        with joined.open("wb") as target:
            for path in archives(data, folder / f"for-{times}", times):
                target.write(path.read_bytes())
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
        packed = archives(chosen.data, folder / "reading", chosen.copies)
        plain = []
        for path in packed:
            plain.append(path.with_suffix(""))
            plain[-1].write_bytes(gzip.decompress(path.read_bytes()))
        print(reading_table(packed, plain), end="\n\n", flush=True)
        print(
            stage_table(chosen.data, folder / "stage", chosen.copies, chosen.extractor),
            end="\n\n",
            flush=True,
        )
        print(memory_table(chosen.data, folder / "memory", chosen.extractor))


if __name__ == "__main__":
    main()
