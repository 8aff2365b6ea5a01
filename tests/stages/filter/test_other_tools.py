"""docs/how-to/other-tools.md: its blocks of Python read what `filter` wrote."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from copies_by_hand import Given
from gopher_rows import QUALITY, document, quality

from stages.engine import Input

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "other-tools.md"
Make = Callable[..., Given]


@pytest.fixture
def outputs(given: Make, make_documents: Make, decide: Any, store: Any) -> dict[str, Path]:
    """The folders of a corpus of two shards and of its ledger."""
    documents = make_documents([[document("a"), document("b")], [document("c")]])
    rows = [[quality("a"), quality("b", words=12.0)], [quality("c")]]
    signals = given("signals", {f"0000{number}.parquet": one for number, one in enumerate(rows)})
    manifest, *_ = decide(QUALITY, documents=documents, signals=signals)
    folders = {}
    for output in ("documents", "ledger"):
        found = Input.from_manifest(store, manifest, output)
        path = found.files[0].path
        folders[output] = Path(str(found.local_path(path)).removesuffix(path))
    return folders


@pytest.fixture
def blocks(outputs: dict[str, Path]) -> list[str]:
    text = PAGE.read_text().replace("FOLDER", str(outputs["documents"]))
    text = text.replace("LEDGER", str(outputs["ledger"]))
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


@pytest.mark.full
def test_datasets_reads_the_corpus_in_row_order(
    blocks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = pytest.importorskip("datasets", reason="comes with the packages of development")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    names: dict[str, Any] = {}
    exec(blocks[0], names)
    assert names["corpus"]["doc_id"] == ["a", "c"]


def test_duckdb_counts_reasons(blocks: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    exec(blocks[1], {})
    printed = capsys.readouterr().out
    assert re.search(r"gopher_few_words\s*│\s*1\b", printed)
    assert re.search(r"NULL\s*│\s*2\b", printed)
