"""How many sentences a text has."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stages.signals.signal import count
from stages.text.batch import Batch
from stages.text.sentences import sentence_counts

SENTENCE_SIGNALS = (
    count("sentences", "sentences", "spaCy's sentencizer", "Sentences, parted at their marks."),
)


def sentence_signals(batch: Batch) -> dict[str, NDArray[np.int64]]:
    """The sentences of each text."""
    return {"sentences": sentence_counts(batch)}
