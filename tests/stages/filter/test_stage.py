from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from copies_by_hand import Given, copies, folder
from gopher_rows import NO_RULES, QUALITY, document, quality

from artifacts_schema.errors import InputError, UsageError
from stages.filter.stage import Filter

Make = Callable[..., Given]


def test_rules_say_the_first_and_all_failures(
    given: Make, make_documents: Make, decide: Any
) -> None:
    documents = make_documents([[document(d) for d in "abcd"]])
    rows = [
        quality("a"),
        quality("b", words=12.0, stop_words=0.0),
        quality("c", alphabetic_word_share=0.5),
        quality("d", words=None),
    ]
    signals = given("signals", {"00000.parquet": rows})
    manifest, kept, told = decide(QUALITY, documents=documents, signals=signals)
    assert [row["doc_id"] for row in kept] == ["a", "d"]
    assert told["b"] == {
        "doc_id": "b",
        "verdict": "dropped",
        "reason": "gopher_few_words",
        "failing": ["gopher_few_words", "gopher_few_stop_words"],
        "value": 12.0,
        "threshold": 50.0,
        "partner": None,
        "edits": 0,
        "characters": 9,
    }
    assert (told["c"]["value"], told["c"]["threshold"]) == (0.5, 0.8)
    assert told["a"] == {
        **told["b"], "doc_id": "a", "verdict": "kept", "reason": None, "failing": [],
        "value": None, "threshold": None,
    }  # fmt: skip
    assert manifest.conservation.model_dump() == {
        "records_in": 4,
        "out": 2,
        "dropped": {"gopher_few_words": 1, "gopher_few_alphabetic_words": 1},
    }
    assert manifest.samples["gopher_few_words"] == ["b 12 against 50"]


def test_thresholds_and_sources_change_what_rules_drop(
    given: Make, make_documents: Make, decide: Any
) -> None:
    rows = [document("a"), document("b", source="code")]
    documents = make_documents([rows])
    signals = given("signals", {"00000.parquet": [quality("a", words=40), quality("b", words=3)]})
    roles = {"documents": documents, "signals": signals}
    _, kept, _ = decide(QUALITY, **roles)
    assert kept == []
    config = {**QUALITY, "rules_by_source": {"code": []}, "thresholds": {"gopher_few_words": 40}}
    _, kept, _ = decide(config, **roles)
    assert [row["doc_id"] for row in kept] == ["a", "b"]


def test_copies_go_in_priority_order_over_inputs(
    given: Make, make_documents: Make, decide: Any
) -> None:
    old = make_documents([[document("a", "A"), document("b", "B")]])
    new = make_documents([[document("c", "C"), document("d", "D")]])
    tables: Any = {
        f"{folder(old)}/00000.parquet": [
            ("a", "a", []),
            ("b", "b", []),
        ],
        f"{folder(new)}/00000.parquet": [
            ("c", "c", [("a", 0.9), ("b", 0.6)]),
            ("d", "b", []),
        ],
    }
    duplicates = copies(given, tables)
    manifest, kept, told = decide(NO_RULES, documents=[old, new], duplicates=duplicates)
    assert [(row["doc_id"], row["text"]) for row in kept] == [("a", "A"), ("b", "B")]
    assert [file.path for file in manifest.outputs["documents"].files] == [
        "00-00000.parquet",
        "01-00000.parquet",
    ]
    assert told["c"]["reason"] == "near_duplicate"
    assert (told["c"]["partner"], told["c"]["threshold"]) == ("a", 0.8)
    assert told["c"]["value"] == pytest.approx(0.9)
    assert (told["d"]["reason"], told["d"]["partner"], told["d"]["value"]) == (
        "exact_duplicate", "b", 1.0,
    )  # fmt: skip
    # b, c and d are one class by the pair at 0.6 and by equality, a by the pair at 0.9.
    assert {row["duplicate_class"] for row in kept} == {"a"}

    _, kept, _ = decide(NO_RULES, documents=[new, old], duplicates=duplicates)
    assert [row["doc_id"] for row in kept] == ["c", "d"]
    config = {**NO_RULES, "duplicates": {"threshold": None, "exact": None}}
    _, kept, _ = decide(config, documents=[old, new], duplicates=duplicates)
    assert [row["doc_id"] for row in kept] == ["a", "b", "c", "d"]
    _, kept, told = decide(NO_RULES, documents=[new], duplicates=duplicates)
    assert [(row["doc_id"], row["duplicate_class"]) for row in kept] == [("c", "a"), ("d", "a")]


