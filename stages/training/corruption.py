"""Span corruption: spans are cut out of a document, and learnt behind what is left of it.

Raffel et al. 2020, T5 (arXiv 1910.10683), section 3.1.4: of n tokens `round(n · corrupted)` are
noise, in `round(noise / mean_span)` spans. A sentinel stands for each span; the target is each
sentinel with its span. Here, for a decoder alone (as Wang et al. 2022, arXiv 2204.05832, train it),
both are one sequence: what is left is a prefix with attention in both directions, the target
follows it and ends the document:

    text    the cat sat on the mat and purred loudly
    tokens  the cat <0> the mat <1> loudly | <0> sat on <1> and purred <end>

All lengths of spans and all places for them are as likely, but that a text's first token stays and
spans do not touch. T5's own code has the last span always at the end (so that a short text loses
its end every time), unless its `random_roll` is set, which may tear a span in two.

Shapes: B rows, L tokens.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.text.native import compiled
from stages.training.draws import Uniform
from stages.training.pieces import IGNORED, PADDED
from stages.training.rows import Rows


def corrupt_spans(
    tokens_BL: NDArray[Any],
    documents_BL: NDArray[Any],
    drawn_BL: Uniform,
    *,
    corrupted: float,
    mean_span: float,
    sentinels: NDArray[np.int64],
    end_id: int,
    padding_id: int,
) -> Rows:
    """Rows of the same width, each with the pieces of a row corrupted, one after another.

    A corrupted piece is longer than the text it is made of, by two sentinels a span; so the last
    piece of a row is cut to what has room, and what is left over is padding. Pieces of one token
    are left out; the others keep their numbers. ValueError if there are fewer `sentinels` than
    `most_spans` of a row.
    """
    needed = most_spans(tokens_BL.shape[1], corrupted, mean_span)
    if len(sentinels) < needed:
        raise ValueError(f"{len(sentinels)} sentinels, {needed} spans")
    shape = tokens_BL.shape
    rows = Rows(
        np.full(shape, padding_id, dtype=tokens_BL.dtype),
        np.full(shape, IGNORED, dtype=np.int64),
        np.full(shape, PADDED, dtype=documents_BL.dtype),
        np.zeros(shape, dtype=np.bool_),
    )
    _corrupt_rows(
        tokens_BL,
        documents_BL,
        drawn_BL,
        (corrupted, mean_span),
        sentinels,
        end_id,
        (rows.tokens_BL, rows.targets_BL, rows.documents_BL, rows.prefix_BL),
    )
    return rows


def most_spans(length: int, corrupted: float, mean_span: float) -> int:
    """The most spans that a document has in a row of `length` tokens, sentinels and end counted."""
    tokens, _, spans = _fitting(length, length, corrupted, mean_span)
    return int(spans) if tokens else 0


@compiled
def _spans(tokens: int, corrupted: float, mean_span: float) -> tuple[int, int]:
    """Tokens of noise and spans of a text of at least two tokens: one of each at the least.

    Rounded half to even, as T5 has it; and no more spans than there is text between them.
    """
    noise = min(max(int(np.rint(tokens * corrupted)), 1), tokens - 1)
    spans = max(int(np.rint(noise / mean_span)), 1)
    return noise, min(spans, tokens - noise)


@compiled
def _fitting(tokens: int, room: int, corrupted: float, mean_span: float) -> tuple[int, int, int]:
    """How many of `tokens` fit into `room` once corrupted, their noise and spans; 0 if none do."""
    tokens = min(tokens, room)
    while tokens >= 2:
        noise, spans = _spans(tokens, corrupted, mean_span)
        if tokens + 2 * spans + 1 <= room:
            return tokens, noise, spans
        tokens -= 1
    return 0, 0, 0


@compiled
def _segments(items: int, parts: int, drawn: Any, lengths: Any) -> None:
    """Cut `items` into `parts` of at least one, each way as likely: `lengths` of the parts.

    The cuts are a sample of the gaps without replacement (Knuth, The Art of Computer Programming,
    vol. 2, 3.4.2, algorithm S), one draw a gap.
    """
    part, length, left = 0, 1, parts - 1
    for gap in range(items - 1):
        if drawn[gap] * (items - 1 - gap) < left:
            lengths[part] = length
            part, length, left = part + 1, 1, left - 1
        else:
            length += 1
    lengths[part] = length


@compiled
def _corrupt_rows(
    tokens_BL: Any,
    documents_BL: Any,
    drawn_BL: Any,
    settings: Any,
    sentinels: Any,
    end_id: Any,
    out: Any,
) -> None:
    rows, length = tokens_BL.shape
    out_tokens, out_targets, out_documents, out_prefix = out
    text_lengths = np.empty(length + 1, dtype=np.int64)
    noise_lengths = np.empty(length, dtype=np.int64)
    for row in range(rows):
        start = filled = 0
        while start < length and documents_BL[row, start] >= 0:
            stop = start + 1
            while stop < length and documents_BL[row, stop] == documents_BL[row, start]:
                stop += 1
            text = stop - start
            if tokens_BL[row, stop - 1] == end_id:
                text -= 1
            count, noise, spans = _fitting(text, length - filled, settings[0], settings[1])
            if count > 0:
                drawn = drawn_BL[row, start:stop]
                # One more part than spans: what is behind the last of them, which may be nothing.
                _segments(count - noise + 1, spans + 1, drawn, text_lengths)
                text_lengths[spans] -= 1
                _segments(noise, spans, drawn[count - noise :], noise_lengths)
                size, given = _write(
                    tokens_BL[row, start : start + count],
                    (text_lengths[: spans + 1], noise_lengths[:spans]),
                    sentinels,
                    end_id,
                    out_tokens[row, filled:],
                )
                for i in range(given - 1, size - 1):
                    out_targets[row, filled + i] = out_tokens[row, filled + i + 1]
                out_documents[row, filled : filled + size] = documents_BL[row, start]
                out_prefix[row, filled : filled + given] = True
                filled += size
            start = stop


@compiled
def _write(tokens: Any, lengths: Any, sentinels: Any, end_id: Any, out: Any) -> tuple[int, int]:
    """What is left with its sentinels, then the spans with theirs and the end.

    Returns how many tokens these are, and how many of them what is left takes.
    """
    text_lengths, noise_lengths = lengths
    spans = len(noise_lengths)
    place = source = 0
    for span in range(spans + 1):
        for _ in range(text_lengths[span]):
            out[place] = tokens[source]
            place, source = place + 1, source + 1
        if span < spans:
            out[place] = sentinels[span]
            place, source = place + 1, source + noise_lengths[span]
    given, source = place, 0
    for span in range(spans):
        out[place] = sentinels[span]
        place, source = place + 1, source + text_lengths[span]
        for _ in range(noise_lengths[span]):
            out[place] = tokens[source]
            place, source = place + 1, source + 1
    out[place] = end_id
    return place + 1, given
