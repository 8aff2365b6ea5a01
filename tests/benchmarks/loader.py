"""The loader beside a plain memory map, numpy and MosaicML streaming; its start, memory, prefetch.

    python -m tests.benchmarks.loader --work FOLDER [--speed] [--start] [--memory] [--prefetch]
        [--peers PYTHON]

Shards of drawn tokens lie in FOLDER, made once; 2,048 tokens a sequence, documents of log-normal
length (median 511), page cache warm. The peer runs by the Python of an environment that has it
(`tests/peers/setup.sh`, INGOT_PEERS_STREAMING).

speed     million tokens a CPU second (user and system, all threads) of whole batches, in turn:
          A B C … A B C …; medians with least and greatest, and the quotient to Ingot. All read the
          same rows in a shuffled order (the peer in its own, an epoch a round):
          plain map     numpy's memory map to int64; no targets or documents
          map + cut     rows by memory map, then cut into segments as Ingot does
          Ingot         `TokenShards.batch`: targets and documents
          Ingot, clock  `clock_batch`: the sample clock's draw too
          streaming     MosaicML streaming, shuffled, no worker processes; tokens alone
start     from inputs to the first batch and to one amid the run, at 10^6, 10^9 and 10^12 tokens:
          10^5 sequences a shard, all shards one sparse file; kernels loaded, inputs not hashed
          (`verify_inputs: false`). And what loading code and kernels costs a fresh process
memory    resident bytes over a million steps, of Ingot and of a memory map
prefetch  seconds of a loop whose step computes on one thread, by batches prepared ahead: CPU (which
          tells whether it costs anything) and wall (whether it saves anything; on a quiet machine)
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.training.prefetch import Prefetch
from stages.training.sample_clock import Draw, Phase, SampleClock, clock_batch
from stages.training.token_shards import TokenShards, cut_into_segments
from tests.benchmarks.extraction import table

LENGTH, VOCABULARY, END, PADDING = 2048, 32_000, 1, 2
SHARD_ROWS, SHARDS = 4096, 8
PARTS = ("speed", "start", "memory", "prefetch")


class HeldFile(NamedTuple):
    """A file of an output, as a manifest lists it."""

    path: str
    bytes: int


@dataclass
class Held:
    """Stands in for an engine Input; `one_file` takes the place of every shard."""

    description: bytes
    files: tuple[HeldFile, ...]
    folder: Path
    one_file: Path | None = None
    stage: str = "pack"
    key: str = "k" * 64
    output: str = "train"
    digest: str = "d" * 64

    def read_json(self, path: str) -> Any:
        return json.loads(self.description)

    def local_path(self, path: str) -> Path:
        return self.one_file or self.folder / path

    def open_sparse(self, path: str) -> None:
        """Nothing is remote here."""


def held(
    folder: Path, shards: int, rows: int, length: int = LENGTH, one_file: Path | None = None
) -> Any:
    """An output of one source; `rows` sequences a shard."""
    listed = [
        {"file": f"web/{number:06d}.tokens", "sequences": rows, "tokens": rows * length}
        for number in range(shards)
    ]
    total = shards * rows
    source = {"shards": listed, "sequences": total, "tokens": total * length, "documents": total}
    source |= {"bytes": total, "languages": {"en": total * length}, "repetitive": 0, "cut": 0}
    described = {"dtype": "uint16", "sequence_length": length, "vocabulary_size": VOCABULARY}
    described |= {"padded_vocabulary_size": VOCABULARY, "tokenizer": "t" * 64, "begin_id": None}
    described |= {"end_id": END, "padding_id": PADDING, "sources": {"web": source}}
    files = tuple(HeldFile(str(one["file"]), rows * length * 2) for one in listed)
    return Held(json.dumps(described).encode(), files, folder, one_file)


def corpus(folder: Path) -> Any:
    """Written once: shards, and all rows in one file for the peer."""
    if not (folder / "rows.npy").exists():
        (folder / "web").mkdir(parents=True, exist_ok=True)
        draw = np.random.default_rng(1)
        size = SHARDS * SHARD_ROWS * LENGTH
        tokens = draw.integers(8, VOCABULARY, size=size, dtype=np.uint16)
        ends = np.cumsum(np.exp(draw.normal(np.log(511), 1.1, size // 300)).astype(int) + 3)
        tokens[ends[ends < size]] = END
        rows = tokens.reshape(-1, LENGTH)
        rows[::50, -17:] = PADDING
        for number in range(SHARDS):
            part = rows[number * SHARD_ROWS : (number + 1) * SHARD_ROWS]
            part.tofile(folder / f"web/{number:06d}.tokens")
        np.save(folder / "rows.npy", rows)
    return held(folder, SHARDS, SHARD_ROWS)


Reader = Callable[[NDArray[np.int64]], int]
"""Reads the sequences of these numbers as one batch; how many tokens."""


def readers(given: Any) -> dict[str, Reader]:
    """The ways that are measured in this process."""
    folder, shards = given.folder, TokenShards([given])
    rows = SHARDS * SHARD_ROWS
    paths = [folder / file.path for file in given.files]
    shape = (SHARD_ROWS, LENGTH)
    maps = [np.asarray(np.memmap(path, "<u2", mode="r", shape=shape)) for path in paths]
    clock = SampleClock(shards.sequences, [Phase(10**9, 1, LENGTH)], seed=1)
    clocks = {1: clock}
    steps = iter(range(1, 10**9))

    def gathered(sequences_B: NDArray[np.int64], dtype: Any) -> NDArray[Any]:
        found = np.empty((len(sequences_B), LENGTH), dtype=dtype)
        for row, sequence in enumerate(sequences_B.tolist()):
            found[row] = maps[sequence // SHARD_ROWS][sequence % SHARD_ROWS]
        return found

    def plain(sequences_B: NDArray[np.int64]) -> int:
        return gathered(sequences_B, np.int64).size

    def mapped(sequences_B: NDArray[np.int64]) -> int:
        raw_BL = gathered(sequences_B, "<u2")
        return cut_into_segments(raw_BL, END, PADDING)[0].size

    def ours(sequences_B: NDArray[np.int64]) -> int:
        return shards.batch(np.zeros(len(sequences_B), np.int64), sequences_B).tokens_BL.size

    def by_clock(sequences_B: NDArray[np.int64]) -> int:
        size = len(sequences_B)
        if size not in clocks:
            clocks[size] = SampleClock(shards.sequences, [Phase(10**9, size, LENGTH)], seed=1)
        return clock_batch(shards, clocks[size], next(steps)).tokens_BL.size

    assert shards.sequences["web"] == rows
    return {
        "plain map": plain,
        "map + cut": mapped,
        "Ingot": ours,
        "Ingot, clock": by_clock,
    }


class Peer:
    """MosaicML streaming in a process that reads on demand."""

    def __init__(self, python: str, folder: Path, size: int) -> None:
        script = Path(__file__).with_name("loader_peers.py")
        self.process = subprocess.Popen(
            [python, str(script), str(folder / "rows.npy"), str(folder / "mds"), str(size)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        while (line := self.process.stdout.readline().strip()) != "ready":
            assert line or self.process.poll() is None, "the peer ended"

    def rate(self, batches: int) -> float:
        """Tokens a CPU second."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(batches, file=self.process.stdin, flush=True)
        tokens, seconds = self.process.stdout.readline().split()
        return int(tokens) / float(seconds)

    def close(self) -> None:
        """End it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)


def speed(folder: Path, rounds: int, python: str | None) -> str:
    """Rates of all ways, at two sizes of batches."""
    given = corpus(folder)
    ways = readers(given)
    lines = []
    for size, tokens in ((8, 1 << 26), (512, 1 << 27)):
        count = tokens // (size * LENGTH)
        rates: dict[str, list[float]] = {name: [] for name in ways}
        peer = Peer(python, folder, size) if python else None
        for read in ways.values():
            for sequences_B in _shuffled(size, 0, 4):
                read(sequences_B)
        for number in range(rounds):
            for name, read in ways.items():
                order = list(_shuffled(size, number + 1, count))
                start, done = time.process_time(), 0
                for sequences_B in order:
                    done += read(sequences_B)
                rates[name].append(done / (time.process_time() - start))
            if peer is not None:
                rates.setdefault("streaming", []).append(peer.rate(SHARDS * SHARD_ROWS // size))
        if peer is not None:
            peer.close()
        ours = statistics.median(rates["Ingot"])
        for name, found in rates.items():
            middle = statistics.median(found)
            spread = f"{min(found) / 1e6:,.0f}-{max(found) / 1e6:,.0f}"
            lines.append(
                (f"{size} rows: {name}", f"{middle / 1e6:,.0f}", spread, f"{ours / middle:.2f}")
            )
    return table(("batches", "M tokens/CPU s", "least-greatest", "Ingot is x"), lines)


def _shuffled(size: int, seed: int, count: int) -> Iterator[NDArray[np.int64]]:
    order = np.random.default_rng(seed).permutation(SHARDS * SHARD_ROWS)
    parts = order[: len(order) // size * size].reshape(-1, size)
    for _, part in zip(range(count), cycle(parts), strict=False):
        yield part


def start(folder: Path) -> str:
    """Milliseconds to the first batch."""
    length = 1000
    one_file = folder / "sparse.tokens"
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for tokens, shards in ((10**6, 1), (10**9, 10), (10**12, 10_000), (10**12, 100_000)):
        rows = tokens // length // shards
        with open(one_file, "wb") as file:
            file.truncate(rows * length * 2)
        took = [_start(held(folder, shards, rows, length, one_file)) for _ in range(7)]
        parts = [f"{1000 * statistics.median(part):.1f}" for part in zip(*took, strict=True)]
        lines.append((f"{tokens:.0e}", f"{shards:,}", *parts))
    one_file.unlink()
    code = [_fresh() for _ in range(3)]
    names = ("tokens", "shards", "open ms", "clock ms", "first batch ms", "all ms", "seek ms")
    told = table(names, lines)
    return f"{told}\ncode and kernels in a fresh process: {1000 * statistics.median(code):.0f} ms"


def _start(given: Any) -> tuple[float, ...]:
    marks = [time.perf_counter()]
    shards = TokenShards([given])
    marks.append(time.perf_counter())
    sequences = shards.sequences["web"]
    phase = Phase(max(2, sequences // 16), 16, shards.sequence_length)
    clock = SampleClock(shards.sequences, [phase], seed=1)
    marks.append(time.perf_counter())
    clock_batch(shards, clock, 1)
    marks.append(time.perf_counter())
    clock_batch(shards, clock, clock.steps // 2)
    seek = time.perf_counter() - marks[-1]
    parts = [b - a for a, b in pairwise(marks)]
    return (*parts, marks[-1] - marks[0], seek)


def _fresh() -> float:
    """Seconds of a process that imports the loader and reads a batch, less an empty Python's."""
    code = (
        "import numpy as np, time; a = time.perf_counter();"
        "from stages.training.token_shards import cut_into_segments;"
        "cut_into_segments(np.ones((2, 8), '<u2'), 1, 2); print(time.perf_counter() - a)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


class PlainClock:
    """A clock that costs nothing: sequences by a stride."""

    def __init__(self, sequences: int, rows: int) -> None:
        self.sequences, self.rows = sequences, np.arange(rows, dtype=np.int64)
        self.sources = np.zeros(rows, dtype=np.int64)

    def batch(self, step: int) -> Draw:
        """As `SampleClock`."""
        return Draw(self.sources, (step * 7919 + self.rows * 104_729) % self.sequences, 0)


def memory(folder: Path, steps: int) -> str:
    """Resident bytes on the way."""
    given = corpus(folder)
    shards, map_read = TokenShards([given]), readers(given)["map + cut"]
    clock: Any = PlainClock(shards.sequences["web"], 2)
    marks = [10**power for power in range(3, 9) if 10**power <= steps]
    lines = []
    ways: tuple[tuple[str, Callable[[int], Any], int], ...] = (
        ("Ingot", lambda step: clock_batch(shards, clock, step), 0),
        ("Ingot, 2 ahead", lambda step: clock_batch(shards, clock, step), 2),
        ("memory map", lambda step: map_read(clock.batch(step).sequences), 0),
    )
    for name, make, ahead in ways:
        seen = []
        with Prefetch(make, ahead=ahead, last=steps) as batches:
            for step in range(1, steps + 1):
                batches(step)
                if step in marks:
                    seen.append(f"{_resident() / 1e6:,.1f}")
        lines.append((name, *seen))
    return table(("MB resident after steps", *(f"{mark:,}" for mark in marks)), lines)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def prefetch(folder: Path, rounds: int) -> str:
    """A loop on one core and on two; a step computes for about as long as a batch takes, or ten."""
    given = corpus(folder)
    shards = TokenShards([given])
    clock = SampleClock(shards.sequences, [Phase(300, 64, LENGTH)], seed=1)
    matrix = np.random.default_rng(0).normal(size=(384, 384)).astype(np.float32)
    cores = sorted(os.sched_getaffinity(0))
    lines = []
    for count in (1, 2):
        if count > len(cores):
            continue
        os.sched_setaffinity(0, cores[:count])
        for work in (0, 1, 5):
            took: dict[int, list[tuple[float, float]]] = {0: [], 2: []}
            for _ in range(rounds):
                for ahead, found in took.items():
                    found.append(_loop(shards, clock, matrix, ahead, work))
            for index, name in enumerate(("CPU", "wall")):
                none, two = (statistics.median(one[index] for one in took[k]) for k in (0, 2))
                what = f"{name}, {count} cores, work {work}"
                lines.append((what, f"{none:.3f}", f"{two:.3f}", f"{two / none:.2f}"))
    os.sched_setaffinity(0, cores)
    return table(("seconds", "0 ahead", "2 ahead", "ratio"), lines)


def _loop(
    shards: TokenShards, clock: SampleClock, matrix: Any, ahead: int, work: int
) -> tuple[float, float]:
    begun, used = time.perf_counter(), time.process_time()
    steps = clock.steps
    with Prefetch(lambda n: clock_batch(shards, clock, n), ahead=ahead, last=steps) as batches:
        for step in range(1, steps + 1):
            batches(step)
            for _ in range(work):
                _ = matrix @ matrix
    return time.process_time() - used, time.perf_counter() - begun


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the parts that are asked for, all by default."""
    summary = (__doc__ or "").partition("\n\n")[0]
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("--work", type=Path, required=True, help="folder for shards")
    for part in PARTS:
        parser.add_argument(f"--{part}", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10**6, help="of memory")
    parser.add_argument("--peers", default=os.environ.get("INGOT_PEERS_STREAMING"))
    chosen = parser.parse_args(arguments)
    if not chosen.peers:
        print("without streaming: name its Python (sh tests/peers/setup.sh FOLDER)")
    asked: dict[str, Callable[[], str]] = {
        "speed": lambda: speed(chosen.work, chosen.rounds, chosen.peers),
        "start": lambda: start(chosen.work),
        "memory": lambda: memory(chosen.work, chosen.steps),
        "prefetch": lambda: prefetch(chosen.work, chosen.rounds),
    }
    for part in [part for part in PARTS if getattr(chosen, part)] or PARTS:
        print(f"\n{part}\n{asked[part]()}", flush=True)


if __name__ == "__main__":
    main()
