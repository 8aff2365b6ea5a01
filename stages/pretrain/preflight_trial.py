"""Trials before a run: a dry batch, the time that it predicts, a rehearsal of save and resume.

The dry batch is forward and backward of the first micro-batch; afterwards everything is as it was
before. The rehearsal writes the state of a tiny model and reads it back.
"""

from __future__ import annotations

import math
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from stages.model.config import Experts, LatentAttention, ModelConfig
from stages.model.decoder import Decoder
from stages.model.size import mfu_flops_per_token
from stages.parallel.ranks import ALONE, Ranks
from stages.pretrain.preflight_checks import Finding, nearest_existing, span
from stages.training.config import OptimizerConfig, TrainingExecution
from stages.training.diagnosis import preserve_state
from stages.training.hardware import mfu
from stages.training.optimizer import Optimizer
from stages.training.rows import Rows
from stages.training.runtime import (
    Runtime,
    place,
    random_state,
    resolve_attention,
    restore_random_state,
)
from stages.training.task import Task

ENOUGH_SECONDS, MOST_PASSES = 0.25, 4
"""The first pass compiles and loads, so it is not timed; at least one follows, and more until these
took so many seconds."""


@dataclass(frozen=True)
class DryBatch:
    """What one micro-batch took: its tokens, seconds of the fastest pass, GPU bytes at most.

    `loss` is its share of the step's; `first_seconds` are those of the first pass, with what is
    compiled or loaded in it, which `seconds` never are.
    """

    training_step: int
    tokens: int
    seconds: float
    first_seconds: float
    loss: float
    peak_bytes: int | None = None

    @property
    def tokens_per_second(self) -> float:
        """Of forward and backward passes alone."""
        return self.tokens / self.seconds


def try_batch(
    model: nn.Module,
    task: Task,
    training_step: int,
    last: int,
    *,
    ranks: Ranks = ALONE,
    clock: Callable[[], float] = time.perf_counter,
) -> DryBatch | None:
    """Try the first training step from `training_step` to `last` that the run does not leave out.

    None if it excludes all. Afterwards weights, buffers and random state are what they were, and
    there is no gradient. To be called on all ranks; several do all micro-batches of the step, since
    they exchange messages in each.
    """
    batch = None
    while training_step <= last and (batch := task.batch(training_step)) is None:
        training_step += 1
    if batch is None:
        return None
    device = next(model.parameters()).device
    cuda = device.type == "cuda"
    if cuda:
        torch.cuda.reset_peak_memory_stats(device)
    spent: list[float] = []
    tokens, loss = 0, math.nan
    with preserve_model(model):
        more = True
        while more:
            model.zero_grad(set_to_none=True)
            began = clock()
            parts = iter(task.micro_batches(model, batch))
            tokens, loss = 0, 0.0
            for share in parts if ranks.world > 1 else islice(parts, 1):
                share.loss.backward()  # type: ignore[no-untyped-call]
                tokens, loss = tokens + share.tokens, loss + share.loss.item()
            if cuda:
                torch.cuda.synchronize(device)
            spent.append(clock() - began)
            more = len(spent) < 2 or (len(spent) < MOST_PASSES and sum(spent[1:]) < ENOUGH_SECONDS)
            more = ranks.share(more)
    tokens = ranks.sum_number(tokens)
    loss = float(ranks.sum(torch.tensor(loss, dtype=torch.float64, device=ranks.device)))
    peak = torch.cuda.max_memory_allocated(device) if cuda else None
    return DryBatch(training_step, tokens, min(spent[1:]), spent[0], loss, peak)


@contextmanager
def preserve_model(model: nn.Module) -> Iterator[None]:
    """Everything that a pass in training changes is put back; the phase's positions, too."""
    rope = _rope(model)
    try:
        with preserve_state(model):
            model.train()
            yield
    finally:
        if isinstance(model, Decoder) and _rope(model) != rope:
            model.set_rope(*rope)


