"""Documents are asked what their language is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from gopher_rows import QUALITY, document, quality

from artifacts_schema.errors import UsageError
from artifacts_schema.manifest import Manifest

Given = tuple[Manifest, str]
Make = Callable[..., Given]


def test_languages_have_rules_of_their_own_in_the_ledger(
    given: Make, make_documents: Make, decide: Any
) -> None:
    rows = [document(d) for d in "abc"]
    signals = [
        {**quality(d, words=40), "language": language}
        for d, language in zip("abc", ("en", "de", "ja"), strict=True)
    ]
    config = {
        **QUALITY,
        "rules_by_language": {"ja": []},
        "thresholds_by_language": {"de": {"gopher_few_words": 45}},
    }
    _, kept, told = decide(
        config,
        documents=make_documents([rows]),
        signals=given("signals", {"00000.parquet": signals}),
    )
    assert [row["doc_id"] for row in kept] == ["c"]
    assert [told[d]["threshold"] for d in "ab"] == [50, 45]


def test_languages_that_were_not_asked_for_go_first_and_sources_with_rules_of_their_own_stay(
    given: Make, make_documents: Make, decide: Any
) -> None:
    names = {"a": "en", "b": "de", "c": None, "d": "fr"}
    rows = [document("a"), document("b"), document("c"), document("d", source="code")]
    signals = [
        {"doc_id": doc_id, "words": 9.0, "language": language} for doc_id, language in names.items()
    ]
    config = {"rules": [], "rules_by_source": {"code": []}, "languages": ["en", "es"]}
    manifest, kept, why = decide(
        config,
        documents=make_documents([rows]),
        signals=given("signals", {"00000.parquet": signals}),
    )
    assert [row["doc_id"] for row in kept] == ["a", "d"]
    assert manifest.conservation.dropped == {"language": 2}
    assert why["b"]["reason"] == why["c"]["reason"] == "language"


def test_languages_without_a_measured_language_say_what_to_do(
    given: Make, make_documents: Make, decide: Any
) -> None:
    documents = make_documents([[document("a")]])
    signals = given("signals", {"00000.parquet": [{"doc_id": "a"}]})
    with pytest.raises(UsageError, match="language_model"):
        decide({"rules": [], "languages": ["en"]}, documents=documents, signals=signals)
