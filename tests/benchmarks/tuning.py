"""Supervised fine-tuning on packed conversations, beside TRL's `SFTTrainer`.

    python -m tests.benchmarks.tuning STORE [--rounds 3] [--steps 10 60] [--rows 8]

STORE is one in which quickstart has run: its pretrained model, released (LlamaForCausalLM), and its
conversations. All learn what the assistant says, in float32 on one thread, with AdamW, 8 rows of
256 tokens a step. Ours packs, and keeps attention inside each conversation. TRL packs (`packing`,
best fit; without FlashAttention it warns that conversations see each other), or pads 24 whole
conversations a step. Each way runs twice in a process of its own, with few and with more training
steps; the difference of their CPU seconds over that of the tokens read, padding not counted, leaves
start-up out. The ways alternate, and each one's least counts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.benchmarks.extraction import table

LENGTH = 256
INGOT = (
    sys.executable, "-c", "import sys; from flows.cli.main import main; main(sys.argv[1:])",
)  # fmt: skip
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


def ours(store: str, steps: int, rows: int, seed: int) -> tuple[float, int]:
    """CPU seconds of a run of `sft`, and tokens that it read."""
    from flows.analysis.artifacts import open_store

    phase = {
        "tokens": steps * rows * LENGTH,
        "sequences_per_batch": rows,
        "learning_rate": {"peak": 2e-4, "warmup_share": 0.1, "decay": "linear"},
    }
    settings = {
        "phases": json.dumps([phase]),
        "precision": "fp32",
        "seed": seed,
        "held_out_every": 1_000_000,
        "execution.threads": 1,
        "execution.preflight": "off",
        "execution.tensorboard": "false",
        "execution.micro_batch": rows,
        "execution.checkpoint_every": 1_000_000,
    }
    command = ["stage", "sft", "--force", "--store", store]
    for role, ref in {
        "checkpoint": "quickstart/pretrain",
        "train": "quickstart/pack_chat:train",
        "tokenizer": "quickstart/tokenizer",
    }.items():
        command += ["--input", f"{role}={ref}"]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    name = f"benchmark/sft-{steps}-{seed}"
    seconds = spent([*INGOT, *command, "--as", name])
    manifest, _ = open_store(store).resolve(name)
    return seconds, int(manifest.counts["tokens"])


def spent(command: list[str]) -> float:
    """CPU seconds of a process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run(
        command, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise SystemExit(run.stdout[-2000:] + run.stderr[-2000:])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def theirs(folder: Path, steps: int, rows: int, seed: int, kind: str) -> tuple[float, int]:
    """CPU seconds of a process that trains by TRL, and tokens that it read."""
    report = folder / "report.json"
    settings = json.dumps(
        {"steps": steps, "rows": rows, "seed": seed, "kind": kind, "report": str(report)}
    )
    seconds = spent(
        [sys.executable, "-m", "tests.benchmarks.tuning", "--peer", str(folder), settings]
    )
    return seconds, int(json.loads(report.read_text())["tokens"])


def peer(folder: Path, settings: dict[str, Any]) -> None:
    """Train the release in `folder` on its conversations.jsonl by TRL."""
    import datasets
    import torch
    import transformers
    import trl

    torch.set_num_threads(1)
    from stages.tokens.chat import CHAT_TEMPLATE, TURN_END

    model = transformers.AutoModelForCausalLM.from_pretrained(folder / "release")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "release")
    tokenizer.chat_template, tokenizer.eos_token = CHAT_TEMPLATE, TURN_END
    lines = (folder / "conversations.jsonl").read_text().splitlines()
    data = datasets.Dataset.from_list([json.loads(line) for line in lines])
    packed = settings["kind"] == "packed"
    counted = 0

    class Counting(trl.SFTTrainer):  # type: ignore[misc, name-defined]
        def compute_loss(self, model: Any, inputs: Any, *rest: Any, **more: Any) -> Any:
            nonlocal counted
            mask = inputs.get("attention_mask")
            counted += int(mask.sum()) if mask is not None else inputs["input_ids"].numel()
            return super().compute_loss(model, inputs, *rest, **more)

    trainer = Counting(
        model=model,
        args=trl.SFTConfig(
            output_dir=str(folder / "out"),
            packing=packed,
            max_length=LENGTH,
            assistant_only_loss=True,
            per_device_train_batch_size=settings["rows"] * (1 if packed else 3),
            max_steps=settings["steps"],
            learning_rate=2e-4,
            report_to=[],
            use_cpu=True,
            bf16=False,
            seed=settings["seed"],
            save_strategy="no",
            logging_steps=1_000_000,
            gradient_checkpointing=False,
            dataloader_num_workers=0,
        ),
        train_dataset=data,
        processing_class=tokenizer,
    )
    trainer.train()
    Path(settings["report"]).write_text(json.dumps({"tokens": counted}))


def prepare(store: str, folder: Path) -> None:
    """The released base model, and the conversations that are trained on."""
    from flows.analysis.artifacts import open_store
    from stages.engine.inputs import Input

    command = ["stage", "export", "--store", store, "--input", "checkpoint=quickstart/pretrain"]
    spent([*INGOT, *command, "--as", "benchmark/export"])
    opened = open_store(store)
    manifest, _ = opened.resolve("benchmark/export")
    release = Input.from_manifest(opened, manifest, "release")
    (folder / "release").mkdir()
    for path in release.paths():
        (folder / "release" / path).write_bytes(release.read_bytes(path))
    manifest, _ = opened.resolve("quickstart/chat_filter")
    lines = []
    for shard in Input.from_manifest(opened, manifest, "conversations").shards():
        for group in shard.row_groups(["messages"]):
            for row in group.to_pylist():
                said = [{"role": m["role"], "content": m["content"]} for m in row["messages"]]
                lines.append(json.dumps({"messages": said}))
    (folder / "conversations.jsonl").write_text("\n".join(lines))


def main() -> None:
    """Alternate the ways; print microseconds a token and ratios."""
    if sys.argv[1:2] == ["--peer"]:
        peer(Path(sys.argv[2]), json.loads(sys.argv[3]))
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("store")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, nargs=2, default=(10, 60))
    parser.add_argument("--rows", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        prepare(options.store, folder)
        best: dict[str, float] = {}
        for number in range(options.rounds):
            for name, way in {
                "ours": lambda steps, seed: ours(options.store, steps, options.rows, seed),
                "TRL, packed": lambda s, seed: theirs(folder, s, options.rows, seed, "packed"),
                "TRL, padded": lambda s, seed: theirs(folder, s, options.rows, seed, "padded"),
            }.items():
                (few, few_tokens), (more, more_tokens) = (
                    way(steps, number) for steps in options.steps
                )
                each = (more - few) / (more_tokens - few_tokens)
                best[name] = min(best.get(name, each), each)
                print(f"round {number + 1}, {name}: {1e6 * each:.1f} µs a token", flush=True)
    rows = [(name, f"{1e6 * one:.1f}", f"{one / best['ours']:.2f}") for name, one in best.items()]
    print(table(["way", "CPU µs a token", "times ours"], rows))


if __name__ == "__main__":
    main()
