"""Main text on sites that nothing was chosen on: five folds by registered domain.

    python -m tests.benchmarks.extraction_folds --data ../shared/data    # needs catboost

The pages of each fold are scored by weights that were made of the other four folds
(`train_blocks.train`, pages with truth only). The threshold and the `careful_from` that judge a
fold are those of the highest F1 on the pages of the other folds, as scored by the weights that
had not seen them. (Those weights had seen pages of the fold that is judged; its labels bear on the
choice in no other way.) The fold of a page is drawn by a hash of its registered domain; pages at
made-up `.example` addresses have none and are drawn by host: no page with full text is one.

Beside it, on the same pages, trafilatura with its standard settings. The interval of a difference
is the middle 95 % of 10,000 draws of sites with replacement, paired: a drawn site counts for both.
Measures are those of `tests.benchmarks.extraction`, which also compares speed.

`--shipped` scores the shipped weights on the scoring side, whose sites they were not made from.
`--trees 100 --blocks 150` takes a fifth of the time: fewer trees with a higher rate, and a random
choice of each long page's blocks.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.ingest.extraction.blocks import Blocks
from stages.ingest.extraction.classifier import BlockModel
from stages.ingest.extraction.main_text import (
    Classification,
    classify,
    judge,
    render,
    trafilatura_text,
)
from tests.benchmarks.extraction import (
    LabelledPage,
    agreement,
    load_pages,
    mean_agreement,
    site_of,
    snippet_hits,
    table,
)
from tests.benchmarks.train_blocks import (
    FOLDS,
    THRESHOLD,
    TREES,
    Effort,
    Sample,
    sample_of,
    train,
)

KINDS = ("full_text", "readability_expected", "snippets", "recipe_fields")
THRESHOLDS = (350, 400, 450, 500)
CAREFUL_SHARES = (0.01, 0.02, 0.03)
"""Shares of pages that trafilatura may take: with more, Ingot is not three times as fast."""
NEVER = 1001
DRAWS, SEED = 10_000, 20_261_124


class Settings(NamedTuple):
    """Score from which a block is main text, and doubt from which trafilatura decides."""

    threshold: int
    careful_from: int


SHIPPED = Settings(THRESHOLD, NEVER)


class Difference(NamedTuple):
    """A difference, and the middle 95 % of its draws."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:+.4f} [{self.low:+.4f}, {self.high:+.4f}]"


@dataclass(frozen=True)
class Judged:
    """A page, what the block classifier makes of it by threshold, and what trafilatura does."""

    page: LabelledPage
    blocks: dict[int, tuple[str, int]]
    """Threshold → text, and doubt in it in thousandths."""
    careful: str

    def text(self, settings: Settings) -> str:
        """The main text, by trafilatura from a doubt on."""
        text, doubt = self.blocks[settings.threshold]
        return (self.careful if doubt >= settings.careful_from else "") or text


def hold_out(
    samples: Sequence[Sample], careful: Sequence[str], fold: int, effort: Effort
) -> list[Judged]:
    """The pages of a fold by weights that were made of all others; `careful` as `samples`."""
    trained = train([sample for sample in samples if sample.fold != fold], effort)
    model = BlockModel.from_weights(trained.weights)
    pages = []
    for sample, text in zip(samples, careful, strict=True):
        if sample.fold != fold:
            continue
        scores = model.scores(sample.blocks)
        judged = {}
        for threshold in THRESHOLDS:
            verdict = judge(sample.blocks, *scores, threshold)
            judged[threshold] = text_of(sample.blocks, verdict), verdict.doubt
        pages.append(Judged(sample.page, judged, text))
    return pages


def text_of(blocks: Blocks, verdict: Classification) -> str:
    """The main text by a verdict."""
    return render(blocks, verdict.main, keep=False)[0]


def choose_settings(pages: Sequence[Judged]) -> Settings:
    """The threshold, then the `careful_from`, of the highest F1 on pages with full text."""
    full = [one for one in pages if one.page.kind == "full_text"]
    choices = [Settings(threshold, NEVER) for threshold in THRESHOLDS]
    best = max(choices, key=lambda settings: f1_of(full, settings))
    doubts = sorted((one.blocks[best.threshold][1] for one in full), reverse=True)
    places = [min(int(share * len(doubts)), len(doubts) - 1) for share in CAREFUL_SHARES]
    careful = [best, *(best._replace(careful_from=doubts[place]) for place in places)]
    return max(careful, key=lambda settings: f1_of(full, settings))


def f1_of(pages: Sequence[Judged], settings: Settings) -> float:
    """F1 on pages with full text."""
    scores = [agreement(one.text(settings), one.page.text or "") for one in pages]
    return mean_agreement(scores).f1


def settings_for(folds: Sequence[Sequence[Judged]], fold: int) -> Settings:
    """What the judged pages of all folds but one choose."""
    return choose_settings([one for n, own in enumerate(folds) if n != fold for one in own])


