"""What counts as a passage: CCNet's lines, C4's spans of sentences, and runs of tokens.

Lines are compared as CCNet does: without case, figures, typographic punctuation and controls. A
line is the text between line feeds, blank ones as well; its hash is the first eight bytes of the
SHA-1 of what is left of it (Wenzek et al. 2020; `compute_hashes` and `normalize_for_dedup` of
facebookresearch/cc_net). Their table of punctuation holds the full-width digit one by mistake,
which changes nothing here: digits have become zeros before.

C4 kept one of any three-sentence span that occurs more than once (Raffel et al. 2020, section 2.2);
its code compares lines, datatrove's `sentence_dedup.py` spans. Sentences are those of spaCy's
sentencizer over its English tokens; texts in scripts without spaces, in which these see no word
ends, are split into Ingot's own words first. Two spans are equal if their simplified sentences are,
joined by spaces. What datatrove does next, dropping documents that are left with fewer than 50
words or 3 sentences, is a matter of `filter`.

Runs of tokens: tokens are Ingot's words and symbols, compared exactly: with case and accents,
without the white space between them. A row of one sign that is not a letter ("=====", "````") is
one token, as rows of full stops and hyphens are to the splitter: else every rule of 50 signs would
be a passage. A window is `least` tokens in a row; what is repeated is the union of all windows that
occur earlier, so every run of at least `least` tokens that does, in its whole length. The meaning
of length is that of google-research/deduplicate-text-datasets (Lee et al. 2022), which counts bytes
of text or of a model's tokens, and marks the first copy too.

Hashing every window costs most where nothing is repeated. So each window names an anchor, the
n-gram in it whose hash is least, the last one of equals: winnowing (Schleimer, Wilkerson and Aiken
2003). With n-grams of least // 2 + 1 tokens about one n-gram in thirteen is an anchor (for 50).
Equal windows have their anchors at the same place, so a window can only be repeated if its anchor's
n-gram is an anchor twice; only such windows are hashed and compared. It is not enough to compare a
passage with the first place of its anchor and extend: a later place may agree further. Robust
winnowing, which keeps an anchor while it is among the least, would choose fewer where text is
periodic, but looks beyond the window, and equal windows could name different anchors.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from xxhash import xxh64_intdigest

from stages.dedup.datatrove import simplify_text
from stages.engine.kernels import kernel
from stages.text.batch import LETTER, SENTENCE_END, Batch, split_texts
from stages.text.batch import PUNCTUATION as PUNCTUATION_TOKEN
from stages.text.characters import PUNCTUATION, find_main_script
from stages.text.splitters import Splitter

Occurrences = NDArray[np.void]

OCCURRENCE = np.dtype(
    [
        ("hash", "<u8"),
        *((name, "<i4") for name in ("row", "start", "end", "next_start", "following")),
    ]
)
"""A passage at characters [start, end) of the document in that row of the shard. The text after it
begins at `next_start`. `following` counts the lines after a line; it is 0 for other passages."""


def make_occurrences(
    hashes: ArrayLike,
    rows: ArrayLike,
    starts: ArrayLike,
    ends: ArrayLike,
    next_starts: ArrayLike,
    following: ArrayLike = 0,
) -> Occurrences:
    """Occurrences from their columns."""
    occurrences = np.empty(len(np.asarray(hashes)), dtype=OCCURRENCE)
    columns = (hashes, rows, starts, ends, next_starts, following)
    for name, column in zip(OCCURRENCE.names or (), columns, strict=True):
        occurrences[name] = column
    return occurrences


LINES_VIEW = "duplicate_lines@ccnet"

_CONTROLS = bytes(code for code in (*range(32), 127) if code != ord("\n"))
_ASCII_SPACE = b" \t\x0b\x0c\r\x1c\x1d\x1e\x1f"
"""What `str.strip` takes from a line of ASCII."""
_ASCII = bytes.maketrans(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZ123456789", b"abcdefghijklmnopqrstuvwxyz" + b"0" * 9
)
_DIGIT = re.compile(r"\d")
_TYPOGRAPHIC = "".join(sorted(char for char in PUNCTUATION if ord(char) >= 160))
_REMOVED = re.compile(rf"[{_TYPOGRAPHIC}\x00-\x09\x0b-\x1f\x7f-\x9f]+")


def normalised_lines(text: str) -> list[bytes]:
    """What CCNet hashes of each line, in UTF-8; empty for lines without anything else."""
    if text.isascii():
        stripped = [line.strip(_ASCII_SPACE) for line in text.encode().split(b"\n")]
        return b"\n".join(stripped).translate(_ASCII, _CONTROLS).split(b"\n")
    # The lower case of a letter does not depend on anything after a line feed.
    lowered = "\n".join([line.strip() for line in text.split("\n")]).lower()
    return _REMOVED.sub("", _DIGIT.sub("0", lowered)).encode().split(b"\n")


def line_hash(normalised: bytes) -> bytes:
    """Eight bytes, to be read as a little-endian number."""
    return hashlib.sha1(normalised, usedforsecurity=False).digest()[:8]


BLANK = int.from_bytes(line_hash(b""), "little")
"""Hash of a line of which nothing is left."""


def line_occurrences(texts: Sequence[str], first_row: int) -> Occurrences:
    """Every line of the texts, which are the rows from `first_row` on."""
    digests: list[bytes] = []
    lengths: list[int] = []
    counts: list[int] = []
    for text in texts:
        lines = normalised_lines(text)
        digests += map(line_hash, lines)
        lengths += map(len, text.split("\n"))
        counts.append(len(lines))
    number, size = np.array(counts, dtype=np.int64), np.array(lengths, dtype=np.int64)
    last = np.cumsum(number) - 1
    # A line and its line feed; the last one of a text has none.
    steps = size + 1
    steps[last] -= 1
    next_start = np.cumsum(steps)
    next_start -= np.repeat(next_start[last] - [*map(len, texts)], number)
    starts = next_start - steps
    return make_occurrences(
        np.frombuffer(b"".join(digests), dtype="<u8"),
        np.repeat(np.arange(first_row, first_row + len(texts)), number),
        starts,
        starts + size,
        next_start,
        np.repeat(last, number) - np.arange(last[-1] + 1 if len(last) else 0),
    )


SENTENCES_VIEW = "duplicate_sentences@c4"
SPAN = 3
"""Sentences of a span."""

_UNSPACED = frozenset({"Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar"})
_SPACE = ord(" ")


def sentence_occurrences(texts: Sequence[str], first_row: int) -> Occurrences:
    """Every span of three sentences of the texts, which are the rows from `first_row` on.

    A span takes the white space before it along, as in datatrove, and none after it: the next
    text begins at `next_start`. Spans of which nothing is left when simplified do not count.
    """
    unspaced = np.array([find_main_script(text)[0] in _UNSPACED for text in texts], dtype=bool)
    splitters: dict[Splitter, NDArray[np.bool_]] = {"spacy_english": ~unspaced, "unicode": unspaced}
    parts = [_sentence_spans(texts, np.flatnonzero(rows), name) for name, rows in splitters.items()]
    occurrences = np.concatenate(parts)
    occurrences = occurrences[np.argsort(occurrences["row"], kind="stable")]
    occurrences["row"] += first_row
    return occurrences


def _sentence_spans(
    texts: Sequence[str], rows: NDArray[np.intp], splitter: Splitter
) -> Occurrences:
    """The spans of the texts in these rows."""
    chosen = [texts[row] for row in rows.tolist()]
    batch = split_texts(chosen, splitter)
    sentence_texts, starts, ends = sentence_bounds(batch)
    places = zip(sentence_texts.tolist(), starts.tolist(), ends.tolist(), strict=True)
    sentences = [simplify_text(chosen[text][start:end]) for text, start, end in places]

    first = np.flatnonzero(sentence_texts[: 1 - SPAN] == sentence_texts[SPAN - 1 :])
    first = first[[any(sentences[number : number + SPAN]) for number in first]]
    spans = (" ".join(sentences[number : number + SPAN]) for number in first)
    # Hashed as code points.
    encoded = (span.encode("utf-32-le", "surrogatepass") for span in spans)
    hashes = np.fromiter(map(xxh64_intdigest, encoded), np.uint64, len(first))
    before = np.append(ends, 0)[first - 1]
    begins = np.append(-1, sentence_texts)[first] != sentence_texts[first]
    follows = np.append(sentence_texts, -1)[first + SPAN] == sentence_texts[first]
    next_starts = np.where(
        follows, np.append(starts, 0)[first + SPAN], np.diff(batch.offsets)[sentence_texts[first]]
    )
    return make_occurrences(
        hashes,
        rows[sentence_texts[first]],
        np.where(begins, 0, before),
        ends[first + SPAN - 1],
        next_starts,
    )


def sentence_bounds(
    batch: Batch,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(texts, starts, ends) of the sentences: characters [start, end) of their text.

    A sentence reaches from its first token to its last. It ends after a mark and the punctuation
    after that, where other text or white space but a single space follows.
    """
    tokens = batch.tokens
    texts, starts, ends = (np.empty(len(tokens.starts), dtype=np.int64) for _ in range(3))
    number = _find_bounds(
        batch.codes, batch.offsets, tokens.offsets, tokens.starts, tokens.ends, tokens.kinds,
        texts, starts, ends,
    )  # fmt: skip
    return texts[:number], starts[:number], ends[:number]


