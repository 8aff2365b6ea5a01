"""What the rest of a run will take, by what its dry batch took."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from stages.model.config import ModelConfig
from stages.model.count import mfu_flops_per_token
from stages.pretrain.preflight.dry_batch import Dry
from stages.pretrain.preflight.report import Finding, span
from stages.training.telemetry.peaks import mfu

FORWARD = 1 / 3
"""Of a training step's arithmetic, that of the forward pass, which is all that a held-out loss
needs."""


@dataclass(frozen=True)
class Work:
    """What lies ahead: tokens by phase (padding not counted) and the length of their sequences.

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


def predict(model: ModelConfig, work: Work, dry: Dry, peak: float | None) -> Prediction:
    """A token takes time in proportion to its operations, which grow with the sequence."""
    flops = [mfu_flops_per_token(model, length) for length in work.lengths]
    unit = dry.seconds / dry.tokens / flops[work.dry_phase]
    seconds = sum(n * one * unit for n, one in zip(work.tokens, flops, strict=True))
    held_out = work.held_out_tokens * flops[work.dry_phase] * unit * FORWARD
    speed = sum(work.tokens) / seconds if seconds else dry.tokens_per_second
    return Prediction(
        seconds, held_out, speed, mfu(dry.tokens_per_second, flops[work.dry_phase], peak)
    )


def prediction_finding(found: Prediction, work: Work, dry: Dry, now: float) -> Finding:
    """The prediction as a line; `now` in seconds since 1970."""
    total = found.seconds + found.held_out_seconds
    ends = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now + total))
    share = "" if found.mfu is None else f" (MFU {found.mfu:.1%})"
    said = (
        f"{sum(work.tokens):,.0f} tokens at {found.tokens_per_second:,.0f} a second{share}: "
        f"{span(found.seconds)}, held-out losses {span(found.held_out_seconds)}; ends {ends}"
    )
    numbers = {
        "tokens_per_second": round(found.tokens_per_second, 1),
        "mfu": found.mfu,
        "seconds": round(found.seconds, 1),
        "held_out_seconds": round(found.held_out_seconds, 1),
        "ends": now + total,
        "dry_seconds": dry.seconds,
        "dry_first_seconds": dry.first_seconds,
    }
    return Finding("time", "ok", said, numbers=numbers)
