"""Fine-tuning on packed conversations, and DPO, beside TRL's `SFTTrainer` and `DPOTrainer`.

    python -m tests.benchmarks.tuning STORE [--of sft|dpo] [--rounds 3] [--steps 10 60] [--rows 8]

STORE is one in which quickstart has run. In float32 on one thread, with AdamW.

- `sft`: its pretrained model, released (LlamaForCausalLM), and its conversations. All learn what
  the assistant says, 8 rows of 256 tokens a step. Ours packs, and keeps attention inside each
  conversation. TRL packs (`packing`, best fit; without FlashAttention it warns that conversations
  see each other), or pads 24 whole conversations a step.
- `dpo`: its fine-tuned model, released, and its preference pairs, 8 pairs a step. Both sides have
  the reference's log-probabilities before the first step: ours from the stage `reference`, TRL's
  precomputed. TRL pads, with pairs as they come or pairs of like length together; its form without
  padding is switched off in 1.16.

Each way runs twice in a process of its own, with few and with more training steps; the difference
of their CPU seconds over that of the tokens read, padding not counted, leaves start-up out. The
ways alternate, and each one's least counts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.benchmarks.extraction import table

LENGTH = 256
INGOT = (
    sys.executable, "-c", "import sys; from flows.cli.main import main; main(sys.argv[1:])",
)  # fmt: skip
RATE = {"peak": 2e-4, "warmup_share": 0.1, "decay": "linear"}
PAIRS = {"checkpoint": "quickstart/sft", "preferences": "quickstart/chat_filter:preferences"}
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


def sft(store: str, steps: int, rows: int, seed: int) -> tuple[float, int]:
    """CPU seconds of a run of `sft`, and tokens that it read."""
    phase = {
        "tokens": steps * rows * LENGTH,
        "sequences_per_batch": rows,
        "learning_rate": RATE,
    }
    inputs = {
        "checkpoint": "quickstart/pretrain",
        "train": "quickstart/pack_chat:train",
        "tokenizer": "quickstart/tokenizer",
    }
    return run_stage(store, "sft", inputs, {"phases": json.dumps([phase])}, steps, rows, seed)


def dpo(store: str, steps: int, rows: int, seed: int) -> tuple[float, int]:
    """The same of `dpo`, of as many whole epochs as `steps` hold."""
    from flows.analysis.artifacts import open_store

    manifest, _ = open_store(store).resolve("benchmark/reference")
    pairs = manifest.counts["pairs"] - manifest.counts["pairs_left_out"]
    settings = {
        "epochs": max(1, round(steps * rows / pairs)),
        "pairs_per_batch": rows,
        "learning_rate": json.dumps(RATE),
        "held_out_share": 0,
    }
    inputs = {**PAIRS, "reference": "benchmark/reference"}
    return run_stage(store, "dpo", inputs, settings, steps, rows, seed)


def run_stage(
    store: str,
    stage: str,
    inputs: dict[str, str],
    config: dict[str, Any],
    steps: int,
    rows: int,
    seed: int,
) -> tuple[float, int]:
    """CPU seconds of a run of a stage that trains, and tokens that it read."""
    from flows.analysis.artifacts import open_store

    settings = {
        **config,
        "precision": "fp32",
        "seed": seed,
        "held_out_every": 1_000_000,
        "execution.threads": 1,
        "execution.preflight": "off",
        "execution.tensorboard": "false",
        "execution.micro_batch": rows,
        "execution.checkpoint_every": 1_000_000,
    }
    command = ["stage", stage, "--force", "--store", store]
    for role, ref in inputs.items():
        command += ["--input", f"{role}={ref}"]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    name = f"benchmark/{stage}-{steps}-{seed}"
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


def theirs(
    folder: Path, task: str, kind: str, steps: int, rows: int, seed: int
) -> tuple[float, int]:
    """CPU seconds of a process that trains by TRL, and tokens that it read."""
    report = folder / "report.json"
    settings = json.dumps(
        {"of": task, "kind": kind, "steps": steps, "rows": rows, "seed": seed,
         "report": str(report)}
    )  # fmt: skip
    seconds = spent(
        [sys.executable, "-m", "tests.benchmarks.tuning", "--peer", str(folder), settings]
    )
    return seconds, int(json.loads(report.read_text())["tokens"])


def peer(folder: Path, settings: dict[str, Any]) -> None:
    """Train the release in `folder` on its rows.jsonl by TRL."""
    import datasets
    import torch
    import transformers
    import trl

    torch.set_num_threads(1)
    from stages.tokens.chat import CHAT_TEMPLATE, TURN_END

    model = transformers.AutoModelForCausalLM.from_pretrained(folder / "release")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "release")
    tokenizer.chat_template, tokenizer.eos_token = CHAT_TEMPLATE, TURN_END
    lines = (folder / "rows.jsonl").read_text().splitlines()
    data = datasets.Dataset.from_list([json.loads(line) for line in lines])
    kind, rows = settings["kind"], settings["rows"]
    common = {
        "output_dir": str(folder / "out"),
        "max_length": LENGTH,
        "max_steps": settings["steps"],
        "learning_rate": RATE["peak"],
        "report_to": [],
        "use_cpu": True,
        "bf16": False,
        "seed": settings["seed"],
        "save_strategy": "no",
        "logging_steps": 1_000_000,
        "gradient_checkpointing": False,
        "dataloader_num_workers": 0,
    }
    packed, by_length = kind == "packed", kind == "by length"
    if settings["of"] == "sft":
        trainer_class: Any = trl.SFTTrainer
        arguments: Any = trl.SFTConfig(
            **common,
            packing=packed,
            assistant_only_loss=True,
            per_device_train_batch_size=rows * (1 if packed else 3),
        )
    else:
        trainer_class = trl.DPOTrainer
        arguments = trl.DPOConfig(
            **common,
            precompute_ref_log_probs=True,
            per_device_train_batch_size=rows,
            train_sampling_strategy="group_by_length" if by_length else "random",
            remove_unused_columns=not by_length,  # The lengths.
        )
    counted = 0

    class Counting(trainer_class):  # type: ignore[misc, valid-type]
        def compute_loss(self, model: Any, inputs: Any, *rest: Any, **more: Any) -> Any:
            nonlocal counted
            mask = inputs.get("attention_mask")
            counted += int(mask.sum()) if mask is not None else inputs["input_ids"].numel()
            return super().compute_loss(model, inputs, *rest, **more)

    trainer = Counting(model=model, args=arguments, train_dataset=data, processing_class=tokenizer)
    if by_length:
        lengths = [
            len(row["prompt_ids"]) + max(len(row["chosen_ids"]), len(row["rejected_ids"]))
            for row in trainer.train_dataset
        ]
        trainer.train_dataset = trainer.train_dataset.add_column("length", lengths)
    trainer.train()
    Path(settings["report"]).write_text(json.dumps({"tokens": counted}))


def prepare(store: str, folder: Path, task: str) -> None:
    """The released model that is tuned, and the conversations or pairs that it reads."""
    from flows.analysis.artifacts import open_store
    from stages.engine.inputs import Input

    start = PAIRS["checkpoint"] if task == "dpo" else "quickstart/pretrain"
    command = ["stage", "export", "--store", store, "--input", f"checkpoint={start}"]
    spent([*INGOT, *command, "--as", "benchmark/export"])
    opened = open_store(store)
    manifest, _ = opened.resolve("benchmark/export")
    release = Input.from_manifest(opened, manifest, "release")
    (folder / "release").mkdir()
    for path in release.paths():
        (folder / "release" / path).write_bytes(release.read_bytes(path))
    manifest, _ = opened.resolve("quickstart/chat_filter")
    role, columns = "conversations", ["messages"]
    if task == "dpo":
        role, columns = "preferences", ["prompt", "chosen", "rejected"]
        inputs = [f"--input={name}={ref}" for name, ref in PAIRS.items()]
        command = ["stage", "reference", "--store", store, *inputs, "--set", "precision=fp32"]
        spent([*INGOT, *command, "--as", "benchmark/reference"])
    lines = []
    for shard in Input.from_manifest(opened, manifest, role).shards():
        for group in shard.row_groups(columns):
            for row in group.to_pylist():
                said = {name: [plain(one) for one in row[name]] for name in columns}
                lines.append(json.dumps(said))
    (folder / "rows.jsonl").write_text("\n".join(lines))


def plain(message: dict[str, Any]) -> dict[str, str]:
    """What of a message both sides read."""
    return {"role": message["role"], "content": message["content"]}


def main() -> None:
    """Alternate the ways; print microseconds a token and ratios."""
    if sys.argv[1:2] == ["--peer"]:
        peer(Path(sys.argv[2]), json.loads(sys.argv[3]))
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("store")
    parser.add_argument("--of", choices=["sft", "dpo"], default="sft")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, nargs=2, default=(10, 60))
    parser.add_argument("--rows", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        prepare(options.store, folder, options.of)
        own = {"sft": sft, "dpo": dpo}[options.of]
        kinds = ("packed", "padded") if options.of == "sft" else ("padded", "by length")
        ways: dict[str, Callable[[int, int], tuple[float, int]]] = {
            "ours": lambda steps, seed: own(options.store, steps, options.rows, seed),
            **{
                f"TRL, {kind}": partial(
                    lambda kind, steps, seed: theirs(
                        folder, options.of, kind, steps, options.rows, seed
                    ),
                    kind,
                )
                for kind in kinds
            },
        }
        best: dict[str, float] = {}
        for number in range(options.rounds):
            for name, way in ways.items():
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
