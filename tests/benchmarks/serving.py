"""Tokens a second that `ingot serve` answers to several requests at once.

    python -m tests.benchmarks.serving STORE REF [--rounds 3]

Starts `ingot serve REF` with one thread of torch, and asks for greedy completions of 128 tokens at
1, 4 and 16 requests at once, each round in turn. Prints the tokens of all answers by second
of the clock and by CPU second of the server, each with its ratio to one at a time, by round, and
compares every answer with that of one at a time. On a machine that others use, CPU seconds count.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import httpx
import psutil

TOKENS = 128
REQUESTS = 16
AT_ONCE = (1, 4, 16)


def ask(client: httpx.Client, number: int) -> tuple[str, int]:
    """The answer to the request of this number, and its tokens."""
    body = {
        "prompt": f"The function number {number} of this module",
        "max_tokens": TOKENS, "temperature": 0,
    }  # fmt: skip
    response = client.post("/v1/completions", json=body).raise_for_status().json()
    return response["choices"][0]["text"], response["usage"]["completion_tokens"]


class Measured(NamedTuple):
    """Of all requests: tokens a second, tokens a CPU second of the server, answers."""

    by_clock: float
    by_cpu: float
    answers: list[str]


def measure(client: httpx.Client, server: psutil.Process, at_once: int) -> Measured:
    """All requests, so many at once."""
    start, used = time.perf_counter(), sum(server.cpu_times()[:2])
    with ThreadPoolExecutor(at_once) as pool:
        answers = list(pool.map(lambda number: ask(client, number), range(REQUESTS)))
    seconds, cpu = time.perf_counter() - start, sum(server.cpu_times()[:2]) - used
    tokens = sum(count for _, count in answers)
    return Measured(tokens / seconds, tokens / cpu, [text for text, _ in answers])


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store")
    parser.add_argument("ref")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder, "key")
        command = [sys.executable, "-m", "ingot_entry", "serve", options.ref, "--port", "0"]
        process = subprocess.Popen(
            [*command, "--store", options.store, "--device", "cpu", "--key-file", str(key)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        try:
            assert process.stdout is not None
            url = re.search(r"http://[^/]+", process.stdout.readline())
            assert url is not None
            headers = {"Authorization": f"Bearer {key.read_text().strip()}"}
            with httpx.Client(base_url=url[0], headers=headers, timeout=600) as client:
                ask(client, 0)
                server = psutil.Process(process.pid)
                for number in range(options.rounds):
                    report(number, {one: measure(client, server, one) for one in AT_ONCE})
        finally:
            process.kill()
            process.wait()


def report(number: int, measured: dict[int, Measured]) -> None:
    """Print a round."""
    alone = measured[1]
    for at_once, one in measured.items():
        pairs = zip(one.answers, alone.answers, strict=True)
        print(
            f"round {number}, {at_once} at once: {one.by_clock:,.0f} tokens/s "
            f"({one.by_clock / alone.by_clock:.2f} ×), {one.by_cpu:,.0f} tokens/CPU s "
            f"({one.by_cpu / alone.by_cpu:.2f} ×), "
            f"{sum(a == b for a, b in pairs)} of {REQUESTS} equal",
            flush=True,
        )


if __name__ == "__main__":
    main()
