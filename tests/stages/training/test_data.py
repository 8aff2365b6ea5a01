"""Token shards as batches: targets, positions and pieces, against what was written."""

from __future__ import annotations

import numpy as np
import pytest
from written_shards import END, PADDING, every, write_shards

from stages.training.sample_clock import Phase, SampleClock, clock_batch
from stages.training.token_shards import IGNORED, TokenShards, cut_into_segments

LENGTH, VOCABULARY = 16, 50


@pytest.fixture(params=["best_fit", "concatenate"])
def written(request, tmp_path):
    """Two outputs: `web` in three shards, `code` in one."""
    how = {"strategy": request.param}
    return [
        write_shards(tmp_path / "a", {"web": [40, 7], "code": [9]}, **how),
        write_shards(tmp_path / "b", {"web": [12]}, seed=1, **how),
    ]


@pytest.fixture
def shards(written):
    return TokenShards(written)


def rows_of(written, source):
    """What was written of a source, through all outputs."""
    return [row for one in written for row in one.rows.get(source, [])]


def test_hand_made_rows_give_targets_and_segments():
    rows = np.array([[0, 9, 1, 0, 8, 7, 1, 2], [5, 6, 7, 8, 9, 5, 6, 7]], dtype=np.uint16)
    targets_BL, documents_BL = cut_into_segments(rows, END, PADDING)
    assert targets_BL.tolist() == [
        [9, 1, IGNORED, 8, 7, 1, IGNORED, IGNORED],
        [6, 7, 8, 9, 5, 6, 7, IGNORED],
    ]
    assert documents_BL.tolist() == [[0, 0, 0, 1, 1, 1, 1, -1], [0] * 8]


def test_where_the_end_token_is_also_the_padding_the_first_one_ends_the_text():
    """As GPT-2's tokenizer has it, whose one special token is all of them."""
    rows = np.array([[7, 8, 1, 9, 1, 1, 1]], dtype=np.uint32)
    targets_BL, documents_BL = cut_into_segments(rows, 1, 1)
    assert documents_BL.tolist() == [[0, 0, 0, 1, 1, -1, -1]]
    assert targets_BL.tolist() == [[8, 1, IGNORED, 1, IGNORED, IGNORED, IGNORED]]


def test_batches_are_what_was_written(shards, written):
    assert shards.sources == ("code", "web")
    for source in shards.sources:
        batch = shards.batch(*every(shards, source))
        for row, runs in enumerate(rows_of(written, source)):
            tokens, documents = np.full(LENGTH, PADDING), np.full(LENGTH, -1)
            targets = np.full(LENGTH, IGNORED)
            for number, run in enumerate(runs):
                span = slice(run.start, run.start + len(run.ids))
                tokens[span], documents[span] = run.ids, number
                targets[span] = [*run.ids[1:], IGNORED]
            assert batch.tokens_BL[row].tolist() == tokens.tolist()
            assert batch.targets_BL[row].tolist() == targets.tolist()
            assert batch.documents_BL[row].tolist() == documents.tolist()


def test_documents_are_named_with_place_language_and_content_hash(shards, written):
    for source in shards.sources:
        named = shards.documents_of(*every(shards, source))
        for pieces, runs in zip(named, rows_of(written, source), strict=True):
            assert [
                (p.doc_id, p.start, p.length, p.document_start, p.language, p.content_hash)
                for p in pieces
            ] == [
                (
                    run.document.doc_id,
                    run.start,
                    len(run.ids),
                    run.document_start,
                    run.document.language,
                    run.document.content_hash,
                )
                for run in runs
            ]


def test_a_sequence_that_a_batch_names_twice_is_named_twice(shards):
    once, again = shards.documents_of([1, 1], [3, 3])
    assert once == again
    assert once


def test_the_way_back_leads_from_a_document_to_its_sequences(shards, written):
    rows = {source: rows_of(written, source) for source in shards.sources}
    for wanted in ({"0-web-0-3"}, {"1-web-0-0", "0-code-0-2", "0-web-1-6"}, {"none"}):
        expected = {
            source: [
                number
                for number, runs in enumerate(rows[source])
                if any(run.document.doc_id in wanted for run in runs)
            ]
            for source in shards.sources
        }
        found = {name: part.tolist() for name, part in shards.sequences_of(wanted).items()}
        assert found == {name: part for name, part in expected.items() if part}


