"""What a deduplication found, in numbers, and what its parameters can find at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stages.dedup.minhash import candidate_probability

if TYPE_CHECKING:
    from stages.dedup.candidates import Candidates
    from stages.dedup.neighbours import Neighbours
    from stages.dedup.signing import Signatures
    from stages.dedup.stage import DedupConfig
    from stages.dedup.verify import Pairs


def statistics(
    config: DedupConfig,
    signatures: Signatures,
    first: NDArray[np.int64],
    candidates: Candidates,
    pairs: Pairs,
    neighbours: Neighbours,
) -> dict[str, Any]:
    """The content of `statistics.json`: parameters, counts, curve and histogram of similarities."""
    members = np.bincount(first, minlength=len(first))
    return {
        "parameters": config.plain(),
        "counts": {
            "documents": len(first),
            "documents_without_words": int((signatures.shingles == 0).sum()),
            "exact_classes": int((members > 1).sum()),
            "exact_copies": int((members[members > 1] - 1).sum()),
            "shingles": int(signatures.shingles.sum()),
            "candidate_pairs": len(candidates),
            "capped_buckets": candidates.capped_buckets,
            "verified_pairs": len(pairs),
            "documents_with_pairs": int((np.diff(neighbours.offsets) > 0).sum()),
            "capped_documents": neighbours.capped,
        },
        "similarity": _histogram(pairs.similarity),
        "curve": [
            {
                "similarity": s / 20,
                "probability": round(candidate_probability(s / 20, config.bands, config.rows), 6),
            }
            for s in range(1, 21)
        ],
    }


def _histogram(similarity: NDArray[np.float32]) -> list[dict[str, float | int]]:
    """Verified pairs by similarity, in steps of 0.05; the last holds 1.0 as well."""
    step = np.minimum(np.floor(similarity.astype(np.float64) * 20 + 1e-6), 19).astype(np.int64)
    counts = np.bincount(step, minlength=20)
    return [
        {"from": low / 20, "to": (low + 1) / 20, "pairs": int(counts[low])}
        for low in range(20)
        if counts[low]
    ]
