"""What simpler judges make of the same choices: an n-gram model, token frequencies, and length.

The n-gram model comes from `quality_models`, which learnt from the documents that it was given: for
a fair comparison those of the training text. Each takes the choice that it finds likeliest, or the
shortest one; where n are equal it gets one n-th.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tokenizers import Tokenizer

from artifacts_schema.errors import InputError
from artifacts_schema.identity import short
from stages.engine import Input
from stages.evaluate.benchmarks import MULTIPLE_CHOICE, Item, delimited
from stages.language_model.config import NgramConfig
from stages.language_model.perplexity import NgramModel, WordTokens, line_scores
from stages.scoring.likelihood import encode_text
from stages.scoring.observations import ItemName, Observation

NGRAM, UNIGRAM, SHORTEST = "accuracy_ngram", "accuracy_unigram", "accuracy_shortest"
ABOVE = "accuracy_above_ngram"
"""Accuracy of the model minus that of the n-gram model, item by item: a paired difference."""


def open_ngram_model(artifact: Input, work: Path) -> NgramModel:
    """The model of a `quality_models` run, whose tables are mapped from `work`.

    InputError where that run made none.
    """
    card = artifact.read_json("card.json")
    if not card["made"]:
        raise InputError(
            f"{artifact.stage} {short(artifact.key)} holds no n-gram model: {card['why']}",
            where="evaluate.ngram_model",
            hint="run quality_models with `ngram`, or take the input away",
        )
    folder = work / f"ngram-model-{short(artifact.digest)}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in artifact.paths():
        if path == "model.arpa":  # The tables say the same.
            continue
        source = artifact.local_path(path)
        try:
            os.link(source, folder / path)
        except OSError:
            shutil.copyfile(source, folder / path)
    return NgramModel.load(folder)


def baseline_observations(
    items: Sequence[Item],
    measured: Sequence[Observation],
    model: NgramModel,
    delimiter: str,
    tokenizer: Tokenizer,
    unigram_nll: NDArray[np.float64] | None,
) -> list[Observation]:
    """Baselines of each multiple-choice item that `measured` has an accuracy of.

    They judge the item's own choices, however it was put to the model; what the model's accuracy is
    above the n-gram model's there is one of for each way.
    """
    accuracy: dict[ItemName, list[Observation]] = {}
    for one in measured:
        if one.metric == "accuracy":
            accuracy.setdefault((one.benchmark, one.item_id), []).append(one)
    kept = [
        item
        for item in items
        if item.form == MULTIPLE_CHOICE and (item.benchmark, item.item_id) in accuracy
    ]
    texts = [
        item.prompt + delimited(item.prompt, choice, delimiter)
        for item in kept
        for choice in item.choices
    ]
    tokens = WordTokens.from_config(model.config or NgramConfig())
    lines = line_scores(model, tokens, texts)
    sums = [
        lines.log10[a:b].sum() for a, b in zip(lines.offsets[:-1], lines.offsets[1:], strict=True)
    ]
    observed, start = [], 0
    for item in kept:
        name, stop = (item.benchmark, item.item_id), start + len(item.choices)
        right = share_right(sums[start:stop], item.all_right)
        observed += [
            Observation(*name, NGRAM, right),
            *(
                replace(one, metric=ABOVE, numerator=one.numerator - right, baseline=None)
                for one in accuracy[name]
            ),
            Observation(
                *name,
                SHORTEST,
                share_right([-len(choice.encode()) for choice in item.choices], item.all_right),
            ),
        ]
        if unigram_nll is not None:
            nll = [unigram_nll[encode_text(tokenizer, text)].sum() for text in texts[start:stop]]
            scores = np.round(np.negative(nll), 6)  # The order of summands may not decide.
            observed.append(Observation(*name, UNIGRAM, share_right(scores, item.all_right)))
        start = stop
    return observed


def share_right(scores: ArrayLike, right: Sequence[int]) -> float:
    """The part of those with the greatest score whose places are in `right`."""
    values = np.asarray(scores, dtype=np.float64)
    best = values == values.max()
    return float(best[[*right]].sum() / best.sum())
