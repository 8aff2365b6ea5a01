from __future__ import annotations

import re
from typing import Any

import pytest

from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.gc import remove_artifact
from stages.engine.page import Artifact, Figure, make_page, make_summary
from stages.filter.stage import Filter

HOSTILE = "<script>alert(1)</script> \x1b[31m"
CONFIG = {"rules": ["garbled", "fineweb@code"], "views": ["personal_data", "secrets"]}
FINE = {
    "replacement_character_share": 0.0,
    "terminal_punctuation_line_share": 0.5,
    "short_line_share": 0.1,
    "duplicate_filled_line_character_share": 0.0,
    "newline_to_word_ratio": 0.1,
}
GARBLED = {"replacement_character_share": 0.5}
UNENDED = {"terminal_punctuation_line_share": 0.01}
SHORT = {"short_line_share": 0.9}


def collect(store: Store, reference: InputRef) -> None:
    """As `ingot gc` does it."""
    manifest = store.manifest(reference.stage, reference.key)
    assert manifest is not None
    remove_artifact(store, manifest)


def document(doc_id: str, text: str, source: str = "web", language: str | None = "en") -> Any:
    url = f"https://x.example/{doc_id}"
    return {"doc_id": doc_id, "source": source, "url": url, "text": text, "language": language}


@pytest.fixture
def decided(run_stage: Any, given: Any, make_documents: Any) -> Manifest:
    """Six web documents and two of code: 1 garbled, 2 unended, of these 1 short too, 1 short."""
    web = [
        document("a", "kept, of 20 letters."),
        document("b", HOSTILE),
        document("c", "c" * 100, language="de-DE"),
        document("d", "mail ann@corp.com now", language="de"),
        document("e", "e" * 30),
        document("f", "write to bob@corp.com"),
    ]
    code = [document("g", "x = 1", "code", None), document("h", "y = 2", "code", None)]
    signals = [
        FINE,
        {**FINE, **GARBLED},
        {**FINE, **UNENDED},
        {**FINE, **UNENDED, **SHORT},
        {**FINE, **SHORT},
        FINE,
    ]

    def view(doc_id: str, *spans: tuple[int, int]) -> dict[str, Any]:
        made = [
            {"view": "personal_data", "start": s, "end": e, "label": "email", "replacement": "@"}
            for s, e in spans
        ]
        return {"doc_id": doc_id, "spans": made}

    views = [
        *(view(doc_id) for doc_id in "abc"),
        view("d", (5, 17)),
        view("e"),
        view("f", (9, 21)),
    ]
    first = make_documents([web[:4], web[4:]], snapshot="crawl")
    second = make_documents([code], snapshot="tree")
    measured = [{"doc_id": d["doc_id"], **s} for d, s in zip(web, signals, strict=True)]
    plain = [{"doc_id": d["doc_id"], **FINE} for d in code]
    inputs = {
        "documents": [first, second],
        "signals": [
            given("signals", _signals(measured[:4], measured[4:])),
            given("signals", _signals(plain)),
        ],
        "views": [
            given("views", {"00000.parquet": views[:4], "00001.parquet": views[4:]}),
            given("views", {"00000.parquet": [view("g"), view("h")]}),
        ],
    }
    return run_stage(Filter, CONFIG, inputs)


def _signals(*shards: list[dict[str, Any]]) -> dict[str, Any]:
    tables = {f"{place:05d}.parquet": shard for place, shard in enumerate(shards)}
    return {**tables, "signals.json": {"columns": [], "stop_words": []}}


def by_title(store: Store, manifest: Manifest) -> dict[str, Figure]:
    found = make_page(Filter, Artifact(store, manifest))
    assert len({figure.title for figure in found}) == len(found)
    return {figure.title: figure for figure in found}


