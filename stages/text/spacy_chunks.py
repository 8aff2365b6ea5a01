"""spaCy's English tokenizer on one chunk: prefixes, suffixes, exceptions, URLs, infixes.

The algorithm (`spacy/tokenizer.pyx`): while the chunk is no exception, a prefix and a suffix are
cut off; a cut that leaves an exception ends this. What is left is an exception, a URL or is split
at its infixes. Each search for an affix sees only what is left, nothing before or after it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stages.engine.kernels import kernel
from stages.text.characters import Table
from stages.text.spacy_rules import (
    ALPHA,
    BEFORE_STOP,
    INFIX,
    LOWER,
    PLAIN,
    PREFIX,
    QUOTE,
    SPACE,
    SUFFIX,
    UPPER,
    Lexicon,
    find_string,
    is_url,
)

_0, _9, _A, _C, _S, _U, _s = map(ord, "09ACSUs")
_STOP, _COMMA, _PLUS, _HYPHEN, _STAR, _CARET, _DOLLAR, _TILDE = map(ord, ".,+-*^$~")
_COLON, _LESS, _GREATER, _EQUALS, _SLASH = map(ord, ":<>=/")
_APOSTROPHE, _QUOTE, _ELLIPSIS, _EN_DASH, _EM_DASH, _DEGREE = map(ord, "'’…–—°")
_SCALES = tuple(map(ord, "FfCcKk"))


@kernel
def find_chunk_tokens(
    codes: NDArray[np.uint32],
    offsets: NDArray[np.int64],
    table: Table,
    exceptions: Lexicon,
    pieces: NDArray[np.int64],
    after_digit: Lexicon,
    token_offsets: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> int:
    """Writes the tokens of every chunk of every text; returns their number."""
    count = 0
    for text in range(len(offsets) - 1):
        i, end = offsets[text], offsets[text + 1]
        while i < end:
            if table[codes[i]] & SPACE:
                i += 1
                continue
            first, plain, stops = i, True, False
            while i < end and not table[codes[i]] & SPACE:
                plain &= table[codes[i]] & PLAIN != 0
                stops |= codes[i] == _STOP
                i += 1
            if plain and find_string(exceptions, codes, first, i) < 0:
                starts[count], ends[count] = first, i
                count += 1
            elif plain:
                count = _add_core(
                    codes, table, exceptions, pieces, first, i, False, starts, ends, count
                )
            else:
                count = _add_chunk(
                    codes,
                    table,
                    exceptions,
                    pieces,
                    after_digit,
                    first,
                    i,
                    stops,
                    starts,
                    ends,
                    count,
                )
        token_offsets[text + 1] = count
    return count


@kernel
def _add_chunk(
    codes: NDArray[np.uint32],
    table: Table,
    exceptions: Lexicon,
    pieces: NDArray[np.int64],
    after_digit: Lexicon,
    first: int,
    end: int,
    stops: bool,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    count: int,
) -> int:
    """Cuts off affixes. Suffixes wait at the far end of the arrays, in reverse."""
    waiting, before = len(starts), -1
    while first < end and end - first != before and find_string(exceptions, codes, first, end) < 0:
        before = end - first
        prefix = _prefix_length(codes, table, first, end)
        rest = first + prefix
        suffix = 0
        # A cut that leaves an exception is made alone; the loop ends then.
        if prefix == 0 or rest == end or find_string(exceptions, codes, rest, end) < 0:
            suffix = _suffix_length(codes, table, after_digit, rest, end)
            if suffix > 0 and find_string(exceptions, codes, first, end - suffix) >= 0:
                prefix = 0
        if prefix > 0:
            starts[count], ends[count] = first, first + prefix
            count += 1
            first += prefix
        if suffix > 0:
            waiting -= 1
            starts[waiting], ends[waiting] = end - suffix, end
            end -= suffix
    if first < end:
        count = _add_core(codes, table, exceptions, pieces, first, end, stops, starts, ends, count)
    while waiting < len(starts):
        starts[count], ends[count] = starts[waiting], ends[waiting]
        count += 1
        waiting += 1
    return count


@kernel
def _add_core(
    codes: NDArray[np.uint32],
    table: Table,
    exceptions: Lexicon,
    pieces: NDArray[np.int64],
    first: int,
    end: int,
    stops: bool,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    count: int,
) -> int:
    """What is left between the affixes: an exception, a URL, or pieces between infixes."""
    index = find_string(exceptions, codes, first, end)
    if index >= 0:
        piece = 0
        while first < end:
            starts[count] = first
            first += pieces[index, piece]
            ends[count] = first
            count += 1
            piece += 1
        return count
    start = first
    if not (stops and is_url(codes, table, first, end)):
        i = first
        while i < end:
            plain = table[codes[i]] & PLAIN
            infix = 0 if plain else _infix_length(codes, table, i, first, end)
            if infix > 0 and i > first:  # one at the very beginning is passed over
                if i > start:
                    starts[count], ends[count] = start, i
                    count += 1
                starts[count], ends[count] = i, i + infix
                count += 1
                start = i + infix
            i += max(infix, 1)
    if start < end:
        starts[count], ends[count] = start, end
        count += 1
    return count


@kernel
def _is_digit(code: np.uint32) -> bool:
    return bool(_0 <= code <= _9)


@kernel
def _run(codes: NDArray[np.uint32], i: int, end: int) -> int:
    """The number of equal characters from `i` on."""
    last = i + 1
    while last < end and codes[last] == codes[i]:
        last += 1
    return last - i


@kernel
def _prefix_length(codes: NDArray[np.uint32], table: Table, first: int, end: int) -> int:
    code = codes[first]
    if table[code] & PREFIX:
        return 1
    if code == _STOP:
        run = _run(codes, first, end)
        return run if run > 1 else 0
    if code == _PLUS:
        return 0 if first + 1 < end and _is_digit(codes[first + 1]) else 1
    if code in (_C, _A) and first + 1 < end and codes[first + 1] == _DOLLAR:
        return 2
    if code == _U and first + 2 < end and codes[first + 1] == _S and codes[first + 2] == _DOLLAR:
        return 3
    return 0


@kernel
def _suffix_length(
    codes: NDArray[np.uint32], table: Table, after_digit: Lexicon, first: int, end: int
) -> int:
    """The longest suffix; `first` is where what is left begins."""
    if first >= end:
        return 0
    code = codes[end - 1]
    before = codes[end - 2] if end - 2 >= first else np.uint32(0)
    if code == _STOP:
        return _stop_length(codes, table, first, end)
    if code == _ELLIPSIS and before == _ELLIPSIS:
        return 2
    if code in (_s, _S) and before in (_APOSTROPHE, _QUOTE):
        return 2
    if code == _PLUS and _is_digit(before):
        return 1
    length = 1 if table[code] & SUFFIX else 0
    for i in range(end - 1, max(first, end - 1 - (after_digit.shape[1] - 2)) - 1, -1):
        if _is_digit(codes[i]):
            if i + 1 < end and find_string(after_digit, codes, i + 1, end) >= 0:
                length = max(length, end - 1 - i)
            break
    return length


@kernel
def _stop_length(codes: NDArray[np.uint32], table: Table, first: int, end: int) -> int:
    """The suffix that a full stop at the end is, or belongs to."""
    i = end - 2
    while i >= first and codes[i] == _STOP:
        i -= 1
    if end - 1 - i > 1:
        return end - 1 - i
    if i < first:
        return 0
    bits = table[codes[i]]
    if bits & BEFORE_STOP:
        return 1
    if i - 1 < first:
        return 0
    if bits & table[codes[i - 1]] & UPPER:
        return 1
    return 1 if codes[i - 1] == _DEGREE and codes[i] in _SCALES else 0


@kernel
def _infix_length(codes: NDArray[np.uint32], table: Table, i: int, first: int, end: int) -> int:
    """The length of the infix that begins at `i`, or 0."""
    code, bits = codes[i], table[codes[i]]
    if bits & INFIX:
        return 1
    if i + 1 == end:
        return 0
    after = codes[i + 1]
    if code == _STOP and after == _STOP:
        return _run(codes, i, end)
    if i == first:
        return 0
    before = codes[i - 1]
    behind, ahead = table[before], table[after]
    if code == _STOP:
        return 1 if behind & (LOWER | QUOTE) and ahead & (UPPER | QUOTE) else 0
    if code == _COMMA:
        return 1 if behind & ahead & ALPHA else 0
    digit = _is_digit(before)
    if digit and code in (_PLUS, _HYPHEN, _STAR, _CARET) and (_is_digit(after) or after == _HYPHEN):
        return 1
    if not (digit or behind & ALPHA):
        return 0
    if code in (_COLON, _LESS, _GREATER, _EQUALS, _SLASH):
        return 1 if ahead & ALPHA else 0
    return _hyphen_length(codes, table, i, end)


@kernel
def _hyphen_length(codes: NDArray[np.uint32], table: Table, i: int, end: int) -> int:
    """Of hyphens and dashes before a letter: up to three hyphens, two em dashes, one other."""
    code = codes[i]
    if code == _HYPHEN:
        most = 3
    elif code == _EM_DASH:
        most = 2
    elif code in (_EN_DASH, _TILDE):
        most = 1
    else:
        return 0
    length = 1
    while length <= most and i + length < end and codes[i + length] == code:
        length += 1
    return length if length <= most and i + length < end and table[codes[i + length]] & ALPHA else 0
