"""Make `stages/ingest/extraction/block_weights.json` from the development pages.

    python -m tests.benchmarks.train_blocks --data ../shared/data [--check]

Needs `catboost` (for training only) beside Ingot. Seeded and on one thread: the same libraries on
the same machine give the same file. `--check` prints cross-validated scores and writes nothing.

Only development pages are read (`tests.benchmarks.extraction.side_of`). What a block should be:
- full text and expected text: the share of its words that lie in a 4-word shingle of the truth,
  each of the truth's shingles used once, in the densest part of the page;
- other pages: the same against trafilatura's text (distillation), less trusted where resiliparse
  disagrees; a block with a `must contain` snippet is main text, one with `must not contain` is not.
A block weighs by its words against those of the page's main text, so that pages count alike, as in
the score. Scores of the first pass that the second learns from come from models of other sites.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.ingest.extraction.blocks import Blocks, segment
from stages.ingest.extraction.classifier import (
    LEAD_CHARACTERS,
    LEAD_WORDS,
    NAME_CHARACTERS,
    WEIGHTS,
    Lexicon,
)
from stages.ingest.extraction.features import (
    LEXICON_FEATURES,
    Page,
    first_features,
    second_features,
)
from stages.ingest.extraction.main_text import resiliparse_text, trafilatura_text
from stages.ingest.extraction.vocabulary import name_words
from tests.benchmarks.extraction import (
    LabelledPage,
    agreement,
    bucket_of,
    load_pages,
    mean_agreement,
    mean_snippets,
    shingles,
    snippet_hits,
    words_of,
)

Floats = NDArray[np.float64]
FOLDS = 5
SCALE = 1 << 12  # leaves are multiples of 1 / SCALE
STEPS = 200
TREES = (200, 200)
THRESHOLD = 400
SEED = 1
TRUE = ("full_text", "readability_expected")
PAGE_WEIGHTS = {
    "full_text": 1.0,
    "readability_expected": 0.3,
    "snippets": 0.35,
    "recipe_fields": 0.15,
    None: 0.2,
}
NAME_SITES, LEAD_SITES = 8, 15  # a word is marked from so many pages on
LEAST_MARK = 30
SETTINGS: dict[str, Any] = {
    "loss_function": "CrossEntropy",
    "depth": 6,
    "learning_rate": 0.06,
    "l2_leaf_reg": 6,
    "rsm": 0.3,
    "border_count": 64,
    "bootstrap_type": "Bernoulli",
    "subsample": 0.7,
    "leaf_estimation_iterations": 2,
    "boosting_type": "Plain",
    "random_seed": SEED,
    "thread_count": 1,
    "verbose": 0,
    "allow_writing_files": False,
}


Votes = dict[str, list[float]]
"""Word → amounts of main text and of other text that it stands before or above."""


@dataclass
class Sample:
    """A page's blocks, and what each should be: 0 boilerplate to 1 main text."""

    page: LabelledPage
    blocks: Blocks
    fold: int
    target: Floats
    weight: Floats

    @cached_property
    def view(self) -> Page:
        """The blocks as arrays."""
        return Page(self.blocks)

    @cached_property
    def votes(self) -> tuple[Votes, Votes]:
        """Amounts by word of a name (characters), by word of a text (blocks)."""
        return _votes(self)

    @cached_property
    def plain(self) -> tuple[list[str], NDArray[np.int32]]:
        """Names and values of the first pass's features, marks of words left at 0."""
        nothing = np.zeros((len(LEXICON_FEATURES), len(self.blocks.text)), np.int32)
        return first_features(self.view, self.blocks, nothing)

    def features(self, lexicon: Lexicon) -> NDArray[np.int32]:
        """Those features [feature, block] with the marks of a lexicon."""
        names, values = self.plain
        begin = names.index(LEXICON_FEATURES[0])
        values = values.copy()
        values[begin : begin + len(LEXICON_FEATURES)] = lexicon.features(self.blocks)
        return values


@dataclass
class Trained:
    """Weights, the pages that they were made from, and the second pass's features of each."""

    weights: dict[str, Any]
    samples: list[Sample]
    columns: list[NDArray[Any]]


def covered(blocks: list[list[str]], truth: str) -> Floats:
    """The share of each block's words inside a shingle of the truth."""
    wanted = shingles(words_of(truth))
    flat = [word for words in blocks for word in words]
    if len(flat) < 4:
        return np.zeros(len(blocks))
    found = list(zip(flat, flat[1:], flat[2:], flat[3:], strict=False))
    hit = np.array([shingle in wanted for shingle in found])
    sums = np.concatenate([[0], np.cumsum(hit)])
    index = np.arange(len(found))
    around = sums[np.minimum(index + 60, len(found))] - sums[np.maximum(index - 60, 0)]
    places: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place in np.flatnonzero(hit).tolist():
        places[found[place]].append(place)
    inside = np.zeros(len(flat))
    for shingle, all_places in places.items():
        dense = sorted(all_places, key=lambda place: (-around[place], place))
        for place in dense[: wanted[shingle]]:
            inside[place : place + 4] = 1
    owner = np.repeat(np.arange(len(blocks)), [len(words) for words in blocks])
    sizes = np.maximum([len(words) for words in blocks], 1)
    shares: Floats = np.bincount(owner, weights=inside, minlength=len(blocks)) / sizes
    return shares


