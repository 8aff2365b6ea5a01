"""What commands and readers ask of a bucket: budgets in requests and bytes, as the server counts.

A budget is an upper bound that a change may not pass unseen; each states what the numbers are made
of.
"""

from __future__ import annotations

import json
import os
import random
import urllib.request

import numpy as np
import pytest
from click.testing import CliRunner
from forks import in_fork

from artifacts_schema import blocks
from artifacts_schema.errors import CorruptArtifact
from artifacts_schema.store import Store, sparse
from flows.analysis.corpus_database import open_database
from flows.analysis.why import read_histories
from flows.cli.main import main
from flows.recipe.execute import execute
from flows.recipe.pipeline import Pipeline, Request
from stages.engine import Context, One, Stage, outputs
from stages.training.token_shards import TokenShards

LENGTH, ROWS, SHARDS = 4096, 512, 6
ROW, BLOCK = 2 * LENGTH, 64 << 10
"""Tokens of a sequence, sequences of a shard, shards, bytes of a sequence and of a block: 24 MiB in
all, 8 sequences a block."""


@pytest.fixture
def store(s3_url):
    """The store of the other fixtures lies in a bucket here."""
    return Store.open(f"{s3_url}/store")


@pytest.fixture
def traffic(s3_server):
    """`traffic()`: what was asked of the server since the last call."""

    def count():
        with urllib.request.urlopen(f"{s3_server}/-/traffic", timeout=10) as answer:
            return json.loads(answer.read())

    return count


def requests(counted):
    return sum(number for name, number in counted.items() if name.isupper())


def shards_json():
    shards = [
        {"file": f"web/{n:05d}.tokens", "sequences": ROWS, "tokens": ROWS * LENGTH}
        for n in range(SHARDS)
    ]
    total = SHARDS * ROWS
    source = {"shards": shards, "sequences": total, "tokens": total * LENGTH, "documents": total}
    source |= {"bytes": total, "languages": {"en": total * LENGTH}, "repetitive": 0, "cut": 0}
    return {
        "dtype": "uint16", "sequence_length": LENGTH, "vocabulary_size": 50_000,
        "padded_vocabulary_size": 50_048, "tokenizer": "t" * 64, "begin_id": None, "end_id": 0,
        "padding_id": 1, "sources": {"web": source},
    }  # fmt: skip


@pytest.fixture
def tokens(given):
    """Token shards in the bucket, and their rows."""
    draw = np.random.default_rng(0)
    rows = draw.integers(2, 50_000, (SHARDS, ROWS, LENGTH), dtype=np.uint16)
    files = {f"web/{n:05d}.tokens": rows[n].tobytes() for n in range(SHARDS)}
    made = given("token_shards", {**files, "shards.json": shards_json()})
    return made, rows.reshape(-1, LENGTH)


def drawn_rows(count):
    """Different sequences, as a shuffled epoch begins."""
    return np.random.default_rng(1).permutation(SHARDS * ROWS)[:count]


def test_64_rows_of_training(tokens, read_input, traffic, monkeypatch):
    (made, output), rows = tokens
    opens, plain = [], os.open
    monkeypatch.setattr(os, "open", lambda *a, **more: opens.append(a[0]) or plain(*a, **more))
    traffic()
    shards = TokenShards([read_input(made, output)])
    numbers = drawn_rows(64)
    batch = shards.batch(np.zeros(64, dtype=np.int64), numbers)
    assert (batch.tokens_BL == rows[numbers]).all()
    counted = traffic()
    assert 64 * ROW == 512 << 10
    assert counted["sent.tokens"] <= 64 * BLOCK + 50 * BLOCK + SHARDS * 32 * 64, (
        "a block for each row, what lies between near ones, tables of 64 blocks"
    )
    assert counted["GET"] <= SHARDS + 45
    assert len(opens) == SHARDS, "one sparse copy each"
    shards.batch(np.zeros(64, dtype=np.int64), numbers)
    assert len(opens) == SHARDS
    again = TokenShards([read_input(made, output)]).batch(batch.sources_B, numbers)
    assert (again.tokens_BL == rows[numbers]).all()
    assert traffic().get("sent.tokens") is None, "another reader of the node finds them"


def test_all_rows_of_training_fetch_each_byte_once(tokens, read_input, traffic, monkeypatch):
    """In batches of 64; when a quarter of a file is here the rest comes in one request."""
    monkeypatch.setattr(sparse, "_allowed", {})
    (made, output), rows = tokens
    traffic()
    shards = TokenShards([read_input(made, output)])
    order = drawn_rows(SHARDS * ROWS)
    for numbers in order.reshape(-1, 64):
        batch = shards.batch(np.zeros(64, dtype=np.int64), numbers)
        assert (batch.tokens_BL == rows[numbers]).all()
    counted = traffic()
    assert counted["sent.tokens"] < 1.2 * rows.nbytes
    assert counted["GET"] <= SHARDS * 32


def test_hashing_of_64_rows_on_a_node_of_several_ranks(tokens, read_input, traffic, monkeypatch):
    """A process for each rank; together they fetch and hash a block once."""
    (made, output), rows = tokens
    numbers = drawn_rows(64)

    def read_rows():
        batch = TokenShards([read_input(made, output)]).batch(np.zeros(64, dtype=int), numbers)
        assert (batch.tokens_BL == rows[numbers]).all()

    assert in_fork(read_rows) == 0
    first = traffic()
    monkeypatch.setattr(sparse.SparseCopy, "_is_right", None)
    assert [in_fork(read_rows) for _ in range(3)] == [0] * 3
    assert "sent.tokens" in first
    assert "sent.tokens" not in traffic()


