"""Every document of the shards, whole and once, in Megatron's files; what cannot be is an error."""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest
from packed_by_hand import (
    END,
    Piece,
    Row,
    Shards,
    apart,
    concatenated,
    dealt,
    documents,
    expected,
)

from artifacts_schema.errors import CorruptArtifact, InputError
from stages.engine.page import Artifact, TableFigure
from stages.export_tokens import formats, joining
from stages.export_tokens.page import page

Make = Callable[..., Any]


def tokens_of(shards: list[list[Row]]) -> int:
    return sum(len(piece.ids) for rows in shards for row in rows for piece in row)


# What comes out ----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [concatenated, apart])
@pytest.mark.parametrize("shards", [1, 2, 7])
def test_every_document_is_whole_once_and_without_padding(
    exported: Make, layout: Make, shards: int
) -> None:
    given = documents(60, seed=shards)
    packed = dealt(layout(given), shards, seed=3)
    read, table, manifest = exported(Shards(sources={"web": packed}))
    found, _ = read["web"]
    assert sorted(found) == sorted(given.values())
    assert found == expected(packed)[0]
    assert table["sources"]["web"] == {
        "prefix": "web",
        "dtype": "uint16",
        "documents": 60,
        "tokens": tokens_of(packed),
        "bytes": 2 * tokens_of(packed) + 34 + 12 * 60 + 8 * 61,
        "incomplete": 0,
        "samples": None,
    }
    assert manifest.counts["incomplete"] == 0
    assert (manifest.conservation.records_in, manifest.conservation.out) == (60, 60)


def test_documents_over_shards_come_last_by_id(exported: Make) -> None:
    """By hand, rows of 4: b lies in shard 1 alone, a over both, c in shard 0 alone."""
    a, b, c = (letter * 32 for letter in "abc")
    first = [[Piece(c, 0, (0, 9, END), 0)], [Piece(a, 4, (11, END), 0)]]
    second = [[Piece(b, 0, (0, 8, END), 0)], [Piece(a, 0, (0, 12, 13, 14), 0)]]
    read, *_ = exported(Shards(length=4, sources={"web": [first, second]}))
    assert read["web"][0] == [[0, 9, END], [0, 8, END], [0, 12, 13, 14, 11, END]]


def test_files_are_megatrons_to_the_byte(exported: Make, read_input: Make) -> None:
    """Header, version 1, type 8, 2 sequences, 3 edges; 3 and 5 tokens from bytes 0 and 6 on."""
    rows = [[Piece("a" * 32, 0, (0, 9, END), 0), Piece("b" * 32, 0, (0, 8, 7, 6, END), 3)]]
    *_, manifest = exported(Shards(length=8, sources={"web": [rows]}))
    found = read_input(manifest, "dataset")
    head = b"MMIDIDX\0\0" + struct.pack("<Q", 1) + bytes([8]) + struct.pack("<QQ", 2, 3)
    body = struct.pack("<2i", 3, 5) + struct.pack("<2q", 0, 6) + struct.pack("<3q", 0, 1, 2)
    assert found.read_bytes("web.idx") == head + body
    assert found.read_bytes("web.bin") == struct.pack("<8H", 0, 9, END, 0, 8, 7, 6, END)


def test_ids_beyond_16_bits_are_int32(exported: Make) -> None:
    given = documents(20, seed=5, vocabulary=100_000)
    packed = dealt(concatenated(given), 3, seed=1)
    read, *_ = exported(Shards(dtype="uint32", sources={"web": packed}))
    assert read["web"] == (expected(packed)[0], "int32")
    assert max(chain(*read["web"][0])) > 2**16


def test_sources_of_all_inputs_are_joined_by_name(exported: Make) -> None:
    old, new, code = (documents(12, seed=seed) for seed in (1, 2, 3))
    first, second = dealt(apart(old), 2, 1), dealt(apart(new), 3, 2)
    one = Shards(sources={"web": first})
    two = Shards(sources={"web": second, "code/python": [apart(code)]})
    read, table, _ = exported(one, two)
    assert read["web"][0] == expected([*first, *second])[0]
    assert sorted(read["code/python"][0]) == sorted(code.values())
    web, python = (table["sources"][name]["tokens"] for name in ("web", "code/python"))
    assert table["data_path"] == [str(python), "code%2Fpython", str(web), "web"]
    assert (table["tokenizer"], table["end_id"]) == ("ab" * 32, END)