@kernel
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
    number = 0
    for text in range(len(text_offsets) - 1):
        first, base, ended = token_offsets[text], text_offsets[text], False
        for token in range(first, token_offsets[text + 1]):
            kind, begins = kinds[token], token == first
            if ended:
                gap = token_starts[token] - token_ends[token - 1]
                white = gap > 1 or (gap == 1 and codes[token_ends[token - 1]] != _SPACE)
                begins = white or not kind & (PUNCTUATION_TOKEN | SENTENCE_END)
            if begins:
                texts[number], starts[number] = text, token_starts[token] - base
                number += 1
                ended = False
            ends[number - 1] = token_ends[token] - base
            if kind & SENTENCE_END:
                ended = True
    return number


SUBSTRINGS_VIEW = "duplicate_substrings"

_GRAM_BASE, _WINDOW_BASE = np.uint64(0xF1357AEA2E62A9C5), np.uint64(0xAF251AF3B0F025B5)
_MULTIPLIER, _HALF, _ONE = np.uint64(0xD6E8FEB86659FD93), np.uint64(32), np.uint64(1)


def gram_length(least: int) -> int:
    """Tokens of the n-grams among which a window of `least` tokens names its anchor."""
    return least // 2 + 1


def anchor_occurrences(tokens: Tokens, first_row: int, least: int) -> tuple[Occurrences, int]:
    """The anchors of the texts, which are the rows from `first_row` on; how many windows there are.

    Of an anchor only `hash` and `row` mean something.
    """
    keys = _rolling_hashes(tokens.hashes, tokens.offsets, gram_length(least), _GRAM_BASE)
    anchors = _anchors(keys, tokens.offsets, least, gram_length(least))
    rows, places = _distinct_anchors(anchors, tokens.offsets, least)
    windows = np.maximum(np.diff(tokens.offsets) - (least - 1), 0).sum()
    return make_occurrences(_mix_all(keys[places]), rows + first_row, 0, 0, 0), int(windows)


