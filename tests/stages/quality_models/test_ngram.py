"""The n-gram model of the stage and its cut-offs."""

from __future__ import annotations

import numpy as np
import pytest
from two_classes import BAD, GOOD, texts

from artifacts_schema.errors import InputError
from stages.engine.page import Artifact
from stages.language_model.perplexity import NgramModel, WordTokens, line_scores
from stages.quality_models.page import page

NGRAM = {"order": 3}


@pytest.fixture
def make_ngram(make):
    """A run without a classifier."""
    return lambda **config: make(**{"ngram": NGRAM, "classifier": None, **config})


@pytest.fixture
def model_of(read_input):
    def load(made):
        found = read_input(made, "ngram_model")
        return NgramModel.load(found.local_path("model.json").parent)

    return load


def perplexities(model, documents):
    return line_scores(model, WordTokens.from_config(model.config), documents).perplexities()


def test_the_reference_is_more_likely_than_the_contrast(make_ngram, read_input, model_of):
    made = make_ngram()
    card = read_input(made, "ngram_model").read_json("card.json")
    assert card["held_perplexity"]["reference"] < card["held_perplexity"]["contrast"]
    assert card["documents"] < 200  # The held ones are not learnt from.
    model = model_of(made)
    good = perplexities(model, texts(GOOD, 30, seed=7))
    bad = perplexities(model, texts(BAD, 30, seed=8))
    assert np.median(good) < np.median(bad)


def test_cutoffs_are_percentiles_of_the_contrast(make_ngram, read_input, model_of):
    made = make_ngram(cutoffs={"head": 30, "tail": 60})
    told = read_input(made, "cutoffs").read_json("cutoffs.json")
    found = told["languages"]["en"]
    assert found["measured_on"] == "contrast"
    assert found["documents"] == 260
    values = perplexities(model_of(made), texts(BAD, 260, seed=2))
    assert [found["head"], found["tail"]] == pytest.approx(np.percentile(values, [30, 60]))
    assert found["percentiles"][29] == found["head"]
    assert len(found["percentiles"]) == 99


def test_without_a_contrast_the_held_reference_is_measured(make_ngram, read_input):
    made = make_ngram(contrast=[], language="de")
    found = read_input(made, "cutoffs").read_json("cutoffs.json")["languages"]["de"]
    assert found["measured_on"] == "reference"
    assert 20 < found["documents"] < 80  # A quarter of 200 is held.


def test_too_few_documents_for_percentiles(make_ngram, make_documents):
    few = [make_documents([texts(BAD, 5, seed=3)], snapshot="few")]
    with pytest.raises(InputError, match=r"5 .*'contrast'.* 10 "):
        make_ngram(contrast=few)


def test_the_same_bytes_from_other_workers_and_after_a_kill(make_ngram, make_documents, killed_at):
    with killed_at("payload written"):
        make_ngram(seed=2)
    resumed = make_ngram(seed=2)
    again = make_ngram(seed=2, execution={"workers": 2, "memory": "1GB"}, force=True)
    good = [make_documents([texts(GOOD, 200, seed=1)], snapshot="the same in one shard")]
    moved = make_ngram(seed=2, reference=good)
    assert moved.key != resumed.key
    for output in ("ngram_model", "cutoffs"):
        digests = {made.outputs[output].digest for made in (resumed, again, moved)}
        assert len(digests) == 1, output


def test_the_page_shows_sizes_and_cutoffs(make_ngram, store):
    artifact = Artifact(store, make_ngram())
    card = artifact.output("ngram_model").read_json("card.json")
    figures = {figure.title: figure for figure in page(artifact)}
    assert [row[2] for row in figures["n-grams of the model"].rows] == card["ngrams"]
    assert figures["Cut-offs of perplexity"].rows[0][0] == "en"
    curve = figures["Perplexity by percentile"].series[0]
    assert list(curve.y) == sorted(curve.y)
