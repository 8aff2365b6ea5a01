"""How finely a tokenizer splits text: sums of tokens, bytes, words, and words of several tokens.

Fertility is tokens per word and was proposed with the share of continued words, those of more than
one token, by Ács (2019) and Rust et al. (2021, "How Good is Your Tokenizer?", arXiv 2012.15613).
Tokens between words count too.

A word is a segment between the word boundaries of Unicode's default rules
(https://www.unicode.org/reports/tr29/, section 4.1) that holds a letter or a digit. Where a script
writes no spaces, these rules split Han, Hiragana and Thai letter by letter: only a dictionary could
do better (section 4.1 says so), so numbers by word compare texts of one language, never languages
with each other. The `regex` package knows the properties of characters, but its own boundaries,
`(?w)\\b`, are not these: it joins a flag with the word after it (against WB15 and WB16), and a
quote with the vowel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import regex
from numpy.typing import NDArray
from tokenizers import Tokenizer

from stages.engine.kernels import kernel
from stages.text.characters import CharacterTable, Table, code_points
from stages.tokens.vocabulary import find_unknown_token, load_plain_tokenizer

Ints = NDArray[np.int64]

_CLASSES = (
    *("CR", "LF", "Newline", "Extend", "Format", "ZWJ"),
    *("ALetter", "Hebrew_Letter", "Numeric", "Katakana", "ExtendNumLet"),
    *("Single_Quote", "Double_Quote", "MidNumLet", "MidLetter", "MidNum"),
)
"""Values of Word_Break, as classes 1 to 16; 0 is any other character.

