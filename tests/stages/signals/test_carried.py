"""What lies beside the documents: pages, their views, and lists from outside, through the stage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from artifacts_schema.errors import InputError
from artifacts_schema.kinds.documents import PAGE_COLUMNS
from artifacts_schema.manifest import Manifest
from stages.engine.page import Artifact, BarFigure, make_page
from stages.signals.columns import (
    COPIED,
    PAGE_SIGNALS,
    ColumnChoice,
    choose_signals,
    copy_page_columns,
)
from stages.signals.stage import Signals

ROWS: list[list[dict[str, Any]]] = [
    [
        {"text": "first", "url": "https://www.bad.example/sex/webcam"},
        {"text": "It cost cafÃ© and mail jane@corp.com", "url": "https://good.example/"},
    ],
    [{"text": "x = 1\n", "url": "src/third_party/a.py"}],
]
PAGES: list[list[dict[str, Any]]] = [
    [
        {
            "http_status": 200,
            "truncated": "length",
            "robots": "nofollow noindex",
            "ai_opt_out": "gptbot noai",
            "doubt": 0.25,
            "url_repeats": 3,
        },
        {"robots": "noindex:x none-of-these", "licence": "CC-BY-4.0"},
    ],
    [{"programming_language": "Python", "characters_repaired": 7}],
]
Reference = tuple[Manifest, str]


@pytest.fixture
def documents(make_documents: Callable[..., Reference]) -> Reference:
    return make_documents(ROWS)


@pytest.fixture
def beside(given: Any, read_table: Any, documents: Reference) -> Callable[..., Reference]:
    """`beside(kind, rows of each shard)` → a table set with the documents' ids."""

    def make(kind: str, shards: list[list[dict[str, Any]]], drop: int = 0) -> Reference:
        tables = {}
        for number, rows in enumerate(shards):
            path = f"{number:05d}.parquet"
            ids = read_table(*documents, path)["doc_id"].to_pylist()
            blank = {c.name: None if c.type.endswith("?") else 0 for c in PAGE_COLUMNS}
            base = blank if kind == "pages" else {}
            named = zip(ids[drop:], rows[drop:], strict=True)
            tables[path] = [{"doc_id": i, **base, **row} for i, row in named]
        return given(kind, tables)

    return make


def columns(read_table: Any, made: Manifest) -> dict[str, list[Any]]:
    table = read_table(made, "signals")
    return {name: table[name].to_pylist() for name in table.column_names}


def test_what_pages_say_is_carried_and_counted(
    documents: Reference, beside: Any, run_stage: Any, read_table: Any, read_input: Any
) -> None:
    inputs = {"documents": [documents], "pages": [beside("pages", PAGES)]}
    made = run_stage(Signals, {}, inputs)
    found = columns(read_table, made)
    assert found["http_status"] == [200, None, None]
    assert found["truncated"] == ["length", None, None]
    assert found["is_truncated"] == [1, 0, 0]
    assert found["robots_noindex"] == [1, 0, 0]
    assert found["ai_opt_out"] == ["gptbot noai", None, None]
    assert found["ai_opt_out_marks"] == [2, 0, 0]
    assert found["doubt"] == [0.25, None, None]
    assert found["url_repeats"] == [3, None, None]
    assert found["licence"] == [None, "CC-BY-4.0", None]
    assert found["characters_repaired"] == [0, 0, 7]
    assert found["vendored"] == [None, None, 1]
    described = read_input(made, "signals").read_json("signals.json")["columns"]
    assert [c["name"] for c in described] == [
        s.name for s in choose_signals(ColumnChoice(pages=True))
    ]
    assert all(c["description"] and c["unit"] and c["source"] and c["view"] for c in described)


def test_without_them_the_columns_are_absent(
    documents: Reference, run_stage: Any, read_table: Any
) -> None:
    names = set(
        read_table(run_stage(Signals, {}, {"documents": [documents]}), "signals").schema.names
    )
    assert names.isdisjoint(
        {"url_blocked", "url_score", "language"} | {s.name for s in PAGE_SIGNALS}
    )
    assert {"host", "registered_domain", "minified", "secret_count"} <= names


def test_pages_say_which_documents_are_code(
    documents: Reference, beside: Callable[..., Reference], run_stage: Any, read_table: Any
) -> None:
    """And not their addresses: that of the first ends in no language, that of the last in `.py`."""
    pages = beside("pages", [[{"programming_language": "C"}, {}], [{}]])
    made = run_stage(Signals, {"line_rules": []}, {"documents": [documents], "pages": [pages]})
    lengths = columns(read_table, made)["code_max_line_length"]
    assert lengths == [len("first"), None, None]


