"""From corpus to tokens beside its peers: packing, training a tokenizer, laying out, reading.

    python -m tests.benchmarks.tokens --work FOLDER [--pack] [--train] [--layout] [--read]
        [--small 15000] [--large 60000] [--rounds 3] [--encoders tokenizers gigatoken]

Documents (`tokens_corpus`: 250 MB for 60,000) and the store lie in FOLDER and are made once. CPU
seconds are user and system of whole processes with all children, one worker and thread each, in
turn: A B A B; medians, with the least and greatest quotient of two rounds. On a machine that others
use CPU seconds grow with the load, which is printed: a quotient holds where both sides ran at the
same load.

pack    `ingot stage pack`, Parquet in to shards out, start-up and all, against the seconds that
        `tokenizers` spends in encode_batch_fast on the same texts (`tokens_peers`; demanded: 1.05
        at most), and with gigatoken against encoding, reading and writing Parquet (1.10 at most).
        `marginal` is between the small and the large number of documents, so start-up is no part
train   `ingot stage tokenizer`, sample and all, against a process that reads the same texts and
        calls `tokenizers`; `alone`: against that call's seconds
layout  documents a CPU second of `best_fit` and of the same in plain Python, fill, and the share of
        documents that would fit and that concatenate-and-chunk cuts
read    figures of the reader and the sample clock (`loader`)
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import IngotError
from tests.benchmarks import tokens_peers
from tests.benchmarks.dedup_runs import Cost, Ingot, measured
from tests.benchmarks.extraction import table
from tests.benchmarks.quotients import middle, seconds, times
from tests.benchmarks.tokens_corpus import Texts
from tests.benchmarks.tokens_layout import best_fit, cut_by_chunks
from tests.peers.corpus import DATA

PARTS = ("pack", "train", "layout", "read")
VOCABULARY = 32_768
WARM = 200
"""Documents of the runs that do not count: they compile, and fill caches."""
ENCODERS = {"tokenizers": "encode", "gigatoken": "gigatoken"}
"""Ingot's encoder → the peer that calls the same library."""
LENGTHS = (2_048, 4_096, 8_192)
READ_STEPS = 1_000_000


class Stages(Ingot):
    """Stages by the command line over the documents of `Texts`, with one worker."""

    def __init__(self, folder: Path, texts: Texts) -> None:
        super().__init__(folder, texts)
        self._profiles = {
            encoder: self._written(folder / f"{encoder}.yaml", encoder) for encoder in ENCODERS
        }

    @staticmethod
    def _written(path: Path, encoder: str) -> Path:
        alone = {"workers": 1}
        stages = {"pack": {**alone, "encoder": encoder}, "tokenizer": alone}
        path.write_text(json.dumps({"stages": stages}))
        return path

    def tokenizer(self, documents: int) -> str:
        """The name of a tokenizer trained on so many documents."""
        name = f"tokenizer-{documents}"
        if not self._stands(name):
            self.train(documents, name)
        return name

    def train(self, documents: int, name: str) -> Cost:
        """Train one."""
        self._profile = self._profiles["tokenizers"]
        inputs = {"documents": [self.documents(documents)]}
        return self.stage("tokenizer", inputs, name, [f"vocabulary_size={VOCABULARY}"])

    def pack(self, encoder: str, documents: int, tokenizer: str) -> Cost:
        """Pack documents."""
        self._profile = self._profiles[encoder]
        inputs = {"documents": [self.documents(documents)], "tokenizer": [tokenizer]}
        return self.stage("pack", inputs, f"packed-{encoder}-{documents}")

    def folder_of(self, name: str, output: str) -> Path:
        """Where an output lies."""
        return self.outputs(name)[output].folder

    def _stands(self, name: str) -> bool:
        try:
            return bool(self.outputs(name))
        except IngotError:
            return False


@dataclass(frozen=True)
class Peer:
    """A run of `tokens_peers`: of the whole process, and the CPU seconds of its parts."""

    cost: Cost
    parts: Mapping[str, float]

    def of(self, *names: str) -> float:
        """CPU seconds of these parts together."""
        return sum(self.parts[name] for name in names)