Spaces and flags are others here: what their rules join (WB3d, WB15, WB16) is never part of a word,
nor is a line's end (WB3).
"""

_CLASS, _PICTURE, _WORDLIKE = 31, 32, 64
_CR, _LF, _NEWLINE, _EXTEND, _FORMAT, _ZWJ = (1 << c for c in range(1, 7))
_A_LETTER, _HEBREW, _NUMERIC, _KATAKANA, _EXTEND_NUM_LET = (1 << c for c in range(7, 12))
_SINGLE, _DOUBLE, _MID_NUM_LET, _MID_LETTER, _MID_NUM = (1 << c for c in range(12, 17))

_LINE_END = _CR | _LF | _NEWLINE
_IGNORED = _EXTEND | _FORMAT | _ZWJ
_LETTER = _A_LETTER | _HEBREW
_IN_WORD = _LETTER | _NUMERIC | _KATAKANA
_BETWEEN_LETTERS = _MID_LETTER | _MID_NUM_LET | _SINGLE
_BETWEEN_DIGITS = _MID_NUM | _MID_NUM_LET | _SINGLE

_PATTERNS = (
    *((number, rf"\p{{WB={name}}}") for number, name in enumerate(_CLASSES, start=1)),
    (_PICTURE, r"\p{Extended_Pictographic}"),
    (_WORDLIKE, r"[\p{Alphabetic}\p{N}]"),
)
_FINDERS = [(value, regex.compile(pattern)) for value, pattern in _PATTERNS]


def _flags(chars: str) -> Iterator[tuple[int, Iterable[int]]]:
    for value, finder in _FINDERS:
        yield value, (match.start() for match in finder.finditer(chars))


_table = CharacterTable(_flags)


@dataclass(frozen=True)
class Words:
    """The words of several texts, which lie end to end; all arrays are int64."""

    texts: Ints
    """[texts + 1] code points at which each text starts, and the end of the last."""
    text: Ints
    """[words] the text of each word."""
    starts: Ints
    """[words] code points, counted through all the texts."""
    ends: Ints
    """[words]"""


def find_unicode_words(texts: Sequence[str]) -> Words:
    """The words of `texts`, in order."""
    codes = code_points("".join(texts))
    borders = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in texts], out=borders[1:])
    rows = np.empty((3, len(codes)), dtype=np.int64)
    count = _find_words(codes, borders, _table.covering(codes), rows)
    text, starts, ends = rows[:, :count]
    return Words(borders, text, starts, ends)


@kernel
def _find_words(codes: NDArray[np.uint32], borders: Ints, table: Table, rows: Ints) -> int:
    """Fill `rows` ([text, start, end][word]); the number of words."""
    count = 0
    for text in range(len(borders) - 1):
        start, end = borders[text], borders[text + 1]
        wordlike = False
        # Classes as bits: of the character before, and, Extend, Format and ZWJ ignored (WB4), of
        # the one before and the one before that.
        raw, left, left_of_it = 0, 0, 0
        for i in range(borders[text], end):
            bits = table[codes[i]]
            this = 1 << (bits & _CLASS)
            ignored = this & _IGNORED != 0 and raw != 0 and raw & _LINE_END == 0
            if i > start and (
                not ignored
                and not _forbids_boundary(raw, left, left_of_it, bits, codes, i, end, table)
            ):
                if wordlike:
                    rows[0, count], rows[1, count], rows[2, count] = text, start, i
                    count += 1
                start, wordlike = i, False
            wordlike |= bits & _WORDLIKE != 0
            if not ignored:
                left_of_it, left = left, this
            raw = this
        if wordlike:
            rows[0, count], rows[1, count], rows[2, count] = text, start, end
            count += 1
    return count


@kernel
def _forbids_boundary(
    raw: int,
    left: int,
    left_of_it: int,
    bits: int,
    codes: NDArray[np.uint32],
    i: int,
    end: int,
    table: Table,
) -> bool:
    """Whether a rule of WB3c to WB13 but WB4 forbids a boundary before the character at `i`."""
    this = 1 << (bits & _CLASS)
    if (raw | this) & _LINE_END:
        return False
    if raw == _ZWJ and bits & _PICTURE != 0:
        return True
    if left & _IN_WORD:
        if left == _KATAKANA or this == _KATAKANA:
            return left == this or this == _EXTEND_NUM_LET
        if this & (_IN_WORD | _EXTEND_NUM_LET):
            return True
        if this & (_BETWEEN_LETTERS | _BETWEEN_DIGITS | _DOUBLE):
            if left == _HEBREW and this == _SINGLE:
                return True
            return _joins_letters(left, this, _class_after(codes, i, end, table))
        return False
    if left & (_BETWEEN_LETTERS | _BETWEEN_DIGITS | _DOUBLE):
        return _joins_letters(left_of_it, left, this)
    return left == _EXTEND_NUM_LET and this & (_IN_WORD | _EXTEND_NUM_LET) != 0


@kernel
def _joins_letters(before: int, mark: int, after: int) -> bool:
    """Whether a mark between two characters lets them be one word (WB6, WB7, WB7b to WB12)."""
    if before & _LETTER and after & _LETTER and mark & _BETWEEN_LETTERS:
        return True
    if before == _HEBREW and after == _HEBREW and mark == _DOUBLE:
        return True
    return before == _NUMERIC and after == _NUMERIC and mark & _BETWEEN_DIGITS != 0


@kernel
def _class_after(codes: NDArray[np.uint32], i: int, end: int, table: Table) -> int:
    """Class of the next character after `i` that WB4 does not ignore; 0 at the end."""
    for place in range(i + 1, end):
        this = 1 << (table[codes[place]] & _CLASS)
        if this & _IGNORED == 0:
            return this
    return 0


T = TypeVar("T")

BATCH_CHARACTERS = 1 << 20
"""Text encoded in one call, about."""


@dataclass
class Fertility:
    """What is counted of texts under one tokenizer."""

    documents: int = 0
    bytes: int = 0
    characters: int = 0
    words: int = 0
    continued_words: int = 0
    tokens: int = 0
    not_restored: int = 0
    """Texts that decode to another text."""
    unknown_tokens: int = 0
    """Tokens that stand for what the vocabulary lacks, however long it is."""

    def add(self, more: Fertility) -> None:
        """Count these as well."""
        for name, value in vars(more).items():
            setattr(self, name, getattr(self, name) + value)

    @property
    def tokens_per_word(self) -> float | None:
        """Fertility; None without a word."""
        return self.tokens / self.words if self.words else None

    @property
    def continued_share(self) -> float | None:
        """Share of words that are more than one token; None without a word."""
        return self.continued_words / self.words if self.words else None

    @property
    def bytes_per_token(self) -> float | None:
        """Mean UTF-8 bytes of a token; None without a token."""
        return self.bytes / self.tokens if self.tokens else None

    @property
    def characters_per_token(self) -> float | None:
        """Mean code points of a token; None without a token."""
        return self.characters / self.tokens if self.tokens else None

    @property
    def unknown_share(self) -> float | None:
        """Share of tokens that are unknown; None without a token. Where there are some, tokens say
        little of how finely a text is cut: a sentence may be one."""
        return self.unknown_tokens / self.tokens if self.tokens else None

    def plain(self) -> dict[str, Any]:
        """JSON-ready, with the ratios to four decimals."""
        ratios = ("tokens_per_word", "continued_share", "bytes_per_token", "characters_per_token")
        values = ((name, getattr(self, name)) for name in ratios)
        return {
            **vars(self),
            **{name: None if value is None else round(value, 4) for name, value in values},
        }


@dataclass(frozen=True)
class EncodedTexts:
    """A batch of texts as a tokenizer cuts them."""

    sums: list[Fertility]
    """Of each text."""
    ids: Ints
    """Of all texts, end to end."""


@dataclass(frozen=True)
class FertilityCounter:
    """A tokenizer, set to cut whole texts, in which special tokens are plain characters."""

    tokenizer: Tokenizer
    unknown: int | None
    """Id of the unknown token."""

    @classmethod
    def from_json(cls, description: str) -> FertilityCounter:
        """The tokenizer of a tokenizer.json."""
        tokenizer = load_plain_tokenizer(description)
        return cls(tokenizer, find_unknown_token(tokenizer))

    def cut(self, texts: Sequence[str], words: Words) -> EncodedTexts:
        """Encode a batch in one call, decode it, and count; `words` are those of `texts`.

        A word is continued if more than one token holds a part of it; a token that also holds the
        space before it, or the next word, is one all the same. No special tokens are added.
        """
        encodings = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        sizes = np.array([len(encoding) for encoding in encodings], dtype=np.int64)
        total = int(sizes.sum())
        ids = np.fromiter(chain.from_iterable(e.ids for e in encodings), np.int64, total)
        pairs = chain.from_iterable(chain.from_iterable(e.offsets for e in encodings))
        spans = np.fromiter(pairs, np.int64, 2 * total).reshape(-1, 2)
        spans += np.repeat(words.texts[:-1], sizes)[:, None]
        continued = words.text[_count_tokens_by_word(spans, words) > 1]
        unknown = np.repeat(np.arange(len(texts)), sizes)[ids == self.unknown]
        counts = (
            np.bincount(rows, minlength=len(texts)) for rows in (words.text, continued, unknown)
        )
        restored = self.tokenizer.decode_batch(
            [e.ids for e in encodings], skip_special_tokens=False
        )
        sums = [
            Fertility(1, len(text.encode()), len(text), all_, cut, size, int(again != text), lost)
            for text, all_, cut, lost, size, again in zip(
                texts, *(count.tolist() for count in counts), sizes.tolist(), restored, strict=True
            )
        ]
        return EncodedTexts(sums, ids)


def _count_tokens_by_word(spans: Ints, words: Words) -> Ints:
    """[words] how many tokens ([tokens, 2] start and end, both rising) hold a part of each word."""
    begun = np.searchsorted(spans[:, 0], words.ends, side="left")
    over = np.searchsorted(spans[:, 1], words.starts, side="right")
    return begun - over


def batch_items(items: Iterable[T], *, text: Callable[[T], str]) -> Iterator[list[T]]:
    """Items that hold a text, in lists of about `BATCH_CHARACTERS`."""
    batch: list[T] = []
    characters = 0
    for item in items:
        batch.append(item)
        characters += len(text(item))
        if characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def fertility_by_source(
    tokenizer: Tokenizer, documents: Iterable[tuple[str, str]]
) -> dict[str, Fertility]:
    """Measure (source, text) pairs; sources in sorted order. Special tokens in a text are text."""
    cutter = FertilityCounter.from_json(tokenizer.to_str())
    sums: dict[str, Fertility] = {}
    for batch in batch_items(documents, text=lambda pair: pair[1]):
        texts = [text for _, text in batch]
        cuts = cutter.cut(texts, find_unicode_words(texts))
        for (source, _), measured in zip(batch, cuts.sums, strict=True):
            sums.setdefault(source, Fertility()).add(measured)
    return dict(sorted(sums.items()))
