"""Scores of a fastText classifier (Joulin et al. 2017, arXiv 1607.01759).

How a text is prepared for the model is defined here alone, so training and scoring never differ.
It is DCLM's way (Li et al. 2024, arXiv 2406.11794): the lines of a text, joined by a space.

A model file is checked before fastText reads it: fastText trusts the sizes that a file names,
and of one that was cut it allocates what the next bytes happen to say, often gigabytes. The
layout is that of fastText 0.9 (`FastText::saveModel`, `Dictionary::save`, `DenseMatrix::save`,
`QuantMatrix::save`, `ProductQuantizer::save`), little-endian.
"""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from artifacts_schema.errors import InputError
from artifacts_schema.files import file_state

MAGIC, VERSION = 793_712_314, 12
"""First two int32 of a model file: fastText's FILEFORMAT_MAGIC_INT32 and VERSION."""
_BEGIN = struct.pack("<ii", MAGIC, VERSION)
_ARGUMENTS = 12 * 4 + 8
_DICTIONARY = struct.Struct("<iiiqq")  # entries, words, labels, tokens, pruned (-1: none)
_ENTRY = 8 + 1  # Count and type, behind a word that a NUL ends.
_MATRIX = struct.Struct("<qq")
_QUANTIZED = struct.Struct("<?qqi")  # Norms too, rows, columns, bytes of codes.
_QUANTIZER = struct.Struct("<iiii")  # Columns, and how they are cut.
_CENTROIDS = 256  # Of each column.

Content = bytes | mmap.mmap


def check_model(path: Path, *, where: str) -> None:
    """InputError unless the file is a whole fastText model; `where` is how its owner knows it."""
    with open(path, "rb") as file:
        if file.read(len(_BEGIN)) != _BEGIN:
            raise InputError(
                "not a fastText model",
                where=where,
                hint="give a model as `fasttext` saves it, such as lid.176.ftz",
            )
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if not is_whole(content):
                raise InputError(
                    "the fastText model is cut short or damaged", where=where, hint="get it again"
                )


def is_whole(content: Content) -> bool:
    """Whether dictionary and matrices of a model end where its bytes end."""
    place = len(_BEGIN) + _ARGUMENTS
    try:
        place = _end_of_dictionary(content, place)
        place = _end_of_matrix(content, place + 1, quantized=content[place] != 0)
        place = _end_of_matrix(content, place + 1, quantized=content[place] != 0)
    except (struct.error, ValueError, IndexError):
        return False
    return place == len(content)


def _end_of_dictionary(content: Content, place: int) -> int:
    entries, words, labels, _, pruned = _DICTIONARY.unpack_from(content, place)
    place += _DICTIONARY.size
    if entries != words + labels or min(words, labels) < 0 or entries > len(content) // _ENTRY:
        raise ValueError("sizes that the file cannot hold")
    for _ in range(entries):
        end = content.find(b"\0", place)
        if end < 0:
            raise ValueError("a word without an end")
        place = end + 1 + _ENTRY
    return place + 8 * max(pruned, 0)


def _end_of_matrix(content: Content, place: int, *, quantized: bool) -> int:
    if not quantized:
        rows, columns = _MATRIX.unpack_from(content, place)
        return place + _MATRIX.size + 4 * _count(rows) * _count(columns)
    with_norms, rows, _, codes = _QUANTIZED.unpack_from(content, place)
    place = _end_of_quantizer(content, place + _QUANTIZED.size + _count(codes))
    return _end_of_quantizer(content, place + _count(rows)) if with_norms else place


def _end_of_quantizer(content: Content, place: int) -> int:
    columns, *_ = _QUANTIZER.unpack_from(content, place)
    return place + _QUANTIZER.size + 4 * _count(columns) * _CENTROIDS


def _count(number: int) -> int:
    if number < 0:
        raise ValueError("a negative size")
    return number


PREFIX = "__label__"
REFERENCE, CONTRAST = "reference", "contrast"
"""Labels of a classifier that `quality_models` trains."""

_END = "</s>"
_SPACES = re.compile(r"[ \n\r\t\v\f\0]+")  # Where `Dictionary::readWord` ends a word.


@dataclass(frozen=True)
class Classifier:
    """A model file on this machine, and how texts are prepared for it. Picklable.

    `label` is the one whose probability is the score; published models have labels of their own,
    such as DCLM's `hq`.
    """

    model: Path
    label: str = REFERENCE
    lower_case: bool = False

    @classmethod
    def from_card(cls, card: Mapping[str, Any], model: Path) -> Classifier:
        """A classifier as its card.json describes it."""
        return cls(model, card["label"], card["preparation"]["lower_case"])


def score_texts(classifier: Classifier, texts: Sequence[str]) -> list[float]:
    """The probability of the classifier's label for each text, in [0, 1].

    Any text has a score, an empty one that of an empty line. fastText adds 1e-5 to a probability;
    the sum is kept, so that published cut-offs hold, but never above 1. InputError for a file that
    is no whole model, or has no such label.
    """
    state = file_state(classifier.model.stat())
    predict = _load(classifier.model, classifier.label, state)
    wanted = PREFIX + classifier.label
    probabilities = []
    for text in texts:
        labels, values = predict(to_single_line(text, lower_case=classifier.lower_case), k=-1)
        probabilities.append(min(float(dict(zip(labels, values, strict=True))[wanted]), 1.0))
    return probabilities


def to_single_line(text: str, *, lower_case: bool) -> str:
    """The line that a text becomes, for training and for scoring.

    Words with a meaning for fastText are removed: the end of a line (`</s>`, after which it reads
    nothing) and labels, with which a document could vote on itself.
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