@dataclass(frozen=True)
class Bench:
    """What the parts work with."""

    ingot: Stages
    small: int
    large: int
    rounds: int
    encoders: Sequence[str]

    def peer(self, name: str, documents: int, *given: str | Path) -> Peer:
        """Run a peer on the documents of Ingot's own table."""
        texts = self.ingot.folder_of(self.ingot.documents(documents), "documents")
        script, out = Path(tokens_peers.__file__), self.ingot.folder / "peer.out"
        cost = measured([sys.executable, script, name, texts, *given, out], self.ingot.folder)
        return Peer(cost, json.loads(cost.said.splitlines()[-1]))

    @property
    def tokenizer(self) -> Path:
        """The tokenizer.json that both sides encode with."""
        name = self.ingot.tokenizer(self.large)
        return self.ingot.folder_of(name, "tokenizer") / "tokenizer.json"

    def in_turn(self, *sides: Callable[[], Any]) -> list[list[Any]]:
        """A B A B: what each side's rounds gave."""
        rounds = [[side() for side in sides] for _ in range(self.rounds)]
        return [list(runs) for runs in zip(*rounds, strict=True)]


def pack(bench: Bench) -> str:
    """Whole runs at both sizes, and between them."""
    tokenizer = bench.ingot.tokenizer(bench.large)
    told = []
    for encoder in bench.encoders:
        bench.ingot.pack(encoder, WARM, tokenizer)
        runs = {
            size: bench.in_turn(
                partial(bench.ingot.pack, encoder, size, tokenizer),
                partial(bench.peer, ENCODERS[encoder], size, bench.tokenizer),
            )
            for size in (bench.small, bench.large)
        }
        told.append(_packed(encoder, runs))
    return "\n\n".join(told)


def _packed(encoder: str, runs: Mapping[int, Sequence[list[Any]]]) -> str:
    against = {"encode": ("encode",), "encode + read + write": ("read", "encode", "write")}
    rows = []
    for size, (own, peers) in runs.items():
        row = [f"{size:,}", f"{peers[0].parts['bytes'] / 1e6:.0f}", middle(seconds(own))]
        row += [f"{max(run.peak for run in own) / 1e6:.0f}"]
        row += [
            middle([one.of(part) for one in peers]) for part in ("read", "encode", "ids", "write")
        ]
        row += [
            times(seconds(own), [one.of(*parts) for one in peers]) for parts in against.values()
        ]
        rows.append(row)
    (few, few_peers), (many, many_peers) = runs.values()
    more = [last.cpu - first.cpu for first in few for last in many]
    marginal = []
    for name, parts in against.items():
        base = [b.of(*parts) - a.of(*parts) for a in few_peers for b in many_peers]
        marginal.append(f"{times(more, base)} x {name}")
    text = many_peers[0].parts["bytes"] - few_peers[0].parts["bytes"]
    rate = text / 1e6 / statistics.median(more)
    head = (f"{encoder}: documents", "MB", "ingot pack, CPU s", "peak MB")
    head += tuple(f"peer: {part}" for part in ("read", "encode", "ids", "write"))
    loads = [run.load for own, peers in runs.values() for run in (*own, *(p.cost for p in peers))]
    return (
        f"load {min(loads):.1f} to {max(loads):.1f}\n"
        + table((*head, *(f"x {name}" for name in against)), rows)
        + f"\nmarginal: {rate:.1f} MB a CPU s; {', '.join(marginal)}\n  {many[-1].command}"
        + f"\n  {many_peers[-1].cost.command}"
    )


def train(bench: Bench) -> str:
    """The stage against the library."""
    content = json.loads(bench.tokenizer.read_text())
    special = [token["content"] for token in content["added_tokens"] if token["special"]]
    settings = bench.ingot.folder / "trainer.json"
    settings.write_text(
        json.dumps(
            {
                "vocab_size": VOCABULARY,
                "min_frequency": 2,
                "pre_tokenizer": content["pre_tokenizer"],
                "special_tokens": special,
            }
        )
    )
    rows = []
    for size in (bench.small, bench.large):
        own, peers = bench.in_turn(
            partial(bench.ingot.train, size, f"timed-{size}"),
            partial(bench.peer, "train", size, settings),
        )
        row = [f"{size:,}", f"{peers[0].parts['bytes'] / 1e6:.0f}", middle(seconds(own))]
        row += [f"{max(run.peak for run in own) / 1e6:.0f}"]
        row += [middle([one.cost.cpu for one in peers]), middle([one.of("train") for one in peers])]
        row += [times(seconds(own), [one.cost.cpu for one in peers])]
        rows.append([*row, times(seconds(own), [one.of("train") for one in peers])])
    head = ("documents", "MB", "ingot tokenizer, CPU s", "peak MB", "tokenizers, process")
    return table((*head, "train alone", "x process", "x alone"), rows)


