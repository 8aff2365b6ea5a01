"""A checkpoint's log-likelihoods of real items beside lm-eval's, data set by data set.

    python -m tests.benchmarks.item_parity STORE CHECKPOINT SHARED PEER [--items 100]
        [--dtype float32|float64]

SHARED is the folder of real data, PEER a Python that has lm_eval[hf] (tests/peers/setup.sh). The
harness loads the checkpoint's released form by its class for transformers, with norms in the type
of the model (its own are float32 always). The items of a data set are put as their rows came, as
cloze, as multiple choice, and as cloze after two solved examples; LAMBADA three times as many.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from itertools import groupby
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import torch

from artifacts_schema.store import Store
from stages.engine.inputs import Input
from stages.evaluate.measure import Scorer
from stages.model.files import read_model, read_tokenizer
from stages.tokens.vocabulary import SpecialTokens
from tests.peers.harness_parity import Comparison, compare, read_tasks
from tests.peers.harness_tasks import write_model


def line(name: str, rows: list[Comparison]) -> str:
    """A row of the table."""
    scores = [one for row in rows for one in row.metrics]
    differ = sum(abs(ours - theirs) > 1e-4 * abs(theirs) for _, ours, theirs in scores)
    return (
        f"| `{name}` | {sum(row.choices for row in rows):,} | {sum(row.apart for row in rows)} | "
        f"{sum(row.too_long for row in rows)} | "
        f"{max(row.nats for row in rows):.1e} | {sum(row.greedy for row in rows)} | "
        f"{differ} of {len(scores)} |"
    )


def main() -> None:
    """Print a row for each data set, and one for all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("store")
    parser.add_argument("checkpoint")
    parser.add_argument("shared", type=Path)
    parser.add_argument("peer")
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    options = parser.parse_args()
    torch.set_num_threads(1)
    store = Store.open(options.store)
    manifest, output = store.resolve(options.checkpoint)
    checkpoint = Input.from_manifest(store, manifest, output or "checkpoint")
    model = read_model(checkpoint).to(getattr(torch, options.dtype)).eval()
    tokenizer = read_tokenizer(checkpoint)
    described = checkpoint.read_json("tokenizer_config.json")
    special = SpecialTokens.from_config(tokenizer, described)
    scorer = Scorer(model, tokenizer, special.context, None, 4096)
    tasks = read_tasks(options.shared, options.items)
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder), model, tokenizer, described)
        rows = list(compare(scorer, Path(folder), options.peer, tasks, dtype=options.dtype))
    heads = ("data set", "choices", "items apart", "too long", "nats at most", "greedy differs",
             "metrics differ")  # fmt: skip
    print("| " + " | ".join(heads) + " |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, some in groupby(rows, key=lambda row: row.task.rpartition("-")[0] or row.task):
        print(line(name, list(some)))
    print(line("all", rows))


if __name__ == "__main__":
    main()
