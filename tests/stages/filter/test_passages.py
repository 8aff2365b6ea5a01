"""Passages that an earlier document holds too: cut where that one stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from copies_by_hand import copies, folder
from gopher_rows import NO_RULES, document
from hypothesis import HealthCheck, settings
from hypothesis import given as drawn
from hypothesis import strategies as st

from artifacts_schema.errors import InputError, UsageError
from stages.dedup import passage_units
from stages.filter.config import PASSAGES
from stages.filter.stage import Filter

Make = Callable[..., Any]
LINES = "duplicate_lines@ccnet"
CONFIG = {**NO_RULES, "views": [LINES, "personal_data", "secrets"]}


def span(start: int, end: int, label: str, view: str = LINES, instead: str = "") -> dict[str, Any]:
    return {"view": view, "start": start, "end": end, "label": label, "replacement": instead}


def passages(given: Make, tables: dict[str, dict[str, list[Any]]]) -> Any:
    """Views in folders: spans of each document, by path."""
    rows = {
        path: [{"doc_id": doc_id, "spans": spans} for doc_id, spans in table.items()]
        for path, table in tables.items()
    }
    return given("views", rows)


@pytest.fixture
def four(given: Make, make_documents: Make) -> dict[str, Any]:
    """b repeats a line of a and one of c; c is excluded; d repeats itself, and all of a."""
    texts = {"a": "one line", "b": "one line, two", "c": "two", "d": "ha ha one line"}
    documents = make_documents([[document(d, text) for d, text in texts.items()]])
    spans = {
        "a": [],
        "b": [span(0, 8, "a"), span(10, 13, "c")],
        "c": [],
        "d": [span(3, 5, "d"), span(6, 14, "a")],
    }
    return {
        "documents": documents,
        "views": passages(given, {f"{folder(documents)}/00000.parquet": spans}),
        "exclusions": given("exclusions", {"0.parquet": [{"doc_id": "c", "reason": "x"}]}),
    }


def test_the_views_are_those_that_dedup_writes() -> None:
    names = (passage_units.LINES_VIEW, passage_units.SENTENCES_VIEW, passage_units.SUBSTRINGS_VIEW)
    assert names == PASSAGES


def test_a_passage_is_cut_where_its_first_holder_stays(four: Any, decide: Any) -> None:
    manifest, kept, told = decide(CONFIG, **four)
    assert [row["text"] for row in kept] == ["one line", ", two", "ha  "]
    assert [told[d]["edits"] for d in "abd"] == [0, 1, 2]
    counts = {n: manifest.counts[n] for n in ("passages_cut", "passages_left", "documents_spared")}
    assert counts == {"passages_cut": 3, "passages_left": 1, "documents_spared": 0}
    # With c, the line of c goes too; with no view named, nothing does, and nothing is counted.
    _, kept, _ = decide(CONFIG, **{role: four[role] for role in ("documents", "views")})
    assert [row["text"] for row in kept] == ["one line", ", ", "two", "ha  "]
    manifest, kept, _ = decide({**CONFIG, "views": ["personal_data", "secrets"]}, **four)
    assert [row["text"] for row in kept] == ["one line", "one line, two", "ha ha one line"]
    assert "passages_cut" not in manifest.counts


def test_a_copy_of_the_holder_is_not_the_holder(given: Make, four: Any, decide: Any) -> None:
    """d goes as a copy of a, whose passages stay; b's line is cut for a, not for what goes."""
    path = f"{folder(four['documents'])}/00000.parquet"
    rows = [("a", "a", [("d", 0.9)]), ("b", "b", []), ("c", "c", []), ("d", "d", [("a", 0.9)])]
    duplicates = copies(given, {path: rows})
    _, kept, _ = decide(CONFIG, **four, duplicates=duplicates)
    assert [row["text"] for row in kept] == ["one line", ", two"]
    config = {**CONFIG, "duplicates": {"priority": [{"by": "length"}]}}
    _, kept, _ = decide(config, **four, duplicates=duplicates)
    assert [row["text"] for row in kept] == ["one line, two", "ha  one line"]


def test_a_document_that_passages_would_empty_keeps_its_text(
    given: Make, make_documents: Make, decide: Any
) -> None:
    texts = {"a": "one", "b": " one ", "c": "x@y.co one", "d": "cut one"}
    documents = make_documents([[document(d, text) for d, text in texts.items()]])
    spans = {
        "a": [],
        "b": [span(1, 4, "a")],
        "c": [span(7, 10, "a"), span(0, 6, "email", "personal_data", "@")],
        "d": [span(4, 7, "a"), span(0, 3, "short", "lines")],
    }
    views = passages(given, {f"{folder(documents)}/00000.parquet": spans})
    config = {**CONFIG, "views": [LINES, "personal_data", "secrets", "lines"]}
    manifest, kept, told = decide(config, documents=documents, views=views)
    # d would be empty by both views together, and not by `lines` alone: that one is made.
    assert [row["text"] for row in kept] == ["one", " one ", "@ ", " one"]
    assert [told[d]["edits"] for d in "abcd"] == [0, 0, 2, 1]
    assert manifest.counts["documents_spared"] == 2
    assert manifest.counts["passages_left"] == 2


