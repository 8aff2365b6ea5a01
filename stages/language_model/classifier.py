"""Scores of a fastText classifier (Joulin et al. 2017, arXiv 1607.01759).

How a text is put before the model stands here alone: training and scoring never differ. It is
DCLM's way (Li et al. 2024, arXiv 2406.11794): the lines of a text, joined by a space.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from artifacts_schema.errors import InputError
from artifacts_schema.files import file_state
from stages.language_model.fasttext_file import check_model

PREFIX = "__label__"
REFERENCE, CONTRAST = "reference", "contrast"
"""Labels of a classifier that `quality_models` trains."""

_END = "</s>"
_SPACES = re.compile(r"[ \n\r\t\v\f\0]+")  # Where `Dictionary::readWord` ends a word.


@dataclass(frozen=True)
class Classifier:
    """A model file on this machine, and how it is asked. Picklable.

    `label` is the one whose probability is the score; published models have labels of their own,
    such as DCLM's `hq`.
    """

    model: Path
    label: str = REFERENCE
    lower_case: bool = False

    @classmethod
    def of(cls, card: Mapping[str, Any], model: Path) -> Classifier:
        """A classifier as its card.json describes it."""
        return cls(model, card["label"], card["preparation"]["lower_case"])


def scores(classifier: Classifier, texts: Sequence[str]) -> list[float]:
    """The probability of the classifier's label for each text, in [0, 1].

    Any text has a score, an empty one that of an empty line. fastText adds 1e-5 to a probability;
    the sum is kept, so that published cut-offs hold, but never above 1. InputError for a file that
    is no whole model, or has no such label.
    """
    state = file_state(classifier.model.stat())
    predict = _load(classifier.model, classifier.label, state)
    wanted = PREFIX + classifier.label
    found = []
    for text in texts:
        labels, values = predict(line_of(text, lower_case=classifier.lower_case), k=-1)
        found.append(min(float(dict(zip(labels, values, strict=True))[wanted]), 1.0))
    return found


def line_of(text: str, *, lower_case: bool) -> str:
    """The one line by which a model is trained on a text, and asked about it.

    Words that fastText would take for something else are left out: the end of a line (`</s>`,
    behind which it reads nothing) and labels, by which a document could vote on itself.
    """
    line = " ".join(text.strip().splitlines())
    if _END in line or PREFIX in line:
        words = (word for word in _SPACES.split(line) if word != _END)
        line = " ".join(word for word in words if not word.startswith(PREFIX))
    line = line.encode("utf-8", "replace").decode()  # A lone surrogate has no UTF-8.
    return line.lower() if lower_case else line


@lru_cache(maxsize=4)
def _load(path: Path, label: str, state: tuple[int, ...]) -> Any:
    """The model's `predict`; `state` (see `file_state`) makes a new file a new entry."""
    check_model(path, where=f"classifier: {path.name}")
    import fasttext

    try:
        model = fasttext.load_model(str(path))
    except (ValueError, RuntimeError, MemoryError) as error:
        raise InputError(
            f"fastText cannot read it: {error}", where=f"classifier: {path.name}"
        ) from None
    labels = model.get_labels()
    if PREFIX + label not in labels:
        known = ", ".join(sorted(name.removeprefix(PREFIX) for name in labels))
        raise InputError(
            f"the model has no label '{label}'; it has: {known}", where=f"classifier: {path.name}"
        )
    return model.predict