def test_rules_come_before_contamination_exclusions_and_copies(
    given: Make, make_documents: Make, decide: Any
) -> None:
    documents = make_documents([[document(d) for d in "abcde"]])
    signals = given(
        "signals",
        {"00000.parquet": [quality(d, words=1 if d == "b" else 99) for d in "abcde"]},
    )
    hits = {"b": 7, "c": 2}
    contamination = given(
        "contamination",
        {
            f"{folder(documents)}/00000.parquet": [
                {"doc_id": d, "ngrams": 100, "ngrams_hit": hits.get(d, 0), "hits": []}
                for d in "abcde"
            ]
        },
    )
    exclusions = [
        given("exclusions", {"00000.parquet": [{"doc_id": d, "reason": "forget"} for d in ids]})
        for ids in ("dx", "cd")
    ]
    path = f"{folder(documents)}/00000.parquet"
    duplicates = copies(given, {path: [(d, "a", []) for d in "abcde"]})
    manifest, kept, told = decide(
        QUALITY,
        documents=documents,
        signals=signals,
        contamination=contamination,
        exclusions=exclusions,
        duplicates=duplicates,
    )
    assert [row["doc_id"] for row in kept] == ["a"]
    assert {d: told[d]["failing"] for d in "abcde"} == {
        "a": [],
        "b": ["gopher_few_words", "contamination", "exact_duplicate"],
        "c": ["contamination", "exclusion", "exact_duplicate"],
        "d": ["exclusion", "exact_duplicate"],
        "e": ["exact_duplicate"],
    }
    assert (told["c"]["value"], told["c"]["threshold"]) == (2.0, 1.0)
    assert (told["d"]["value"], told["d"]["threshold"]) == (None, None)
    assert manifest.conservation.dropped == {
        "gopher_few_words": 1, "contamination": 1, "exclusion": 1, "exact_duplicate": 1,
    }  # fmt: skip


def test_kept_text_is_redacted_and_edits_are_counted(
    given: Make, make_documents: Make, decide: Any
) -> None:
    texts = ["write to ada@example.net or ada@example.net", "nothing here", "  cut  "]
    rows = [document(d, text) for d, text in zip("abc", texts, strict=True)]
    documents = make_documents([rows])

    def span(view: str, start: int, end: int, replacement: str) -> dict[str, Any]:
        return {"view": view, "start": start, "end": end, "label": "", "replacement": replacement}

    spans = [
        [span("personal_data", s, s + 15, "email@example.com") for s in (9, 28)],
        [span("lines", 0, 3, "")],
        [span("lines", 2, 5, "")],
    ]
    views = given(
        "views",
        {
            "00000.parquet": [
                {"doc_id": d, "spans": found} for d, found in zip("abc", spans, strict=True)
            ]
        },
    )
    manifest, kept, told = decide(NO_RULES, documents=documents, views=views)
    assert [row["text"] for row in kept] == [
        "write to email@example.com or email@example.com", *texts[1:],
    ]  # fmt: skip
    assert [told[d]["edits"] for d in "abc"] == [2, 0, 0]
    assert [told[d]["characters"] for d in "abc"] == [43, 12, 7]
    assert manifest.counts["edits"] == 2

    keep = {**NO_RULES, "personal_data": "keep"}
    config = {**keep, "views": ["lines"]}
    _, kept, told = decide(config, documents=documents, views=views)
    assert [row["text"] for row in kept] == [texts[0], "hing here"]
    assert told["c"]["reason"] == "empty_after_edits"
    _, kept, _ = decide({**keep, "views": []}, documents=documents, views=views)
    assert [row["text"] for row in kept] == texts


def test_shards_and_workers_change_no_decision(
    given: Make, make_documents: Make, decide: Any, run_stage: Any, read_table: Any
) -> None:
    ids = [f"{i:02d}" for i in range(12)]
    pairs = {"03": [("00", 0.9)], "07": [("03", 0.95)], "08": [("07", 0.85), ("01", 0.8)]}
    outcomes = []
    for sizes in ([12], [5, 7], [1, 3, 8]):
        starts = [sum(sizes[:k]) for k in range(len(sizes) + 1)]
        parts = {f"{k:05d}.parquet": ids[starts[k] : starts[k + 1]] for k in range(len(sizes))}
        documents = make_documents([[document(d) for d in part] for part in parts.values()])
        signals = given(
            "signals",
            {
                p: [quality(d, words=1 if d == "05" else 60) for d in part]
                for p, part in parts.items()
            },
        )
        duplicates = copies(
            given,
            {
                f"{folder(documents)}/{p}": [(d, d, pairs.get(d, [])) for d in part]
                for p, part in parts.items()
            },
        )
        roles = {"documents": documents, "signals": signals, "duplicates": duplicates}
        manifest, kept, told = decide(QUALITY, **roles)
        outcomes.append((kept, told))
    inputs = {role: [found] for role, found in roles.items()}
    assert (
        run_stage(
            Filter, {**QUALITY, "personal_data": "keep"}, inputs, {"workers": 2}, force=True
        ).outputs
        == manifest.outputs
    )
    assert outcomes[0] == outcomes[1] == outcomes[2]
    # 07 stays: its only partner, 03, is gone; 08 goes for the nearer of 07 and 01.
    dropped = {
        d: row["partner"] for d, row in outcomes[0][1].items() if row["verdict"] == "dropped"
    }
    assert dropped == {"03": "00", "05": None, "08": "07"}


