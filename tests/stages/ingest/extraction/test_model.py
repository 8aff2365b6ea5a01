"""The block classifier computes in integers, and what it computes is what the trees say."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from stages.ingest.extraction import classifier as model_module
from stages.ingest.extraction.blocks import segment
from stages.ingest.extraction.classifier import WEIGHTS, Ensemble, Lexicon, block_model
from stages.ingest.extraction.features import (
    LEXICON_FEATURES,
    Page,
    first_features,
    second_features,
)

HTML = (
    "<title>Storm hits the coast</title><nav><ul class=menu><li><a href=/>Home</a>"
    "<li><a href=/n>News</a></ul></nav><article class=entry-content><h1>Storm hits the coast</h1>"
    + "<p>The storm reached the coast on Monday, and the harbour was closed. Nobody was hurt.</p>"
    * 6
    + "</article><div class=footer>© 2024 <a href=/imprint>Imprint</a></div>"
)


def scored_one_by_one(held: dict, features: np.ndarray) -> list[int]:  # type: ignore[type-arg]
    """The sum of leaves, tree by tree and block by block, in Python's own integers."""
    sums = []
    for block in features.T.tolist():
        total = held["base"]
        for tree in held["trees"]:
            leaf = sum(
                (block[feature] > threshold) << depth
                for depth, (feature, threshold) in enumerate(tree["splits"])
            )
            total += tree["leaves"][leaf]
        sums.append(total)
    return sums


@pytest.fixture(scope="module")
def weights() -> dict:  # type: ignore[type-arg]
    return json.loads(WEIGHTS.read_text(encoding="utf-8"))


def test_both_passes_are_the_trees_of_the_weights(weights: dict) -> None:  # type: ignore[type-arg]
    blocks = segment(LexborHTMLParser(HTML))
    page, model = Page(blocks), block_model()
    names, first = first_features(page, blocks, model.lexicon.features(blocks))
    sums = model.first.score(first)
    assert sums.tolist() == scored_one_by_one(weights["first"], first)
    more_names, more = second_features(page, model.thousandths(sums))
    second = np.concatenate([first, more])
    assert model.second.score(second).tolist() == scored_one_by_one(weights["second"], second)
    assert weights["features"] == [*names, *more_names]
    assert len(set(weights["features"])) == len(weights["features"])


def test_every_number_of_the_model_is_an_integer(weights: dict) -> None:  # type: ignore[type-arg]
    def numbers(value: object) -> list[object]:
        if isinstance(value, dict):
            return [one for inner in value.values() for one in numbers(inner)]
        if isinstance(value, list):
            return [one for inner in value for one in numbers(inner)]
        return [] if isinstance(value, str) else [value]

    assert {type(number) for number in numbers(weights)} == {int}
    blocks = segment(LexborHTMLParser(HTML))
    page, model = Page(blocks), block_model()
    _, first = first_features(page, blocks, model.lexicon.features(blocks))
    _, more = second_features(page, np.full(page.count, 500))
    assert first.dtype.kind == more.dtype.kind == "i"
    assert all(scores.dtype.kind == "i" for scores in model.scores(blocks))


def test_sums_stay_far_from_the_limit_of_their_integers(weights: dict) -> None:  # type: ignore[type-arg]
    for name in ("first", "second"):
        most = sum(max(map(abs, tree["leaves"])) for tree in weights[name]["trees"])
        assert most + abs(weights[name]["base"]) < 2**31


def test_a_score_is_the_logistic_function_of_the_sum() -> None:
    """The table's steps lie where 1 / (1 + exp(-sum)) crosses multiples of 1/200."""
    model = block_model()
    scale = 1 << 12
    for sum_ in range(-8 * scale, 8 * scale, 997):
        exact = 1000 / (1 + np.exp(-sum_ / scale))
        assert abs(int(model.thousandths(np.array([sum_], np.int32))[0]) - exact) <= 6


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_ensembles_of_any_shape(data: st.DataObject) -> None:
    depth = data.draw(st.integers(1, 7))
    small = st.integers(-50, 50)
    held = {
        "base": data.draw(small),
        "trees": [
            {
                "splits": data.draw(
                    st.lists(st.tuples(st.integers(0, 2), small), min_size=depth, max_size=depth)
                ),
                "leaves": data.draw(st.lists(small, min_size=2**depth, max_size=2**depth)),
            }
            for _ in range(data.draw(st.integers(1, 4)))
        ],
    }
    features = np.array(
        data.draw(st.lists(st.lists(small, min_size=3, max_size=3), min_size=1, max_size=9)),
        np.int32,
    ).T
    assert Ensemble.read(held).score(features).tolist() == scored_one_by_one(held, features)


def test_blocks_are_scored_alike_in_one_and_in_many_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = segment(LexborHTMLParser(HTML * 3))
    whole = [scores.tolist() for scores in block_model().scores(blocks)]
    monkeypatch.setattr(model_module, "_CHUNK", 5)
    assert [scores.tolist() for scores in block_model().scores(blocks)] == whole


def test_container_sums_are_those_of_the_blocks_inside() -> None:
    blocks = segment(LexborHTMLParser(HTML))
    page = Page(blocks)
    held = blocks.containers

    def inside(block: int, container: int) -> bool:
        above = blocks.container[block]
        while above not in (-1, container):
            above = held.parent[above]
        return above == container

    sizes = page.facts[0]
    sums_around = page.within(np.array([sizes]))[0]
    for level, sums in zip(page.levels, sums_around, strict=True):
        for block, container in enumerate(level.tolist()):
            wanted = [sizes[b] for b in range(page.count) if container < 0 or inside(b, container)]
            assert sums[block] == sum(wanted)
    shares = Fraction(int(sums_around[0, 0]), int(sizes.sum()))
    assert 0 < shares < 1


def test_marks_of_names_are_looked_up_along_the_ancestors() -> None:
    lexicon = Lexicon({"menu": -300, "entry": 50, "body": 80}, {"home": -200, "the": 40})
    blocks = segment(
        LexborHTMLParser("<div class='Entry-body'><p>The end<ul id=menu_2><li>Home the</ul></div>")
    )
    found = dict(zip(LEXICON_FEATURES, lexicon.features(blocks), strict=True))
    assert found["names_high_up"].tolist()[0] == 80
    assert found["names_low_all"].tolist() == [0, -300]
    assert found["names_sum_all"].tolist() == [80, -220]
    assert found["words_mean"].tolist() == [40, -80]
    assert found["words_low"].tolist() == [40, -200]
