"""The search in conversations and preference pairs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from chat_data import conversation, message

from stages.decontaminate.report import scan_chat
from stages.decontaminate.search import TEXTS_AT_ONCE


@pytest.mark.parametrize("rows", [0, 1, TEXTS_AT_ONCE, 2 * TEXTS_AT_ONCE + 1])
def test_texts_are_searched_in_arrays_of_few(rows: int, monkeypatch: Any) -> None:
    """One array of strings holds at most 2 GiB."""
    given: list[pa.ChunkedArray] = []
    monkeypatch.setattr(
        "stages.decontaminate.report.scan_texts", lambda texts, *rest: given.append(texts) or {}
    )
    talks = [conversation(f"{n}", message("user", f"q{n}")) for n in range(rows)]
    item: Any = SimpleNamespace(shard=SimpleNamespace(role="conversations", rows=lambda: talks))
    nothing: Any = None
    scan_chat(item, nothing, index=nothing)
    (texts,) = given
    assert texts.type == pa.string()
    assert texts.to_pylist() == [f"q{n}" for n in range(rows)]
    assert max((len(chunk) for chunk in texts.chunks), default=0) <= TEXTS_AT_ONCE