def test_rules_are_counted_alone_together_and_in_their_order(
    store: Store, decided: Manifest
) -> None:
    page: dict[str, Any] = by_title(store, decided)
    dropped = page["Documents dropped, by first failing rule"]
    assert dropped.labels == (
        "garbled_replacement_characters",
        "fineweb_few_ended_lines",
        "fineweb_short_lines",
    )
    assert dropped.series[0].values == (1, 2, 1)
    assert re.search(r"\b4 of 8 .*50\.0%", dropped.note)

    rules = {
        row[0]: row[1:] for row in page["Rules, thresholds and what they drop (documents)"].rows
    }
    assert rules["fineweb_short_lines"] == (2, 0.25, 1, 1, 4, "short_line_share ≤ 0.67")
    assert rules["fineweb_few_ended_lines"][:5] == (2, 0.25, 1, 2, 5)
    assert rules["fineweb_few_ended_lines"][5] == "terminal_punctuation_line_share ≥ 0.12"
    assert rules["fineweb_newlines"][:5] == (0, 0, 0, 0, 4)

    matrix = page["Documents that fail two rules"]
    assert matrix.rows == matrix.columns == dropped.labels
    assert matrix.values == ((1, None, None), (None, 2, 1), (None, 1, 2))


def test_sources_languages_and_lengths_of_kept_and_dropped(store: Store, decided: Manifest) -> None:
    """Kept: a, f (20 + 21 of 200 web characters: 41 / 214), g, h."""
    page: dict[str, Any] = by_title(store, decided)
    web, code = page["Documents kept, by source and snapshot"].rows
    letters = 20 + len(HOSTILE) + 100 + 21 + 30 + 21
    assert web[:5] == ("web", "crawl", 6, 2, 2 / 6)
    assert web[5] == pytest.approx(41 / letters)
    assert code == ("code", "tree", 2, 2, 1, 1)

    languages = page["Documents kept and dropped, by language"]
    assert languages.labels == ("en", "(none)", "de")
    assert [series.values for series in languages.series] == [(2, 2, 0), (2, 0, 2)]
    shares = page["What becomes of a language's documents (share)"]
    assert shares.values[2] == (None, None, 1.0, None)
    assert shares.values[0] == (0.5, 0.25, None, 0.25)

    lengths = page["Characters of kept and dropped documents"]
    assert [sum(series.values) for series in lengths.series] == [4, 4]
    assert page["Documents and characters kept"].rows[0] == ("documents", 8, 4, 0.5)


def test_samples_show_text_and_value_with_personal_data_replaced(
    store: Store, decided: Manifest
) -> None:
    page: dict[str, Any] = by_title(store, decided)
    samples = {sample.heading[-1]: sample for sample in page["Documents by verdict"].samples}
    assert samples["b"].text == HOSTILE
    assert samples["b"].group == "garbled_replacement_characters"
    facts = dict(samples["b"].facts)
    assert (facts["value"], facts["threshold"], facts["document"]) == (0.5, 0.001, "b")
    assert samples["d"].text == "mail @ now"
    assert dict(samples["d"].facts)["fails too"] == "fineweb_short_lines"
    assert samples["f"].text == "write to @"
    assert samples["f"].group == "kept"
    assert "corp.com" not in repr(page)


def test_presets_are_compared_on_what_was_measured(store: Store, decided: Manifest) -> None:
    """All signals of the web and code documents, each preset alone: code has no rules here."""
    page: dict[str, Any] = by_title(store, decided)
    kept = page["What each preset would keep (documents)"]
    rows = {row[0]: row[1:] for row in kept.rows}
    measured = {"garbled", "fineweb@code", "fineweb@blog"}
    assert set(rows) == measured
    assert rows["garbled"][1] == rows["garbled"][0] / 8
    assert "gopher@datatrove" in kept.note
    only = page["Documents that one preset drops and another keeps"]
    assert set(only.rows) == measured
    values = {
        (a, b): only.values[i][j]
        for i, a in enumerate(only.rows)
        for j, b in enumerate(only.columns)
    }
    # b is garbled alone; c, d and e have lines that FineWeb drops.
    assert values["garbled", "fineweb@code"] == 1
    assert values["fineweb@code", "garbled"] == 3
    assert values["fineweb@code", "fineweb@blog"] is None


