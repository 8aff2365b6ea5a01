"""Token shards that contradict themselves, each other or their files are refused by name."""

from __future__ import annotations

import json
import os

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from written_shards import every, write_shards

from artifacts_schema.errors import CorruptArtifact, InputError, StoreError
from stages.training.token_shards import TokenShards

LENGTH = 16


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tokenizer", "u" * 64),
        ("vocabulary_size", 51),
        ("padded_vocabulary_size", 128),
        ("end_id", 3),
        ("padding_id", 4),
        ("begin_id", None),
    ],
)
def test_inputs_that_do_not_belong_together_are_refused(tmp_path, name, value):
    made = [write_shards(tmp_path / folder, {"web": [5]}) for folder in "ab"]
    made[1].describe(**{name: value})
    with pytest.raises(InputError, match=f"{name} is"):
        TokenShards(made)


def test_mixed_types_of_ids_are_refused(tmp_path):
    narrow = write_shards(tmp_path / "a", {"web": [5]})
    wide = write_shards(tmp_path / "b", {"web": [5]}, dtype="uint32")
    with pytest.raises(InputError, match=r"dtype .*uint32.*uint16"):
        TokenShards([narrow, wide])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dtype": "int32"}, "known are uint16 and uint32"),
        ({"vocabulary_size": 2**16 + 1, "padded_vocabulary_size": 2**17}, "65,537"),
        ({"vocabulary_size": 65}, "padded to 64"),
        ({"end_id": 50}, "end_id is 50, the vocabulary has 50"),
        ({"padding_id": -1}, "padding_id is -1"),
        ({"sequence_length": 0}, "sequences of 0 tokens"),
    ],
)
def test_a_description_that_cannot_be_is_refused(tmp_path, changed, message):
    made = write_shards(tmp_path / "a", {"web": [5]}).describe(**changed)
    with pytest.raises(CorruptArtifact, match=message):
        TokenShards([made])


@pytest.mark.parametrize("name", ["tokenizer", "padded_vocabulary_size", "begin_id", "sources"])
def test_a_description_that_lacks_a_field_is_refused(tmp_path, name):
    made = write_shards(tmp_path / "a", {"web": [5]})
    table = {key: value for key, value in made.table.items() if key != name}
    (made.folder / "shards.json").write_text(json.dumps(table))
    with pytest.raises(CorruptArtifact, match=f"shards.json lacks '{name}'"):
        TokenShards([made])


def lie(made, **changed):
    """Other facts about the first shard of `web`."""
    table = made.table
    table["sources"]["web"]["shards"][0] |= changed
    for name in ("sequences", "tokens"):
        table["sources"]["web"][name] = sum(s[name] for s in table["sources"]["web"]["shards"])
    return made.describe(**table)


def test_a_number_of_sequences_that_the_file_does_not_have_is_refused(tmp_path):
    made = write_shards(tmp_path / "a", {"web": [5, 6]})
    more = made.table["sources"]["web"]["shards"][0]["sequences"] + 1
    with pytest.raises(CorruptArtifact, match=rf"web/00000.tokens has {more} sequences.* bytes"):
        TokenShards([lie(made, sequences=more)])


@pytest.mark.parametrize("quantity", ["sequences", "tokens"])
def test_sums_that_are_not_those_of_the_shards_are_refused(tmp_path, quantity):
    made = write_shards(tmp_path / "a", {"web": [5, 6]})
    table = made.table
    table["sources"]["web"][quantity] += 1
    with pytest.raises(CorruptArtifact, match=f"'web' has .* {quantity}, its shards"):
        TokenShards([made.describe(**table)])


def test_a_shard_that_is_not_there_is_named_at_once(tmp_path):
    made = write_shards(tmp_path / "a", {"web": [5, 6]})
    (made.folder / "web/00001.tokens").unlink()
    with pytest.raises(CorruptArtifact, match=r"not there: web/00001\.tokens"):
        TokenShards([made.listed()])


def test_no_input_is_refused():
    with pytest.raises(InputError, match="no token shards"):
        TokenShards([])


