"""What a run planned and what it did: the content of `run.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stages.pretrain.config import PhaseConfig, PretrainConfig
from stages.pretrain.plan import Plan
from stages.training.phases import Phase

if TYPE_CHECKING:
    from stages.pretrain.held_out import HeldOutSet
    from stages.training.data import TokenShards
    from stages.training.fit import Fitted


def run_account(
    config: PretrainConfig, plan: Plan, shards: TokenShards, held_out: HeldOutSet, fitted: Fitted
) -> dict[str, Any]:
    """Phases, the token account with what was realised, the baseline, and the model's size."""
    from stages.model.count import count_parameters

    rows = fitted.log.rows("metrics")
    read = {name: sum(row[f"tokens/{name}"] for row in rows) for name in shards.sources}
    count = count_parameters(fitted.model.config)
    return {
        **planned_account(config, plan),
        **plan.account.realised(read).plain(),
        "held_out_sequences": len(held_out.sources_B),
        "unigram_bits_per_byte": held_out.unigram(shards.train_counts()),
        "parameters": {"total": count.total, "without_embeddings": count.without_embeddings},
    }


def planned_account(config: PretrainConfig, plan: Plan) -> dict[str, Any]:
    """Of a run that is to be, JSON-ready: its phases, what it leaves out, its token account.

    `tokens` of a phase are positions, padding included.
    """
    pairs = zip(plan.clock.phases, config.phases, strict=True)
    return {
        "phases": [_phase(phase, settings) for phase, settings in pairs],
        "skipped_training_steps": [list(part) for part in plan.clock.skip],
        **plan.account.plain(),
    }


def _phase(phase: Phase, settings: PhaseConfig) -> dict[str, Any]:
    plain: Mapping[str, Any] = settings.plain()
    return {
        "training_steps": phase.steps,
        "tokens": phase.tokens,
        "sequence_length": phase.sequence_length,
        **{
            name: plain[name]
            for name in ("sequences_per_batch", "mixture", "mixture_end", "learning_rate")
        },
    }
