"""Token-level periodic repetition, as dolma's `tokenizer_repetitions` taggers find it.

A run is a longest stretch of tokens that repeats with a period of 1 to 13 tokens, at least 3 times.
A run that lies in another one (as each run of period 1 lies in one of period 2) counts no more, as
in the tagger's second version. Ours are the tokens of the word splitter, symbols included, where
dolma takes GPT-NeoX's; and the whole text at once, where it takes 100,000 characters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.signals.hashing import most
from stages.signals.quality import ratio
from stages.signals.signal import Signal, count, share
from stages.text.batch import Batch
from stages.text.native import compiled

DOLMA = "Soldaini et al. 2024 (dolma, arXiv 2402.00159), taggers/repetitions"

LONGEST_PERIOD, LEAST_TIMES = 13, 3

SIGNALS: tuple[Signal, ...] = (
    count(
        "periodic_repetitions",
        "runs",
        DOLMA,
        "Runs of tokens that repeat at least 3 times with a period of at most 13 tokens.",
    ),
    count("most_periodic_repetitions", "times", DOLMA, "Most times that one such run repeats."),
    share("periodic_repetition_share", DOLMA, "Tokens that lie in such runs."),
)


def periodic_signals(batch: Batch) -> dict[str, NDArray[np.int64] | NDArray[np.float64]]:
    """The columns of `SIGNALS`; 0 for a text without tokens."""
    counts = np.zeros((len(batch.texts), 3), dtype=np.int64)
    _count(batch.tokens.offsets, batch.tokens.hashes, counts)
    return {
        "periodic_repetitions": counts[:, 0],
        "most_periodic_repetitions": counts[:, 2],
        "periodic_repetition_share": ratio(counts[:, 1], np.diff(batch.tokens.offsets)),
    }


@compiled
def _count(offsets: Any, hashes: Any, counts: Any) -> None:
    """Runs, tokens in them, and the most repetitions of one."""
    reach = np.zeros(most(offsets), dtype=np.int64)
    """Where the longest run ends that begins at each token."""
    for text in range(offsets.size - 1):
        begin, tokens = offsets[text], offsets[text + 1] - offsets[text]
        first, last = tokens, -1
        for period in range(1, min(LONGEST_PERIOD, tokens // LEAST_TIMES) + 1):
            # So many tokens in a row must equal those a period before; one of them is looked at.
            least = (LEAST_TIMES - 1) * period
            probe = period + least - 1
            while probe < tokens:
                if hashes[begin + probe] != hashes[begin + probe - period]:
                    probe += least
                    continue
                left = right = probe
                while (
                    left > period and hashes[begin + left - 1] == hashes[begin + left - 1 - period]
                ):
                    left -= 1
                while right < tokens and hashes[begin + right] == hashes[begin + right - period]:
                    right += 1
                if right - left >= least:
                    start = left - period
                    reach[start] = max(reach[start], right)
                    first, last = min(first, start), max(last, start)
                    counts[text, 2] = max(counts[text, 2], (right - start) // period)
                probe = right + least
        runs = covered = end = 0
        for start in range(first, last + 1):
            if reach[start] > end:
                runs += 1
                covered += reach[start] - max(start, end)
                end = reach[start]
            reach[start] = 0
        counts[text, 0] = runs
        counts[text, 1] = covered
