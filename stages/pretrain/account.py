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
    spoken = _read_by_language(plan, rows, sum(read.values()))
    count = count_parameters(fitted.model.config)
    return {
        **planned_account(config, plan),
        **plan.account.realised(read, spoken).plain(),
        "held_out_sequences": len(held_out.sources_B),
        **held_out.unigram(shards.train_counts()),
        "parameters": {"total": count.total, "without_embeddings": count.without_embeddings},
    }


def _read_by_language(plan: Plan, rows: list[dict[str, Any]], tokens: int) -> dict[str, int]:
    """Tokens that were read of each language: counted apart where there are several."""
    spoken = [one.name for one in plan.account.languages if one.available]
    found = dict.fromkeys((one.name for one in plan.account.languages), 0)
    if len(spoken) == 1:
        return {**found, spoken[0]: tokens}
    return found | {name: sum(row[f"language_tokens/{name}"] for row in rows) for name in spoken}


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
