"""How finely a tokenizer cuts text: tokens per word and bytes per token, by source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tokenizers import Tokenizer


@dataclass
class Fertility:
    """Sums over documents; words are runs of characters other than white space."""

    documents: int = 0
    bytes: int = 0
    words: int = 0
    tokens: int = 0

    def plain(self) -> dict[str, Any]:
        """JSON-ready, with tokens per word (Ács 2019; Rust et al. 2021) and bytes per token."""
        return {
            "documents": self.documents,
            "bytes": self.bytes,
            "words": self.words,
            "tokens": self.tokens,
            "tokens_per_word": round(self.tokens / self.words, 4) if self.words else None,
            "bytes_per_token": round(self.bytes / self.tokens, 4) if self.tokens else None,
        }


def fertility_by_source(
    tokenizer: Tokenizer, documents: Iterable[tuple[str, str]]
) -> dict[str, Fertility]:
    """Measure (source, text) pairs; sources in sorted order."""
    sums: dict[str, Fertility] = {}
    for source, text in documents:
        measured = sums.setdefault(source, Fertility())
        measured.documents += 1
        measured.bytes += len(text.encode())
        measured.words += len(text.split())
        measured.tokens += len(tokenizer.encode(text, add_special_tokens=False).ids)
    return dict(sorted(sums.items()))
