"""What holds of clock and shards together, for whatever was packed and however it is read."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_pieces import reference_pieces
from written_shards import END, PADDING, STRATEGIES, write_shards

from stages.training.sample_clock import Phase, SampleClock, clock_batch
from stages.training.token_shards import IGNORED, TokenShards, cut_into_segments

FIELDS = ("tokens_BL", "targets_BL", "documents_BL", "sources_B")


@st.composite
def packed_rows(draw):
    """Rows of pieces that end at `END` or at the row's end, then padding; uint16 or uint32."""
    length = draw(st.integers(1, 70))
    rows = []
    for _ in range(draw(st.integers(0, 5))):
        row: list[int] = []
        while len(row) < length and draw(st.integers(0, 7)):
            row += draw(st.lists(st.integers(5, 60_000), min_size=0, max_size=40))
            row.append(END)
        row = row[:length]
        rows.append([*row, *[PADDING] * (length - len(row))])
    dtype = draw(st.sampled_from(["<u2", "<u4"]))
    return np.array(rows, dtype=dtype).reshape(len(rows), length)


@settings(max_examples=120, deadline=None)
@given(rows_BL=packed_rows())
def test_whole_array_operations_give_what_a_walk_over_the_tokens_gives(rows_BL):
    targets_BL, documents_BL = cut_into_segments(rows_BL, END, PADDING)
    targets, documents = reference_pieces(rows_BL, END, PADDING)
    assert np.array_equal(targets_BL, targets)
    assert np.array_equal(documents_BL, documents)


_counter = itertools.count()


def written(folder: Path, counts, length, strategy, seed, **more):
    """Shards in a folder of their own, whatever hypothesis tries."""
    folder = folder / str(next(_counter))
    return write_shards(folder, counts, length=length, strategy=strategy, seed=seed, **more)


corpora = st.fixed_dictionaries(
    {
        "counts": st.dictionaries(
            st.sampled_from(["web", "code", "books"]),
            st.lists(st.integers(0, 12), min_size=1, max_size=3),
            min_size=1,
        ).filter(lambda counts: any(sum(shards) for shards in counts.values())),
        "length": st.integers(4, 40),
        "strategy": st.sampled_from(sorted(STRATEGIES)),
        "seed": st.integers(0, 999),
    }
)