def test_a_source_without_sequences_is_there_and_empty(tmp_path):
    shards = TokenShards([write_shards(tmp_path / "a", {"web": [5], "code": [], "books": [0, 0]})])
    assert shards.sequences["code"] == shards.sequences["books"] == 0
    assert shards.total("tokens")["books"] == 0
    assert shards.sources == ("books", "code", "web")
    assert len(shards.batch(*every(shards, "web"))) == shards.sequences["web"]
    with pytest.raises(ValueError, match=r"'code'.* 0\b"):
        shards.batch([1], [0])


def test_a_token_outside_the_vocabulary_is_named_with_its_place(tmp_path):
    made = write_shards(tmp_path / "a", {"web": [5, 9]})
    path = made.folder / "web/00001.tokens"
    rows = np.fromfile(path, dtype="<u2").reshape(-1, LENGTH)
    rows[2, 7] |= 1 << 15
    path.write_bytes(rows.tobytes())
    shards = TokenShards([made])
    first = made.table["sources"]["web"]["shards"][0]["sequences"]
    shards.batch([0], [first + 1])
    with pytest.raises(CorruptArtifact) as raised:
        shards.batch([0, 0], [0, first + 2])
    assert f"sequence 2 has token {rows[2, 7]} at 7, the vocabulary has 50" in str(raised.value)
    assert raised.value.where == "pack kkkkkkkkkkkk: train/web/00001.tokens"


def test_the_greatest_id_of_the_type_is_no_exception(tmp_path):
    made = write_shards(tmp_path / "a", {"web": [5]}, dtype="uint32")
    path = made.folder / "web/00000.tokens"
    rows = np.fromfile(path, dtype="<u4").reshape(-1, LENGTH)
    rows[0, 0] = 2**32 - 1
    path.write_bytes(rows.tobytes())
    with pytest.raises(CorruptArtifact, match="token 4294967295 at 0"):
        TokenShards([made]).batch([0], [0])


def test_a_cut_shard_is_named_when_it_is_opened(tmp_path):
    made = write_shards(tmp_path / "a", {"web": [5]})
    path = made.folder / "web/00000.tokens"
    whole = path.read_bytes()
    path.write_bytes(whole[:-2])
    with pytest.raises(CorruptArtifact, match=f"{len(whole) - 2} bytes, expected {len(whole)}"):
        TokenShards([made]).batch([0], [0])


def test_a_shard_that_is_cut_while_it_is_open_is_named(tmp_path):
    """A memory map of it would end the process by SIGBUS."""
    made = write_shards(tmp_path / "a", {"web": [5]})
    shards = TokenShards([made])
    shards.batch([0], [0])
    os.truncate(made.folder / "web/00000.tokens", LENGTH)
    with pytest.raises(CorruptArtifact, match="cut while it was read"):
        shards.batch([0], [shards.sequences["web"] - 1])


def test_a_shard_that_goes_before_it_is_opened_is_named(tmp_path):
    made = write_shards(tmp_path / "a", {"web": [5]})
    shards = TokenShards([made])
    (made.folder / "web/00000.tokens").unlink()
    with pytest.raises(StoreError, match="No such file"):
        shards.batch([0], [0])


@pytest.mark.parametrize("name", ["token_bytes.bin", "train_counts.bin"])
def test_a_table_by_token_of_another_size_is_refused(tmp_path, name):
    made = write_shards(tmp_path / "a", {"web": [5]})
    (made.folder / name).write_bytes(b"\0" * 96)
    shards = TokenShards([made.listed()])
    with pytest.raises(CorruptArtifact, match=f"{name} has 96 bytes, the vocabulary needs"):
        shards.token_bytes() if name.startswith("token") else shards.train_counts()


def test_an_index_that_does_not_name_a_sequence_is_refused(tmp_path):
    made = write_shards(tmp_path / "a", {"web": [9]})
    path = made.folder / "web/00000.index.parquet"
    table = pq.read_table(path)
    pq.write_table(table.filter(pc.not_equal(table["sequence"], 2)), path)
    with pytest.raises(CorruptArtifact, match="no document for sequence 2"):
        TokenShards([made]).documents_of([0, 0], [1, 2])