def bootstrap(
    sites: Sequence[str],
    amounts: NDArray[np.float64],
    statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> Difference:
    """`statistic` of sums of `amounts` [page, amount] over all pages, and over draws of sites.

    It takes sums [..., amount].
    """
    names, owner = np.unique(np.array(sites), return_inverse=True)
    by_site = np.zeros((len(names), amounts.shape[1]))
    np.add.at(by_site, owner, amounts)
    random = np.random.default_rng(SEED)
    counts = random.multinomial(len(names), np.full(len(names), 1 / len(names)), DRAWS)
    low, high = np.quantile(statistic(counts @ by_site), (0.025, 0.975))
    return Difference(float(statistic(by_site.sum(axis=0))), float(low), float(high))


def f1_difference(
    pages: Sequence[LabelledPage], mine: Sequence[str], theirs: Sequence[str]
) -> Difference:
    """F1 of one list of texts less that of another, on pages with full text."""
    rows = [
        (*agreement(one, page.text or ""), *agreement(other, page.text or ""), 1.0)
        for page, one, other in zip(pages, mine, theirs, strict=True)
    ]

    def difference(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        means = sums[..., :4] / np.maximum(sums[..., 4:], 1)
        f1 = [2 * means[..., i] * means[..., i + 1] for i in (0, 2)]
        both = [np.maximum(means[..., i] + means[..., i + 1], 1e-12) for i in (0, 2)]
        result: NDArray[np.float64] = f1[0] / both[0] - f1[1] / both[1]
        return result

    return bootstrap([site_of(page.url) for page in pages], np.array(rows), difference)


def snippet_difference(
    pages: Sequence[LabelledPage], mine: Sequence[str], theirs: Sequence[str], which: int
) -> Difference:
    """Share of snippets that are rightly found (`which` 0) or avoided (1), less another list's."""
    rows = []
    for page, one, other in zip(pages, mine, theirs, strict=True):
        hits = [snippet_hits(text, page)[which] for text in (one, other)]
        rows.append((float(sum(hits[0])), float(sum(hits[1])), float(len(hits[0]))))

    def difference(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        result: NDArray[np.float64] = (sums[..., 0] - sums[..., 1]) / np.maximum(sums[..., 2], 1)
        return result

    return bootstrap([site_of(page.url) for page in pages], np.array(rows), difference)


def report(pages: Sequence[LabelledPage], texts: dict[str, list[str]], peer: str) -> str:
    """Scores of each list of texts, and its differences to the peer's, by kind of truth."""
    rows: list[tuple[Any, ...]] = []
    for kind in ("full_text", "readability_expected", "snippets"):
        chosen = [i for i, page in enumerate(pages) if page.kind == kind]
        own = [pages[i] for i in chosen]
        theirs = [texts[peer][i] for i in chosen]
        sites = len({site_of(page.url) for page in own})
        for name, made in texts.items():
            mine = [made[i] for i in chosen]
            if kind == "snippets":
                for which, label in enumerate(("found", "avoided")):
                    hits = [snippet_hits(t, p)[which] for t, p in zip(mine, own, strict=True)]
                    share = sum(map(sum, hits)) / max(sum(map(len, hits)), 1)
                    gap = snippet_difference(own, mine, theirs, which)
                    rows.append((f"{kind} {label}", len(own), sites, name, f"{share:.4f}", gap))
                continue
            pairs = zip(mine, own, strict=True)
            score = mean_agreement([agreement(text, page.text or "") for text, page in pairs])
            shown = f"{score.precision:.4f} {score.recall:.4f} {score.f1:.4f}"
            rows.append((kind, len(own), sites, name, shown, f1_difference(own, mine, theirs)))
    header = ("truth", "pages", "sites", "extractor", "P R F1 / share", f"less {peer} [95 %]")
    return table(header, rows)


def prepare(pages: Sequence[LabelledPage]) -> tuple[list[Sample], list[str]]:
    """Samples of all pages that have text, and trafilatura's text of each."""
    samples, careful = [], []
    for page in pages:
        if (sample := sample_of(page)) is not None:
            samples.append(sample)
            careful.append(trafilatura_text(page.html))
            sample.page = replace(page, html="")
    return samples, careful


def main() -> None:
    """Score every fold, print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--trees", type=int, default=TREES[0], help="of each pass")
    parser.add_argument("--blocks", type=int, help="most blocks of a page to learn from")
    parser.add_argument("--shipped", action="store_true", help="the shipped weights, no training")
    chosen = parser.parse_args()
    pages = load_pages(chosen.data, KINDS)
    if chosen.shipped:
        pages = [page for page in pages if page.side == "scoring"]
        print(shipped_report(*prepare(pages)))
        return
    samples, careful = prepare(pages)
    effort = Effort((chosen.trees, chosen.trees), chosen.blocks)
    folds = []
    for fold in range(FOLDS):
        start = time.process_time()
        folds.append(hold_out(samples, careful, fold, effort))
        print(f"fold {fold}: {time.process_time() - start:.0f} CPU s", flush=True)
    print(summary(folds))


def shipped_report(samples: Sequence[Sample], careful: Sequence[str]) -> str:
    """The shipped weights beside trafilatura, on pages that they were not made from."""
    mine = [text_of(sample.blocks, classify(sample.blocks)) for sample in samples]
    texts = {"blocks, shipped": mine, "trafilatura": list(careful)}
    return report([sample.page for sample in samples], texts, "trafilatura")


def summary(folds: Sequence[Sequence[Judged]]) -> str:
    """What each fold's pages became, beside the shipped threshold and trafilatura."""
    chosen, shipped = [], []
    lines = []
    for fold, pages in enumerate(folds):
        settings = settings_for(folds, fold)
        taken = [one.blocks[settings.threshold][1] >= settings.careful_from for one in pages]
        lines.append(
            f"fold {fold}: {len(pages)} pages, threshold {settings.threshold}, careful_from "
            f"{settings.careful_from} ({sum(taken) / max(len(taken), 1):.1%} of its pages)"
        )
        chosen += [one.text(settings) for one in pages]
        shipped += [one.text(SHIPPED) for one in pages]
    judged = [one for pages in folds for one in pages]
    texts = {
        "blocks": chosen,
        f"blocks, {SHIPPED.threshold} and never": shipped,
        "trafilatura": [one.careful for one in judged],
    }
    return "\n".join((*lines, "", report([one.page for one in judged], texts, "trafilatura")))


if __name__ == "__main__":
    main()