def sample_of(page: LabelledPage) -> Sample | None:
    """Targets and weights of a page's blocks; None for a page without text."""
    from selectolax.lexbor import LexborHTMLParser

    blocks = segment(LexborHTMLParser(page.html))
    if not blocks.text:
        return None
    words = [words_of(text) for text in blocks.text]
    sizes = np.array([len(block) for block in words])
    weight = (sizes + 1.0) ** 0.9 * PAGE_WEIGHTS[page.kind]
    if page.kind in TRUE:
        target = covered(words, page.text or "")
        weight[sizes < 4] *= 0.5
    else:
        target = covered(words, trafilatura_text(page.html))
        other = covered(words, resiliparse_text(page.html))
        weight *= np.where(np.abs(target - other) < 0.5, 1.0, 0.7)
        if page.kind == "recipe_fields":
            target = np.maximum(target, covered(words, page.text or ""))
    weight /= (target * sizes).sum() + 150
    _mark_snippets(page, blocks, target, weight)
    return Sample(page, blocks, fold_of(page.url), np.clip(target, 0, 1), weight)


def fold_of(url: str) -> int:
    """The fold of a page, by its site."""
    return bucket_of(url, "fold") % FOLDS


def _mark_snippets(page: LabelledPage, blocks: Blocks, target: Floats, weight: Floats) -> None:
    texts = [" ".join(text.split()) for text in blocks.text]
    for snippets, value in ((page.must_not_contain, 0), (page.must_contain, 1)):
        wanted = [" ".join(snippet.split()) for snippet in snippets]
        for index, text in enumerate(texts):
            if any(snippet in text for snippet in wanted):
                target[index] = value
                weight[index] += 0.1


def count_marks(samples: list[Sample]) -> Lexicon:
    """Marks of words by the share of main text under or after them; each page has one vote."""
    names: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    leads: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for sample in samples:
        for votes, counted in zip(sample.votes, (names, leads), strict=True):
            for word, (main, other) in votes.items():
                held = counted[word]
                held[0] += main / (main + other + 1e-9)
                held[1] += other / (main + other + 1e-9)
                held[2] += 1
    return Lexicon(_marks(names, NAME_SITES), _marks(leads, LEAD_SITES))


def _votes(sample: Sample) -> tuple[Votes, Votes]:
    names: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    leads: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    held = sample.blocks.containers
    chains: list[frozenset[str]] = []
    for above, own in zip(held.parent, held.names, strict=True):
        chain = chains[above] if above >= 0 else frozenset()
        chains.append(chain | frozenset(name_words(own[:NAME_CHARACTERS])) if own else chain)
    rows = zip(sample.blocks.text, sample.blocks.container, sample.target.tolist(), strict=True)
    for text, container, target in rows:
        size = min(len(text), 400)
        for word in sorted(chains[container]) if container >= 0 else ():
            names[word][0] += size * target
            names[word][1] += size * (1 - target)
        for word in dict.fromkeys(text[:LEAD_CHARACTERS].lower().split()[:LEAD_WORDS]):
            leads[word][0] += target
            leads[word][1] += 1 - target
    return names, leads


def _marks(counted: dict[str, list[float]], least: int) -> dict[str, int]:
    marks = {
        word: round(100 * math.log((main + 2) / (other + 2)))
        for word, (main, other, pages) in counted.items()
        if pages >= least
    }
    return {word: mark for word, mark in sorted(marks.items()) if abs(mark) >= LEAST_MARK}


@dataclass(frozen=True)
class Effort:
    """Trees of each pass, and how many blocks of a page are learned from at most."""

    trees: tuple[int, int] = TREES
    blocks: int | None = None

    def learning_rate(self, trees: int) -> float:
        """A rate at which fewer trees go as far."""
        return float(SETTINGS["learning_rate"]) * TREES[0] / trees


def fit(columns: list[NDArray[Any]], samples: list[Sample], trees: int, effort: Effort) -> Any:
    """A catboost model on features [feature, block] of each sample."""
    from catboost import CatBoost, Pool

    rate = effort.learning_rate(trees)
    model = CatBoost({**SETTINGS, "iterations": trees, "learning_rate": rate})
    random = np.random.default_rng(SEED)
    values, targets, weights = [], [], []
    for own, sample in zip(columns, samples, strict=True):
        count = len(sample.target)
        kept = np.arange(count)
        if effort.blocks is not None and count > effort.blocks:
            kept = np.sort(random.choice(count, effort.blocks, replace=False))
        values.append(own[:, kept].T.astype(np.float32))
        targets.append(sample.target[kept])
        weights.append(sample.weight[kept] * (count / len(kept)))
    pool = Pool(
        np.concatenate(values), label=np.concatenate(targets), weight=np.concatenate(weights)
    )
    return model.fit(pool)


