"""How finely a tokenizer cuts text: sums of tokens, bytes, words and words cut in two.

Fertility is tokens per word and was proposed with the share of continued words, those of more than
one token, by Ács (2019) and Rust et al. (2021, "How Good is Your Tokenizer?", arXiv 2012.15613).
Words are those of `stages/text/unicode_words.py`; tokens of what stands between them count too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from stages.text.token_spelling import unknown_token
from stages.text.unicode_words import Words

Ints = NDArray[np.int64]
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
        """UTF-8 bytes that a token stands for on average; None without a token."""
        return self.bytes / self.tokens if self.tokens else None

    @property
    def characters_per_token(self) -> float | None:
        """Code points that a token stands for on average; None without a token."""
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
class Cuts:
    """A batch of texts as a tokenizer cuts them."""

    sums: list[Fertility]
    """Of each text."""
    ids: Ints
    """Of all texts, end to end."""


@dataclass(frozen=True)
class Cutter:
    """A tokenizer, set to cut whole texts, in which special tokens are plain characters."""

    tokenizer: Tokenizer
    unknown: int | None
    """Id of what stands for all that the vocabulary lacks."""

    @classmethod
    def of(cls, description: str) -> Cutter:
        """The tokenizer of a tokenizer.json."""
        tokenizer = Tokenizer.from_str(description)
        tokenizer.encode_special_tokens = True
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return cls(tokenizer, unknown_token(tokenizer))

    def cut(self, texts: Sequence[str], words: Words) -> Cuts:
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
        continued = words.text[_touching(spans, words) > 1]
        unknown = np.repeat(np.arange(len(texts)), sizes)[ids == self.unknown]
        counts = (np.bincount(of, minlength=len(texts)) for of in (words.text, continued, unknown))
        restored = self.tokenizer.decode_batch(
            [e.ids for e in encodings], skip_special_tokens=False
        )
        sums = [
            Fertility(1, len(text.encode()), len(text), all_, cut, size, int(again != text), lost)
            for text, all_, cut, lost, size, again in zip(
                texts, *(count.tolist() for count in counts), sizes.tolist(), restored, strict=True
            )
        ]
        return Cuts(sums, ids)


def _touching(spans: Ints, words: Words) -> Ints:
    """[words] how many tokens ([tokens, 2] start and end, both rising) hold a part of each word."""
    begun = np.searchsorted(spans[:, 0], words.ends, side="left")
    over = np.searchsorted(spans[:, 1], words.starts, side="right")
    return begun - over


def batches(items: Iterable[T], *, text: Callable[[T], str]) -> Iterator[list[T]]:
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
