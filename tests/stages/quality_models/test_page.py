"""The page: figures from the cards, and none for what was not made."""

from __future__ import annotations

import pytest
from two_classes import SMALL

from stages.engine.page import Artifact, CurveFigure, HistogramFigure, IntervalFigure
from stages.quality_models.page import page, summary


@pytest.fixture
def artifact(make, store):
    return Artifact(store, make(classifier={**SMALL, "name": "toxicity"}))


def test_the_score_card_shows_the_card_with_its_intervals(artifact):
    card = artifact.output("classifier").read_json("card.json")
    (figure,) = summary(artifact)
    assert isinstance(figure, IntervalFigure)
    assert "'toxicity'" in figure.title
    shown = {one.name: one for one in figure.estimates}
    at = card["held"]["at_cutoff"]
    assert shown["precision"].value == at["precision"]["value"]
    assert shown["recall"].low == at["recall"]["low"]
    assert shown["ROC AUC"].baseline == 0.5
    assert all(one.low <= one.value <= one.high for one in shown.values())


def test_every_figure_tells_its_numbers_as_a_table(artifact):
    card = artifact.output("classifier").read_json("card.json")
    found = page(artifact)
    assert len({figure.title for figure in found}) == len(found)
    for figure in found:
        assert (figure.table() if hasattr(figure, "table") else figure).rows, figure.title
    (histogram,) = [figure for figure in found if isinstance(figure, HistogramFigure)]
    held = card["held"]["documents"]
    assert [sum(one.values) for one in histogram.series] == [held["reference"], held["contrast"]]
    curves = {figure.title.split(" of ")[0]: figure for figure in found
              if isinstance(figure, CurveFigure)}  # fmt: skip
    assert (
        curves["Precision over recall"].marks[0].x == (card["held"]["at_cutoff"]["recall"]["value"])
    )
    assert curves["Calibration"].series[1].faint


def test_what_was_not_made_has_no_figure(artifact):
    titles = " ".join(figure.title for figure in page(artifact))
    assert "n-gram" not in titles
    assert "erplexity" not in titles
