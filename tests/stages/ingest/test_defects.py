"""Every defect that an archive can have, through the stage: what it costs, and what it does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from archives.defect import Defect
from archives.table import DEFECTS

from artifacts_schema.manifest import Manifest
from stages.ingest.stage import Ingest

Rows = dict[str, list[dict[str, Any]]]
_RUN: dict[str, Any] = {}


@pytest.fixture
def outcome(
    snapshot: Callable[..., list[Any]], run_stage: Callable[..., Manifest], read_table: Any
) -> dict[str, Any]:
    """What one run of the stage over all archives gave: its manifest, and rows by kind and file.

    Made by the first test that asks for it, for all.
    """
    if not _RUN:
        files = {defect.file: defect.archive() for defect in DEFECTS.values()}
        config = {"max_bad_share": 1.0, "truncated": "keep", "plain_text": True}
        made = run_stage(Ingest, config, {"snapshot": snapshot(files)}, {"page_seconds": 5})
        _RUN["manifest"] = made
        for kind in ("documents", "rejected"):
            rows: Rows = {}
            for row in read_table(made, kind).to_pylist():
                rows.setdefault(row["origin_file"], []).append(row)
            _RUN[kind] = rows
        if "pages" in made.outputs:
            _RUN["pages"] = {r["doc_id"]: r for r in read_table(made, "pages").to_pylist()}
    return _RUN


@pytest.mark.parametrize("defect", DEFECTS.values(), ids=DEFECTS.keys())
def test_a_defect_costs_what_it_must_and_no_more(defect: Defect, outcome: dict[str, Any]) -> None:
    documents = outcome["documents"].get(defect.file, [])
    rejected = outcome["rejected"].get(defect.file, [])
    told = [(row["reason"], row["detail"]) for row in rejected]
    assert Counter(row["reason"] for row in rejected) == Counter(defect.outcome.rejected), told
    assert len(documents) == defect.documents, told
    neighbours = [d for d in documents if (d["url"] or "").startswith("http://good.example/")]
    assert defect.alone or len(neighbours) >= 2
    if defect.outcome.text:
        texts = ["".join(row["text"].split()) for row in documents if row not in neighbours]
        wanted = "".join(defect.outcome.text.split())
        assert defect.name.startswith("warc_1_0") or any(wanted in text for text in texts), texts


@pytest.mark.parametrize(
    "defect", [d for d in DEFECTS.values() if d.outcome.columns], ids=lambda d: d.name
)
def test_what_a_record_says_of_itself_is_told(defect: Defect, outcome: dict[str, Any]) -> None:
    documents = outcome["documents"].get(defect.file, [])
    pages = [
        outcome["pages"][row["doc_id"]]
        for row in documents
        if not (row["url"] or "").startswith("http://good.example/")
    ]
    columns = defect.outcome.columns
    told = [{name: page[name] for name in columns} for page in pages]
    assert columns in told, told


def test_every_record_is_accounted_for(outcome: dict[str, Any]) -> None:
    made = outcome["manifest"]
    expected = Counter[str]()
    for defect in DEFECTS.values():
        expected.update(defect.outcome.rejected)
    assert made.conservation is not None
    assert made.conservation.dropped == dict(expected)
    assert made.conservation.out == sum(defect.documents for defect in DEFECTS.values())
    ignored = Counter[str]()
    for defect in DEFECTS.values():
        ignored.update(defect.outcome.ignored)
    assert {k: made.counts[f"ignored_{k}"] for k in ignored if k not in ("warcinfo",)} == {
        k: n for k, n in ignored.items() if k not in ("warcinfo",)
    }


def test_no_archive_writes_outside_the_store(outcome: dict[str, Any], tmp_path: Path) -> None:
    for folder in (*tmp_path.parents, Path.cwd()):
        assert not list(folder.glob("*ingot-escape*"))
    assert not list(tmp_path.rglob("*ingot-escape*"))
