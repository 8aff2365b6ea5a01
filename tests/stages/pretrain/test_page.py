"""Pages of pretraining: a real tiny run, and the mixture and account of hand-made ones."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from stages.engine.page import Artifact, BarFigure, CurveFigure, TableFigure
from stages.pretrain import figures
from stages.pretrain import page as pages
from stages.pretrain.page import page, summary
from stages.training.figures import TrainingRun


def titled(found, title):
    (figure,) = [figure for figure in found if figure.title == title]
    return figure


def step(number, phase, web, code):
    return {
        "training_step": number,
        "tokens": 100 * number,
        "phase": phase,
        "loss": 1.0,
        "grad_norm": 1.0,
        "learning_rate": 0.1,
        "skipped": 0.0,
        "tokens/code": float(code),
        "tokens/web": float(web),
    }


def source(by_phase, available, cap=None):
    planned = sum(by_phase)
    return {
        "available_sequences": available,
        "planned_sequences": planned,
        "planned_positions": 10 * planned,
        "planned_tokens": 9 * planned,
        "epochs": planned / available,
        "max_epochs": cap,
        "repeated_tokens": 0,
        "left_tokens": 9 * (available - planned),
        "unseen_sequences": max(0, available - planned),
        "planned_sequences_by_phase": by_phase,
        "available_tokens": 9 * available,
        "realised_tokens": 9 * planned,
    }


@pytest.fixture
def two_phases(given, store):
    """Sequences of 10 tokens: 4 + 4 by size (web 30, code 10), then all web."""
    phase = {
        "training_steps": 2,
        "tokens": 80,
        "sequences_per_batch": 4,
        "sequence_length": 10,
        "learning_rate": {"peak": 0.1, "warmup_share": 0.5, "decay": "none"},
    }
    account = {
        "training_steps": 3,
        "tokens": 300,
        "skipped_updates": 0,
        "phases": [
            {**phase, "mixture": {}, "mixture_end": {}},
            {
                **phase,
                "mixture": {"web": 1.0},
                "mixture_end": {},
                "learning_rate": {"peak": None, "warmup_share": 0.0, "decay": "linear"},
            },
        ],
        "sources": {"web": source([6, 4], 30), "code": source([2, 0], 10, cap=1.5)},
        "languages": {
            "en": {
                "available_tokens": 300,
                "planned_tokens": 90,
                "realised_tokens": 80,
                "epochs": 0.3,
                "repeated_tokens": 0,
                "left_tokens": 210,
            },
            "": {
                "available_tokens": 60,
                "planned_tokens": 18,
                "realised_tokens": 28,
                "epochs": 0.3,
                "repeated_tokens": 0,
                "left_tokens": 42,
            },
        },
        "languages_are": "expected",
        "held_out_sequences": 16,
        "unigram_bits_per_byte": {"all": 2.0, "web": 2.5},
        "unigram_bits_per_byte_by_language": {"de": 2.0, "": 4.0},
    }

    def make(held_out=(), baseline=None):
        if baseline is not None:
            account["unigram_bits_per_byte"] = baseline
        rows = [step(1, 0, 45, 5), step(2, 0, 15, 15), step(3, 1, 40, 0)]
        files = {
            "metrics.parquet": rows,
            "held_out.parquet": list(held_out),
            "run.json": account,
        }
        return Artifact(store, given("training_run", files)[0])

    return make


def held(number, name, bits, language=None):
    return {
        "training_step": number,
        "tokens": 100 * number,
        "source": name,
        "loss": 1.0,
        "bits_per_byte": bits,
        "language": language,
    }


def test_a_real_run_fills_every_figure(packed, pretrain, store):
    artifact = Artifact(store, pretrain(packed()))
    found = page(artifact)
    assert len({figure.title for figure in found}) == len(found)
    for figure in found:
        assert (figure if isinstance(figure, TableFigure) else figure.table()).rows
    loss = titled(found, "Training loss, nats")
    assert len(loss.series[0].x) == 9
    # A checkpoint was kept after step 6; the second phase begins with step 7.
    after_6, after_7 = loss.series[0].x[5:7]
    marks = [(mark.x, mark.label) for mark in loss.marks]
    assert marks == [(after_6, "kept @768"), (after_7, "phase 2")]
    mixture = titled(found, "Mixture planned and realised")
    assert mixture.labels[2:] == ("phase 2, planned", "phase 2, realised")
    (planned,) = [bars.values[2] for bars in mixture.series if bars.name == "code"]
    assert planned == 0.75
    assert {name for name, _ in titled(found, "Model").rows} >= {"parameters", "layers"}
    account = titled(found, "Token account by source")
    assert sum(row[3] for row in account.rows[:-1]) == artifact.manifest.counts["tokens"]
    assert titled(found, "Throughput, tokens per second").series[0].y
    bits = titled(found, "Training bits per byte by source")
    assert [series.name for series in bits.series] == ["code", "web"]
    spent = {name: seconds for name, seconds, _ in titled(found, "Where the time went").rows}
    assert spent["training steps"] > 0
    assert titled(found, "Memory, GB").series[0].y
    assert ("held-out", "ok") in {row[:2] for row in titled(found, "Pre-flight").rows}


def test_the_summary_is_one_table_of_first_and_last(packed, pretrain, store):
    artifact = Artifact(store, pretrain(packed()))
    (table,) = summary(artifact)
    tokens = artifact.manifest.counts["tokens"]
    assert table.title == f"held-out bits per byte during training, over {tokens:,} tokens"
    assert re.search(r"during training on \d+ held-out sequences", table.note)
    assert "bfloat16" in table.note or "float32" in table.note.split("evaluate")[0]
    assert [row[0] for row in table.rows] == ["all", "code", "web"]


def test_a_run_without_held_out_shards_has_a_page(packed, pretrain, store):
    found = page(Artifact(store, pretrain({**packed(), "held_out": []})))
    assert not [figure for figure in found if figure.title.startswith("Held-out")]
    assert [s.name for s in titled(found, "Training loss, nats").series] == ["loss of a step"]


def test_shares_are_planned_by_weight_or_size_and_realised_by_tokens(two_phases):
    bars = figures.mixture_bars(figures.mixtures(TrainingRun(two_phases(), "tokens")))
    assert isinstance(bars, BarFigure)
    assert {one.name: one.values for one in bars.series} == {
        "web": (0.75, 60 / 80, 1.0, 1.0),
        "code": (0.25, 20 / 80, 0.0, 0.0),
    }


def test_positions_planned_stand_beside_tokens_read(two_phases):
    table = figures.mixture_table(figures.mixtures(TrainingRun(two_phases(), "tokens")))
    assert table.rows == (
        (1, "code", 0.25, 20, 20, 0.25),
        (1, "web", 0.75, 60, 60, 0.75),
        (2, "code", 0.0, 0, 0, 0.0),
        (2, "web", 1.0, 40, 40, 1.0),
    )


def test_a_phase_that_read_nothing_has_no_realised_share():
    mixed = figures.PhaseTokens({"web": 40}, {"web": 0})
    assert mixed.shares("web") == (1.0, None)


def test_the_account_sums_sources_and_languages_and_leaves_epochs_apart(two_phases):
    by_source, by_language = figures.token_accounts(TrainingRun(two_phases(), "tokens"))
    assert by_source.rows == (
        ("code", 90, 18, 18, 0.2, 1.5, 0, 72),
        ("web", 270, 90, 90, 10 / 30, None, 0, 180),
        ("all", 360, 108, 108, None, None, 0, 252),
    )
    assert by_language.rows == (
        ("(none)", 60, 18, 28, 0.3, None, 0, 42),
        ("en", 300, 90, 80, 0.3, None, 0, 210),
        ("all", 360, 108, 108, None, None, 0, 252),
    )
    assert "expected" in by_language.note


def test_epochs_stand_beside_their_caps(two_phases):
    (bars,) = figures.epoch_bars(TrainingRun(two_phases(), "tokens"))
    assert bars.labels == ("code", "web")
    assert {one.name: one.values for one in bars.series} == {
        "planned": (0.2, 10 / 30),
        "at most": (1.5, None),
    }


def test_the_mixture_over_the_run_is_read_beside_planned(two_phases):
    (curves,) = figures.mixture_curves(TrainingRun(two_phases(), "tokens"))
    assert {one.name: one.y for one in curves.series} == {
        "code": (0.1, 0.5, 0.0),
        "web": (0.9, 0.5, 1.0),
        "code: planned": (0.25, 0.25, 0.0),
        "web: planned": (0.75, 0.75, 1.0),
    }


def test_planned_shares_follow_a_straight_line_over_positions_not_steps(two_phases):
    """80 sequences: 4 steps of 8, then 3 of 16; shares in the middle of each, 4/80, 12/80, …"""
    run = TrainingRun(two_phases(), "tokens")
    run.account["phases"] = [
        {
            "training_steps": 7,
            "tokens": 800,
            "sequence_length": 10,
            "sequences_per_batch": "0: 8, 320: 16",
            "mixture": {"web": 1.0},
            "mixture_end": {"code": 1.0},
        }
    ]
    run.steps = np.array([1.0, 4.0, 5.0, 7.0])
    run.metric = lambda name: np.zeros(4)
    shares = figures.planned_shares(run)
    assert shares["code"] == pytest.approx([4 / 80, 28 / 80, 40 / 80, 72 / 80])
    assert shares["web"] + shares["code"] == pytest.approx(np.ones(4))


def test_a_phase_without_a_peak_keeps_that_of_the_one_before(two_phases):
    rows = figures.phases_table(TrainingRun(two_phases(), "tokens")).rows
    assert [row[5] for row in rows] == [0.1, 0.1]
    assert [row[7] for row in rows] == ["none", "linear"]


def test_held_out_curves_stand_beside_their_unigram_lines(two_phases):
    measured = [held(0, "all", 3.0), held(0, "web", 3.0), held(0, "new", 3.5)]
    measured += [held(3, "all", 1.0), held(3, "web", math.nan), held(3, "new", None)]
    artifact = two_phases(measured)
    (curves,) = pages.held_out_curves(TrainingRun(artifact, "tokens"))
    assert isinstance(curves, CurveFigure)
    drawn = {series.name: (series.x, series.y) for series in curves.series}
    assert drawn == {
        "all": ((0.0, 300.0), (3.0, 1.0)),
        "web": ((0.0, 300.0), (3.0, None)),
        "new": ((0.0,), (3.5,)),
        # A source without a baseline has no line.
        "all: unigram": ((0.0, 300.0), (2.0, 2.0)),
        "web: unigram": ((0.0, 300.0), (2.5, 2.5)),
    }
    (table,) = pages.held_out_tables(artifact, "T")
    assert table.rows[0] == ("all", 2.0, 3.0, 1.0, 0.5)


def test_held_out_losses_of_languages_stand_apart_from_those_of_sources(two_phases):
    measured = [held(0, "all", 3.0), held(0, "all", 4.0, "de"), held(0, "all", 6.0, "")]
    measured += [held(3, "all", 1.0), held(3, "all", 1.5, "de"), held(3, "all", 2.0, "")]
    artifact = two_phases(measured)
    by_source, by_language = pages.held_out_curves(TrainingRun(artifact, "tokens"))
    assert {series.name for series in by_source.series} == {"all", "all: unigram"}
    drawn = {series.name: series.y for series in by_language.series}
    assert drawn == {
        "de": (4.0, 1.5),
        "(none)": (6.0, 2.0),
        "de: unigram": (2.0, 2.0),
        "(none): unigram": (4.0, 4.0),
    }
    sources, languages = pages.held_out_tables(artifact, "T")
    assert [row[0] for row in sources.rows] == ["all"]
    assert languages.rows == (("(none)", 4.0, 6.0, 2.0, 0.5), ("de", 2.0, 4.0, 1.5, 0.25))
    assert languages.title == "T, by language"


def test_languages_that_are_sources_by_another_name_are_not_shown_again(two_phases):
    measured = []
    for step, whole, web, code in ((0, 3.0, 4.0, 2.0), (3, 1.0, 1.5, 0.5)):
        measured += [held(step, "all", whole), held(step, "web", web), held(step, "code", code)]
        measured += [held(step, "all", web, "de"), held(step, "all", code, "")]
    artifact = two_phases(measured, {"all": 2.0, "web": 2.0, "code": 4.0})
    assert len(pages.held_out_curves(TrainingRun(artifact, "tokens"))) == 1
    assert len(pages.held_out_tables(artifact, "T")) == 1


def test_training_bits_of_languages_are_shown_where_they_say_more(packed, pretrain, store):
    """Languages that cut through sources are; one language is not."""
    titles = []
    for languages in (("en", "de", None), ("en",)):
        artifact = Artifact(store, pretrain(packed(languages=languages)))
        found = pages.training_bits(TrainingRun(artifact, "tokens"))
        titles.append([figure.title.rpartition(" ")[2] for figure in found])
    assert titles == [["source", "language"], ["source"]]
