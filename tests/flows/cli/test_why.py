"""`ingot why` of documents without an address: by file name and row."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stages.ingest.stage import Ingest


@pytest.fixture
def read_files(snapshot, run_stage):
    """An ingest of rows without addresses: JSON lines with a blank and a bad one, and Parquet."""
    table = io.BytesIO()
    pq.write_table(pa.table({"text": [f"parquet {n}" for n in range(3)]}), table)
    lines = b'{"text": "first"}\n\n{"text": \n{"text": "third"}\n' + b'{"text": "more"}\n' * 9
    files = {"part/a.jsonl": lines, "b.parquet": table.getvalue()}
    return run_stage(Ingest, {}, {"snapshot": snapshot(files)})


def told(ingot, text):
    result = ingot("why", text, "--all", "--json")
    assert result.exit_code == 0, result.stderr
    return [one["sightings"][0]["values"] for one in json.loads(result.stdout)["documents"]]


def test_a_row_is_found_by_its_file_and_number(ingot, read_files):
    assert [row["excerpt"] for row in told(ingot, "part/a.jsonl:1")] == ["first"]
    assert [row["reason"] for row in told(ingot, "part/a.jsonl:2")] == ["malformed_json"]
    assert [row["excerpt"] for row in told(ingot, "/crawls/new/part/a.jsonl:3")] == ["third"]
    assert [row["excerpt"] for row in told(ingot, "b.parquet:3")] == ["parquet 2"]
    assert "b.parquet, row 3" in ingot("why", "b.parquet:3", "--all").stdout


def test_a_file_of_few_documents_is_found_by_its_name(ingot, read_files):
    found = {row["excerpt"] for row in told(ingot, "b.parquet")}
    assert found == {"parquet 0", "parquet 1", "parquet 2"}
    many = ingot("why", "part/a.jsonl", "--all")
    assert many.exit_code == 2
    assert "FILE:3" in many.stderr


@pytest.mark.parametrize("text", ["part/a.jsonl:13", "b.parquet:4", "b.parquet:0", "c.parquet:1"])
def test_a_row_that_is_not_there_is_no_document(ingot, read_files, text):
    result = ingot("why", text, "--all")
    assert result.exit_code == 2
    assert "no document" in result.stderr
