"""Text of documents and files, driven through a run and every command that shows it."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from test_hostile_input import RAW, check_refused

from artifacts_schema.errors import UsageError
from artifacts_schema.store import Store
from flows.cli.main import main
from flows.cli.output import echo_error
from flows.recipe.execute import execute
from flows.recipe.pipeline import Pipeline, Request

NAME = os.fsdecode(b"\x1b]0;pwned\x07\nerror: all is lost.warc")
RECIPE = """\
name: demo
snapshots: {crawl: {files: ["data/*"]}}
steps: {read: {stage: ingest, inputs: {snapshot: crawl}}}
"""
TEXT = "A sentence of ordinary words that is long enough to be the text of a page. "


def page(number: int, http: bytes = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n") -> bytes:
    """A response whose address, title and text hold what a terminal obeys."""
    body = f"<title>\x9b31m{number}</title><p>\x1b[2J\u202e{TEXT * 8}</p>".encode()
    block = http + b"\r\n" + body
    head = (
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/%d\x1b]0;x\x07\r\n"
        b"WARC-Date: 2024-01-01T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:%d>\r\n"
        b"Content-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n"
    )
    return head % (number, number, len(block)) + block + b"\r\n\r\n"


@pytest.fixture
def work(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "demo.yaml").write_text(RECIPE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run() -> None:
    """Run the recipe in child processes, as `ingot run` does below its flow."""
    execute(Pipeline.open(Request("demo.yaml", "ingot-store")))


def test_no_command_shows_a_raw_character_of_a_page_or_a_file_name(work):
    (work / "data" / NAME).write_bytes(b"".join(map(page, range(5))))
    run()
    store = Store.open("ingot-store")
    table = pq.read_table(next(store.backend.local_path("data").rglob("documents/*.parquet")))
    row = table.to_pylist()[0]
    assert RAW.search(row["url"])
    assert RAW.search(row["origin_file"])
    commands = (
        ("ls",),
        ("runs",),
        ("show", "demo/read"),
        ("show", "demo/crawl"),
        ("trace", "demo/read"),
        ("lineage", "demo/read"),
        ("why", row["doc_id"]),
        ("why", row["url"]),
        ("why", row["origin_file"]),
        ("watch", "demo", "--once"),
        ("verify",),
        ("plan", "demo.yaml"),
        ("forget", row["doc_id"], "--dry-run"),
    )
    shown = 0
    for command in commands:
        for more in ((), ("--json",)):
            result = CliRunner().invoke(main, [*command, *more])
            assert not RAW.search(result.stdout + result.stderr), (command, more)
            assert "bug in Ingot" not in result.stderr, (command, more)
            shown += "pwned" in result.stdout
    assert shown >= 4, "the commands show the name, escaped"


def test_the_error_of_a_run_shows_no_raw_character(work, capsys):
    none = b"\xff no HTTP\r\n"
    (work / "data" / NAME).write_bytes(b"".join(page(n, none) for n in range(5)))
    with pytest.raises(UsageError) as caught:
        run()
    echo_error(caught.value)
    said = capsys.readouterr().err
    assert "http://a.example/0" in said
    assert not RAW.search(said)
    assert all(line.startswith("  ") for line in said.splitlines()[1:])
    result = CliRunner().invoke(main, ["watch", "demo", "--once"])
    assert not RAW.search(result.output)
    log = next((work / "ingot-store" / "work").rglob("log.txt")).read_text()
    assert not RAW.search(log)
    assert not [line for line in log.splitlines() if line.startswith("error")]


def test_an_error_of_several_lines_is_shown_from_its_head(work):
    """Arrow's error of a damaged footer ends in an empty line."""
    pq.write_table(pa.table({"text": [TEXT]}), "data/a.parquet")
    data = bytearray((work / "data" / "a.parquet").read_bytes())
    data[-60:-20] = b"\xff" * 40
    (work / "data" / "a.parquet").write_bytes(data)
    with pytest.raises(UsageError) as caught:
        run()
    assert "1 of 1 records are bad" in str(caught.value)
    assert "malformed_record: a.parquet" in str(caught.value)


def test_a_stage_by_itself_refuses_in_clean_lines(work):
    (work / "data" / NAME).write_bytes(b"WARC/1.0\r\n\x1b[31m" * 9)
    assert CliRunner().invoke(main, ["plan", "demo.yaml"]).exit_code == 0
    result = CliRunner().invoke(main, ["stage", "ingest", "--input", "snapshot=demo/crawl"])
    check_refused(result)
