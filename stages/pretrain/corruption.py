"""Masking, prefixes and span corruption of packed rows, by random numbers drawn by key.

What is drawn for a token depends on its position alone, not on what was drawn before. So a resumed
run, any number of ranks and any size of micro-batch draw the same.

Masked tokens are hidden and predicted from all others, to the left and to the right. Devlin et al.
2019, BERT (arXiv 1810.04805), section 3.1: 15 % of the tokens are chosen; 80 % of those become the
mask token, 10 % a random token, 10 % stay as they are. As in RoBERTa (Liu et al. 2019, arXiv
1907.11692, section 4.1) they are chosen again each time that a sequence is read.

Prefix language modelling: the begin of a document is seen whole, the rest is predicted. Raffel et
al. 2020, T5 (arXiv 1910.10683), section 3.2.3: a text is split at a random point into what is
given, with attention in both directions, and what is learnt.

Span corruption: spans are cut out of a document, and learnt after what is left of it. Raffel et al.
2020, section 3.1.4: of n tokens `round(n · corrupted)` are noise, in `round(noise / mean_span)`
spans. A sentinel stands for each span; the target is each sentinel with its span. Here, for a
decoder alone (as Wang et al. 2022, arXiv 2204.05832, train it), both are one sequence: what is left
is a prefix with attention in both directions, the target follows it and ends the document:

    text    the cat sat on the mat and purred loudly
    tokens  the cat <0> the mat <1> loudly | <0> sat on <1> and purred <end>

All lengths of spans and all places for them are equally likely, except that a text's first token
stays and spans do not touch. T5's own code has the last span always at the end (so that a short
text loses its end every time), unless its `random_roll` is set, which may tear a span in two.

Shapes: B rows, L tokens, P segments of all rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stages.engine.kernels import kernel
from stages.training.permutation import GOLDEN, key_of, mix
from stages.training.rows import Rows
from stages.training.token_shards import IGNORED, PADDED

Uniform = NDArray[np.float64]
"""Numbers in [0, 1)."""

_ROW_STEP = 0.6180339887498949
"""The golden ratio's fractional part, whose multiples modulo 1 are spread the most evenly."""


def token_draws(shape: tuple[int, int], seed: int, training_step: int, first_row: int) -> Uniform:
    """[B, L] A number for each token; `first_row` is the first row's number in the step.

    A SplitMix64 per row (Steele, Lea and Flood 2014), its 53 highest bits as a double.
    """
    rows, length = shape
    key = np.uint64(_key("tokens", seed, training_step))
    rows_B = np.arange(first_row + 1, first_row + rows + 1, dtype=np.uint64)
    positions_L = np.arange(1, length + 1, dtype=np.uint64)
    words_BL = mix(mix(key + rows_B * GOLDEN)[:, None] + positions_L * GOLDEN)
    return (words_BL >> np.uint64(11)).astype(np.float64) * 2.0**-53


def row_draws(rows: int, seed: int, training_step: int, first_row: int) -> Uniform:
    """[B] A number for each row, each uniform, and together spread evenly.

    Row r of a step has `(u + 0.618… r) mod 1`, where u is drawn for the step: of any consecutive
    rows, the part that falls below a share differs from it by O(log rows) rows, not O(√rows)
    (Kronecker sequence; Kuipers and Niederreiter 1974, chapter 2.3).
    """
    start = (_key("rows", seed, training_step) >> 11) * 2.0**-53
    drawn: Uniform = np.mod(start + _ROW_STEP * np.arange(first_row, first_row + rows), 1.0)
    return drawn


def _key(name: str, seed: int, training_step: int) -> int:
    return int.from_bytes(key_of("draw", name, seed, training_step)[:8], "little")


