"""Names of scores, and of the metrics of ranked choices.

A choice is ranked by its log-likelihood; by that over its characters, UTF-8 bytes or tokens; or by
that minus the log-likelihood of the choice after nothing (pointwise mutual information). They are
lm-evaluation-harness's (lm_eval/api/task.py, `process_results`): acc, acc_norm (characters),
acc_bytes and acc_mutual_info; by tokens is lighteval's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Normalisation = Literal["sum", "characters", "bytes", "tokens", "pmi"]
METRICS: dict[Normalisation, str] = {
    "sum": "accuracy",
    "characters": "accuracy_by_characters",
    "bytes": "accuracy_by_bytes",
    "tokens": "accuracy_by_tokens",
    "pmi": "accuracy_by_pmi",
}

SAVED = "bits_saved"
"""Share of the token-unigram model's bits that a model saves: 1 − its bits / those."""
NATS, PERPLEXITY = "answer_nats", "perplexity"
"""Nats that a right answer costs, and e to the power of their mean over items, as lm-eval's."""


RIGHT_SHARE = "right_probability"
"""Of several right choices the share of probability among all, as lm-eval's truthfulqa_mc2."""


def label(benchmark: str, formulation: str | None, shots: int | None) -> str:
    """A benchmark and how its items were put to the model: `arc_easy (cloze, 5 shots)`."""
    how = [] if formulation is None else [formulation.replace("_", " ")]
    if shots is not None:
        how.append(f"{shots} shot" if shots == 1 else f"{shots} shots")
    return f"{benchmark} ({', '.join(how)})" if how else benchmark


def row_label(row: Mapping[str, Any]) -> str:
    """The same of a row of `results` or `items`; those of earlier versions say nothing of it."""
    return label(row["benchmark"], row.get("formulation"), row.get("shots"))
