"""Token shards as batches: targets, positions and pieces, checked against the index tables."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from artifacts_schema.errors import CorruptArtifact, InputError
from stages.pack.encode import Encoded
from stages.pack.layout import STRATEGIES
from stages.pack.shard import fill, index_table, shuffled
from stages.training.clock import Phase, SampleClock
from stages.training.data import (
    IGNORED,
    TokenShards,
    clock_batch,
    pieces,
)

LENGTH, VOCABULARY = 16, 50
BEGIN, END, PADDING = 0, 1, 2


@dataclass
class FolderInput:
    """Stands in for an engine Input: an output that lies in a folder."""

    folder: Path
    digest: str
    stage: str = "pack"
    key: str = "k" * 64
    output: str = "train"

    def read_json(self, path):
        return json.loads((self.folder / path).read_bytes())

    def read_bytes(self, path):
        return (self.folder / path).read_bytes()

    def read_table(self, path, columns=None):
        return pq.read_table(self.folder / path, columns=columns)

    def local_path(self, path):
        return self.folder / path


def made(folder, sources, *, strategy="best_fit", seed=0, **changed):
    """Token shards of random documents: `sources` maps each to documents a shard."""
    draw = random.Random(seed)
    table = {
        "dtype": "uint16",
        "sequence_length": LENGTH,
        "vocabulary_size": VOCABULARY,
        "tokenizer": "t",
        "padding_id": PADDING,
        "end_id": END,
        "sources": {},
    }
    for source, shards in sources.items():
        (folder / source).mkdir(parents=True)
        entry = table["sources"].setdefault(source, {"shards": [], "sequences": 0, "tokens": 0})
        for number, documents in enumerate(shards):
            ids = [
                [BEGIN, *(draw.randrange(5, VOCABULARY) for _ in range(draw.randint(1, 40))), END]
                for _ in range(documents)
            ]
            starts = np.cumsum([0, *map(len, ids)])
            encoded = Encoded(np.concatenate(ids).astype(np.uint32), starts)
            layout = shuffled(STRATEGIES[strategy](encoded.lengths, LENGTH), b"key")
            rows = np.full((layout.sequences, LENGTH), PADDING, dtype="<u2")
            fill(rows, encoded, layout)
            name = f"{source}/{number:05d}"
            (folder / f"{name}.tokens").write_bytes(rows.tobytes())
            named = [f"{seed}-{source}-{number}-{i}" for i in range(documents)]
            language = pa.nulls(documents, pa.string())
            documents_table = pa.table({"doc_id": named, "language": language})
            pq.write_table(index_table(layout, documents_table), folder / f"{name}.index.parquet")
            entry["shards"].append({"file": f"{name}.tokens", "sequences": layout.sequences})
            entry["sequences"] += layout.sequences
            entry["tokens"] += int(starts[-1])
    table.update(changed)
    (folder / "shards.json").write_text(json.dumps(table))
    (folder / "token_bytes.bin").write_bytes(np.arange(VOCABULARY, dtype="<u2").tobytes())
    (folder / "train_counts.bin").write_bytes(np.arange(VOCABULARY, dtype="<i8").tobytes())
    return FolderInput(folder, digest=str(folder))


@pytest.fixture(params=["best_fit", "concatenate"])
def shards(request, tmp_path):
    first = made(tmp_path / "a", {"web": [40, 7], "code": [9]}, strategy=request.param)
    second = made(tmp_path / "b", {"web": [12]}, strategy=request.param, seed=1)
    return TokenShards([first, second])


def every(shards, source):
    """The ids and sequences of a whole source."""
    count = shards.sequences[source]
    return np.full(count, shards.sources.index(source)), np.arange(count)


def test_hand_made_rows_give_targets_positions_and_pieces():
    rows = np.array([[0, 9, 1, 0, 8, 7, 1, 2], [5, 6, 7, 8, 9, 5, 6, 7]])
    targets, positions, documents = pieces(rows, end_id=1, padding_id=2)
    assert targets.tolist() == [
        [9, 1, IGNORED, 8, 7, 1, IGNORED, IGNORED],
        [6, 7, 8, 9, 5, 6, 7, IGNORED],
    ]
    assert positions[0, :7].tolist() == [0, 1, 2, 0, 1, 2, 3]
    assert positions[1].tolist() == list(range(8))
    assert documents.tolist() == [[0, 0, 0, 1, 1, 1, 1, -1], [0] * 8]


def test_pieces_found_in_the_tokens_are_those_of_the_index(shards):
    for source in shards.sources:
        batch = shards.batch(*every(shards, source))
        indexed = shards.documents_of(*every(shards, source))
        for row, in_row in enumerate(indexed):
            documents = np.full(LENGTH, -1)
            positions = np.zeros(LENGTH, dtype=np.int64)
            for number, piece in enumerate(in_row):
                stop = piece.start + piece.length
                documents[piece.start : stop] = number
                positions[piece.start : stop] = np.arange(piece.length)
            assert batch.documents_BL[row].tolist() == documents.tolist()
            real = documents >= 0
            assert batch.positions_BL[row][real].tolist() == positions[real].tolist()


def test_no_target_crosses_a_document_and_no_other_is_missing(shards):
    for source in shards.sources:
        batch = shards.batch(*every(shards, source))
        for row, in_row in enumerate(shards.documents_of(*every(shards, source))):
            expected = np.full(LENGTH, IGNORED)
            for piece in in_row:
                last = piece.start + piece.length - 1
                expected[piece.start : last] = batch.tokens_BL[row, piece.start + 1 : last + 1]
            assert batch.targets_BL[row].tolist() == expected.tolist()


def test_an_epoch_by_the_clock_reads_every_document_exactly_once(shards):
    sequences = {"web": shards.sequences["web"]}
    steps = -(-sequences["web"] // 4)
    phase = Phase(steps, 4, LENGTH, {"web": 1.0})
    clock = SampleClock(shards.sequences, [phase], seed=9)
    seen: dict[str, int] = {}
    left = sequences["web"]
    for step in range(1, steps + 1):
        draw = clock.batch(step)
        for row in shards.documents_of(draw.sources, draw.sequences)[:left]:
            for piece in row:
                seen[piece.doc_id] = seen.get(piece.doc_id, 0) + piece.length
        left -= 4
    assert len(seen) == 40 + 7 + 12
    assert sum(seen.values()) == shards.total("tokens")["web"]


def test_a_batch_by_the_clock_names_its_sources(shards):
    clock = SampleClock(shards.sequences, [Phase(3, 8, LENGTH, {"web": 0.5, "code": 0.5})], seed=0)
    batch = clock_batch(shards, clock, 2)
    assert batch.tokens_BL.shape == batch.targets_BL.shape == (8, LENGTH)
    for row, in_row in enumerate(shards.documents_of(*clock.batch(2)[:2])):
        source = shards.sources[batch.sources_B[row]]
        assert all(f"-{source}-" in piece.doc_id for piece in in_row)


def test_sources_of_several_inputs_are_joined_by_name(shards):
    assert shards.sources == ("code", "web")
    assert shards.total("sequences") == shards.sequences
    assert shards.train_counts().tolist() == (2 * np.arange(VOCABULARY)).tolist()
    assert shards.token_bytes().tolist() == list(range(VOCABULARY))


@pytest.mark.parametrize(
    ("name", "value"), [("tokenizer", "u"), ("sequence_length", 32), ("vocabulary_size", 51)]
)
def test_inputs_that_do_not_belong_together_are_refused(tmp_path, name, value):
    inputs = [
        made(tmp_path / "a", {"web": [5]}),
        made(tmp_path / "b", {"web": [5]}, **{name: value}),
    ]
    with pytest.raises(InputError, match=name):
        TokenShards(inputs)


def test_no_input_is_refused():
    with pytest.raises(InputError, match="no token shards"):
        TokenShards([])


def test_a_token_outside_the_vocabulary_is_named(tmp_path):
    shards = TokenShards([made(tmp_path / "a", {"web": [5]}, vocabulary_size=20)])
    with pytest.raises(CorruptArtifact, match="vocabulary has 20"):
        shards.batch(*every(shards, "web"))


def test_a_cut_shard_is_named(tmp_path):
    given = made(tmp_path / "a", {"web": [5]})
    path = given.folder / "web/00000.tokens"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(CorruptArtifact, match="expected"):
        TokenShards([given]).batch(np.array([0]), np.array([0]))


def test_a_sequence_outside_the_source_is_a_programming_error(shards):
    with pytest.raises(ValueError, match="no sequence"):
        shards.batch(np.array([0]), np.array([10**6]))