def mask_tokens(
    tokens_BL: NDArray[Any],
    text_BL: NDArray[np.bool_],
    drawn_BL: Uniform,
    *,
    corrupted: float,
    masked: float,
    replaced: float,
    mask_id: int,
    text_ids: NDArray[np.int64],
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The tokens as the model sees them, and the targets: the tokens that were chosen, in place.

    Each token that is text is chosen by itself; of the chosen, a share `masked` becomes `mask_id`
    and a share `replaced` one of `text_ids`, each as likely, maybe itself.
    """
    chosen_BL = text_BL & (drawn_BL < corrupted)
    # Below a bound a uniform number is uniform up to it: one draw a token is enough.
    fate = drawn_BL[chosen_BL] / corrupted
    hidden, other = fate < masked, (fate >= masked) & (fate < masked + replaced)
    seen = tokens_BL[chosen_BL]
    targets_BL = np.full(tokens_BL.shape, IGNORED, dtype=np.int64)
    targets_BL[chosen_BL] = seen
    if replaced:
        which = (fate[other] - masked) / replaced * len(text_ids)
        seen[other] = text_ids[np.minimum(which.astype(np.int64), len(text_ids) - 1)]
    seen[hidden] = mask_id
    tokens_BL = tokens_BL.copy()
    tokens_BL[chosen_BL] = seen
    return tokens_BL, targets_BL


def segment_bounds(documents_BL: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """[P] Where each piece begins in the flattened rows, and its tokens; padding is a piece."""
    begins = np.ones(documents_BL.shape, dtype=bool)
    begins[:, 1:] = documents_BL[:, 1:] != documents_BL[:, :-1]
    starts = np.flatnonzero(begins)
    return starts, np.diff(np.append(starts, documents_BL.size))


def split_documents(
    targets_BL: NDArray[np.int64], documents_BL: NDArray[Any], drawn_BL: Uniform
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Targets of the rest of each piece, and which tokens are its prefix.

    A piece of n tokens has a prefix of 1 to n - 1, each as likely (of one token: that one); its
    last token predicts the first one after it.
    """
    starts, lengths = segment_bounds(documents_BL)
    drawn = drawn_BL.ravel()[starts]
    prefix_length = 1 + (drawn * np.maximum(lengths - 1, 0)).astype(np.int64)
    place = np.arange(documents_BL.size) - np.repeat(starts, lengths)
    prefix_BL = (place < np.repeat(prefix_length, lengths)).reshape(documents_BL.shape)
    prefix_BL &= documents_BL != PADDED
    # What a token predicts is the next of its piece: given already, if that is in the prefix.
    learnt_BL = targets_BL.copy()
    learnt_BL[:, :-1][prefix_BL[:, 1:]] = IGNORED
    return learnt_BL, prefix_BL


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
    are dropped; the others keep their numbers. ValueError if there are fewer `sentinels` than
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


@kernel
def _spans(tokens: int, corrupted: float, mean_span: float) -> tuple[int, int]:
    """Tokens of noise and spans of a text of at least two tokens: one of each at the least.

    Rounded half to even, as T5 has it; and no more spans than there is text between them.
    """
    noise = min(max(int(np.rint(tokens * corrupted)), 1), tokens - 1)
    spans = max(int(np.rint(noise / mean_span)), 1)
    return noise, min(spans, tokens - noise)


@kernel
def _fitting(tokens: int, room: int, corrupted: float, mean_span: float) -> tuple[int, int, int]:
    """How many of `tokens` fit into `room` once corrupted, their noise and spans; 0 if none do."""
    tokens = min(tokens, room)
    while tokens >= 2:
        noise, spans = _spans(tokens, corrupted, mean_span)
        if tokens + 2 * spans + 1 <= room:
            return tokens, noise, spans
        tokens -= 1
    return 0, 0, 0


@kernel
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


@kernel
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
                # One more part than spans: the text after the last of them, which may be empty.
                _segments(count - noise + 1, spans + 1, drawn, text_lengths)
                text_lengths[spans] -= 1
                _segments(noise, spans, drawn[count - noise :], noise_lengths)
                size, prefix_length = _write(
                    tokens_BL[row, start : start + count],
                    (text_lengths[: spans + 1], noise_lengths[:spans]),
                    sentinels,
                    end_id,
                    out_tokens[row, filled:],
                )
                for i in range(prefix_length - 1, size - 1):
                    out_targets[row, filled + i] = out_tokens[row, filled + i + 1]
                out_documents[row, filled : filled + size] = documents_BL[row, start]
                out_prefix[row, filled : filled + prefix_length] = True
                filled += size
            start = stop


@kernel
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
    prefix_length, source = place, 0
    for span in range(spans):
        out[place] = sentinels[span]
        place, source = place + 1, source + text_lengths[span]
        for _ in range(noise_lengths[span]):
            out[place] = tokens[source]
            place, source = place + 1, source + 1
    out[place] = end_id
    return place + 1, prefix_length
