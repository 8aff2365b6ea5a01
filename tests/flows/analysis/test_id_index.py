"""Where ids stand, by an index: the same answers as a search of all tables, by fewer reads."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from artifacts_schema.errors import StoreError
from artifacts_schema.store.backend import LocalBackend
from artifacts_schema.store.gc import collect, plan_gc, remove_artifact
from artifacts_schema.store.verify import verify
from flows.analysis import id_index
from flows.analysis.documents import find_all_rows, find_documents, find_rows
from flows.analysis.id_index import find_ids
from flows.analysis.why import read_histories

SHARDS, EACH = 12, 40


def doc_id(number):
    return hashlib.md5(str(number).encode(), usedforsecurity=False).hexdigest()


@pytest.fixture
def many(make_documents):
    """`many(shards, make)` → documents in so many tables, not in the order of their ids."""

    def make(shards=SHARDS, make=doc_id):
        return make_documents(
            [
                [
                    {
                        "doc_id": make(shard * EACH + row),
                        "text": f"{shard}",
                        "url": f"http://a/{row}",
                    }
                    for row in range(EACH)
                ]
                for shard in range(shards)
            ]
        )

    return make


@pytest.fixture
def parts(monkeypatch):
    """Parts of 50 rows, so that there are several."""
    monkeypatch.setattr(id_index, "PART_ROWS", 50)


def searched(source, ids):
    return sorted(
        (row["doc_id"], path, number)
        for path in source.paths("*.parquet")
        for number, row in find_rows(source, path, ids, [])
    )


def test_it_answers_as_a_search_of_all_tables_does(many, read_input, parts):
    source = read_input(*many())
    ids = [doc_id(number) for number in range(-5, SHARDS * EACH + 5)]
    assert sorted(find_ids(source, "doc_id", "*.parquet", ids)) == searched(source, ids)
    prefixes = sorted({one[:2] for one in ids[::7]})
    expected = [
        place for place in searched(source, ids) for one in prefixes if place[0].startswith(one)
    ]
    assert sorted(find_ids(source, "doc_id", "*.parquet", [], prefixes)) == sorted(expected)


def test_an_id_in_many_rows_fills_several_parts(many, read_input, parts):
    source = read_input(*many(make=lambda number: doc_id(number % 3)))
    places = find_ids(source, "doc_id", "*.parquet", [doc_id(1)])
    assert len(places) == SHARDS * EACH / 3
    assert sorted(places) == searched(source, [doc_id(1)])


def test_ids_that_begin_alike_are_told_apart(many, read_input, parts):
    """As counters in hexadecimal digits are: all rows lie in one of the 256 first files."""
    source = read_input(*many(make=lambda number: f"{number:032x}"))
    ids = [f"{number:032x}" for number in (0, 7, 131, 479, 480)]
    assert sorted(find_ids(source, "doc_id", "*.parquet", ids)) == searched(source, ids)


def test_it_has_20_bytes_a_row(many, read_input, store):
    source = read_input(*many())
    find_ids(source, "doc_id", "*.parquet", [doc_id(1)])
    files = {path: path.stat().st_size for path in Path(store.url).rglob("ids/documents/*.ids")}
    assert sum(files.values()) == 20 * SHARDS * EACH


def test_few_tables_and_ids_of_another_sort_have_none(many, read_input, store):
    few = read_input(*many(shards=id_index.FEWEST_TABLES - 1))
    assert find_ids(few, "doc_id", "*.parquet", [doc_id(1)]) is None
    other = read_input(*many(make=lambda number: f"page {number}"))
    assert find_ids(other, "doc_id", "*.parquet", ["page 1"]) is None
    assert not list(Path(store.url).rglob("*.ids"))


@pytest.mark.parametrize("shards", [12, 48])
def test_a_look_reads_its_list_and_one_part(many, read_input, monkeypatch, shards):
    source = read_input(*many(shards=shards))
    find_ids(source, "doc_id", "*.parquet", [doc_id(1)])
    opened, files, read = [], [], LocalBackend.read

    def note(self, path, start=0):
        files.append(path)
        return read(self, path, start)

    for name in ("open", "open_part"):
        monkeypatch.setattr(type(source), name, lambda self, path: opened.append(path))
    monkeypatch.setattr(LocalBackend, "read", note)
    places = find_ids(source, "doc_id", "*.parquet", [doc_id(3)])
    assert places == [(doc_id(3), "00000.parquet", 3)]
    assert opened == []
    assert sum(path.endswith(".ids") for path in files) == 1
    assert len(files) <= 2


@pytest.mark.parametrize("damage", ["cut", "changed", "other documents", "no json", "gone"])
def test_one_that_does_not_match_is_made_again(many, read_input, store, caplog, damage, parts):
    source = read_input(*many())
    ids = [doc_id(number) for number in range(0, 480, 13)]
    expected = sorted(find_ids(source, "doc_id", "*.parquet", ids))
    (listing,) = Path(store.url).rglob("parts.json")
    part = listing.with_name("000003.ids")
    if damage == "cut":
        part.write_bytes(part.read_bytes()[:-20])
    elif damage == "changed":
        data = bytearray(part.read_bytes())
        data[5] ^= 1
        part.write_bytes(data)
    elif damage == "other documents":
        plain = json.loads(listing.read_text())
        plain["digest"] = "0" * 64
        plain.pop("checksum")
        plain["checksum"] = id_index._checksum(id_index._canonical(plain))
        listing.write_text(json.dumps(plain))
    elif damage == "no json":
        listing.write_text("{")
    else:
        part.unlink()
    with caplog.at_level("WARNING"):
        assert sorted(find_ids(source, "doc_id", "*.parquet", ids)) == expected
    assert "it is made again" in caplog.text
    caplog.clear()
    assert sorted(find_ids(source, "doc_id", "*.parquet", ids)) == expected
    assert not caplog.text


def test_where_nothing_can_be_written_tables_are_searched(many, read_input, monkeypatch):
    def refuse(self, path, data):
        raise StoreError("it cannot be written", where=path)

    source = read_input(*many())
    monkeypatch.setattr(LocalBackend, "replace", refuse)
    with monkeypatch.context() as patch:
        patch.setattr(type(source), "open", lambda self, path: pytest.fail("ids are read"))
        assert find_ids(source, "doc_id", "*.parquet", [doc_id(1)]) is None
    assert find_ids(source, "doc_id", "*.parquet", [doc_id(1)]) is None
    rows = list(find_all_rows(source, "*.parquet", [doc_id(90)], ["url"]))
    assert rows == [("00002.parquet", 10, {"doc_id": doc_id(90), "url": "http://a/10"})]


def test_a_document_is_named_by_id_its_beginning_and_address(many, store):
    many()
    manifests = list(store.manifests())
    whole, prefix, address = doc_id(90), doc_id(91)[:8], "http://a/12"
    matches = find_documents(store, manifests, [whole, prefix, address, "f" * 32], parts=True)
    assert list(matches[whole].by_id) == [whole]
    assert list(matches[prefix].by_id) == [doc_id(91)]
    assert matches["f" * 32].by_id == {}
    assert set(matches[address].by_url) == {doc_id(12 + EACH * shard) for shard in range(SHARDS)}
    (history,) = read_histories(store, manifests, whole)
    (row,) = history.select("documents")
    assert (row.path, row.row, row.values["url"]) == ("00002.parquet", 10, "http://a/10")


def test_it_is_no_output_and_goes_with_its_artifact(many, read_input, store):
    manifest, output = many()
    find_ids(read_input(manifest, output), "doc_id", "*.parquet", [doc_id(1)])
    assert store.manifest(manifest.stage, manifest.key).outputs == manifest.outputs
    assert not verify(store, manifest)
    collect(store, plan_gc(store))
    remove_artifact(store, manifest)
    assert not list(Path(store.url).rglob("*.ids"))


def test_id_bytes_are_those_of_python():
    ids = [doc_id(number) for number in range(20)]
    table = id_index._id_bytes(pa.array(ids).slice(3, 9))
    assert [one.tobytes().hex() for one in np.asarray(table)] == ids[3:12]
    for other in (["A" * 32], ["0" * 31], [None], ["g" * 32]):
        assert id_index._id_bytes(pa.array(other, pa.string())) is None
