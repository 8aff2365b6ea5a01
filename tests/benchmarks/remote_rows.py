"""What 64 rows of training cost on a bucket: by range, and by whole files as without tables.

    python -m tests.benchmarks.remote_rows [--shards 6] [--megabytes 126] [--rows 64] [--ranks 1]

A local S3 server (moto) counts requests and bytes; each way has an empty cache, and `ranks`
processes that read the same rows one after the other. CPU seconds are those of the readers, without
their imports.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from artifacts_schema.store.commit import Attempt
from artifacts_schema.store.remote import backend_at
from stages.engine import Input
from stages.training.token_shards import TokenShards
from tests.benchmarks.extraction import table

LENGTH = 4096
TESTS = Path(__file__).parent.parent


def serve() -> tuple[subprocess.Popen[bytes], str]:
    """The server, and its address; readers find it by the environment."""
    server = subprocess.Popen(
        [sys.executable, str(TESTS / "s3_server.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert server.stdout is not None
    url = f"http://127.0.0.1:{server.stdout.readline().decode().strip()}"
    os.environ |= {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing-secret",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    urllib.request.urlopen(urllib.request.Request(f"{url}/bench", method="PUT")).close()
    return server, url


def write(shards: int, rows: int) -> Input:
    """Drawn tokens in a bucket, as `pack` writes them."""
    attempt = Attempt(backend_at("s3://bench/store"), "pack", "0" * 64, {"train": "token_shards"})
    draw = np.random.default_rng(0)
    for number in range(shards):
        with attempt.create("train", f"web/{number:05d}.tokens") as file:
            file.write(draw.integers(2, 50_000, rows * LENGTH, dtype=np.uint16).data)
    listed = [
        {"file": f"web/{n:05d}.tokens", "sequences": rows, "tokens": rows * LENGTH}
        for n in range(shards)
    ]
    total = shards * rows
    source = {"shards": listed, "sequences": total, "tokens": total * LENGTH, "documents": total}
    source |= {"bytes": total, "languages": {"en": total * LENGTH}, "repetitive": 0, "cut": 0}
    described = {"dtype": "uint16", "sequence_length": LENGTH, "vocabulary_size": 50_000}
    described |= {"padded_vocabulary_size": 50_048, "tokenizer": "t" * 64, "begin_id": None}
    described |= {"end_id": 0, "padding_id": 1, "sources": {"web": source}}
    with attempt.create("train", "shards.json") as file:
        file.write(json.dumps(described).encode())
    output = attempt.outputs()["train"]
    folder = f"data/pack/{'0' * 64}/{attempt.name}/train"
    return Input(
        attempt.backend, folder, "pack", "0" * 64, "train", "token_shards", output.digest,
        output.files,
    )  # fmt: skip


def read(source: Input, rows: int) -> tuple[float, str]:
    """CPU seconds of a batch, from opening the shards on, and a digest of it; in a child."""
    receiver, sender = os.pipe()
    if os.fork() == 0:
        started = time.process_time()
        shards = TokenShards([source])
        numbers = np.random.default_rng(1).permutation(shards.sequences["web"])[:rows]
        batch = shards.batch(np.zeros(rows, dtype=np.int64), numbers)
        spent = time.process_time() - started
        digest = hashlib.sha256(batch.tokens_BL.tobytes()).hexdigest()
        os.write(sender, json.dumps([spent, digest]).encode())
        os._exit(0)
    os.close(sender)
    with open(receiver, "rb") as answer:
        spent, digest = json.loads(answer.read())
    os.wait()
    return spent, digest


def measure(url: str, source: Input, rows: int, ranks: int) -> tuple[list[Any], str]:
    """Requests, bytes from the server, bytes on the disk, CPU seconds of each rank; the batch."""

    def traffic() -> dict[str, int]:
        with urllib.request.urlopen(f"{url}/-/traffic") as answer:
            return dict(json.loads(answer.read()))

    with tempfile.TemporaryDirectory() as cache:
        os.environ["INGOT_CACHE"] = cache
        traffic()
        results = [read(source, rows) for _ in range(ranks)]
        counted = traffic()
        disk = sum(512 * path.stat().st_blocks for path in Path(cache).rglob("*"))
    (digest,) = {digest for _, digest in results}
    spent = [f"{seconds:.2f}" for seconds, _ in results]
    return [counted["GET"], counted["sent"], disk, " ".join(spent)], digest


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shards", type=int, default=6)
    parser.add_argument("--megabytes", type=int, default=126)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--ranks", type=int, default=1)
    args = parser.parse_args()
    server, url = serve()
    try:
        source = write(args.shards, args.megabytes * 10**6 // (2 * LENGTH))
        whole = replace(
            source, files=tuple(f.model_copy(update={"blocks": None}) for f in source.files)
        )
        lines, digests = [], set()
        for name, one in (("whole files", whole), ("by range", source)):
            line, digest = measure(url, one, args.rows, args.ranks)
            digests.add(digest)
            lines.append([name, *(f"{v:,}" if isinstance(v, int) else v for v in line)])
        assert len(digests) == 1, "both ways give the same batch"
        print(table(["way", "GETs", "bytes sent", "bytes on disk", "CPU s of each rank"], lines))
    finally:
        assert server.stdin is not None
        server.stdin.close()
        server.wait(10)


if __name__ == "__main__":
    main()
