"""Pretraining, with all that looks after it, beside a bare loop and Hugging Face's `Trainer`.

    python -m tests.benchmarks.training --work FOLDER [--sizes tiny] [--device cpu] [--rounds 3]
        [--documents 5000] [--attention sdpa] [--compile]

`ingot stage pretrain` as a user runs it: sample clock and loader with prefetch, document mask,
spike guard, telemetry, run log, rolling checkpoints written beside the training (one every 50
training steps); no held-out loss, which the peers (`training_peers`) do not measure either. All
read the same token shards and train the same architecture with the same mask, batch, precision,
threads and compile setting.

A figure is that between a run of few training steps and one of many, so that start-up is no part:
tokens a CPU second (user and system, whole process) on a CPU, tokens a second of the clock on a
GPU. With `--compile` each side runs once before, uncounted: its kernels then lie in torch's cache,
as otherwise the first run alone would wait for them. MFU is 6 N + 12 L d T operations a token (N
without embeddings) over the device's dense bf16 peak. Rounds in turn A B C A B C; medians, with the
least and greatest quotient of two rounds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.benchmarks import training_peers
from tests.benchmarks.dedup_runs import Cost, Ingot, measured
from tests.benchmarks.extraction import table
from tests.benchmarks.tokens_corpus import Texts
from tests.peers.corpus import DATA

PEERS = ("bare", "trainer")
CHECKPOINT_EVERY = 50


@dataclass(frozen=True)
class Size:
    """A model, what it trains on, and how many training steps are few and many."""

    model: dict[str, Any]
    vocabulary: int
    rows: int
    steps: tuple[int, int]
    micro: int = 0
    """Rows of a forward pass; all at once by default, as the peers do it."""

    @property
    def length(self) -> int:
        """Tokens of a sequence."""
        return int(self.model["context"])

    @property
    def tokens(self) -> int:
        """Token positions between the two runs."""
        return (self.steps[1] - self.steps[0]) * self.rows * self.length


def _shape(width: int, layers: int, heads: int, context: int, kv_heads: int) -> dict[str, Any]:
    return {
        "width": width,
        "layers": layers,
        "heads": heads,
        "kv_heads": kv_heads,
        "context": context,
    }


SIZES = {
    "quickstart": Size(_shape(192, 6, 6, 256, 3), 4096, 8, (20, 120)),
    "tiny": Size(_shape(384, 6, 6, 512, 3), 8192, 8, (10, 60)),
    "22M": Size(_shape(384, 10, 6, 512, 3), 8192, 8, (6, 30)),
    "124M": Size(_shape(768, 12, 6, 2048, 6), 32_768, 32, (40, 340)),
    "360M": Size(_shape(1024, 24, 8, 2048, 8), 32_768, 16, (30, 230)),
    "1.3B": Size(_shape(2048, 24, 16, 2048, 16), 32_768, 8, (20, 100)),
}


@dataclass
class Bench:
    """What a size is measured with."""

    ingot: Ingot
    device: str
    threads: int
    attention: str
    compile: bool
    documents: int
    layout: dict[str, int] = field(default_factory=dict)
    """Of the ranks, one process by default; peers run on as many."""
    runs: dict[tuple[str, int], list[Cost]] = field(default_factory=dict)

    def shards(self, size: Size) -> str:
        """The name of shards for this length and vocabulary, packed once."""
        documents = self.ingot.documents(self.documents)
        tokenizer = f"tokenizer-{size.vocabulary}"
        if not self._stands(tokenizer):
            settings = [f"vocabulary_size={size.vocabulary}"]
            self.ingot.stage("tokenizer", {"documents": [documents]}, tokenizer, settings)
        packed = f"packed-{size.vocabulary}-{size.length}"
        if not self._stands(packed):
            inputs = {"documents": [documents], "tokenizer": [tokenizer]}
            self.ingot.stage("pack", inputs, packed, [f"sequence_length={size.length}"])
        return packed

    def own(self, size: Size, steps: int) -> Cost:
        """A run of the stage."""
        packed = self.shards(size)
        phase = {
            "tokens": steps * size.rows * size.length,
            "sequences_per_batch": size.rows,
            "learning_rate": {"peak": 1e-3},
        }
        settings = [f"model={json.dumps(size.model)}", f"phases={json.dumps([phase])}"]
        inputs = {
            "train": [f"{packed}:train"],
            "tokenizer": [f"tokenizer-{size.vocabulary}"],
        }
        self._profile_of(size)
        return self.ingot.stage("pretrain", inputs, f"trained-{steps}", settings)

    def peer(self, name: str, size: Size, steps: int) -> Cost:
        """A run of a peer on the same shards."""
        train = self.ingot.outputs(self.shards(size))["train"].folder
        told = json.loads((train / "shards.json").read_text())
        settings = {
            "model": size.model,
            "length": size.length,
            "rows": size.rows,
            "steps": steps,
            "rate": 1e-3,
            "precision": "bf16",
            "device": self.device,
            "threads": max(1, self.threads // math.prod(self.layout.values())),
            "compile": self.compile,
            "attention": self.attention,
            "vocabulary": told["padded_vocabulary_size"],
            "end_id": told["end_id"],
            "dtype": told["dtype"],
        }
        given = self.ingot.folder / "peer.json"
        given.write_text(json.dumps(settings))
        script = Path(training_peers.__file__)
        start: list[str | Path] = [sys.executable]
        if self.layout:
            world = math.prod(self.layout.values())
            start += ["-m", "torch.distributed.run", f"--nproc-per-node={world}", "--standalone"]
        return measured([*start, script, name, train, given], self.ingot.folder)

    def _profile_of(self, size: Size) -> None:
        execution: dict[str, Any] = {
            "threads": self.threads,
            "device": self.device,
            "micro_batch": size.micro or size.rows,
            "checkpoint_every": CHECKPOINT_EVERY,
            "compile": "on" if self.compile else "off",
            "layout": self.layout,
        }
        if self.attention:
            execution["attention"] = self.attention
        path = self.ingot.folder / "training.yaml"
        path.write_text(json.dumps({"stages": {"pretrain": execution}}))
        self.ingot._profile = path

    def _stands(self, name: str) -> bool:
        from artifacts_schema.errors import IngotError

        try:
            return bool(self.ingot.outputs(name))
        except IngotError:
            return False


def compare(bench: Bench, name: str, rounds: int) -> list[str]:
    """A row of the table."""
    size = SIZES[name]
    sides = ("ingot", *PEERS)
    costs: dict[tuple[str, int], list[Cost]] = {}
    for side in sides if bench.compile else ():
        _run(bench, side, size, size.steps[0])
    for _ in range(rounds):
        for steps in size.steps:
            for side in sides:
                costs.setdefault((side, steps), []).append(_run(bench, side, size, steps))
    rates = {side: token_rates(bench, size, costs, side) for side in sides}
    row = [name, f"{size.tokens / (size.steps[1] - size.steps[0]):,.0f}"]
    row += [f"{statistics.median(rates[side]):,.0f}" for side in sides]
    for side in PEERS:
        quotients = [own / other for own in rates["ingot"] for other in rates[side]]
        quotient = statistics.median(rates["ingot"]) / statistics.median(rates[side])
        row.append(f"{quotient:.3g} ({min(quotients):.3g}-{max(quotients):.3g})")
    row.append(mfu(bench, size, statistics.median(rates["ingot"])))
    loads = [run.load for runs in costs.values() for run in runs]
    return [*row, f"{min(loads):.1f}-{max(loads):.1f}"]


def _run(bench: Bench, side: str, size: Size, steps: int) -> Cost:
    """A run of one side, told as it ends: on a GPU all of them take minutes."""
    cost = bench.own(size, steps) if side == "ingot" else bench.peer(side, size, steps)
    print(f"{side}, {steps} training steps: {cost.wall:.1f} s, {cost.cpu:.1f} CPU s", flush=True)
    return cost


def token_rates(
    bench: Bench, size: Size, costs: dict[tuple[str, int], list[Cost]], side: str
) -> list[float]:
    """Tokens a second of each round, between few and many training steps."""
    few, many = (costs[side, steps] for steps in size.steps)
    spent = [
        (b.wall - a.wall) if bench.device == "cuda" else (b.cpu - a.cpu)
        for a, b in zip(few, many, strict=True)
    ]
    return [size.tokens / one for one in spent]


def mfu(bench: Bench, size: Size, rate: float) -> str:
    """Share of one device's peak at so many tokens a second; nothing on a CPU."""
    if bench.device != "cuda":
        return ""
    from stages.model.config import ModelShape
    from stages.model.size import mfu_flops_per_token
    from stages.training.devices import choose_device, device_name
    from stages.training.hardware import peak_flops

    peak = peak_flops(device_name(choose_device("cuda")), None)
    config = ModelShape.parse(size.model, where="model").with_vocabulary(size.vocabulary)
    return f"{rate * mfu_flops_per_token(config, size.length) / peak:.1%}" if peak else "no peak"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--work", type=Path, required=True, help="folder for shards and runs")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["quickstart", "tiny"])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--attention", default="")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--documents", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args(arguments)
    if not DATA.exists() and not (chosen.work / "store").exists():
        print(f"skipped: the documents are made of {DATA}, which is not here")
        return
    chosen.work.mkdir(parents=True, exist_ok=True)
    bench = Bench(
        Ingot(chosen.work, Texts(chosen.work)),  # type: ignore[arg-type]
        chosen.device,
        chosen.threads,
        chosen.attention,
        chosen.compile,
        chosen.documents,
    )
    unit = "s" if chosen.device == "cuda" else "CPU s"
    head: tuple[str, ...] = ("model", "tokens a step", f"ingot, tokens a {unit}", *PEERS)
    head += (*(f"x {peer}" for peer in PEERS), "MFU", "load")
    print(f"{os.cpu_count()} cores, {chosen.threads} threads")
    print(table(head, [compare(bench, name, chosen.rounds) for name in chosen.sizes]))


if __name__ == "__main__":
    main()
