"""The held-out protocol of the main text: folds by site, choices without the fold, intervals."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import zstandard
from selectolax.lexbor import LexborHTMLParser

from stages.ingest.extraction.blocks import Blocks, segment
from tests.benchmarks import extraction_folds
from tests.benchmarks.extraction import LabelledPage, agreement, site_of
from tests.benchmarks.extraction_folds import (
    NEVER,
    SHIPPED,
    THRESHOLDS,
    Judged,
    Settings,
    f1_difference,
    hold_out,
    settings_for,
)
from tests.benchmarks.train_blocks import FOLDS, Effort, Sample, Trained, fold_of

MAIN, OTHER = "one two three four five six", "seven eight nine ten eleven twelve"


def page(number: int, text: str = MAIN) -> LabelledPage:
    return LabelledPage(f"https://site{number}.com/", "", "en", "full_text", text)


def sample(number: int) -> Sample:
    """A page of two blocks: its main text, and another."""
    blocks = segment(LexborHTMLParser(f"<p>{MAIN}</p><div><p>{OTHER}</p></div>"))
    two = np.ones(2)
    return Sample(page(number), blocks, fold_of(page(number).url), two, two)


def test_no_site_of_the_shared_pages_is_in_two_folds(shared_data: Path) -> None:
    with (shared_data / "warc" / "pages.jsonl.zst").open("rb") as packed:
        lines = zstandard.ZstdDecompressor().stream_reader(packed).read().splitlines()
    folds: dict[str, set[int]] = defaultdict(set)
    sizes = [0] * FOLDS
    for line in lines:
        row = json.loads(line)
        folds[site_of(row["url"])].add(fold_of(row["url"]))
        sizes[fold_of(row["url"])] += row["truth_kind"] == "full_text"
    assert len(folds) > 500
    assert all(len(own) == 1 for own in folds.values())
    assert min(sizes) >= 30, sizes


def test_addresses_of_a_registered_domain_share_a_fold() -> None:
    assert FOLDS >= 5
    assert fold_of("https://www.bbc.co.uk/a") == fold_of("http://news.bbc.co.uk/b?c")
    assert {fold_of(page(number).url) for number in range(100)} == set(range(FOLDS))


def test_a_fold_is_judged_by_what_was_made_without_its_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples = [sample(number) for number in range(40)]
    seen: list[set[str]] = []

    def train(inner: list[Sample], effort: Effort) -> Trained:
        seen.append({one.page.url for one in inner})
        return Trained({}, inner, [])

    class Model:
        @staticmethod
        def scores(blocks: Blocks) -> tuple[object, object]:
            return np.array([900, 100]), np.array([900, 100])

    monkeypatch.setattr(extraction_folds, "train", train)
    monkeypatch.setattr(extraction_folds.BlockModel, "from_weights", lambda held: Model())
    for fold in range(FOLDS):
        judged = hold_out(samples, [OTHER] * 40, fold, Effort())
        held = {one.page.url for one in judged}
        assert held == {one.page.url for one in samples if one.fold == fold}
        assert held.isdisjoint(seen[-1])
        assert held | seen[-1] == {one.page.url for one in samples}
        assert {one.text(SHIPPED) for one in judged} == {MAIN}


def judged(number: int, text: str, doubt: int, careful: str) -> Judged:
    return Judged(page(number), dict.fromkeys(THRESHOLDS, (text, doubt)), careful)


def test_settings_of_a_fold_are_chosen_by_the_pages_of_the_others() -> None:
    """One page of 40 is wrong and doubtful: only where it is seen does trafilatura take it."""
    unsure = judged(0, OTHER, 900, MAIN)
    sure = [judged(number, MAIN, 10 + number, OTHER) for number in range(1, 40)]
    folds = [[unsure], sure[:20], sure[20:]]
    assert settings_for(folds, 1) == settings_for(folds, 2) == Settings(THRESHOLDS[0], 900)
    assert settings_for(folds, 0) == Settings(THRESHOLDS[0], NEVER)
    assert unsure.text(Settings(THRESHOLDS[0], 900)) == MAIN
    assert unsure.text(Settings(THRESHOLDS[0], 901)) == OTHER


def test_the_interval_of_a_difference_is_paired_and_by_site() -> None:
    pages = [page(number) for number in range(30)]
    texts = [MAIN if number % 2 else f"{MAIN} {OTHER}" for number in range(30)]
    assert tuple(f1_difference(pages, texts, texts)) == (0.0, 0.0, 0.0)
    truth = [MAIN] * 30
    gap = f1_difference(pages, truth, texts)
    precision = (1 + agreement(f"{MAIN} {OTHER}", MAIN).precision) / 2
    assert gap.value == pytest.approx(1 - 2 * precision / (1 + precision))
    assert 0 < gap.low < gap.value < gap.high
    one_site = [LabelledPage("https://a.com/", "", "en", "full_text", MAIN)] * 30
    alone = f1_difference(one_site, truth, texts)
    assert alone.low == alone.high == pytest.approx(gap.value)