def test_rows_of_token_files_have_numbers_within_their_source(shards, written):
    first, second = written
    before = len(first.rows["web"])
    chosen = {
        first.digest: {"code/00000.tokens": [2, 0]},
        second.digest: {"web/00000.tokens": [4]},
        "another": {"web/00000.tokens": [1]},
    }
    found = {name: part.tolist() for name, part in shards.sequences_in(chosen).items()}
    assert found == {"code": [0, 2], "web": [before + 4]}


def test_totals_are_over_all_outputs(shards, written):
    assert shards.total("sequences") == shards.sequences
    for source in shards.sources:
        runs = [run for row in rows_of(written, source) for run in row]
        assert shards.total("tokens")[source] == sum(len(run.ids) for run in runs)
        languages: dict[str, int] = {}
        for run in runs:
            name = run.document.language or ""
            languages[name] = languages.get(name, 0) + len(run.ids)
        assert shards.languages[source] == languages
    assert shards.total("documents") == {"code": 9, "web": 59}
    assert shards.train_counts().tolist() == (2 * np.arange(VOCABULARY)).tolist()
    assert shards.token_bytes().tolist() == list(range(VOCABULARY))
    assert (shards.vocabulary_size, shards.padded_vocabulary_size) == (VOCABULARY, 64)


def test_a_batch_by_the_clock_names_its_sources(shards):
    clock = SampleClock(shards.sequences, [Phase(3, 8, LENGTH, {"web": 0.5, "code": 0.5})], seed=0)
    batch = clock_batch(shards, clock, 2)
    assert batch.tokens_BL.shape == batch.targets_BL.shape == (8, LENGTH)
    for row, in_row in enumerate(shards.documents_of(*clock.batch(2)[:2])):
        source = shards.sources[batch.sources_B[row]]
        assert all(f"-{source}-" in piece.doc_id for piece in in_row)


def test_a_batch_of_no_rows_is_whole():
    """A rank may have none, where the batch has fewer rows than there are ranks."""
    targets_BL, documents_BL = cut_into_segments(np.empty((0, LENGTH), np.uint16), END, PADDING)
    assert targets_BL.shape == documents_BL.shape == (0, LENGTH)


def test_types_are_those_that_embedding_and_cross_entropy_take(shards):
    torch = pytest.importorskip("torch")
    batch = shards.batch(*every(shards, "code"))
    tokens, targets = torch.from_numpy(batch.tokens_BL), torch.from_numpy(batch.targets_BL)
    table = torch.randn(VOCABULARY, VOCABULARY, dtype=torch.float64, requires_grad=True)
    logits = torch.nn.functional.embedding(tokens, table)
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    loss.backward()
    seen = np.bincount(batch.tokens_BL[batch.targets_BL != IGNORED], minlength=VOCABULARY)
    assert ((table.grad.abs().sum(1) > 0).numpy() == (seen > 0)).all()


@pytest.mark.parametrize("sequence", [10**6, -1])
def test_a_sequence_outside_the_source_is_a_programming_error(shards, sequence):
    with pytest.raises(ValueError, match=f"source 'code' has no sequence {sequence}"):
        shards.batch([0], [sequence])


def test_sequences_behind_shards_without_any_are_found(tmp_path):
    made = write_shards(tmp_path / "a", {"web": [0, 5, 0, 0, 6, 0]})
    shards = TokenShards([made])
    batch = shards.batch(*every(shards, "web"))
    for row, runs in enumerate(made.rows["web"]):
        assert batch.tokens_BL[row, 0] == runs[0].ids[0]


def test_wide_ids_come_as_they_are(tmp_path):
    size = 100_000
    made = write_shards(tmp_path / "a", {"web": [30]}, vocabulary=size, dtype="uint32")
    shards = TokenShards([made])
    batch = shards.batch(*every(shards, "web"))
    for row, runs in enumerate(made.rows["web"]):
        ids = [token for run in runs for token in run.ids]
        assert batch.tokens_BL[row, : len(ids)].tolist() == ids
    assert batch.tokens_BL.max() > 2**16