def test_side_tables_of_other_documents_are_refused(
    given: Make, make_documents: Make, decide: Any
) -> None:
    one = make_documents([[document("a")]])
    two = make_documents([[document("b")]])
    signals = given("signals", {"00000.parquet": [quality("b")]})
    with pytest.raises(InputError, match="signals"):
        decide(QUALITY, documents=one, signals=signals)
    with pytest.raises(InputError, match=r"'signals'.*'documents'"):
        decide(QUALITY, documents=[one, two], signals=signals)
    duplicates = copies(given, {f"{folder(one)}/00000.parquet": [("a", "a", [])]})
    with pytest.raises(InputError, match="given_documents"):
        decide(NO_RULES, documents=two, duplicates=duplicates)
    with pytest.raises(InputError, match="doc_id"):
        decide(NO_RULES, documents=[one, one])


def test_what_was_not_measured_cannot_be_asked_for(
    given: Make, make_documents: Make, decide: Any
) -> None:
    documents = make_documents([[document("a")]])
    signals = given("signals", {"00000.parquet": [{"doc_id": "a", "words": 99.0}]})
    with pytest.raises(UsageError, match="signal 'mean_word_length'"):
        decide(QUALITY, documents=documents, signals=signals)
    with pytest.raises(UsageError, match="signals"):
        decide(QUALITY, documents=documents)
    duplicates = copies(given, {f"{folder(documents)}/00000.parquet": [("a", "a", [])]})
    config = {**NO_RULES, "duplicates": {"threshold": 0.4}}
    with pytest.raises(UsageError, match=r"0\.4.*0\.5"):
        decide(config, documents=documents, duplicates=duplicates)


def test_personal_data_is_redacted_dropped_or_kept_by_sort(
    given: Make, make_documents: Make, decide: Any
) -> None:
    texts = ["mail a@b.co", "call 030 123", "pay DE89", "mail c@d.co, call 1"]
    rows = [document(d, text) for d, text in zip("abcd", texts, strict=True)]
    sorts = [[("email", 5, 11)], [("phone", 5, 12)], [("iban", 4, 8)],
             [("email", 5, 11), ("phone", 18, 19)]]  # fmt: skip
    spans = [
        [
            {"view": "personal_data", "start": s, "end": e, "label": label, "replacement": "*"}
            for label, s, e in found
        ]
        for found in sorts
    ]
    views = [{"doc_id": d, "spans": found} for d, found in zip("abcd", spans, strict=True)]
    counts = [{"doc_id": d, "iban_count": float(d == "c")} for d in "abcd"]
    roles = {
        "documents": make_documents([rows]),
        "signals": given("signals", {"00000.parquet": counts}),
        "views": given("views", {"00000.parquet": views}),
    }
    policy = {"iban": "drop", "phone": "keep"}
    _, kept, told = decide({**NO_RULES, "personal_data": policy}, **roles)
    assert [row["text"] for row in kept] == ["mail *", "call 030 123", "mail *, call 1"]
    assert [told[d]["edits"] for d in "abcd"] == [1, 0, 0, 1]
    assert (told["c"]["reason"], told["c"]["value"], told["c"]["threshold"]) == (
        "personal_data_iban", 1.0, 0.0,
    )  # fmt: skip
    _, kept, _ = decide(NO_RULES, **roles)
    assert [row["text"] for row in kept][2:] == ["pay *", "mail *, call *"]
    with pytest.raises(UsageError, match="'card_count'"):
        decide({**NO_RULES, "personal_data": {"card": "drop"}}, **roles)


def test_rules_of_edited_text_warn_where_the_edits_are_not_made(
    given: Make, make_documents: Make, decide: Any, caplog: pytest.LogCaptureFixture
) -> None:
    view = "c4@fineweb"
    signals = {"sentences": 9.0, "lorem_ipsum_lines": 0.0, "curly_brace_lines": 0.0}
    row = {"doc_id": "a", **{f"{view}/{name}": value for name, value in signals.items()}}
    span = {"view": view, "start": 4, "end": 9, "label": "short", "replacement": ""}
    roles = {
        "documents": make_documents([[document("a", "some text")]]),
        "signals": given("signals", {"00000.parquet": [row]}),
        "views": given("views", {"00000.parquet": [{"doc_id": "a", "spans": [span]}]}),
    }
    _, kept, _ = decide({"rules": [view]}, **roles)
    assert kept[0]["text"] == "some text"
    assert "rules judge the text after view 'c4@fineweb'" in caplog.text
    caplog.clear()
    _, kept, _ = decide({"rules": [view], "views": [view, "personal_data", "secrets"]}, **roles)
    assert kept[0]["text"] == "some"
    assert "rules judge" not in caplog.text


def test_documents_without_rows_and_without_side_tables_pass_through(
    given: Make, make_documents: Make, decide: Any
) -> None:
    documents = make_documents([[], [document("a")]])
    manifest, kept, _ = decide(NO_RULES, documents=documents)
    assert [row["doc_id"] for row in kept] == ["a"]
    assert kept[0]["duplicate_class"] == "a"
    assert manifest.conservation.records_in == 1
