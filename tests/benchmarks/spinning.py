"""What threads that wait by spinning cost where the cores are shared: `python -m
tests.benchmarks.spinning`.

torch's CPU wheel brings GNU's OpenMP, whose threads spin at each barrier before they sleep. Two
threads train a small model while other processes keep the cores busy; each variant is a
process of its own, since the runtime reads its settings when it is loaded. Their rounds take turns,
so that a load that changes meets all of them alike; what counts are the quotients.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

VARIANTS = {
    "default": {},
    "OMP_WAIT_POLICY=PASSIVE": {"OMP_WAIT_POLICY": "PASSIVE"},
    "GOMP_SPINCOUNT=0": {"GOMP_SPINCOUNT": "0"},
    "KMP_BLOCKTIME=0": {"KMP_BLOCKTIME": "0"},
}
SETTINGS = {name for values in VARIANTS.values() for name in values}


def main() -> None:
    """Measure, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--busy", type=int, default=8, help="processes that keep cores busy")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=40, help="of all rounds together, about")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        train(given.threads)
        return
    children = {name: started(values, given.threads) for name, values in VARIANTS.items()}
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in VARIANTS}
    try:
        for child in children.values():
            answer(child)  # Loaded and warm.
        with busy(given.busy):
            end = time.monotonic() + given.seconds
            while time.monotonic() < end:
                for name, child in children.items():
                    ask(child)
                    rounds[name].append(answer(child))
    finally:
        for child in children.values():
            child.kill()
            child.wait()
    report(rounds)


def train(threads: int) -> None:
    """Train a step at each line of input; print its seconds, and of the process's CPU."""
    import torch

    from stages.model.config import ModelShape
    from stages.model.decoder import Decoder

    torch.set_num_threads(threads)
    # The quickstart's width, fewer layers and tokens: as many barriers a second, shorter rounds.
    shape = ModelShape(width=192, layers=1, heads=6, kv_heads=3, context=256)
    model = Decoder(shape.with_vocabulary(1024), seed=0)
    tokens = torch.arange(256).view(1, 256) * 7 % 1024

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16):
            model(tokens).float().logsumexp(-1).mean().backward()

    step()
    print(json.dumps({}), flush=True)
    for _ in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        step()
        spent = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        print(json.dumps(spent), flush=True)


def started(values: dict[str, str], threads: int) -> subprocess.Popen[str]:
    """A child that trains under these settings."""
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    return subprocess.Popen(
        [sys.executable, "-m", __spec__.name, "--child", "--threads", str(threads)],
        env={**environment, **values, "OMP_NUM_THREADS": str(threads)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def ask(child: subprocess.Popen[str]) -> None:
    """Let it train a step."""
    assert child.stdin is not None
    child.stdin.write("\n")
    child.stdin.flush()


def answer(child: subprocess.Popen[str]) -> dict[str, float]:
    """What it printed."""
    assert child.stdout is not None
    found: dict[str, float] = json.loads(child.stdout.readline())
    return found


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that use a core each, as far as they get one."""
    loop = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(loop) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def report(rounds: dict[str, list[dict[str, float]]]) -> None:
    """Seconds of each variant, and its quotients with the default of the same round."""
    first = rounds["default"]
    print(f"{'variant':26} {'rounds':>6} {'wall s':>8} {'cpu s':>8} {'wall x':>7} {'cpu x':>7}")
    for name, one in rounds.items():
        pairs = list(zip(first, one, strict=False))
        numbers = [statistics.median(spent[kind] for spent in one) for kind in ("wall", "cpu")]
        quotients = [
            statistics.median(mine[kind] / base[kind] for base, mine in pairs)
            for kind in ("wall", "cpu")
        ]
        shown = " ".join([*(f"{n:8.2f}" for n in numbers), *(f"{q:7.2f}" for q in quotients)])
        print(f"{name:26} {len(one):6} {shown}")


if __name__ == "__main__":
    main()