def layout(bench: Bench) -> str:
    """Compiled against plain Python, on lengths of the packed documents; fill, and what is cut."""
    from stages.pack.layout import best_fit as compiled

    lengths = _lengths(bench)
    compiled(lengths[:WARM], LENGTHS[0])
    rows = []
    for capacity in LENGTHS:
        rest = lengths % capacity
        own, plain = bench.in_turn(
            partial(_seconds_of, compiled, lengths, capacity),
            partial(_seconds_of, best_fit, rest[rest > 0].tolist(), capacity),
        )
        made = compiled(lengths, capacity)
        pieces = np.bincount(made.document, minlength=len(lengths))
        row = [f"{capacity:,}", f"{len(lengths):,}"]
        row += [f"{len(lengths) / statistics.median(side) / 1e6:.2f}" for side in (own, plain)]
        row += [times(plain, own), f"{lengths.sum() / (made.sequences * capacity):.3%}"]
        row += [f"{(pieces > 1)[lengths <= capacity].mean():.2%}"]
        rows.append([*row, f"{cut_by_chunks(lengths, capacity):.1%}"])
    head = ("length", "documents", "M docs a CPU s", "plain Python", "times as fast", "fill")
    return table((*head, "cut by best fit", "cut by chunks"), rows)


def _lengths(bench: Bench) -> NDArray[np.int64]:
    """Tokens of a million documents: those of the packed ones, drawn with repetition by seed."""
    import pyarrow.parquet as pq

    tokenizer = bench.ingot.tokenizer(bench.large)
    name = f"packed-tokenizers-{bench.large}"
    bench.ingot.pack("tokenizers", bench.large, tokenizer)
    found = []
    for path in bench.ingot.outputs(name)["train"].files("*/*.index.parquet"):
        pieces = pq.read_table(path, columns=["doc_id", "length"])
        found += pieces.group_by("doc_id").aggregate([("length", "sum")])["length_sum"].to_pylist()
    return np.random.default_rng(1).choice(np.array(found, np.int64), 1_000_000)


def _seconds_of(call: Callable[..., Any], *given: Any) -> float:
    begin = time.process_time()
    call(*given)
    return time.process_time() - begin


def read(bench: Bench) -> str:
    """The tables of `loader`, on shards of its own."""
    from tests.benchmarks import loader

    folder, python = bench.ingot.folder / "loader", os.environ.get("INGOT_PEERS_STREAMING")
    folder.mkdir(exist_ok=True)
    tables = {
        "speed": partial(loader.speed, folder, bench.rounds, python),
        "start": partial(loader.start, folder),
        "memory": partial(loader.memory, folder, READ_STEPS),
        "prefetch": partial(loader.prefetch, folder, bench.rounds),
    }
    return "\n\n".join(f"{name}\n{made()}" for name, made in tables.items())


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--work", type=Path, required=True, help="folder for documents and store")
    for part in PARTS:
        parser.add_argument(f"--{part}", action="store_true")
    parser.add_argument("--small", type=int, default=15_000)
    parser.add_argument("--large", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--encoders", nargs="+", choices=ENCODERS, default=list(ENCODERS))
    chosen = parser.parse_args()
    if not DATA.exists():
        print(f"skipped: the documents are made of {DATA}, which is not here")
        return
    chosen.work.mkdir(parents=True, exist_ok=True)
    ingot = Stages(chosen.work, Texts(chosen.work))
    bench = Bench(ingot, chosen.small, chosen.large, chosen.rounds, chosen.encoders)
    asked = {"pack": pack, "train": train, "layout": layout, "read": read}
    for part in [part for part in PARTS if getattr(chosen, part)] or PARTS:
        print(f"\n{part}\n{asked[part](bench)}", flush=True)


if __name__ == "__main__":
    main()