def window_occurrences(
    tokens: Tokens, first_row: int, least: int, repeated: NDArray[np.uint64]
) -> Occurrences:
    """The windows of the texts whose anchor is among `repeated`, sorted hashes of anchors."""
    keys = _rolling_hashes(tokens.hashes, tokens.offsets, gram_length(least), _GRAM_BASE)
    anchors = _anchors(keys, tokens.offsets, least, gram_length(least))
    rows, first = _windows(anchors, keys, tokens.offsets, least, repeated)
    hashes = _rolling_hashes(tokens.hashes, tokens.offsets, least, _WINDOW_BASE)[first]
    ends = tokens.ends[first + least - 1]
    return make_occurrences(hashes, rows + first_row, tokens.starts[first], ends, ends)


class Tokens(NamedTuple):
    """Text d of a batch has the tokens [offsets[d], offsets[d + 1]), token t the characters
    [starts[t], ends[t]) of its text and a hash of its string."""

    offsets: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    hashes: NDArray[np.uint64]


def joined_tokens(batch: Batch) -> Tokens:
    """The tokens of a batch, rows of one sign that is no letter as one."""
    split = batch.tokens
    offsets, starts, ends, hashes = _join_rows(
        split.offsets, split.starts, split.ends, split.kinds, split.hashes, split.powers
    )
    base = np.repeat(batch.offsets[:-1], np.diff(offsets))
    return Tokens(offsets, starts - base, ends - base, hashes)


def stored_tokens(lists: pa.ListArray) -> Tokens:
    """Texts of which only the hashes of their tokens are known; a token takes one character."""
    offsets = lists.offsets.to_numpy().astype(np.int64)
    hashes = lists.flatten().to_numpy()
    places = np.arange(len(hashes), dtype=np.int64)
    return Tokens(offsets - offsets[0], places, places + 1, hashes)


