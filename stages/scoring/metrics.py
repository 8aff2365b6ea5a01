"""Names of the metrics of ranked choices.

A choice is ranked by its log-likelihood; by that over its characters, UTF-8 bytes or tokens; or by
that minus the log-likelihood of the choice after nothing (pointwise mutual information). They are
lm-evaluation-harness's (lm_eval/api/task.py, `process_results`): acc, acc_norm (characters),
acc_bytes and acc_mutual_info; by tokens is lighteval's.
"""

from __future__ import annotations

from typing import Literal

Normalisation = Literal["sum", "characters", "bytes", "tokens", "pmi"]
METRICS: dict[Normalisation, str] = {
    "sum": "accuracy",
    "characters": "accuracy_by_characters",
    "bytes": "accuracy_by_bytes",
    "tokens": "accuracy_by_tokens",
    "pmi": "accuracy_by_pmi",
}
