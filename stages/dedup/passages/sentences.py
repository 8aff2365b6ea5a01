"""Spans of three sentences as datatrove compares them, after C4.

C4 kept one of any three-sentence span that occurs more than once (Raffel et al. 2020, section 2.2);
its code compares lines, datatrove's `sentence_dedup.py` spans. Sentences are those of spaCy's
sentencizer over its English tokens; texts in scripts without spaces, in which these see no word
ends, are split into Ingot's own words first. Two spans are equal where their simplified sentences
are, joined by spaces. What datatrove does next, dropping documents that are left with fewer than 50
words or 3 sentences, is for `filter` to do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stages.dedup.datatrove import simplified
from stages.dedup.passages.occurrences import Occurrences, occurrences
from stages.dedup.xxh64 import xxh64
from stages.text.batch import PUNCTUATION, SENTENCE_END, Batch
from stages.text.native import compiled
from stages.text.scripts import main_script
from stages.text.split import batch_of
from stages.text.splitters import Splitter

VIEW = "duplicate_sentences@c4"
SPAN = 3
"""Sentences of a span."""

_UNSPACED = frozenset({"Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar"})
_SPACE = ord(" ")


def sentence_occurrences(texts: Sequence[str], first_row: int) -> Occurrences:
    """Every span of three sentences of the texts, which are the rows from `first_row` on.

    A span takes the white space before it along, as in datatrove, and none behind it: what follows
    begins at `behind`. Spans of which nothing is left when simplified do not count.
    """
    unspaced = np.array([main_script(text)[0] in _UNSPACED for text in texts], dtype=bool)
    splitters: dict[Splitter, NDArray[np.bool_]] = {"spacy_english": ~unspaced, "unicode": unspaced}
    parts = [_spans(texts, np.flatnonzero(rows), name) for name, rows in splitters.items()]
    found = np.concatenate(parts)
    found = found[np.argsort(found["row"], kind="stable")]
    found["row"] += first_row
    return found


def _spans(texts: Sequence[str], rows: NDArray[np.intp], splitter: Splitter) -> Occurrences:
    """The spans of the texts in these rows."""
    chosen = [texts[row] for row in rows.tolist()]
    batch = batch_of(chosen, splitter)
    text_of, starts, ends = sentence_bounds(batch)
    places = zip(text_of.tolist(), starts.tolist(), ends.tolist(), strict=True)
    codes, offsets = simplified([chosen[text][start:end] for text, start, end in places])
    # Sentences are joined by one space, and hashed as code points.
    joined = np.insert(codes, offsets[1:-1], _SPACE).view(np.uint8)
    places_joined = 4 * (offsets + np.arange(len(offsets)))

    first = np.flatnonzero(text_of[: 1 - SPAN] == text_of[SPAN - 1 :])
    first = first[offsets[first + SPAN] > offsets[first]]
    hashes = xxh64(joined, places_joined[first], places_joined[first + SPAN] - 4)
    before = np.append(ends, 0)[first - 1]
    begins = np.append(-1, text_of)[first] != text_of[first]
    follows = np.append(text_of, -1)[first + SPAN] == text_of[first]
    behind = np.where(
        follows, np.append(starts, 0)[first + SPAN], np.diff(batch.offsets)[text_of[first]]
    )
    return occurrences(
        hashes, rows[text_of[first]], np.where(begins, 0, before), ends[first + SPAN - 1], behind
    )


def sentence_bounds(
    batch: Batch,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(texts, starts, ends) of the sentences: characters [start, end) of their text.

    A sentence reaches from its first token to its last. It ends behind a mark and the punctuation
    after that, where other text or white space but a single space follows.
    """
    tokens = batch.tokens
    texts, starts, ends = (np.empty(len(tokens.starts), dtype=np.int64) for _ in range(3))
    found = _find_bounds(
        batch.codes, batch.offsets, tokens.offsets, tokens.starts, tokens.ends, tokens.kinds,
        texts, starts, ends,
    )  # fmt: skip
    return texts[:found], starts[:found], ends[:found]


@compiled
def _find_bounds(
    codes: NDArray[np.uint32],
    text_offsets: NDArray[np.int64],
    token_offsets: NDArray[np.int64],
    token_starts: NDArray[np.int64],
    token_ends: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    texts: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> int:
    found = 0
    for text in range(len(text_offsets) - 1):
        first, base, ended = token_offsets[text], text_offsets[text], False
        for token in range(first, token_offsets[text + 1]):
            kind, begins = kinds[token], token == first
            if ended:
                gap = token_starts[token] - token_ends[token - 1]
                white = gap > 1 or (gap == 1 and codes[token_ends[token - 1]] != _SPACE)
                begins = white or not kind & (PUNCTUATION | SENTENCE_END)
            if begins:
                texts[found], starts[found] = text, token_starts[token] - base
                found += 1
                ended = False
            ends[found - 1] = token_ends[token] - base
            if kind & SENTENCE_END:
                ended = True
    return found