@pytest.fixture
def documents(make_documents, monkeypatch, request):
    """Twelve tables of 300 documents, about 1.8 MB each in blocks of 64 KiB and row groups of 20
    documents, unless a test says how many: random digits."""
    draw = random.Random(0)
    monkeypatch.setitem(blocks.SIZES, ".parquet", BLOCK)
    monkeypatch.setattr(outputs, "ROW_GROUP", getattr(request, "param", 20))
    return make_documents(
        [
            [{"text": draw.randbytes(6_000).hex(), "url": f"u{n}-{m}"} for m in range(300)]
            for n in range(12)
        ]
    )


def list_long(shard, out):
    """Lists the documents of a shard whose text is long."""
    import pyarrow as pa

    table = shard.read(["doc_id", "text"])
    ids = table["doc_id"].filter(pa.compute.greater(pa.compute.utf8_length(table["text"]), 9))
    out.write_table("long", shard.path, pa.table({"doc_id": ids, "reason": ["long"] * len(ids)}))
    return {}


class Long(Stage):
    name, version, reproducible = "long", 1, "bytes"
    inputs, outputs = {"documents": One("documents")}, {"long": "exclusions"}

    def run(self, context: Context) -> None:
        context.map(list_long, context.one("documents").shards())


def test_a_map_over_shards(documents, run_stage, traffic):
    """Of each shard: its table of blocks, its footer, all the rest of it as most is asked for; one
    write of what it wrote, of its record, and one copy by the server."""
    size = documents[0].outputs["documents"].bytes
    traffic()
    run_stage(Long, {}, {"documents": [documents]})
    counted = traffic()
    assert counted["sent.parquet"] <= 1.01 * size
    assert requests(counted) <= 70 + 11 * 12


def test_a_document_by_its_id(documents, store, traffic, read_input, monkeypatch, tmp_path):
    """On another node than the one that made the index of ids."""
    manifest, output = documents
    doc_id = read_input(manifest, output).read_table("00003.parquet", ["doc_id"])["doc_id"][7]
    read_histories(store, [manifest], str(doc_id))
    monkeypatch.setenv("INGOT_CACHE", str(tmp_path / "other-node"))
    traffic()
    (history,) = read_histories(store, [manifest], str(doc_id))
    counted = traffic()
    assert history.rows[0].path == "00003.parquet"
    table = next(f for f in manifest.outputs[output].files if f.path == "00003.parquet")
    assert table.bytes > 25 * BLOCK
    assert counted["sent.parquet"] <= 6 * BLOCK, "the footer, and one row group"
    assert requests(counted) <= 7, "the list of parts, one part, the table of blocks"


@pytest.mark.parametrize("documents", [150], indirect=True)
def test_columns_of_a_table(documents, read_input, traffic):
    """Ids and addresses are a 100th of a row group; there are two, and the footer."""
    source = read_input(*documents)
    traffic()
    table = source.read_table("00003.parquet", ["doc_id", "url"])
    counted = traffic()
    assert table["url"].to_pylist() == [f"u3-{n}" for n in range(300)]
    assert counted["sent.parquet"] <= 5 * BLOCK + 32 * 29
    assert requests(counted) <= 5


@pytest.mark.parametrize("documents", [150], indirect=True)
def test_columns_of_all_tables_in_a_database(documents, read_input, traffic):
    """As above for each of 12 tables, the ids too: a request for each column of a row group."""
    source = read_input(*documents)
    traffic()
    with open_database(64 << 20) as database:
        query = "SELECT doc_id, url FROM read_parquet($tables) ORDER BY url"
        rows = database.execute(query, {"tables": database.tables(source)}).fetchall()
    counted = traffic()
    assert len(rows) == 3_600
    assert counted["sent.parquet"] <= 12 * (6 * BLOCK + 32 * 29) < source.size / 4
    assert requests(counted) <= 12 * 7
    expected = [source.read_table(path, ["doc_id", "url"]).to_pylist() for path in source.paths()]
    by_url = sorted((row for table in expected for row in table), key=lambda row: row["url"])
    assert rows == [(row["doc_id"], row["url"]) for row in by_url]


def test_a_changed_block_stops_a_query_by_name(documents, read_input, s3_url):
    source = read_input(*documents)
    path = source.paths()[5]
    data = bytearray(source.backend.read(f"{source.folder}/{path}"))
    data[-100] ^= 1
    source.backend.replace(f"{source.folder}/{path}", bytes(data))
    with open_database(64 << 20) as database:
        tables = database.tables(source)
        with pytest.raises(CorruptArtifact) as caught:
            database.execute("SELECT count(doc_id) FROM read_parquet($tables)", {"tables": tables})
    assert caught.value.where == f"{s3_url}/store/{source.folder}/{path}"


def ingot(store, *arguments):
    result = CliRunner().invoke(main, [*arguments, "--store", store.url])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_list_and_a_plan(project, inline, store, traffic):
    """Of eight artifacts, each with a name: its manifest and name once, then listings alone."""

    def open_pipeline():
        return Pipeline.open(Request(str(project / "demo.yaml"), store.url))

    assert execute(open_pipeline(), dispatch=inline).is_done
    traffic()
    ingot(store, "ls")
    listed = traffic()
    assert open_pipeline().plan().is_done
    cold = traffic()
    assert open_pipeline().plan().is_done
    warm = traffic()
    assert (listed["GET"], cold["GET"], warm["GET"]) == (17, 9, 3)
    assert max(requests(listed), requests(cold), requests(warm)) <= 20
    for counted in (listed, cold, warm):
        assert counted["sent"] == counted["sent.json"] < 20_000
