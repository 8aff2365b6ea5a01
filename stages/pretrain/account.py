"""What a run planned and what it did: the content of `run.json`."""

from __future__ import annotations

from typing import Any

from stages.model.count import count_parameters
from stages.pretrain.config import PretrainConfig
from stages.pretrain.held_out import HeldOutSet
from stages.pretrain.plan import Plan
from stages.training.data import TokenShards
from stages.training.fit import Fitted


def run_account(
    config: PretrainConfig, plan: Plan, shards: TokenShards, held_out: HeldOutSet, fitted: Fitted
) -> dict[str, Any]:
    """Phases, tokens planned and realised by source, the baseline, and the model's size.

    Planned tokens are token positions; realised ones do not count padding.
    """
    rows = fitted.log.rows("metrics")
    count = count_parameters(fitted.model.config)
    return {
        "phases": [
            {
                "training_steps": phase.steps,
                "tokens": phase.tokens,
                "sequences_per_batch": phase.sequences_per_batch,
                "sequence_length": phase.sequence_length,
                "mixture": dict(phase.weights),
                "learning_rate": settings.learning_rate.plain(),
            }
            for phase, settings in zip(plan.clock.phases, config.phases, strict=True)
        ],
        "sources": {
            one.source: {
                **one.plain(),
                "available_tokens": shards.total("tokens")[one.source],
                "realised_tokens": sum(row[f"tokens/{one.source}"] for row in rows),
            }
            for one in plan.clock.account()
        },
        "held_out_sequences": len(held_out.sources_B),
        "unigram_bits_per_byte": held_out.unigram(shards.train_counts()),
        "parameters": {"total": count.total, "without_embeddings": count.without_embeddings},
    }
