"""The page of packed tokens: hand-made index tables, and a real packing."""

from __future__ import annotations

import pytest

from artifacts_schema.store.gc import remove_artifact
from stages.engine.page import Artifact, BarFigure, HistogramFigure, TableFigure
from stages.pack.page import LANGUAGES, Pieces, document_lengths, languages, page, sequence_pieces
from stages.pack.stage import Pack


def piece(sequence, start, length, doc_id, document_start=0):
    return {
        "sequence": sequence,
        "start": start,
        "length": length,
        "doc_id": doc_id,
        "document_start": document_start,
        "language": None,
        "content_hash": "0" * 16,
    }


SHARDS = {
    "sequence_length": 8,
    "sources": {
        "a/b": {"shards": [{"file": "a%2Fb/0.tokens", "sequences": 2}]},
        "web": {"shards": [{"file": "web/0.tokens", "sequences": 1}]},
    },
}


@pytest.fixture
def split(given, read_input):
    """Source a/b: x of 8 + 3 tokens, y of 4, z of 1. Source web: w of 8."""
    made, output = given(
        "token_shards",
        {
            "a%2Fb/0.index.parquet": [
                piece(0, 0, 8, "x"),
                piece(1, 0, 3, "x", 8),
                piece(1, 3, 4, "y"),
                piece(1, 7, 1, "z"),
            ],
            "web/0.index.parquet": [piece(0, 0, 8, "w")],
        },
    )
    return read_input(made, output)


def test_documents_and_sequences_fall_into_doubling_bins(split):
    pieces = Pieces.read(split, SHARDS)
    (lengths,) = document_lengths(pieces, 8)
    assert isinstance(lengths, HistogramFigure)
    assert lengths.edges == (1.0, 2.0, 4.0, 8.0, 16.0)
    # z has 1 token, y 4, x 11; w 8.
    drawn = {series.name: series.values for series in lengths.series}
    assert drawn == {"a/b": (1, 0, 1, 1), "web": (0, 0, 0, 1)}
    (counts,) = sequence_pieces(pieces)
    # One sequence of one piece and one of three; one of one.
    assert counts.labels == ("1", "2 to 3")
    assert {s.name: s.values for s in counts.series} == {"a/b": (0.5, 0.5), "web": (1.0, 0.0)}
    assert "shards" not in lengths.note


def spoken(**tokens):
    """shards.json of two sources that share what is told of the first."""
    other = {"languages": {"en": 8}}
    return {"sources": {"a/b": {"languages": tokens}, "web": other}}


def test_languages_are_shares_of_tokens_and_the_rest_is_not_declared():
    (shares,) = languages(spoken(en=11, de=4, **{"": 1}))
    assert isinstance(shares, BarFigure)
    assert shares.labels == ("en", "de", "not declared")
    assert shares.series[0].values == (19 / 24, 4 / 24, 1 / 24)


def test_rare_languages_are_summed():
    (shares,) = languages(spoken(**{f"l{n:02d}": 100 - n for n in range(LANGUAGES + 5)}))
    assert shares.labels[-1] == "6 others"
    assert sum(shares.series[0].values) == pytest.approx(1)


def test_no_language_at_all_draws_nothing():
    assert languages({"sources": {"web": {"languages": {"": 5}}}}) == []


def test_too_many_pieces_are_sampled_by_table_and_the_note_says_so(split):
    pieces = Pieces.read(split, SHARDS, most=3)
    (lengths,) = document_lengths(pieces, 8)
    assert [series.name for series in lengths.series] == ["a/b"]
    assert "1 of 2 shards" in lengths.note


@pytest.fixture
def packed(run_stage, given, make_documents, tokenizer, tokenizer_files, store):
    def make(texts, **config):
        inputs = {
            "documents": [make_documents([texts])],
            "tokenizer": [given("tokenizer", tokenizer_files(tokenizer))],
        }
        made = run_stage(Pack, {"sequence_length": 16, **config}, inputs)
        return Artifact(store, made), inputs["tokenizer"][0][0]

    return make


TEXTS = [{"text": f"{'the cat sat ' * (n % 5)}{n}", "source": "web"} for n in range(60)]


def test_a_real_packing_fills_every_figure(packed):
    artifact, _ = packed(TEXTS, held_out_share=0.3)
    found = page(artifact)
    assert len({figure.title for figure in found}) == len(found)
    for figure in found:
        assert (figure if isinstance(figure, TableFigure) else figure.table()).rows
    counts = artifact.manifest.counts
    table = next(figure for figure in found if figure.title == "Tokens by source and split")
    for row, split in zip(table.rows, ("train", "held_out"), strict=True):
        tokens, sequences = counts[f"{split}_tokens"], counts[f"{split}_sequences"]
        assert row[2:4] == (counts[f"{split}_documents"], tokens)
        assert row[6] == pytest.approx(tokens / (sequences * 16))
    frequent = next(figure for figure in found if figure.title.startswith("Most frequent"))
    # Each document begins and ends with a token of its own, more than any other is used.
    assert {row[1] for row in frequent.rows} >= {"<|begin_of_text|>", "<|end_of_text|>", "␣cat"}
    ranks = next(figure for figure in found if figure.title.startswith("Uses of each"))
    uses = ranks.series[0].y
    assert list(uses) == sorted(uses, reverse=True)
    assert sum(uses) == counts["train_tokens"]


def test_nothing_held_out_shows_one_split(packed):
    found = page(packed(TEXTS, held_out_share=0.0)[0])
    facts = dict(found[0].rows)
    assert facts["share of tokens held out"] == "0.00%"
    fill = next(figure for figure in found if figure.title.startswith("Fill"))
    assert [series.name for series in fill.series] == ["train"]


def test_without_its_tokenizer_tokens_are_counted_but_not_spelt(packed, store):
    artifact, tokenizer = packed(TEXTS)
    remove_artifact(store, tokenizer)
    titles = [figure.title for figure in page(artifact)]
    assert "Uses of each token by rank, train" in titles
    assert "Most frequent tokens, train" not in titles


def test_a_corpus_without_text_has_a_page(packed):
    found = page(packed([""])[0])
    assert dict(found[0].rows)["documents without text"] == 1
    assert dict(found[0].rows).get("share of tokens held out") is None


def test_what_is_excluded_is_told_and_small_sources_are_named(packed):
    rows = [*TEXTS, {"text": "dog " * 900, "source": "noise"}, {"text": "the dog", "source": "z"}]
    artifact, _ = packed(
        rows, held_out_share=0.0, strategy="concatenate", repetition={"min_repeats": 8}
    )
    found = page(artifact)
    facts = dict(found[0].rows)
    counts = artifact.manifest.counts
    assert facts["strategy"] == "concatenate"
    assert facts["segments left out as repetitive"] == counts["train_repetitive"] > 40
    assert facts["tokens in them"] == counts["train_repetitive_tokens"]
    assert facts["documents cut that fit into a sequence"] == counts["train_cut"] > 0
    assert "tokens cropped away" not in facts
    fill = next(figure for figure in found if figure.title.startswith("Fill"))
    assert fill.note.endswith(": noise, web, z.")


def test_what_is_cropped_is_told(packed):
    artifact, _ = packed([{"text": "the cat sat on a dog " * 9, "source": "web"}] * 9,
                         held_out_share=0.0, strategy="best_fit_crop", repetition=None)  # fmt: skip
    facts = dict(page(artifact)[0].rows)
    assert facts["tokens cropped away"] == artifact.manifest.counts["train_cropped_tokens"] > 0
