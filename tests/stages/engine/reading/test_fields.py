"""Rows under other field names: the error says which there are and which setting maps them."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from artifacts_schema.errors import InputError
from artifacts_schema.store import Store
from stages.engine.reading.row import rename_hint, suggest_renames
from stages.examples.stage import Benchmarks, Conversations, Preferences
from stages.ingest.stage import Ingest

TALK = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
CASES = [
    (Ingest, {"body": "some text", "id": 1}, "text_field: body", "text_field"),
    (Ingest, {"text": 5, "prose": "longer than it", "id": "x"}, "text_field: prose", "text_field"),
    (Conversations, {"dialog": TALK, "id": 1}, "rename: {dialog: messages}", "rename"),
    (Conversations, {"query": "q", "reply": "a"}, "{query: prompt, reply: completion}", "rename"),
    (Preferences, {"prompt": "q", "accepted": "a", "loser": "b"}, "accepted: chosen", "rename"),
    (Preferences, {"Query": "q", "chosen": "a", "rejected": "b"}, "Query: prompt", "rename"),
    (Benchmarks, {"stem": "q", "candidates": ["a", "b"]}, "stem: question", "rename"),
]


def as_jsonl(row):
    return {"rows.jsonl": b"".join(json.dumps(row).encode() + b"\n" for _ in range(3))}


def as_parquet(row):
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([row] * 3), sink)
    return {"rows.parquet": sink.getvalue()}


@pytest.fixture
def store(tmp_path):
    return Store.open(str(tmp_path / "store"))


@pytest.mark.parametrize("files", [as_jsonl, as_parquet])
@pytest.mark.parametrize(("stage", "row", "guess", "setting"), CASES)
def test_rows_under_other_names_name_the_fields_and_the_setting(
    run_stage, snapshot, stage, row, guess, setting, files
):
    with pytest.raises(InputError) as found:
        run_stage(stage, {}, {"snapshot": snapshot(files(row))})
    assert guess in found.value.what
    assert all(name in found.value.what for name in row.keys() - {"chosen", "rejected"})
    assert setting in found.value.hint


def test_the_guess_makes_the_stage_read_the_rows(run_stage, snapshot):
    rename = {"query": "prompt", "reply": "completion"}
    given = snapshot(as_jsonl({"query": "q", "reply": "a"}))
    assert run_stage(Conversations, {"rename": rename}, {"snapshot": given}).counts["rows_out"] == 3


def test_guesses_are_by_synonym_then_by_likeness_and_never_twice():
    assert suggest_renames({"Content": 1, "body": 2}, ("text",)) == {"Content": "text"}
    assert suggest_renames({"mesages": 1}, ("messages",)) == {"mesages": "messages"}
    assert suggest_renames({"input": 1}, ("prompt", "question")) == {"input": "prompt"}
    assert suggest_renames({"zzz": 1}, ("text",)) == {}
    assert suggest_renames({"text": 1, "content": 2}, ("text",)) == {}


def test_many_and_hostile_names_stay_short():
    fields = {f"{'x' * 5000}{n}": 1 for n in range(50)}
    assert len(rename_hint(fields, ("text",))) < 600
    assert "and 40 more" in rename_hint(fields, ("text",))