def probabilities(model: Any, columns: NDArray[Any]) -> Floats:
    """Of being main text, for each block."""
    raw = model.predict(columns.T.astype(np.float32))
    scores: Floats = 1 / (1 + np.exp(-raw))
    return scores


def cross_fit(
    columns: list[NDArray[Any]], samples: list[Sample], trees: int, effort: Effort
) -> list[NDArray[np.int64]]:
    """Scores of 0 to 1000 of each page by a model of the other folds' sites."""
    scores: list[NDArray[np.int64]] = [np.empty(0, np.int64)] * len(samples)
    for fold in sorted({sample.fold for sample in samples}):
        inner = [i for i, sample in enumerate(samples) if sample.fold != fold]
        model = fit([columns[i] for i in inner], [samples[i] for i in inner], trees, effort)
        for i, sample in enumerate(samples):
            if sample.fold == fold:
                scores[i] = np.round(1000 * probabilities(model, columns[i])).astype(np.int64)
    return scores


def exported(model: Any) -> dict[str, Any]:
    """Trees with integer thresholds and leaves; shallow ones padded to the common depth."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        held = json.loads(path.read_text(encoding="utf-8"))
    scale, bias = held["scale_and_bias"]
    numbers = [one["flat_feature_index"] for one in held["features_info"]["float_features"]]
    depth = max(len(tree["splits"]) for tree in held["oblivious_trees"])
    trees = []
    for tree in held["oblivious_trees"]:
        splits = [
            [numbers[split["float_feature_index"]], math.floor(split["border"])]
            for split in tree["splits"]
        ]
        leaves = [round(value * scale * SCALE) for value in tree["leaf_values"]]
        while len(splits) < depth:
            splits, leaves = [*splits, splits[0]], leaves * 2
        trees.append({"splits": splits, "leaves": leaves})
    base = bias[0] if isinstance(bias, list) else bias
    return {"base": round(base * SCALE), "trees": trees}


def train(samples: list[Sample], effort: Effort | None = None) -> Trained:
    """The weights, and what the second pass was made from."""
    effort = effort or Effort()
    folds = sorted({sample.fold for sample in samples})
    lexicons = {fold: count_marks([s for s in samples if s.fold != fold]) for fold in folds}
    names = samples[0].plain[0]
    columns = [sample.features(lexicons[sample.fold]) for sample in samples]
    first_scores = cross_fit(columns, samples, effort.trees[0], effort)
    more_names: list[str] = []
    wider = []
    for sample, values, scores in zip(samples, columns, first_scores, strict=True):
        more_names, more = second_features(sample.view, scores)
        wider.append(np.concatenate([values, more]))
    lexicon = count_marks(samples)
    weights = {
        "features": [*names, *more_names],
        "threshold": THRESHOLD,
        "steps": [round(SCALE * math.log(k / (STEPS - k))) for k in range(1, STEPS)],
        "names": lexicon.names,
        "words": lexicon.words,
        "first": exported(fit(columns, samples, effort.trees[0], effort)),
        "second": exported(fit(wider, samples, effort.trees[1], effort)),
    }
    return Trained(weights, samples, wider)


def report(trained: Trained) -> None:
    """Print what thresholds make of cross-validated scores."""
    cross_validated = cross_fit(trained.columns, trained.samples, TREES[1], Effort())
    for threshold in (300, 350, 400, 450, 500, 600):
        full, hits = [], []
        for sample, score in zip(trained.samples, cross_validated, strict=True):
            kept = (t for t, s in zip(sample.blocks.text, score, strict=True) if s >= threshold)
            text = "\n".join(kept)
            if sample.page.kind == "full_text":
                full.append(agreement(text, sample.page.text or ""))
            elif sample.page.kind == "snippets":
                hits.append(snippet_hits(text, sample.page))
        mean, snippets = mean_agreement(full), mean_snippets(hits)
        print(
            f"{threshold}  P {mean.precision:.4f}  R {mean.recall:.4f}  F1 {mean.f1:.4f}  "
            f"found {snippets.found:.4f}  avoided {snippets.avoided:.4f}"
        )


def main() -> None:
    """Train, print the cross-validated scores, write the weights."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    parser.add_argument("--check", action="store_true", help="write nothing")
    chosen = parser.parse_args()
    pages = (page for page in load_pages(chosen.data) if page.side == "development")
    trained = train([sample for page in pages if (sample := sample_of(page)) is not None])
    report(trained)
    if not chosen.check:
        text = json.dumps(trained.weights, separators=(",", ":")) + "\n"
        chosen.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