def test_thresholds_by_language_are_shown_where_they_differ(
    store: Store, given: Any, make_documents: Any, run_stage: Any
) -> None:
    rows = [document("a", "one", language="de"), document("b", "two", language="en")]
    signals = [{"doc_id": d, **FINE, "language": lang} for d, lang in (("a", "de"), ("b", "en"))]
    config = {
        **CONFIG,
        "personal_data": "keep",
        "thresholds_by_language": {"de": {"fineweb_short_lines": 0.9}},
        "rules_by_language": {"ja": ["garbled"]},
    }
    inputs = {
        "documents": [make_documents([rows])],
        "signals": [given("signals", _signals(signals))],
    }
    page: dict[str, Any] = by_title(store, run_stage(Filter, config, inputs))
    table = page["Thresholds by language"]
    assert [column.heading for column in table.columns] == ["rule", "signal", "others", "de", "ja"]
    bounds = {row[0]: row[2:] for row in table.rows}
    assert bounds["fineweb_short_lines"] == (0.67, 0.9, None)
    assert bounds["fineweb_newlines"] == (0.3, 0.3, None)
    assert "garbled_replacement_characters" not in bounds


def test_summary_is_the_table_by_source(store: Store, decided: Manifest) -> None:
    (figure,) = make_summary(Filter, Artifact(store, decided))
    assert figure.title == "Documents kept, by source and snapshot"


def test_many_rules_are_summed_without_counting_a_document_twice() -> None:
    from collections import Counter

    from stages.filter.figures import overlap

    failing = Counter({("a", "b", "c", "d"): 1, ("a", "c"): 2, ("c", "d"): 4, ("d",): 8, (): 16})
    assert overlap(failing, ["a", "b"], "2 others") == {
        ("a", "a"): 3,
        ("a", "b"): 1,
        ("a", "2 others"): 3,
        ("b", "b"): 1,
        ("b", "2 others"): 1,
        ("2 others", "2 others"): 15,
    }


def test_collected_inputs_leave_what_the_ledger_knows(store: Store, decided: Manifest) -> None:
    for role in ("documents", "signals", "views"):
        for reference in decided.inputs[role]:
            collect(store, reference)
    page: dict[str, Any] = by_title(store, decided)
    assert page["Documents that fail two rules"].values[1] == (None, 2, 1)
    assert "collected" in page["Sources, languages and dropped texts"].text
    assert {sample.group for sample in page["Documents by verdict"].samples} == {"kept"}


def test_one_collected_input_of_two_is_counted_as_such(store: Store, decided: Manifest) -> None:
    reference = decided.inputs["documents"][1]
    collect(store, reference)
    page: dict[str, Any] = by_title(store, decided)
    rows = page["Documents kept, by source and snapshot"].rows
    assert [row[:4] for row in rows] == [
        ("web", "crawl", 6, 2),
        ("(collected)", "(collected)", 2, 2),
    ]


def test_nothing_dropped_is_said(store: Store, run_stage: Any, make_documents: Any) -> None:
    manifest = run_stage(
        Filter,
        {"rules": [], "personal_data": "keep"},
        {"documents": [make_documents([["one", "two"]])]},
    )
    page: dict[str, Any] = by_title(store, manifest)
    assert "None" in page["Dropped documents"].text
    assert "Documents that fail two rules" not in page


def test_an_empty_corpus_has_a_page(store: Store, run_stage: Any, make_documents: Any) -> None:
    manifest = run_stage(
        Filter, {"rules": [], "personal_data": "keep"}, {"documents": [make_documents([[]])]}
    )
    page: dict[str, Any] = by_title(store, manifest)
    assert page["Documents and characters kept"].rows[0] == ("documents", 0, 0, 0)
    assert "Documents by verdict" not in page