@settings(max_examples=25, deadline=None)
@given(corpus=corpora, batch=st.integers(3, 12), dtype=st.sampled_from(["uint16", "uint32"]))
def test_every_token_comes_once_an_epoch_and_no_target_crosses_a_document(
    tmp_path_factory, corpus, batch, dtype
):
    """Each document is put together again from what an epoch reads, by names from the index."""
    made = written(tmp_path_factory.getbasetemp(), **corpus, dtype=dtype)
    shards = TokenShards([made])
    for source, rows in made.rows.items():
        if not rows:
            continue
        steps = -(-len(rows) // batch)
        clock = SampleClock(shards.sequences, [Phase(steps, batch, 1, {source: 1.0})], seed=7)
        seen = Counter[tuple[str, int, int]]()
        read = 0
        for step in range(1, steps + 1):
            one, draw = clock_batch(shards, clock, step), clock.batch(step)
            named = shards.documents_of(draw.sources, draw.sequences)
            for row in range(min(batch, len(rows) - read)):
                left = one.targets_BL[row].copy()
                for piece in named[row]:
                    ids = one.tokens_BL[row, piece.start : piece.start + piece.length].tolist()
                    for offset, token in enumerate(ids):
                        seen[piece.doc_id, piece.document_start + offset, token] += 1
                    last = piece.start + piece.length - 1
                    assert left[piece.start : last].tolist() == ids[1:]
                    left[piece.start : last] = IGNORED
                assert (left == IGNORED).all()
            read += batch
        documents = {run.document for row in rows for run in row}
        expected = Counter(
            (document.doc_id, place, token)
            for document in documents
            for place, token in enumerate(document.ids)
        )
        assert seen == expected


@settings(max_examples=30, deadline=None)
@given(corpus=corpora, batch=st.integers(1, 17), step=st.integers(1, 40), seed=st.integers(0, 9))
def test_the_ranks_of_any_world_together_read_the_batch(
    tmp_path_factory, corpus, batch, step, seed
):
    shards = TokenShards([written(tmp_path_factory.getbasetemp(), **corpus)])
    clock = SampleClock(shards.sequences, [Phase(40, batch, 1)], seed)
    whole = clock_batch(shards, clock, step)
    for world in (1, 2, 4, 8):
        parts = [clock_batch(shards, clock, step, rank=r, world=world) for r in range(world)]
        for name in FIELDS:
            joined = np.concatenate([getattr(part, name) for part in parts])
            assert np.array_equal(joined, getattr(whole, name))
        sizes = [len(part) for part in parts]
        assert max(sizes) - min(sizes) <= 1


def test_a_rank_reads_its_own_rows_and_no_other(tmp_path, monkeypatch):
    made = write_shards(tmp_path / "a", {"web": [3] * 16})
    shards = TokenShards([made])
    clock = SampleClock(shards.sequences, [Phase(1, 8, 16)], seed=3)
    draw, opened = clock.batch(1), []
    given = made.local_path
    monkeypatch.setattr(made, "local_path", lambda path: opened.append(path) or given(path))
    clock_batch(shards, clock, 1, rank=1, world=4)
    files_B, _ = shards.locate(draw.sources[2:4], draw.sequences[2:4])
    assert set(opened) == {shards._tables.paths[file] for file in files_B}


@settings(max_examples=25, deadline=None)
@given(corpus=corpora, chosen=st.lists(st.integers(0, 10**6), min_size=1, max_size=6))
def test_labels_and_segments_are_those_of_the_flattening_collator_of_transformers(
    tmp_path_factory, corpus, chosen
):
    """Its labels are not shifted: the label of a token is what our target before it says."""
    transformers = pytest.importorskip("transformers")
    made = written(tmp_path_factory.getbasetemp(), **corpus)
    shards = TokenShards([made])
    source = next(name for name, rows in made.rows.items() if rows)
    sequences = np.array([one % len(made.rows[source]) for one in chosen])
    batch = shards.batch(np.full(len(chosen), shards.sources.index(source)), sequences)
    features = []
    for row in sequences.tolist():
        runs = made.rows[source][row]
        features += [{"input_ids": list(run.ids), "labels": list(run.ids)} for run in runs]
        rest = corpus["length"] - sum(len(run.ids) for run in runs)
        if rest:
            features.append({"input_ids": [PADDING] * rest, "labels": [IGNORED] * rest})
    theirs = transformers.DataCollatorWithFlattening(return_flash_attn_kwargs=True)(
        features, return_tensors="np"
    )
    assert batch.tokens_BL.ravel().tolist() == theirs["input_ids"][0].tolist()
    assert batch.targets_BL.ravel().tolist() == [*theirs["labels"][0, 1:].tolist(), IGNORED]
    numbers = batch.documents_BL.ravel()
    first = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1) != 0)
    edges = np.arange(0, numbers.size, batch.tokens_BL.shape[1])
    starts = np.union1d(first, edges)
    assert [*starts.tolist(), numbers.size] == theirs["cu_seq_lens_q"].tolist()


@pytest.mark.parametrize(
    ("per_batch", "batches"), [(64, 2_000), pytest.param(1, 100_000, marks=pytest.mark.full)]
)
def test_memory_stays_where_it_is_over_many_batches(tmp_path, per_batch, batches):
    """Files of 16 MB in all, each read many times over: as maps they would count in full.

    In a process of its own: in one that has held gigabytes, the allocator's growth is larger.
    """
    length, rows = 256, 4096
    made = write_shards(tmp_path / "a", {"web": [40]}, length=length)
    table = made.table
    (whole,) = table["sources"]["web"]["shards"]
    content = (made.folder / whole["file"]).read_bytes()
    one = {"sequences": rows, "tokens": rows}
    shards = [{"file": f"web/{number:05d}.tokens", **one} for number in range(8)]
    for shard in shards:
        (made.folder / shard["file"]).write_bytes((content * rows)[: rows * length * 2])
    table["sources"]["web"] |= {"shards": shards, "sequences": 8 * rows, "tokens": 8 * rows}
    made.describe(**table)

    tests = Path(write_shards.__code__.co_filename).parent
    program = Path(__file__).with_name("loader_growth.py")
    numbers = (per_batch, 2_000 // per_batch, batches)
    done = subprocess.run(
        [sys.executable, program, made.folder, *map(str, numbers)],
        env={**os.environ, "PYTHONPATH": f"{tests.parent}{os.pathsep}{tests}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 2 << 20
