"""Pages of evaluation as a browser shows them: on a phone of 390 pixels, wide, and on paper."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from artifacts_schema.identity import short
from flows.analysis.curves import Curve, CurveReport, Fall, Point, ScoreCurves
from flows.analysis.score_comparison import judge_pairs, pair_scores
from flows.report.curves_page import write_curves
from flows.report.html import write_figures
from flows.report.paired_scores import differences_table
from stages.engine.page import Artifact
from stages.evaluate.page import page
from stages.scoring.observations import (
    Observation,
    ScoreName,
    items_table,
    results_table,
    with_saved_bits,
)

BENCHMARKS = {
    "arc_challenge": ("cloze", 0), "commonsense_qa": ("multiple_choice", 5),
    "multilingual_hatecheck_" + "functional_test_" * 3: ("free", 0), "quiz": (None, None),
    "niah_multivalue-131072": ("cloze", 0),
}  # fmt: skip
LONG = "a_document_id_without_any_space_" * 6


def observations():
    """Of every sort that an evaluation has, with names of several lengths."""
    random.seed(3)
    observed, contaminated = [], {}
    for place, (name, (formulation, shots)) in enumerate(BENCHMARKS.items()):
        put = {"formulation": formulation, "shots": shots}
        for number in range(60):
            right, item = random.random() < 0.2 + 0.15 * place, f"{number}-{LONG[:30]}"
            observed.append(Observation(name, item, "accuracy", float(right), baseline=0.25, **put))
            observed.append(
                Observation(name, item, "accuracy_ngram", float(number % 3 == 0), **put)
            )
            bits = random.gammavariate(3, 30)
            observed.append(Observation(name, item, "answer_bits_per_byte", bits, 40, **put))
            contaminated[name, item] = number % 7 == 0
    for source in ("web", "documentation_of_a_library"):
        for number in range(40):
            nll = random.gammavariate(20, 90)
            bits = Observation(
                f"held_out/{source}", f"{LONG}{number}", "bits_per_byte", nll, 900, 2100
            )
            observed.append(bits)
    for defect in ("near_duplicate", "garbled"):
        for number in range(30):
            caught = float(number % 9 > 0)
            observed.append(Observation(f"planted/{defect}", f"{LONG}{number}", "recall", caught))
    return with_saved_bits(observed), contaminated


def questions():
    return [
        {
            "benchmark": name, "item_id": f"{number}-{LONG[:30]}", "form": "multiple_choice",
            "prompt": "Which of these holds? " * 20, "choices": ["x" * 300, "a short one", "<b>"],
            "answer": number % 3, "metadata": "{}",
        }
        for name in BENCHMARKS
        for number in range(60)
    ]  # fmt: skip


@pytest.fixture
def evaluation(given, store):
    """An artifact with its benchmarks, of which no figure is left out."""
    observed, contaminated = observations()
    choices = [
        {"benchmark": "quiz", "item_id": f"{number}-{LONG[:30]}", "choice": choice,
         "prompt_digest": "", "characters": 1, "bytes": 1, "scored_bytes": 1, "is_greedy": False,
         "is_right": choice == number % 3, "log_likelihoods": [-float(choice + number % 5)]}
        for number in range(60) for choice in range(3)
    ]  # fmt: skip
    texts = [
        {"prompt": "Once " * 40, "completion": LONG + "upon a time " * 30, "form": "text",
         "benchmark": None},
        {"prompt": "Q?", "completion": "x" * 500, "form": "chat", "benchmark": "quiz"},
    ]  # fmt: skip
    manifest, _ = given(
        "evaluation",
        {
            "results.parquet": results_table(observed, contaminated).to_pylist(),
            "items.parquet": items_table(observed, contaminated).to_pylist(),
            "choices.parquet": choices,
            "generations.parquet": texts,
        },
    )
    benchmarks = store.reference(*given("benchmarks", {"00000.parquet": questions()}))
    checkpoint = store.reference(*given("checkpoint", {"state.json": {}}))
    inputs = {"benchmarks": (benchmarks,), "checkpoint": (checkpoint,)}
    return Artifact(store, manifest.model_copy(update={"inputs": inputs}))


def compared():
    """Two evaluations, of which every second score differs."""
    names = [ScoreName(name, *put, "accuracy_by_characters") for name, put in BENCHMARKS.items()]
    before = {n: {str(i): (float(i % 2), 1.0, None) for i in range(200)} for n in names}
    after = {
        name: {
            str(i): (1.0 if place % 2 == 0 and i < 90 else float(i % 2), 1.0, None)
            for i in range(200)
        }
        for place, name in enumerate(names)
    }
    return judge_pairs(pair_scores(before, after))


def curves():
    """Three checkpoints of two models, and a fall."""

    def point(step, value):
        items = {str(i): (float(i < 100 * value), 1.0, None) for i in range(100)}
        ends = value - 0.1, value + 0.1, 0.05
        return Point(step, step * 10**9, value, *ends, 0.25, 100, items, ("evaluate", "0" * 64))

    scores = []
    for name, put in BENCHMARKS.items():
        runs = [
            Curve(f"a-run-with-a-long-name-{seed}", f"model-{seed}",
                  tuple(point(step, 0.2 + step / 10 + seed / 50) for step in range(1, 6)))
            for seed in range(2)
        ]  # fmt: skip
        scores.append(ScoreCurves(ScoreName(name, *put, "accuracy"), tuple(runs)))
    fall = Fall("a-run", point(1, 0.5), point(2, 0.3), compared()[0])
    return CurveReport(tuple(scores), (fall,), 20, 0)


@pytest.fixture
def pages(evaluation, tmp_path) -> dict[str, Path]:
    """The pages that scores are read on."""
    table = differences_table(([("evaluate", one) for one in compared()], []))
    facts = {"evaluation": short("0" * 64)}
    chapters = {"evaluate": page(evaluation), "compared": [table]}
    return {
        "evaluation": write_figures("An evaluation", facts, chapters, tmp_path / "one.html"),
        "curves": write_curves(curves(), tmp_path / "curves.html"),
    }


@pytest.fixture
def opened(browser, pages):
    """`opened("curves", width)` → the page, all of it open; `media="print"` as on paper."""
    shown = []

    def show(which: str, width: int, media: str = "screen"):
        window = browser.new_page(viewport={"width": width, "height": 900})
        window.goto(pages[which].as_uri())
        window.emulate_media(media=media)
        if media == "screen":
            window.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        shown.append(window)
        return window

    yield show
    for window in shown:
        window.close()


PHONE, WIDE = 390, 1280
PAPER = 688
"""CSS pixels between the margins of A4: 182 mm."""

OUTSIDE = """() => [...document.querySelectorAll('main *')]
    .filter(e => e.getClientRects().length && !e.closest('.scroll *') && !e.closest('svg *'))
    .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map(e => e.outerHTML.slice(0, 120))"""
CUT = """() => [...document.querySelectorAll('.scroll, pre, svg')]
    .filter(e => e.getClientRects().length && e.scrollWidth > e.clientWidth + 1)
    .map(e => e.innerText.slice(0, 60))"""
BROKEN_WORDS = """() => [...document.querySelectorAll('td')]
    .filter(e => e.getClientRects().length && /^[a-z_]+$/.test(e.textContent))
    .flatMap(e => e.textContent.split(/(?<=_)/).map(word => [e, word]))
    .filter(([e, word]) => {
      const node = [...e.childNodes].find(n => n.textContent === word);
      const range = document.createRange();
      range.selectNodeContents(node || e);
      return node && range.getClientRects().length > 1;
    }).map(([e, word]) => `${word} of ${e.textContent}`)"""
OVERLAPS = """() => [...document.querySelectorAll('.picture svg')]
    .filter(s => s.getClientRects().length).flatMap(s => {
      const boxes = [...s.querySelectorAll('text')]
          .map(t => [t.textContent, t.getBoundingClientRect()]);
      const hits = [];
      boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
        const w = Math.min(p.right, q.right) - Math.max(p.left, q.left);
        const h = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
        if (w > 1 && h > 3) hits.push([a, b]);
      }));
      return hits; })"""


@pytest.mark.parametrize("which", ["evaluation", "curves"])
@pytest.mark.parametrize("width", [PHONE, WIDE])
def test_no_element_is_wider_than_the_page_and_no_labels_overlap(opened, which, width):
    window = opened(which, width)
    assert window.evaluate("document.documentElement.scrollWidth") <= width
    assert window.evaluate(OUTSIDE) == []
    assert window.evaluate(OVERLAPS) == []
    if width == PHONE:  # Tables are lists of their cells there, so none is scrolled sideways.
        assert window.evaluate(CUT) == []


@pytest.mark.parametrize("which", ["evaluation", "curves"])
def test_on_paper_no_table_is_cut_and_no_word_of_a_name_is_broken(opened, which):
    window = opened(which, PAPER, "print")
    assert window.evaluate(CUT) == []
    assert window.evaluate(OUTSIDE) == []
    assert window.evaluate(BROKEN_WORDS) == []
    assert window.evaluate(OVERLAPS) == []
