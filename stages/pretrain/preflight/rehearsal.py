"""A rehearsal of save and resume: the state of a tiny model, written and read back."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from stages.model.config import Experts, LatentAttention, ModelConfig
from stages.model.decoder import Decoder
from stages.pretrain.preflight.disk import existing
from stages.pretrain.preflight.report import Finding
from stages.training.checkpointing import random_state, restore_random_state
from stages.training.config import OptimizerConfig, TrainingExecution
from stages.training.optimizer import Optimizer, build_optimizer
from stages.training.placing import chosen_attention, place
from stages.training.rows import Rows
from stages.training.runtime import Runtime

ROWS, LENGTH, VOCABULARY = 2, 16, 64


def check_resume(
    folder: Path,
    config: ModelConfig,
    settings: OptimizerConfig,
    runtime: Runtime,
    execution: TrainingExecution,
    *,
    prefixes: bool = False,
) -> Finding:
    """Two updates, saved to the disk of `folder`; the third, from memory and from the files.

    Both must give the same bits, by the attention backend, activation checkpointing and compiled
    blocks of the run. Nothing else in the process changes: random state included.
    """
    before = random_state()
    attention = chosen_attention(config, execution, runtime, prefixes=prefixes)
    placed = _Placed(
        settings.model_copy(update={"groups": ()}),  # Their patterns name the real layers.
        runtime,
        execution.model_copy(update={"attention": attention}),
    )
    try:
        with tempfile.TemporaryDirectory(prefix=".rehearsal-", dir=existing(folder)) as scratch:
            odd = _rehearse(Path(scratch), tiny(config), placed)
    except OSError as error:
        said = f"its state cannot be written: {error.strerror or error}"
        return Finding("resume", "refusal", said, f"look at {folder}")
    finally:
        restore_random_state(before)
    if odd is None:
        return Finding("resume", "ok", "a tiny model goes on from its saved state to the same bits")
    return Finding(
        "resume",
        "refusal",
        f"a tiny model does not go on to the same bits from its saved state: {odd} differs",
        "the arithmetic here is not deterministic; execution.preflight: warn trains all the same",
    )


def tiny(config: ModelConfig) -> ModelConfig:
    """The smallest model with the parts that `config` has."""
    heads = 2
    changed = {
        **config.model_dump(),
        "vocabulary_size": VOCABULARY,
        "layers": 2,
        "width": 32,
        "mlp_width": 32,
        "heads": heads,
        "kv_heads": heads if config.kv_heads == config.heads else 1,
        "head_width": 16,
        "rope_share": 1.0 if config.rope_share == 1 else 0.5,
        "context": LENGTH,
        "window": config.window and 4,
    }
    if config.latent is not None:
        changed["latent"] = LatentAttention(
            query_rank=config.latent.query_rank and 8,
            kv_rank=8,
            plain_width=12,
            rotary_width=4,
            value_width=8,
        )
    if config.experts is not None:
        grouped = config.experts.groups > 1
        changed["experts"] = Experts(
            **{
                **config.experts.model_dump(),
                "experts": 8 if grouped else 4,
                "groups": 2 if grouped else 1,
                "chosen_groups": 1,
                "chosen": 2,
                "width": 16,
                "shared": min(1, config.experts.shared),
                "first": min(1, config.experts.first),
            }
        )
    return ModelConfig.model_validate(changed)


@dataclass(frozen=True)
class _Placed:
    """How the tiny model is trained: as the run is."""

    settings: OptimizerConfig
    runtime: Runtime
    execution: TrainingExecution

    def start(self, config: ModelConfig, seed: int) -> tuple[Decoder, Optimizer]:
        model = Decoder(config, seed=seed)
        place(model, self.execution, self.runtime, prefixes=False)
        return model, build_optimizer(model, self.settings, self.runtime.precision)

    def update(self, model: Decoder, optimizer: Optimizer, step: int) -> None:
        draw = np.random.default_rng(step)
        tokens_BL = draw.integers(0, VOCABULARY, (ROWS, LENGTH + 1))
        documents_BL = np.zeros((ROWS, LENGTH), dtype=np.int32)
        documents_BL[:, LENGTH // 2 :] = 1  # As packed rows have several.
        rows = Rows(
            tokens_BL[:, :-1].astype(np.int32), tokens_BL[:, 1:].astype(np.int64), documents_BL
        )
        optimizer.zero_grad()
        optimizer.backward(self.runtime.train(model, rows, targets=rows.targets).loss)
        norm = optimizer.clip()
        if torch.isfinite(norm):
            optimizer.set_rate(1e-3)
            optimizer.step()
        else:
            optimizer.overflowed()
        optimizer.zero_grad()


def _rehearse(folder: Path, config: ModelConfig, placed: _Placed) -> str | None:
    """The first tensor that differs after the third update; None where none does."""
    model, optimizer = placed.start(config, seed=1)
    for step in (1, 2):
        placed.update(model, optimizer, step)
    _save(model.state_dict(), folder / "model.safetensors")
    _save(optimizer.tensors(), folder / "optimizer.safetensors")
    placed.update(model, optimizer, 3)
    again, resumed = placed.start(config, seed=2)
    again.load_state_dict(load_file(folder / "model.safetensors"))
    resumed.load(load_file(folder / "optimizer.safetensors"), where="rehearsal")
    placed.update(again, resumed, 3)
    wanted = {**model.state_dict(), **optimizer.tensors()}
    found = {**again.state_dict(), **resumed.tensors()}
    return next((name for name in wanted if not torch.equal(wanted[name], found[name])), None)


def _save(tensors: dict[str, Tensor], path: Path) -> None:
    save_file({name: t.detach().cpu().contiguous() for name, t in tensors.items()}, path)
