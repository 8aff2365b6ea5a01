"""What a deduplication found, in numbers, and what its parameters can find at all.

Maps return counts that add up, so that no pair is held to be counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from stages.dedup.solver import candidate_probability
from stages.dedup.verify import STEPS

if TYPE_CHECKING:
    from stages.dedup.settings import Settings

Values = Sequence[Mapping[str, Any]]


def statistics(
    parameters: Mapping[str, Any],
    settings: Settings,
    counts: Mapping[str, int],
    verified: Values,
    closed: Values,
    listed: Values,
    recall: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The content of `statistics.json`.

    `parameters` is the plain config, `counts` what is known of documents and classes; `verified`
    and `closed` are what `verify_pairs` returned for pairs of bands and of closure, `listed` what
    `duplicates_shard` returned; `recall` is None where it was not measured.
    """
    return {
        "parameters": {**parameters, "settings": asdict(settings)},
        "counts": {
            **counts,
            "candidate_pairs": _sum(verified, "candidates"),
            "verified_pairs": _sum(verified, "pairs"),
            "closed_candidates": _sum(closed, "candidates"),
            "closed_pairs": _sum(closed, "pairs"),
            "unequal_candidates": _sum(verified, "unequal") + _sum(closed, "unequal"),
            "estimated_pairs": _sum(verified, "estimated") + _sum(closed, "estimated"),
            "documents_with_pairs": _sum(listed, "documents_with_pairs"),
            "capped_documents": _sum(listed, "capped_documents"),
        },
        "similarity": _histogram([*verified, *closed]),
        "curve": [
            {
                "similarity": step / STEPS,
                "probability": round(
                    candidate_probability(step / STEPS, settings.bands, settings.rows), 6
                ),
            }
            for step in range(1, STEPS + 1)
        ],
        "recall": None if recall is None else dict(recall),
    }


def _sum(values: Values, name: str) -> int:
    return sum(value[name] for value in values)


def _histogram(values: Values) -> list[dict[str, float | int]]:
    """Measured pairs by similarity; the last step holds 1.0 as well."""
    counts = np.zeros(STEPS, dtype=np.int64)
    for value in values:
        if value["similarity"]:
            counts += np.array(value["similarity"], dtype=np.int64)
    return [
        {"from": step / STEPS, "to": (step + 1) / STEPS, "pairs": int(counts[step])}
        for step in range(STEPS)
        if counts[step]
    ]