@kernel
def _join_rows(
    offsets: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    kinds: NDArray[np.uint8],
    hashes: NDArray[np.uint64],
    powers: NDArray[np.uint64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
    left, number = np.zeros_like(offsets), 0
    first, last, numbers = np.empty_like(starts), np.empty_like(ends), np.empty_like(hashes)
    for text in range(len(offsets) - 1):
        for token in range(offsets[text], offsets[text + 1]):
            if (
                token > offsets[text]
                and starts[token] == ends[token - 1]
                and hashes[token] == hashes[token - 1]
                and not kinds[token] & LETTER
            ):
                numbers[number - 1] = numbers[number - 1] * powers[token] + hashes[token]
            else:
                first[number], numbers[number] = starts[token], hashes[token]
                number += 1
            last[number - 1] = ends[token]
        left[text + 1] = number
    return left, first[:number], last[:number], numbers[:number]


@kernel
def _mix(value: Any) -> Any:
    """A bijection of 64-bit numbers that spreads every bit."""
    value = (value ^ (value >> _HALF)) * _MULTIPLIER
    value = (value ^ (value >> _HALF)) * _MULTIPLIER
    return value ^ (value >> _HALF)


@kernel
def _mix_all(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Least hashes are no even choice of all numbers; mixed once more they spread evenly."""
    mixed = np.empty_like(values)
    for i in range(len(values)):
        mixed[i] = _mix(values[i])
    return mixed


@kernel
def _rolling_hashes(
    hashes: NDArray[np.uint64], offsets: NDArray[np.int64], length: int, base: Any
) -> NDArray[np.uint64]:
    """[tokens] the number of the n-gram that begins at each token; 0 where none fits its text."""
    rolled = np.zeros(len(hashes), dtype=np.uint64)
    leaving = _ONE
    for _ in range(length):
        leaving *= base
    for text in range(len(offsets) - 1):
        value = np.uint64(0)
        for token in range(offsets[text], offsets[text + 1]):
            value = value * base + _mix(hashes[token])
            first = token - length + 1
            if first > offsets[text]:
                value -= leaving * _mix(hashes[first - 1])
            if first >= offsets[text]:
                rolled[first] = _mix(value)
    return rolled


@kernel
def _anchors(
    keys: NDArray[np.uint64], offsets: NDArray[np.int64], least: int, length: int
) -> NDArray[np.int64]:
    """[tokens] where the n-gram begins that the window at each token names; -1 without window."""
    anchors = np.full(len(keys), -1, dtype=np.int64)
    width = least - length + 1
    for text in range(len(offsets) - 1):
        chosen = -1
        for window in range(offsets[text], offsets[text + 1] - least + 1):
            last = window + width - 1
            if chosen < window:
                chosen = window
                for gram in range(window + 1, last + 1):
                    if keys[gram] <= keys[chosen]:
                        chosen = gram
            elif keys[last] <= keys[chosen]:
                chosen = last
            anchors[window] = chosen
    return anchors


@kernel
def _distinct_anchors(
    anchors: NDArray[np.int64], offsets: NDArray[np.int64], least: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Texts and tokens of the anchors."""
    texts, places = np.empty_like(anchors), np.empty_like(anchors)
    count = 0
    for text in range(len(offsets) - 1):
        for window in range(offsets[text], offsets[text + 1] - least + 1):
            if window == offsets[text] or anchors[window] != anchors[window - 1]:
                texts[count], places[count] = text, anchors[window]
                count += 1
    return texts[:count].copy(), places[:count].copy()


@kernel
def _windows(
    anchors: NDArray[np.int64],
    keys: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    least: int,
    repeated: NDArray[np.uint64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Texts and first tokens of the windows whose anchor is repeated."""
    texts, places = np.empty_like(anchors), np.empty_like(anchors)
    count = 0
    for text in range(len(offsets) - 1):
        before, known = -1, False
        for window in range(offsets[text], offsets[text + 1] - least + 1):
            if anchors[window] != before:
                before = anchors[window]
                key = _mix(keys[before])
                place = np.searchsorted(repeated, key)
                known = place < len(repeated) and repeated[place] == key
            if known:
                texts[count], places[count] = text, window
                count += 1
    return texts[:count].copy(), places[:count].copy()
