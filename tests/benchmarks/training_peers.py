"""What pretraining is measured against, each a process of its own.

    python training_peers.py bare|trainer FOLDER SETTINGS

Reads the rows of token shards in FOLDER (train/*/*.tokens) in a drawn order and trains the same
architecture on them with the same document mask, as SETTINGS (JSON: model, length, rows, steps,
rate, precision, device, compile, vocabulary, end_id, dtype) says. Under torchrun each rank takes
its share of the rows: `bare` by torch's FSDP2, a block at a time, `trainer` by accelerate's DDP.

bare     the loop that one writes first (as nanoGPT's train.py): memory map, forward, cross-entropy,
         backward, clip, fused AdamW; no log, no held-out loss, no checkpoint. Its model is Ingot's
trainer  Hugging Face's `Trainer` and `LlamaForCausalLM`, with the same mask given as 4-D booleans
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

IGNORED = -100


def rows_of(folder: Path, settings: dict[str, Any]) -> np.ndarray:
    """[sequences, length] ids of all shards."""
    maps = [
        np.memmap(path, dtype=settings["dtype"], mode="r").reshape(-1, settings["length"])
        for path in sorted(folder.glob("*/*.tokens"))
    ]
    return maps[0] if len(maps) == 1 else np.concatenate(maps)


def documents(tokens: Tensor, end: int) -> Tensor:
    """Number of the document that each token is of: one more behind each end."""
    ends = (tokens == end).to(torch.int64)
    return ends.cumsum(dim=-1) - ends


def targets_of(tokens: Tensor, end: int) -> Tensor:
    """The next token of the same document, or `IGNORED`."""
    targets = tokens.roll(-1, dims=1)
    targets[:, -1] = IGNORED
    return torch.where(tokens == end, IGNORED, targets)


def drawn(rows: np.ndarray, settings: dict[str, Any]) -> Iterator[Tensor]:
    """Batches [rows, length] of int64."""
    order = np.random.default_rng(0).permutation(len(rows))
    size = settings["rows"]
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    own = slice(rank * size // world, (rank + 1) * size // world)
    for step in range(settings["steps"]):
        places = ((np.arange(size) + step * size) % len(rows))[own]
        yield torch.from_numpy(rows[order[places]].astype(np.int64))


def bare(folder: Path, settings: dict[str, Any]) -> None:
    """The loop that one writes first."""
    from stages.model.config import ModelShape
    from stages.model.decoder import Decoder

    device = torch.device(settings["device"])
    shape = ModelShape.parse(settings["model"], where="model")
    model = Decoder(shape.with_vocabulary(settings["vocabulary"])).to(device)
    if settings["attention"]:
        model.set_attention(settings["attention"])
    if "RANK" in os.environ:
        from torch.distributed.fsdp import fully_shard

        for block in model.blocks:
            fully_shard(block)
        fully_shard(model)
    forward = torch.compile(model) if settings["compile"] else model
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=settings["rate"], betas=(0.9, 0.95), weight_decay=0.1, fused=True
    )
    for batch in drawn(rows_of(folder, settings), settings):
        tokens = batch.to(device, non_blocking=True)
        which = documents(tokens, settings["end_id"])
        targets = targets_of(tokens, settings["end_id"])
        bf16 = settings["precision"] == "bf16"
        with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
            logits = forward(tokens, documents_BL=which)
        loss = F.cross_entropy(
            logits.float().flatten(0, 1), targets.flatten(), ignore_index=IGNORED
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(f"loss {loss.item():.4f}")


class Packed(torch.utils.data.Dataset):
    """The rows as Hugging Face's `Trainer` wants them."""

    def __init__(self, rows: np.ndarray, end: int) -> None:
        self.rows, self.end = rows, end

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> dict[str, Tensor]:
        tokens = torch.from_numpy(self.rows[place].astype(np.int64))
        which = documents(tokens, self.end)
        length = torch.arange(len(tokens))
        first = torch.where(which != which.roll(1), length, 0)
        first[0] = 0
        mask = (which[:, None] == which[None, :]).tril()
        begins = torch.ones_like(which, dtype=torch.bool)
        begins[1:] = which[1:] != which[:-1]
        return {
            "input_ids": tokens,
            "labels": torch.where(begins, IGNORED, tokens),
            "position_ids": length - first.cummax(dim=0).values,
            "attention_mask": mask[None],
        }


def trainer(folder: Path, settings: dict[str, Any]) -> None:
    """Hugging Face's own loop."""
    import tempfile

    from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

    from stages.model.config import ModelShape
    from stages.model.huggingface.families import to_config

    shape = ModelShape.parse(settings["model"], where="model")
    config = to_config(shape.with_vocabulary(settings["vocabulary"]), bos=None, eos=None, pad=None)
    model = LlamaForCausalLM(LlamaConfig(**config))
    model.set_attn_implementation("sdpa")
    cpu = settings["device"] == "cpu"
    with tempfile.TemporaryDirectory() as scratch:
        arguments = TrainingArguments(
            output_dir=scratch,
            max_steps=settings["steps"],
            per_device_train_batch_size=settings["rows"] // int(os.environ.get("WORLD_SIZE", 1)),
            ddp_backend="gloo" if cpu and "RANK" in os.environ else None,
            learning_rate=settings["rate"],
            lr_scheduler_type="constant",
            weight_decay=0.1,
            adam_beta2=0.95,
            max_grad_norm=1.0,
            optim="adamw_torch_fused",
            bf16=settings["precision"] == "bf16",
            use_cpu=cpu,
            torch_compile=settings["compile"],
            logging_steps=10,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            dataloader_num_workers=0,
            dataloader_pin_memory=not cpu,
        )
        data = Packed(rows_of(folder, settings), settings["end_id"])
        Trainer(model=model, args=arguments, train_dataset=data).train()


def main() -> None:
    """Run one."""
    name, folder, settings = sys.argv[1:4]
    given = json.loads(Path(settings).read_text())
    torch.set_num_threads(given["threads"])
    if name == "bare" and "RANK" in os.environ:
        torch.distributed.init_process_group("gloo" if given["device"] == "cpu" else "nccl")
    {"bare": bare, "trainer": trainer}[name](Path(folder), given)


if __name__ == "__main__":
    main()