def _rope(model: nn.Module) -> tuple[Any, ...]:
    if not isinstance(model, Decoder):
        return ()
    return model.config.rope_base, model.config.rope_scaling


FORWARD = 1 / 3
"""Of a training step's arithmetic, that of the forward pass, which is all that a held-out loss
needs."""


@dataclass(frozen=True)
class RemainingWork:
    """The work ahead: tokens by phase (padding not counted) and the length of their sequences.

    `dry_phase` is the one of the dry batch; `held_out_tokens` are those of all measurements.
    """

    tokens: Sequence[float]
    lengths: Sequence[int]
    dry_phase: int
    held_out_tokens: float = 0.0


@dataclass(frozen=True)
class Prediction:
    """Seconds of training and of held-out measurement, tokens a second over the training."""

    seconds: float
    held_out_seconds: float
    tokens_per_second: float
    mfu: float | None


def predict(
    model: ModelConfig, work: RemainingWork, dry: DryBatch, peak: float | None
) -> Prediction:
    """A token takes time in proportion to its operations, which grow with the sequence."""
    flops = [mfu_flops_per_token(model, length) for length in work.lengths]
    unit = dry.seconds / dry.tokens / flops[work.dry_phase]
    seconds = sum(n * one * unit for n, one in zip(work.tokens, flops, strict=True))
    held_out = work.held_out_tokens * flops[work.dry_phase] * unit * FORWARD
    speed = sum(work.tokens) / seconds if seconds else dry.tokens_per_second
    return Prediction(
        seconds, held_out, speed, mfu(dry.tokens_per_second, flops[work.dry_phase], peak)
    )


def prediction_finding(
    results: Prediction, work: RemainingWork, dry: DryBatch, now: float
) -> Finding:
    """The prediction as a line; `now` in seconds since 1970."""
    total = results.seconds + results.held_out_seconds
    ends = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now + total))
    share = "" if results.mfu is None else f" (MFU {results.mfu:.1%})"
    text = (
        f"{sum(work.tokens):,.0f} tokens at {results.tokens_per_second:,.0f} a second{share}: "
        f"{span(results.seconds)}, held-out losses {span(results.held_out_seconds)}; ends {ends}"
    )
    numbers = {
        "tokens_per_second": round(results.tokens_per_second, 1),
        "mfu": results.mfu,
        "seconds": round(results.seconds, 1),
        "held_out_seconds": round(results.held_out_seconds, 1),
        "ends": now + total,
        "dry_seconds": dry.seconds,
        "dry_first_seconds": dry.first_seconds,
    }
    return Finding("time", "ok", text, numbers=numbers)


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
    attention = resolve_attention(config, execution, runtime, prefixes=prefixes)
    placed = _Placed(
        settings.model_copy(update={"groups": ()}),  # Their patterns name the real layers.
        runtime,
        execution.model_copy(update={"attention": attention}),
    )
    # Not of `tempfile`, whose folders are for one user: the next run of the key may be another's.
    scratch = nearest_existing(folder) / f".rehearsal-{secrets.token_hex(4)}"
    try:
        scratch.mkdir()
        odd = _rehearse(scratch, tiny(config), placed)
    except OSError as error:
        text = f"its state cannot be written: {error.strerror or error}"
        return Finding("resume", "refusal", text, f"look at {folder}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        restore_random_state(before)
    if odd is None:
        return Finding("resume", "ok", "a tiny model goes on from its saved state to the same bits")
    return Finding(
        "resume",
        "refusal" if execution.deterministic else "warning",
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
        return model, Optimizer(model, self.settings, self.runtime.precision)

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
    results = {**again.state_dict(), **resumed.tensors()}
    return next((name for name in wanted if not torch.equal(wanted[name], results[name])), None)


def _save(tensors: dict[str, Tensor], path: Path) -> None:
    save_file({name: t.detach().cpu().contiguous() for name, t in tensors.items()}, path)
