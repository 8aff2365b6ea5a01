"""What a GGUF file's type costs a trained model, as llama.cpp runs it.

    INGOT_PEERS_LLAMA_CPP=PYTHON python -m tests.benchmarks.gguf STORE CHECKPOINT HELD_OUT

Makes a file of each type of the checkpoint (`quickstart/dpo`) in the store, lets llama.cpp compute
the logits of 2,000 tokens of the packed held-out text (`quickstart/pack:held_out`) with keys and
values in float32 and one thread, and prints the mean KL divergence from Ingot's own decoder in
float32, the largest difference of a logit, and how far the loss is from Ingot's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import torch

from artifacts_schema.store import Store
from stages.engine.inputs import Input
from stages.engine.runner import run_stage
from stages.engine.spec import StageSpec
from stages.export.gguf_check import SCRIPT
from stages.export_gguf.stage import ExportGguf
from stages.model.files import read_model
from stages.training.token_shards import TokenShards

TOKENS = 2_000
TYPES = ("F32", "F16", "BF16", "Q8_0", "Q4_0")


def held_out_rows(store: Store, name: str) -> list[list[int]]:
    """Packed sequences of `TOKENS` tokens in all, the last one cut."""
    manifest, output = store.resolve(name)
    shards = TokenShards([Input.from_manifest(store, manifest, output or "held_out")])
    rows: list[list[int]] = []
    left = TOKENS
    for source, name in enumerate(shards.sources):
        for sequence in range(shards.sequences[name]):
            if left <= 0:
                break
            row = shards.batch([source], [sequence]).tokens_BL[0].tolist()[:left]
            rows.append(row)
            left -= len(row)
    assert left <= 0, "the held-out text is shorter"
    return rows


def ask_llama_cpp(file: Path, rows: list[list[int]]) -> list[torch.Tensor]:
    """Logits of each row."""
    with tempfile.TemporaryDirectory() as folder:
        questions, answers = Path(folder, "questions.json"), Path(folder, "answers.npz")
        questions.write_text(json.dumps({"texts": [], "rows": rows}), encoding="utf-8")
        python = os.environ["INGOT_PEERS_LLAMA_CPP"]
        subprocess.run([python, "-I", str(SCRIPT), file, questions, answers], check=True)
        with np.load(answers) as stored:
            return [torch.from_numpy(stored[f"logits_{number}"]) for number in range(len(rows))]


def main() -> None:
    """Print a line for each type."""
    parser = argparse.ArgumentParser()
    for name in ("store", "checkpoint", "held_out"):
        parser.add_argument(name)
    arguments = parser.parse_args()
    store = Store.open(arguments.store)
    manifest, output = store.resolve(arguments.checkpoint)
    output = output or "checkpoint"
    rows = held_out_rows(store, arguments.held_out)
    torch.set_num_threads(1)
    model = read_model(Input.from_manifest(store, manifest, output))
    with torch.no_grad():
        ours = torch.cat([model(torch.tensor([row]))[0] for row in rows]).double()
    targets = torch.cat([torch.tensor([*row[1:], -100]) for row in rows])
    loss = torch.nn.functional.cross_entropy(ours, targets)
    print(f"{len(targets):,} tokens, {len(rows)} rows, Ingot in float32: loss {loss:.6f}")
    for kind in TYPES:
        references = {"checkpoint": [store.reference(manifest, output)]}
        spec = StageSpec.make(ExportGguf, {"type": kind}, references, {"workers": 1})
        made = Input.from_manifest(store, run_stage(store, spec).manifest, "gguf")
        [name] = [path for path in made.paths() if path.endswith(".gguf")]
        file = made.local_path(name)
        theirs = torch.cat(ask_llama_cpp(file, rows)).double()
        ours_p, theirs_p = ours.log_softmax(-1), theirs.log_softmax(-1)
        moved = (ours_p.exp() * (ours_p - theirs_p)).sum(-1).mean()
        largest = (ours - theirs).abs().max()
        theirs_loss = torch.nn.functional.cross_entropy(theirs, targets)
        print(
            f"{kind:5} {file.stat().st_size:>12,} bytes, KL {moved:.1e} nats a token, "
            f"largest difference {largest:.1e}, loss {theirs_loss - loss:+.6f}"
        )


if __name__ == "__main__":
    main()
