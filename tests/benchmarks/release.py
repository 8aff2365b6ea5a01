"""Memory and processor time of a large release in shards, beside `save_pretrained`.

    python -m tests.benchmarks.release FOLDER [--layers 23]

Writes random weights of 1.22 billion parameters into FOLDER (about 15 GB in all, removed at the end
of a run), releases them in shards of 512 MiB as `export` does, then loads the release by
`transformers` and saves it again in such shards. Each is a fork of a process that has imported all:
memory is the peak beyond that at its start, without pages of mapped files; seconds are of the
processor.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
from pathlib import Path
from typing import Any

import torch
import transformers
from peak_memory import peak_growth

from stages.export.folder import ReleasedWeights, StoredWeights, to_json
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.huggingface.families import to_config
from stages.model.tensor_files import TensorSpec, write_tensors
from stages.parallel.shard_files import ShardFiles

SHARD = 512 * 2**20
WIDTH = {"width": 2048, "heads": 16, "kv_heads": 16, "mlp_width": 5472, "context": 2048}


def write_checkpoint(folder: Path, config: ModelConfig) -> dict[str, TensorSpec]:
    """Random float32 weights, a tensor at a time."""
    with torch.device("meta"):
        state = Decoder(config).state_dict()
    specs = {name: TensorSpec(torch.float32, tuple(one.shape)) for name, one in state.items()}
    write_tensors(
        lambda name: (folder / name).open("wb"),
        "model.safetensors",
        specs,
        lambda name: torch.randn(specs[name].shape) * 0.02,
    )
    return specs


def release(source: Path, target: Path, config: ModelConfig, dtype: str) -> None:
    """As `export` writes weights."""
    files = ShardFiles(sorted(source.glob("*.safetensors")))
    with torch.device("meta"):
        state = Decoder(config).state_dict()
    specs = {name: TensorSpec(torch.float32, tuple(one.shape)) for name, one in state.items()}
    with files:
        stored = StoredWeights(specs, files.__getitem__)
        weights = ReleasedWeights.plan(config, stored, dtype)
        target.mkdir()
        weights.write(target, SHARD, lambda done: None)
    described = to_config(config, bos=0, eos=1, pad=2, dtype=weights.dtype)
    (target / "config.json").write_bytes(to_json(described))


def save_again(source: Path, target: Path) -> None:
    """As `transformers` does it."""
    model = transformers.AutoModelForCausalLM.from_pretrained(source, dtype="auto")
    model.save_pretrained(target, max_shard_size=SHARD)


def timed(report: Path, function: Any, *arguments: Any) -> None:
    """Call it, and note its processor seconds."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    function(*arguments)
    after = resource.getrusage(resource.RUSAGE_SELF)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    report.write_text(json.dumps(seconds))


def main() -> None:
    """Print a line for each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=23)
    arguments = parser.parse_args()
    folder = arguments.folder / "release-benchmark"
    source, report = folder / "checkpoint", folder / "seconds.json"
    source.mkdir(parents=True)
    torch.set_num_threads(1)
    try:
        config = ModelConfig(vocabulary_size=32000, layers=arguments.layers, **WIDTH)
        specs = write_checkpoint(source, config)
        count = sum(spec.bytes // 4 for spec in specs.values())
        print(f"{count:,} parameters, shards of {SHARD / 2**20:.0f} MiB")
        for dtype in ("float32", "bfloat16", "float16"):
            target, again = folder / dtype, folder / f"{dtype}-again"
            for name, call in (
                ("export", (release, source, target, config, dtype)),
                ("save_pretrained", (save_again, target, again)),
            ):
                growth = peak_growth(timed, report, *call)
                seconds = json.loads(report.read_text())
                print(
                    f"{dtype:9} {name:16} {growth / 2**20:8.0f} MiB, {seconds:6.1f} s", flush=True
                )
            shutil.rmtree(target)
            shutil.rmtree(again)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