def test_what_pack_cropped_or_left_out_is_counted(exported: Make) -> None:
    """A document without its end, one without its begin, one with a gap, and one that is gone."""
    a, b, c = ("a" * 32, "b" * 32, "c" * 32)
    rows = [
        [Piece(a, 0, (0, 9, 9, 9), 0)],
        [Piece(b, 4, (8, END), 0)],
        [Piece(c, 0, (0, 10, 10, 10), 0)],
        [Piece(c, 8, (11, END), 0)],
    ]
    shards = Shards(length=4, sources={"web": [rows[:3], rows[3:]]}, stated={"web": 4})
    read, table, manifest = exported(shards)
    assert read["web"][0] == [[0, 9, 9, 9], [8, END], [0, 10, 10, 10, 11, END]]
    assert table["sources"]["web"]["incomplete"] == 3
    assert manifest.conservation.dropped == {"left out by pack": 1}


def test_random_pieces_that_are_missing(exported: Make) -> None:
    given = documents(80, seed=8)
    rows = [row for number, row in enumerate(concatenated(given)) if number % 5]
    packed = dealt(rows, 4, seed=2)
    read, table, _ = exported(Shards(sources={"web": packed}))
    documents_there, incomplete = expected(packed)
    assert read["web"][0] == documents_there
    assert table["sources"]["web"]["incomplete"] == incomplete > 10


def test_a_source_without_tokens_is_left_out(exported: Make) -> None:
    shards = Shards(sources={"web": [apart(documents(3, 1))], "none": [[]], "nothing": []})
    read, table, _ = exported(shards)
    assert list(read) == list(table["sources"]) == ["web"]


def test_an_empty_shard_among_others(exported: Make) -> None:
    rows = apart(documents(5, 1))
    read, *_ = exported(Shards(sources={"web": [[], rows[:4], [], rows[4:]]}))
    assert read["web"][0] == expected([rows[:4], rows[4:]])[0]


# How it gets there -------------------------------------------------------------------------------


def test_neither_workers_nor_memory_change_a_byte(
    export: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = {
        name: dealt(concatenated(documents(49, seed)), 5, seed)
        for seed, name in enumerate(["web", "code", "books"])
    }
    first = export(Shards(sources=sources))
    again = export(Shards(sources=sources), execution={"workers": 2}, force=True)
    assert again.outputs == first.outputs
    assert again.attempt == first.attempt, "equal bytes: the second copy is dropped"
    for name in ("AT_ONCE", "BLOCK_TOKENS", "BLOCK_ROWS"):
        monkeypatch.setattr(joining, name, 7)
    monkeypatch.setattr(formats, "BLOCK_ROWS", 7)
    monkeypatch.setattr(joining, "OPEN_FILES", 1)
    little = export(Shards(sources=sources), force=True)
    assert little.outputs == first.outputs
    assert little.attempt == first.attempt


@pytest.mark.parametrize("visit", [1, 4, 6, 7])
def test_a_killed_export_goes_on_and_writes_the_same(
    export: Make, killed_at: Make, visit: int, run_stage: Make
) -> None:
    """Five shards, then the join, then the source: seven records."""
    shards = Shards(sources={"web": dealt(concatenated(documents(40, 1)), 5, 1)})
    with killed_at("shard recorded", visit):
        export(shards)
    resumed = export(shards)
    whole = export(shards, force=True)
    assert resumed.outputs == whole.outputs
    assert whole.attempt == resumed.attempt


# What is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [("tokenizer", "cd" * 32), ("end_id", 7), ("vocabulary_size", 51), ("begin_id", None)],
)
def test_shards_of_another_tokenizer(export: Make, name: str, value: Any) -> None:
    one = Shards(sources={"web": [apart(documents(3, 1))]})
    two = Shards(sources={"web": [apart(documents(3, 2))]}, facts={name: value})
    with pytest.raises(InputError, match=f"{name} is {value}, that of the first input is") as error:
        export(one, two)
    assert "export shards of different tokenizers apart" in (error.value.hint or "")


@pytest.mark.parametrize("layouts", [(apart, apart), (apart, concatenated), (concatenated, apart)])
def test_a_document_in_two_inputs_is_named(export: Make, layouts: Any) -> None:
    given = documents(9, 1)
    first, second = (Shards(sources={"web": dealt(lay(given), 2, 7)}) for lay in layouts)
    second.facts["strategy"] = "another"
    with pytest.raises(InputError, match="comes twice: in token shards") as error:
        export(first, second)
    assert error.value.what.split()[1] == min(given)
    assert "an export of its own" in (error.value.hint or "")


