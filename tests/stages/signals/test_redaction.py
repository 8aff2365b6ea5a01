"""Redaction on labelled texts: the floors of each kind, and what the config promises.

Texts and values are those of `tests/benchmarks/redaction_cases.py`, by a seed of the test side.
"""

from __future__ import annotations

from typing import Any

import pytest

from artifacts_schema.errors import UsageError
from stages.filter.config import FilterConfig
from stages.filter.rules import PERSONAL_DATA_RULES
from stages.filter.stage import Filter
from stages.signals.stage import Signals
from tests.benchmarks.redaction import find_spans
from tests.benchmarks.redaction_cases import KINDS, PERSONAL, Score, make_cases, score

FLOORS = {"pypi_token": (0.95, 0.98)}
"""Least precision and recall where not .98 of both: docs/figures.md has the figures."""


@pytest.mark.parametrize("kind", KINDS)
def test_precision_and_recall_of_each_kind(kind: str) -> None:
    cases = make_cases(kind, seed=1003)
    reached = score(cases, find_spans(cases))
    precision, recall = FLOORS.get(kind, (0.98, 0.98))
    assert reached.values == 200
    assert reached.precision >= precision
    assert reached.recall >= recall


def test_a_score_by_hand() -> None:
    """Two values: one covered, one but for a character; three spans, one of them on nothing."""
    (case, *_) = make_cases("email", 1, count=1)
    (place,) = case.values
    assert score([case], [[place]]) == Score(1, 1, 1, 1)
    assert score([case], [[(place[0], place[1] - 1)]]) == Score(1, 0, 1, 1)
    assert score([case], [[place, (0, 1)]]).right == 1
    assert score([case], [[]]) == Score(1, 0, 0, 0)


def test_sides_share_no_sentence_and_no_value() -> None:
    for kind in KINDS:
        development, test = (make_cases(kind, seed, count=40) for seed in (1, 1001))
        assert not {case.text for case in development} & {case.text for case in test}


def planted() -> dict[str, list[tuple[str, str]]]:
    """By sort of the config: texts, and the value in each that must not be left."""
    texts: dict[str, list[tuple[str, str]]] = {label: [] for label in PERSONAL_DATA_RULES}
    for kind in KINDS:
        label = kind if kind in PERSONAL else "secret"
        cases = [case for case in make_cases(kind, seed=1004, count=4) if case.values]
        caught = find_spans(cases)
        texts[label] += [
            (f"Some words. {case.text} and more.", case.text[slice(*case.values[0])])
            for case, spans in zip(cases, caught, strict=True)
            if score([case], [spans]).covered
        ]
    return texts


def test_what_the_config_says_is_redacted_is_redacted_or_the_run_is_refused(
    make_documents: Any, run_stage: Any, read_table: Any
) -> None:
    """Every sort, treatment and choice of views; what is found at all is measured above."""
    texts = planted()
    assert {label: len(rows) >= 3 for label, rows in texts.items()} == dict.fromkeys(texts, True)
    every = [text for rows in texts.values() for text, _ in rows]
    documents = make_documents([every])
    measured = run_stage(Signals, {}, {"documents": [documents]})
    inputs = {
        "documents": [documents],
        "signals": [(measured, "signals")],
        "views": [(measured, "views")],
    }

    def kept(config: dict[str, Any]) -> list[str]:
        made = run_stage(
            Filter,
            {"rules": [], "duplicates": {"threshold": None, "exact": None}, **config},
            inputs,
        )
        return list(read_table(made, "documents")["text"].to_pylist())

    default = kept({})
    assert len(default) == len(every)
    assert [
        v for rows in texts.values() for _, v in rows if any(v in text for text in default)
    ] == []
    dropped = kept({"personal_data": "drop"})
    assert [
        v for rows in texts.values() for _, v in rows if any(v in text for text in dropped)
    ] == []
    for label in PERSONAL_DATA_RULES:
        view = "secrets" if label == "secret" else "personal_data"
        policy = {**dict.fromkeys(PERSONAL_DATA_RULES, "keep"), label: "redact"}
        left = kept({"views": [view], "personal_data": policy})
        assert [v for _, v in texts[label] if any(v in text for text in left)] == []
        for views in ([], [other for other in ("personal_data", "secrets") if other != view]):
            with pytest.raises(UsageError, match=f"'{view}'"):
                FilterConfig.parse({"views": views, "personal_data": policy}, where="filter")
