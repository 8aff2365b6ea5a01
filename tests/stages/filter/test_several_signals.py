"""Signals of several stages about the same documents: joined, refused, and asked for by rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from artifacts_schema.errors import InputError, UsageError
from stages.classify.stage import Classify
from stages.engine import Upstream
from stages.engine.page import Artifact
from stages.filter.config import FilterConfig
from stages.filter.page import page
from stages.filter.stage import Filter
from stages.filter.verdicts import FilterInputs, compare_presets, compute_verdicts
from stages.signals.config import SignalsConfig
from stages.signals.stage import Signals

RULES: list[dict[str, Any]] = [
    {"name": "few_words", "signal": "words", "minimum": 3},
    {"name": "low_quality", "signal": "edu.LABEL_0", "minimum": 2.0},
    {"name": "off_topic", "signal": "domain", "allowed": ["News", "Science"]},
]
CONFIG = {"rules": RULES, "personal_data": "keep", "views": []}
WORDS, QUALITY = [5, 2, 5, 5, 5, 5], [3.0, 1.0, 1.0, 2.0, None, 4.0]
DOMAINS = ["News", "News", "Sport", "Sport", None, "Science"]
REASONS = [None, "few_words", "low_quality", "off_topic", None, None]


@pytest.fixture
def roles(given: Any, make_documents: Any, read_table: Any) -> dict[str, list[Any]]:
    """Two documents outputs of four and two rows, described by three stages each."""
    documents = [make_documents([["a", "b", "c", "d"]]), make_documents([["e", "f"]], "more")]
    signals = []
    for rows_of in (
        lambda n: {"words": float(WORDS[n]), "characters": 1.0, "language": "en"},
        lambda n: {"edu.LABEL_0": QUALITY[n]},
        lambda n: {"domain": DOMAINS[n]},
    ):
        start = 0
        for one in documents:
            ids = read_table(*one)["doc_id"].to_pylist()
            rows = [{"doc_id": id_, **rows_of(start + n)} for n, id_ in enumerate(ids)]
            described = {"columns": [{"name": name} for name in rows[0]]}
            files = {"00000.parquet": rows, "signals.json": described}
            signals.append(given("signals", files))
            start += len(rows)
    return {"documents": documents, "signals": signals}


@pytest.fixture
def decide(run_stage: Any, read_table: Any) -> Callable[..., Any]:
    def run(roles: dict[str, list[Any]], config: Any = CONFIG) -> Any:
        made = run_stage(Filter, config, roles)
        return made, read_table(made, "ledger")["reason"].to_pylist()

    return run


def test_rules_read_signals_of_every_stage(roles: Any, decide: Any, store: Any) -> None:
    made, reasons = decide(roles)
    assert reasons == REASONS
    titles = [figure.title for figure in page(Artifact(store, made))]
    assert any(title.startswith("Rules, thresholds") for title in titles)


def test_a_decision_in_memory_reads_them_too(roles: Any, read_input: Any) -> None:
    """As `what-if` decides: with the bound at 1, the third document fails the next rule."""
    documents, signals = ([read_input(*one) for one in given] for given in roles.values())
    inputs = FilterInputs(documents, signals, [], [], [], None, [])
    config = FilterConfig.parse({**CONFIG, "thresholds": {"low_quality": 1.0}}, where="filter")
    assert compute_verdicts(inputs, config).reasons.to_pylist() == [
        *REASONS[:2],
        "off_topic",
        *REASONS[3:],
    ]


def test_presets_are_compared_on_the_measurements_alone(
    roles: Any, read_input: Any, given: Any
) -> None:
    documents, signals = ([read_input(*one) for one in given] for given in roles.values())
    compared = compare_presets(FilterInputs(documents, signals, [], [], [], None, []), ["c4@code"])
    assert compared.documents == 6


def test_one_signal_measured_twice_is_refused(roles: Any, decide: Any) -> None:
    twice = {**roles, "signals": [*roles["signals"], *roles["signals"][2:4]]}
    with pytest.raises(InputError, match=r"'edu\.LABEL_0' is measured twice"):
        decide(twice)


@pytest.mark.parametrize("order", [[0, 1, 2], [0, 1, 3, 2], [0, 2, 1, 3]])
def test_signals_are_given_stage_by_stage_in_the_order_of_the_documents(
    roles: Any, decide: Any, order: list[int]
) -> None:
    with pytest.raises(InputError):
        decide({**roles, "signals": [roles["signals"][place] for place in order]})


def upstreams(*labels: tuple[str, ...] | None) -> list[Upstream]:
    """Signals of a documents output, then scores with these labels (None: no `classify`)."""
    measured = [Upstream("signals", "signals", "signals", Signals, SignalsConfig())]
    return measured + [
        Upstream("edu", "signals", "signals", Classify, Classify.Config(name="edu", labels=named))
        for named in labels
        if named is not None
    ]


@pytest.mark.parametrize(
    ("documents", "labels", "sound"),
    [
        (1, [("LABEL_0",)], True),
        (1, [("other",)], False),
        (1, [None], False),
        (1, [()], True),  # The labels are the model's: known when it runs.
        (2, [("LABEL_0",)], False),  # Of one of two documents.
    ],
)
def test_a_plan_knows_the_scores_whose_labels_are_named(
    documents: int, labels: Any, sound: bool
) -> None:
    config = FilterConfig.parse({**CONFIG, "rules": RULES[:2]}, where="filter")
    inputs = {
        "documents": [Upstream("web", "documents", "documents")] * documents,
        "signals": upstreams(*labels),
    }
    if sound:
        Filter.check_plan(config, inputs)
        return
    with pytest.raises(UsageError, match=r"edu\.LABEL_0"):
        Filter.check_plan(config, inputs)


def test_a_bound_on_a_label_is_refused_when_a_plan_is_made() -> None:
    labels = Classify.Config(name="edu", labels=("LABEL_0",), top_label=True)
    scores = [Upstream("edu", "signals", "signals", Classify, labels)]
    inputs = {"documents": [Upstream("web", "documents", "documents")], "signals": scores}
    rule = {"name": "bad", "signal": "edu", "minimum": 1.0}
    with pytest.raises(UsageError, match="holds labels"):
        Filter.check_plan(FilterConfig.parse({**CONFIG, "rules": [rule]}, where="f"), inputs)
