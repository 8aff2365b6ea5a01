"""What a larger vocabulary costs a trained model at once, and what it is worth after some steps.

    python -m tests.benchmarks.extended_vocabulary STORE CHECKPOINT DOCUMENTS HELD_OUT

Extends the checkpoint (`quickstart/pretrain`) by several numbers of tokens that are learnt from the
documents (`quickstart/filter`), and trains it and each extended one on the same documents for as
many steps. Prints the bytes per token and the bits per byte of the packed held-out text
(`quickstart/pack:held_out`), cut by each tokenizer, in float32: of the checkpoint, of the extended
one, and of both after those steps.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any

import torch

from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from stages.engine import Stage
from stages.engine.inputs import Input
from stages.engine.runner import run_stage
from stages.engine.spec import StageSpec
from stages.extend_vocabulary.stage import ExtendVocabulary
from stages.model.files import read_model, read_tokenizer
from stages.pack.stage import Pack
from stages.pretrain.stage import Pretrain
from stages.training.token_shards import TokenShards

Artifact = tuple[Manifest, str]
LENGTH, ROWS = 256, 32


def run(
    store: Store,
    stage: type[Stage],
    config: dict[str, Any],
    inputs: dict[str, Artifact],
    execution: dict[str, Any],
) -> Manifest:
    """Run a stage, or take what it made before."""
    references = {role: [store.reference(*one)] for role, one in inputs.items()}
    return run_stage(store, StageSpec.make(stage, config, references, execution)).manifest


def held_out_texts(store: Store, artifact: Artifact, checkpoint: Input) -> list[str]:
    """The text of each packed sequence, without special tokens."""
    shards, tokenizer = TokenShards([Input.from_manifest(store, *artifact)]), None
    tokenizer = read_tokenizer(checkpoint)
    rows = [
        shards.batch([source], [sequence]).tokens_BL[0].tolist()
        for source, name in enumerate(shards.sources)
        for sequence in range(shards.sequences[name])
    ]
    return [tokenizer.decode(row) for row in rows]


def measure(checkpoint: Input, texts: Sequence[str]) -> tuple[float, float]:
    """Bytes per token, and bits per byte of each text after the token that begins documents."""
    model, tokenizer = read_model(checkpoint).eval(), read_tokenizer(checkpoint)
    nats, tokens = 0.0, 0
    size = sum(len(text.encode()) for text in texts)
    for text in texts:
        row = torch.tensor([tokenizer.encode(text).ids])
        with torch.no_grad():
            logs = model(row[:, :-1]).log_softmax(-1)
        nats -= float(logs.gather(-1, row[:, 1:, None]).sum())
        tokens += row.shape[1] - 1
    return size / tokens, nats / math.log(2) / size


def train(
    store: Store, documents: Artifact, checkpoint: Artifact, tokenizer: Artifact, steps: int
) -> Manifest:
    """The checkpoint after so many steps on the documents, cut by the tokenizer."""
    data = {"documents": documents, "tokenizer": tokenizer}
    packing = {"sequence_length": LENGTH, "held_out_share": 0.03}
    shards = run(store, Pack, packing, data, {"workers": 1})
    phase = {
        "tokens": steps * ROWS * LENGTH,
        "sequences_per_batch": ROWS,
        "learning_rate": {"peak": 1e-3, "warmup_share": 0.1, "decay": "linear"},
    }
    inputs = {"train": (shards, "train"), "tokenizer": tokenizer, "checkpoint": checkpoint}
    execution = {"device": "cpu", "threads": 1}
    return run(store, Pretrain, {"phases": [phase], "precision": "fp32"}, inputs, execution)


def main() -> None:
    """Print a line for each number of new tokens."""
    parser = argparse.ArgumentParser()
    for name in ("store", "checkpoint", "documents", "held_out"):
        parser.add_argument(name)
    parser.add_argument("--new-tokens", type=int, nargs="*", default=[64, 256, 1024, 4096])
    parser.add_argument("--steps", type=int, default=100)
    arguments = parser.parse_args()
    store = Store.open(arguments.store)
    torch.set_num_threads(1)
    named = {
        name: store.resolve(getattr(arguments, name))
        for name in ("checkpoint", "documents", "held_out")
    }
    base, documents, held_out = ((made, output or name) for name, (made, output) in named.items())
    (trained_by,) = base[0].inputs["tokenizer"]
    tokenizer = store.manifest(trained_by.stage, trained_by.key), trained_by.output
    texts = held_out_texts(store, held_out, Input.from_manifest(store, *base))

    def line(name: str, start: Artifact, tokenizer: Artifact) -> None:
        bytes_per_token, at_once = measure(Input.from_manifest(store, *start), texts)
        further = train(store, documents, start, tokenizer, arguments.steps)
        _, after = measure(Input.from_manifest(store, further, "checkpoint"), texts)
        print(f"{name:>10} {bytes_per_token:8.3f} {at_once:8.3f} {after:8.3f}", flush=True)

    print(f"{len(texts)} held-out texts; {arguments.steps} steps of {ROWS} sequences")
    print("new tokens    B/tok  at once    after")
    line("0", base, tokenizer)
    for count in arguments.new_tokens:
        inputs = {"checkpoint": base, "documents": documents}
        made = run(store, ExtendVocabulary, {"new_tokens": count}, inputs, {"workers": 2})
        line(str(count), (made, "checkpoint"), (made, "tokenizer"))


if __name__ == "__main__":
    main()