def test_passages_lie_beside_other_views_of_the_same_documents(
    given: Make, make_documents: Make, decide: Any
) -> None:
    """Plain tables in the order of the documents, folders wherever they stand."""
    one = make_documents([[document("a", "mail x@y.co now")]])
    two = make_documents([[document("b", "now x@y.co mail")]])

    def mail(doc_id: str, start: int) -> Any:
        found = [span(start, start + 6, "email", "personal_data", "@")]
        return given("views", {"00000.parquet": [{"doc_id": doc_id, "spans": found}]})

    plain = [mail("a", 5), mail("b", 4)]
    of_one = passages(given, {f"{folder(one)}/00000.parquet": {"a": []}})
    of_two = passages(given, {f"{folder(two)}/00000.parquet": {"b": [span(0, 3, "a")]}})
    more = passages(
        given, {f"{folder(two)}/00000.parquet": {"b": [span(11, 15, "a", PASSAGES[2])]}}
    )
    roles = {"documents": [one, two], "views": [of_two, *plain, more, of_one]}
    config = {**CONFIG, "views": ["personal_data", "secrets", LINES, PASSAGES[2]]}
    _, kept, _ = decide(config, **roles)
    assert [row["text"] for row in kept] == ["mail @ now", " @ "]
    with pytest.raises(InputError, match="views") as error:
        decide(config, **{**roles, "views": [*plain, of_two]})
    assert one[0].key[:12] in error.value.what
    with pytest.raises(InputError, match="'views'"):
        decide(config, **{**roles, "views": [plain[0], of_one, of_two]})
    with pytest.raises(UsageError, match=LINES):
        decide(config, **{**roles, "views": plain})


def test_a_holder_that_an_earlier_run_kept_is_a_holder(
    given: Make, make_documents: Make, decide: Any
) -> None:
    old = make_documents([[document("a", "one"), document("b", "two")]])
    new = make_documents([[document("c", "one two three")]])
    duplicates = [
        copies(given, {f"{folder(d)}/00000.parquet": [(i, i, []) for i in ids]})
        for d, ids in ((old, "ab"), (new, "c"))
    ]
    excluded = given("exclusions", {"0.parquet": [{"doc_id": "b", "reason": "x"}]})
    first, _, _ = decide(NO_RULES, documents=old, duplicates=duplicates[0], exclusions=excluded)
    spans = {"c": [span(0, 3, "a"), span(4, 7, "b"), span(8, 13, "z")]}
    views = passages(given, {f"{folder(new)}/00000.parquet": spans})
    roles = {"documents": new, "views": views, "duplicates": duplicates}
    _, kept, _ = decide(CONFIG, **roles, ledger=(first, "ledger"))
    assert [row["text"] for row in kept] == [" two three"]
    _, kept, _ = decide(CONFIG, **roles)
    assert [row["text"] for row in kept] == ["one two three"]


@pytest.mark.full
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@drawn(st.data())
def test_no_word_is_lost_from_the_corpus(request: pytest.FixtureRequest, data: Any) -> None:
    """Each word that a kept document had is still in some kept document, in any cut into shards.

    Words are passages, held first by the first document that has them.
    """
    given, make_documents, run_stage, read_table = (
        request.getfixturevalue(name)
        for name in ("given", "make_documents", "run_stage", "read_table")
    )
    words = st.lists(st.sampled_from(["alfa", "beta", "gama", "dlta"]), min_size=1, max_size=4)
    texts = data.draw(st.lists(words, min_size=2, max_size=7))
    gone = data.draw(st.sets(st.integers(0, len(texts) - 1)))
    first: dict[str, int] = {}
    rows, spans = [], {}
    for number, found in enumerate(texts):
        rows.append(document(str(number), " ".join(found)))
        spans[str(number)] = [
            span(5 * place, 5 * place + 4, str(first[word]))
            for place, word in enumerate(found)
            if word in first or first.setdefault(word, number) != number or word in found[:place]
        ]
    outcomes = []
    for cut in (len(rows), len(rows) // 2):
        documents = make_documents([rows[:cut], rows[cut:]])
        tables = {
            f"{folder(documents)}/0000{n}.parquet": {r["doc_id"]: spans[r["doc_id"]] for r in part}
            for n, part in enumerate((rows[:cut], rows[cut:]))
        }
        excluded = [{"doc_id": str(n), "reason": "x"} for n in sorted(gone)]
        manifest = run_stage(
            Filter,
            {**NO_RULES, "views": [LINES], "personal_data": "keep"},
            {
                "documents": [documents],
                "views": [passages(given, tables)],
                "exclusions": [given("exclusions", {"0.parquet": excluded})],
            },
        )
        outcomes.append(
            {row["doc_id"]: row["text"] for row in read_table(manifest, "documents").to_pylist()}
        )
    assert outcomes[0] == outcomes[1]
    kept = outcomes[0]
    had = {word for n, found in enumerate(texts) if n not in gone for word in found}
    assert {word for text in kept.values() for word in text.split()} == had
    for n, found in enumerate(texts):
        if n in gone:
            continue
        stay = [w for place, w in enumerate(found)
                if not spans_at(spans[str(n)], place) or
                int(spans_at(spans[str(n)], place)["label"]) in gone - {n}]  # fmt: skip
        assert kept[str(n)].split() == (stay or found)


def spans_at(spans: list[Any], place: int) -> Any:
    """The span of the word at `place`, if it is one."""
    return next((one for one in spans if one["start"] == 5 * place), None)
