"""The classifier of one run: trained on one side of the split, judged on the other."""

from __future__ import annotations

import importlib.metadata
import platform
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stages.language_model.classifier import CONTRAST, REFERENCE, Classifier, scores
from stages.language_model.fasttext_file import check_model
from stages.quality_models.files import copy_file, make_once
from stages.quality_models.metrics import Curve, Floats, score_card
from stages.quality_models.training import (
    fasttext_arguments,
    memory_comes_as_zeros,
    train,
    write_lines,
)

if TYPE_CHECKING:
    from stages.engine import Context
    from stages.quality_models.config import ClassifierConfig
    from stages.quality_models.sample import Sample

LEAST_HELD, LEAST_LEARNT = 10, 10
"""Documents of each class without which no classifier is made."""
_BATCH = 1_000
LIBRARIES = ("fasttext-numpy2", "numpy")


def make_classifier(context: Context, sample: Sample, config: ClassifierConfig) -> dict[str, Any]:
    """Train, score the held documents, write model and card; returns the card."""
    for role in (REFERENCE, CONTRAST):
        sample.require(role, LEAST_LEARNT, "learn from", held=False)
        sample.require(role, LEAST_HELD, "judge by", held=True)
    ending = "ftz" if config.quantize else "bin"
    model = context.work / f"classifier.{ending}"
    check = partial(check_model, where=str(model))  # fastText reports no failed write.
    make_once(context, model, partial(_train, context, sample, config), check)
    classifier = Classifier(model, REFERENCE, config.lower_case)
    held = {role: held_scores(context, sample, classifier, role) for role in (REFERENCE, CONTRAST)}
    card = card_of(config, sample, held[REFERENCE], held[CONTRAST], model.name)
    copy_file(context, "classifier", model)
    context.write_json("classifier", "card.json", card)
    return card


def _train(context: Context, sample: Sample, config: ClassifierConfig, model: Path) -> None:
    if not memory_comes_as_zeros():
        context.log.warning("without glibc two trainings of one key may differ in their bytes")
    lines = context.work / "classifier.txt"
    learnt = ((one.role, one.text) for one in sample.documents() if not one.held)
    write_lines(learnt, lines, lower_case=config.lower_case)
    context.check_stop()
    train(lines, model, config, context.check_stop)
    lines.unlink()


def held_scores(context: Context, sample: Sample, classifier: Classifier, role: str) -> Floats:
    """Scores of the held documents of a role."""
    texts = sample.texts(role, held=True)
    found: list[float] = []
    while batch := list(islice(texts, _BATCH)):
        context.check_stop()
        found += scores(classifier, batch)
    return np.array(found)


def card_of(
    config: ClassifierConfig, sample: Sample, positive: Floats, negative: Floats, file: str
) -> dict[str, Any]:
    """card.json: what the model is, what it was made of, and how well it does."""
    curve = Curve.of(positive, negative)
    share = config.kept_contrast
    threshold = curve.best_f1() if share is None else curve.keeping(share)
    return {
        "made": True,
        "name": config.name,
        "signal": f"{config.name}_score",
        "file": file,
        "label": REFERENCE,
        "preparation": {
            "lines": "joined by a space, without `</s>` and labels",
            "lower_case": config.lower_case,
        },
        "trained": {
            "documents": {r: sample.counts[r, False] for r in (REFERENCE, CONTRAST)},
            "arguments": {**fasttext_arguments(config), "thread": 1},
            "quantized": config.quantize,
            "libraries": {
                "python": platform.python_version(),
                **{name: importlib.metadata.version(name) for name in LIBRARIES},
            },
        },
        "cutoff": {
            "threshold": threshold,
            "chosen": "best F1" if share is None else f"keeps {share:g} of the contrast at most",
        },
        "held": score_card(positive, negative, threshold, config.seed),
    }