def test_every_carried_column_is_one_of_pages() -> None:
    assert set(COPIED) <= {column.name for column in PAGE_COLUMNS}


def test_views_are_merged_by_view_then_start(
    documents: Reference, beside: Any, run_stage: Any, read_table: Any
) -> None:
    def cut(start: int, end: int) -> dict[str, Any]:
        return {
            "view": "boilerplate",
            "start": start,
            "end": end,
            "label": "menu",
            "replacement": "",
        }

    spans = [[{"spans": []}, {"spans": [cut(12, 20), cut(0, 7)]}], [{"spans": [cut(0, 1)]}]]
    inputs = {"documents": [documents], "page_views": [beside("views", spans)]}
    views = read_table(run_stage(Signals, {"line_rules": []}, inputs), "views")["spans"].to_pylist()
    assert views[0] == []
    assert [(s["view"], s["start"]) for s in views[1]] == [
        ("boilerplate", 0),
        ("boilerplate", 12),
        ("mojibake", 11),
        ("personal_data", 23),
    ]
    assert views[2] == [cut(0, 1)]


def test_tables_of_other_documents_are_refused(
    documents: Reference, beside: Any, run_stage: Any
) -> None:
    fewer = beside("pages", PAGES, drop=1)
    one_shard = beside("pages", PAGES[:1])
    for pages in (fewer, one_shard):
        with pytest.raises(InputError, match=r"^signals: .*pages"):
            run_stage(Signals, {}, {"documents": [documents], "pages": [pages]})


def test_lists_from_outside_and_two_workers(
    documents: Reference, run_stage: Any, read_table: Any, snapshot: Any, caplog: Any
) -> None:
    lists = {
        "adult/domains": b"bad.example\n",
        "adult/expressions": b"(x|y)\n",
        "soft_words": b"sex\nwebcam\n",
    }
    inputs = {"documents": [documents], "url_lists": snapshot(lists)}
    made = run_stage(Signals, {}, inputs)
    found = columns(read_table, made)
    assert found["host"] == ["www.bad.example", "good.example", None]
    assert found["registered_domain"] == [None, None, None]  # .example is no public suffix
    assert found["url_blocked"] == ["adult", None, None]
    assert found["url_block_lists"] == [1, 0, None]
    assert found["url_soft_words"] == [2, 0, None]
    assert found["url_score"] == [2, 0, None]
    assert "adult/expressions: not a list" in caplog.text
    again = run_stage(Signals, {}, inputs, execution={"workers": 2}, force=True)
    assert [o.digest for o in made.outputs.values()] == [o.digest for o in again.outputs.values()]


def test_a_report_counts_what_is_named(
    documents: Reference, beside: Any, run_stage: Any, snapshot: Any, store: Any
) -> None:
    inputs = {
        "documents": [documents],
        "pages": [beside("pages", PAGES)],
        "url_lists": snapshot({"adult/domains": b"bad.example\n"}),
    }
    page = make_page(Signals, Artifact(store, run_stage(Signals, {}, inputs)))
    drawn = {figure.title: figure for figure in page if isinstance(figure, BarFigure)}
    for title, label in (
        ("Documents by the list that names their address", "adult"),
        ("Documents by programming language", "Python"),
        ("Documents by licence", "CC-BY-4.0"),
        ("Truncated documents", "length"),
    ):
        assert (drawn[title].labels, drawn[title].series[0].values) == ((label,), (1,))
    assert not any("host" in title for title in drawn)


def test_a_repair_gives_way_to_what_must_be_hidden(
    make_documents: Any, run_stage: Any, read_table: Any
) -> None:
    """In the second text a space is part of the mojibake, so its one span covers the address."""
    texts = ["cafÃ© jane@corp.com", "When I firstÂ saw jane@corp.com at the cafÃ©"]
    made = run_stage(Signals, {"line_rules": []}, {"documents": [make_documents([texts])]})
    views = read_table(made, "views")["spans"].to_pylist()
    assert [span["view"] for span in views[0]] == ["mojibake", "personal_data"]
    assert [span["view"] for span in views[1]] == ["personal_data"]
    assert read_table(made, "signals")["mojibake_characters"].to_pylist() == [2, 0]


def test_noindex_and_none_keep_robots_out() -> None:
    directives = ["noindex", "nofollow none", "nofollow", "all", None]
    pages = pa.table(
        {
            **{name: [None] * 5 for name in COPIED},
            "robots": directives,
            "truncated": pa.array([None] * 5, pa.string()),
            "ai_opt_out": pa.array([None] * 5, pa.string()),
        }
    )
    assert copy_page_columns(pages)["robots_noindex"] == [1, 1, 0, 0, 0]