A = "a" * 32
ENDED, LATER = Piece(A, 0, (0, 9, END), 0), Piece(A, 3, (7, 7, END), 3)


@pytest.mark.parametrize(
    "shards",
    [
        [[[ENDED]], [[LATER]]],
        [[[ENDED, LATER]]],
        [[[Piece(A, 1, (9, END), 0)]], [[LATER]]],
        [[[Piece(A, 0, (0, 9, 9), 0)]], [[Piece(A, 2, (9, 9), 0)]]],
    ],
    ids=["whole, then more", "more in the same shard", "its end, then more", "overlapping"],
)
def test_pieces_that_are_no_document(export: Make, shards: list[list[Row]]) -> None:
    with pytest.raises(InputError, match=f"document {A} comes twice"):
        export(Shards(sources={"web": shards}))


def test_shards_without_a_document(export: Make) -> None:
    with pytest.raises(InputError, match="hold no document"):
        export(Shards(sources={}))


def damaged(change: Make) -> dict[str, Any]:
    files = Shards(sources={"web": [apart(documents(6, 1))]}).files()
    change(files)
    return files


def an_id_too_large(files: dict[str, Any]) -> None:
    raw = bytearray(files["web/00000.tokens"])
    raw[2:4] = struct.pack("<H", 50)
    files["web/00000.tokens"] = bytes(raw)


def padding_in_a_piece(files: dict[str, Any]) -> None:
    raw = bytearray(files["web/00000.tokens"])
    raw[2:4] = struct.pack("<H", 2)
    files["web/00000.tokens"] = bytes(raw)


def cut_short(files: dict[str, Any]) -> None:
    files["web/00000.tokens"] = files["web/00000.tokens"][:-2]


def a_row_outside(files: dict[str, Any]) -> None:
    files["web/00000.index.parquet"][0]["sequence"] = 1_000


def a_piece_too_long(files: dict[str, Any]) -> None:
    files["web/00000.index.parquet"][0]["length"] = 17


def rows_that_overlap(files: dict[str, Any]) -> None:
    rows = files["web/00000.index.parquet"]
    rows[1] = {**rows[0], "doc_id": rows[1]["doc_id"]}


def other_tokens_stated(files: dict[str, Any]) -> None:
    files["shards.json"]["sources"]["web"]["shards"][0]["tokens"] += 1


def fewer_documents_stated(files: dict[str, Any]) -> None:
    files["shards.json"]["sources"]["web"]["documents"] -= 1


def an_odd_id(files: dict[str, Any]) -> None:
    files["web/00000.index.parquet"][0]["doc_id"] = "x"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (an_id_too_large, "token 50 in sequence 0, but the vocabulary has 50"),
        (padding_in_a_piece, "numbers of tokens differ"),
        (cut_short, "bytes, expected"),
        (a_row_outside, "row 0 of the index names no tokens of the shard: document_start 0, seq"),
        (a_piece_too_long, "names no tokens of the shard"),
        (rows_that_overlap, "two pieces of the index overlap"),
        (other_tokens_stated, "numbers of tokens differ"),
        (fewer_documents_stated, "6 documents of source 'web' in the index tables, 5 in"),
        (an_odd_id, "doc_id 'x' is not 32 hex digits"),
    ],
)
def test_shards_that_contradict_themselves(export: Make, change: Make, told: str) -> None:
    with pytest.raises(CorruptArtifact, match=told) as error:
        export(damaged(change))
    if change is not fewer_documents_stated:
        assert "web/00000.tokens" in str(error.value.where)


def test_the_page_has_a_row_for_each_source(exported: Make, store: Any) -> None:
    sources = {"web": [apart(documents(5, 1))], "code": [apart(documents(3, 2))]}
    _, table, manifest = exported(Shards(sources=sources))
    (figure,) = page(Artifact(store, manifest))
    assert isinstance(figure, TableFigure)
    rows = {
        row[0]: dict(zip([c.heading for c in figure.columns], row, strict=True))
        for row in figure.rows
    }
    assert {name: row["documents"] for name, row in rows.items()} == {"web": 5, "code": 3}
    weights: list[Any] = [row["weight"] for row in rows.values()]
    assert sum(weights) == pytest.approx(1)
    assert rows["web"]["bytes"] == table["sources"]["web"]["bytes"]
