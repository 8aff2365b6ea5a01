"""The n-gram model of one run, and the perplexities at which it parts text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stages.language_model.classifier import CONTRAST, REFERENCE
from stages.language_model.config import NgramConfig
from stages.language_model.estimate import estimate
from stages.language_model.files import read_description
from stages.language_model.model import NgramModel
from stages.language_model.perplexity import LineScores, line_scores
from stages.language_model.tokens import WordTokens
from stages.quality_models.files import copy_file, make_once

if TYPE_CHECKING:
    from stages.engine import Context
    from stages.quality_models.config import CutoffsConfig
    from stages.quality_models.sample import Sample

LEAST_LEARNT, LEAST_MEASURED = 1, 10
"""Documents without which no model, and no cut-offs, are made."""
_BATCH = 500

Floats = NDArray[np.float64]


def make_ngram_model(
    context: Context, sample: Sample, config: NgramConfig, language: str
) -> tuple[NgramModel, dict[str, Any]]:
    """Estimate on the reference, measure on held documents of both roles; the model, its card."""
    sample.require(REFERENCE, LEAST_LEARNT, "learn from", held=False)
    folder = context.work / "ngram-model"
    make_once(context, folder, partial(_estimate, context, sample, config), NgramModel.load)
    model, (found, _) = NgramModel.load(folder), read_description(folder)
    card = {
        "made": True,
        "language": language,
        "order": config.order,
        "documents": sample.counts[REFERENCE, False],
        "lines": found.lines,
        "words": found.tokens,
        "ngrams": found.counts,
        "ngrams_before_pruning": found.counts_before_pruning,
        "held_perplexity": held_perplexity(context, sample, model, config),
    }
    for path in sorted(folder.iterdir()):
        copy_file(context, "ngram_model", path)
    context.write_json("ngram_model", "card.json", card)
    return model, card


def _estimate(context: Context, sample: Sample, config: NgramConfig, folder: Path) -> None:
    def told(phase: str, done: int) -> None:
        context.check_stop()
        if phase != "read":
            context.progress(done, config.order, f"orders: {phase}")

    texts = sample.texts(REFERENCE, held=False)
    tokens = WordTokens.of(config)
    lines = (_table(tokens, batch) for batch in _batches(texts))
    estimate(lines, folder, config, context.execution.memory, told)


def make_cutoffs(
    context: Context,
    sample: Sample,
    model: NgramModel,
    config: CutoffsConfig,
    language: str,
) -> dict[str, Any]:
    """cutoffs.json: percentiles of the documents' perplexity under the model.

    Of the contrast, which the model never saw; without one, of the reference's held part.
    """
    assert model.config is not None
    role, held = (CONTRAST, None) if context.many(CONTRAST) else (REFERENCE, True)
    sample.require(role, LEAST_MEASURED, "measure", held)
    sides = [True, False] if held is None else [True]
    texts = (text for side in sides for text in sample.texts(role, held=side))
    found = perplexities(context, texts, model, model.config)
    percentiles = np.percentile(found, range(1, 100))
    head, tail = np.percentile(found, [config.head, config.tail])
    told = {
        "made": True,
        "percentiles": {"head": config.head, "tail": config.tail},
        "languages": {
            language: {
                "head": round(float(head), 4),
                "tail": round(float(tail), 4),
                "percentiles": [round(float(value), 4) for value in percentiles],
                "documents": len(found),
                "measured_on": role,
            }
        },
    }
    context.write_json("cutoffs", "cutoffs.json", told)
    return told


def perplexities(
    context: Context, texts: Iterable[str], model: NgramModel, config: NgramConfig
) -> Floats:
    """Perplexity of each document by its lines, each with its end; of a text that has some."""
    found = [one.perplexities() for one in _scores(context, texts, model, config)]
    joined: Floats = np.concatenate(found)
    return joined[~np.isnan(joined)]


def held_perplexity(
    context: Context, sample: Sample, model: NgramModel, config: NgramConfig
) -> dict[str, float]:
    """Perplexity of the held documents of each role that has some, all tokens weighing alike."""
    found = {}
    for role in (REFERENCE, CONTRAST):
        total, tokens = 0.0, 0
        for one in _scores(context, sample.texts(role, held=True), model, config):
            total, tokens = total + float(one.log10.sum()), tokens + int(one.lengths.sum())
        if tokens:
            found[role] = round(10.0 ** (-total / tokens), 4)
    return found


def _scores(
    context: Context, texts: Iterable[str], model: NgramModel, config: NgramConfig
) -> Iterator[LineScores]:
    tokens = WordTokens.of(config)
    for batch in _batches(texts):
        context.check_stop()
        yield line_scores(model, tokens, batch)


def _table(tokens: WordTokens, texts: Sequence[str]) -> pa.Table:
    """The lines of the texts as `estimate` takes them: tokens between spaces."""
    lines, _ = tokens.lines(texts)
    offsets, data = (pa.py_buffer(array) for array in (lines.offsets, lines.data))
    column = pa.LargeStringArray.from_buffers(len(lines), offsets, data)
    return pa.table({"line": column.cast(pa.string())})


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    waiting = iter(texts)
    while batch := list(islice(waiting, _BATCH)):
        yield batch
