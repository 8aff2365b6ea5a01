"""What lies beside the documents: what pages say, boilerplate as spans, files read in parts."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from artifacts_schema.manifest import Manifest
from stages.filter.edits import Spans, apply_edits, select_edits
from stages.ingest.stage import Ingest

Maker = Callable[..., bytes]
Snapshot = Callable[..., list[tuple[Manifest, str]]]
Run = Callable[..., Manifest]
Read = Callable[..., Any]

MIT = """Permission is hereby granted, free of charge, to any person obtaining a copy of this
software and associated documentation files (the "Software"), to deal in the Software without
restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, subject to the following conditions: The
above copyright notice and this permission notice shall be included in all copies. THE SOFTWARE IS
PROVIDED "AS IS"."""


def test_pages_tell_row_for_row_what_records_and_pages_say(
    warc_record: Maker, article: str, snapshot: Snapshot, run_stage: Run, read_table: Read
) -> None:
    head = (
        "<head><meta name=robots content='noindex, noai'><meta name=author content='Jo Fox'>"
        "<link rel=license href='https://creativecommons.org/licenses/by/4.0/'>"
    )
    marked = article.replace("<head>", head)
    packed = gzip.compress(marked.encode(), mtime=0)
    data = b"".join(
        [
            warc_record(article, uri="http://a.example/1"),
            warc_record(packed, uri="https://A.example/1#x", http={"Content-Encoding": "gzip"}),
            warc_record(article, status="404 Not Found", uri="http://a.example/2"),
            warc_record(article.encode("utf-16"), uri="http://a.example/2", content_type=""),
        ]
    )
    made = run_stage(Ingest, {}, {"snapshot": snapshot({"a.warc": data})})
    documents, pages = read_table(made, "documents"), read_table(made, "pages")
    assert pages["doc_id"].to_pylist() == documents["doc_id"].to_pylist()
    first, second, third = pages.to_pylist()
    assert (first["http_status"], first["declared_type"], first["sniffed_type"]) == (
        200,
        "text/html",
        "text/html",
    )
    assert (first["extractor"], first["encodings"], first["robots"]) == ("blocks", None, None)
    assert first["body_bytes"] == len(article.encode())
    assert (second["encodings"], second["body_bytes"]) == ("gzip", len(marked.encode()))
    assert (second["robots"], second["ai_opt_out"]) == ("noai noindex", "noai")
    assert (second["author"], second["licence"]) == ("Jo Fox", "CC-BY-4.0")
    assert (third["charset"], third["charset_told_by"]) == ("utf-16-le", "bom")
    # The URL of a record that was turned away is no document's.
    assert pages["url_repeats"].to_pylist() == [0, 1, 0]
    assert made.counts["url_repeats"] == 1


def test_repeated_urls_are_counted_over_files_and_are_null_where_there_is_no_url(
    warc_record: Maker, article: str, snapshot: Snapshot, run_stage: Run, read_table: Read
) -> None:
    page = warc_record(article, uri="http://a.example/same")
    files = {"a.warc": page, "b.warc": page * 2, "c.jsonl": b'{"text": "no address"}\n'}
    made = run_stage(Ingest, {}, {"snapshot": snapshot(files)}, {"workers": 2})
    assert read_table(made, "pages")["url_repeats"].to_pylist() == [0, 1, 2, None]


def test_boilerplate_that_is_kept_is_what_its_spans_cut(
    warc_record: Maker, article: str, snapshot: Snapshot, run_stage: Run, read_table: Read
) -> None:
    given = snapshot({"a.warc": warc_record(article)})
    cut = run_stage(Ingest, {}, {"snapshot": given})
    kept = run_stage(Ingest, {"boilerplate": "keep"}, {"snapshot": given})
    assert read_table(cut, "views")["spans"].to_pylist() == [[]]
    (text,) = read_table(kept, "documents")["text"].to_pylist()
    assert "All rights reserved" in text
    spans = read_table(kept, "views")["spans"]
    (labelled,) = spans.to_pylist()
    assert {span["view"] for span in labelled} == {"boilerplate"}
    assert {span["label"] for span in labelled} >= {"navigation", "footer"}
    edits = select_edits(Spans.from_columns(spans), ["boilerplate"]).for_row(0)
    (main,) = read_table(cut, "documents")["text"].to_pylist()
    assert apply_edits(text, edits).split() == main.split()


@pytest.mark.full
@pytest.mark.parametrize("packed", [True, False])
def test_a_huge_archive_read_in_parts_gives_what_it_gives_in_one_piece(
    warc_record: Maker,
    article: str,
    snapshot: Snapshot,
    run_stage: Run,
    read_table: Read,
    packed: bool,
) -> None:
    """The second half lies in a payload that looks like records, so a part begins wrongly in it."""
    draw = random.Random(5)
    words = ["".join(draw.choices("abcdefghij", k=7)) for _ in range(5_000)]
    noise = [f"<p>{' '.join(draw.choices(words, k=9_000))}.</p><p>" for _ in range(30)]
    pages = [
        warc_record(article.replace("<p>", text, 1), uri=f"http://a.example/{number}")
        for number, text in enumerate(noise)
    ]
    nested = warc_record(type="metadata", block=b"".join(pages[15:]) * 2)
    records = [*pages, nested, *pages[:3]]
    data = b"".join(gzip.compress(r, 1, mtime=0) if packed else r for r in records)
    given = snapshot({"a.warc.gz" if packed else "a.warc": data})
    whole = run_stage(Ingest, {}, {"snapshot": given})
    parts = run_stage(Ingest, {"split_bytes": 1_000_000}, {"snapshot": given}, {"workers": 2})
    assert len(parts.outputs["documents"].files) > 2
    for name in ("documents", "rejected", "pages"):
        assert read_table(parts, name).equals(read_table(whole, name)), name
    assert parts.conservation == whole.conservation
    if not packed:
        again = {"ignored_metadata": 1, "documents": 33}
        assert {name: parts.counts[name] for name in again} == again


def test_code_gets_the_licence_of_the_nearest_folder_or_its_own(
    snapshot: Snapshot, run_stage: Run, read_table: Read
) -> None:
    files = {
        "one/LICENSE": MIT.encode(),
        "one/src/a.py": b"x = 1\n",
        "two/b.py": b"# SPDX-License-Identifier: Apache-2.0\nx = 2\n",
        "two/c.py": b"x = 3\n",
    }
    made = run_stage(Ingest, {}, {"snapshot": snapshot(files)})
    documents, pages = read_table(made, "documents"), read_table(made, "pages")
    told = dict(zip(documents["url"].to_pylist(), pages.to_pylist(), strict=True))
    assert told["one/src/a.py"]["licence"] == "MIT"
    assert told["two/b.py"]["licence"] == "Apache-2.0"
    assert told["two/c.py"]["licence"] is None
    assert told["two/c.py"]["programming_language"] == "python"


def test_a_wat_gives_title_and_description_where_it_is_asked_for(
    warc_record: Maker, snapshot: Snapshot, run_stage: Run, read_table: Read
) -> None:
    html = {
        "Head": {
            "Title": "Of foxes",
            "Metas": [{"name": "description", "content": "Where they live."}],
        },
        "Links": [{"path": "A@/href", "url": "/den"}],
    }
    response = {"Response-Message": {"Status": "200"}, "HTML-Metadata": html}
    envelope = {
        "WARC-Header-Metadata": {"WARC-Type": "response", "WARC-Target-URI": "http://a.example/"},
        "Payload-Metadata": {"HTTP-Response-Metadata": response},
    }
    json_type = {"Content-Type": "application/json"}
    blocks = [json.dumps({"Envelope": envelope}).encode(), b"{", b'{"Envelope": {"a": 1}}']
    data = b"".join(warc_record(type="metadata", block=block, warc=json_type) for block in blocks)
    config = {"format": "wat", "max_bad_share": 0.5}
    made = run_stage(Ingest, config, {"snapshot": snapshot({"a.warc.wat": data})})
    (document,) = read_table(made, "documents").to_pylist()
    assert (document["title"], document["text"]) == ("Of foxes", "Of foxes\nWhere they live.")
    assert made.counts["rejected_malformed_json"] == 1
    assert made.counts["ignored_metadata"] == 1


def test_a_hung_page_is_turned_away_and_the_stage_goes_on(
    warc_record: Maker, article: str, snapshot: Snapshot, run_stage: Run, read_table: Read
) -> None:
    """trafilatura takes time by the square of the tables of a page: 30 s for these 20,000."""
    bad = "<html><body>" + "<table><tr><td>x y</td></tr></table>" * 20_000
    good = warc_record(article)
    data = good + warc_record(bad, uri="http://a.example/bad") + good
    config = {"extractor": "trafilatura", "max_bad_share": 0.5}
    given = {"snapshot": snapshot({"a.warc": data})}
    made = run_stage(Ingest, config, given, {"page_seconds": 3, "workers": 1})
    (rejected,) = read_table(made, "rejected").to_pylist()
    assert (rejected["reason"], rejected["url"]) == ("hung", "http://a.example/bad")
    assert made.counts["documents"] == 2
