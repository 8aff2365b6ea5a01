"""Fill in the middle: documents turned so that a model learns to write between two parts.

A document is cut at two places drawn among its characters, and its three parts are encoded each for
itself (Bavarian et al. 2022, "Efficient training of language models to fill in the middle", arXiv
2207.14255; so do SantaCoder and StarCoder):

    PSM   begin <|fim_prefix|> prefix <|fim_suffix|> suffix <|fim_middle|> middle end
    SPM   begin <|fim_prefix|> <|fim_suffix|> suffix <|fim_middle|> prefix middle end

SPM is the paper's second form, which shares its first token with PSM so that the two are learnt
together. A document's draw depends on its id alone, not on its shard. One of more tokens than a
sequence stays as it is: its middle would be torn from what it fills.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from stages.pack.config import FillInTheMiddle
from stages.text.special_tokens import SpecialTokens


@dataclass(frozen=True)
class Segment:
    """A text with the tokens that stand before it."""

    before: tuple[int, ...]
    text: str


def is_chosen(source: str, language: str | None, settings: FillInTheMiddle) -> bool:
    """Whether documents of this source and language take part at all."""
    if language is not None and language in settings.languages:
        return True
    return any(fnmatchcase(source, pattern) for pattern in settings.sources)


def turned(
    doc_id: str, text: str, settings: FillInTheMiddle, tokens: SpecialTokens, seed: int
) -> list[Segment] | None:
    """The parts of a document in the order in which they are learnt; None if it stays as it is."""
    digest = hashlib.blake2b(doc_id.encode(), digest_size=32, key=f"fim {seed}".encode()).digest()
    turn, order, one, two = (
        (int.from_bytes(digest[at : at + 8], "big") >> 11) / 2**53 for at in range(0, 32, 8)
    )
    if turn >= settings.rate:
        return None
    begin, end = sorted(int(place * (len(text) + 1)) for place in (one, two))
    return _ordered(
        (text[:begin], text[begin:end], text[end:]), tokens, spm=order < settings.spm_rate
    )


def _ordered(parts: Sequence[str], tokens: SpecialTokens, *, spm: bool) -> list[Segment]:
    prefix, middle, suffix = parts
    fim_prefix, fim_middle, fim_suffix = tokens.fim_prefix, tokens.fim_middle, tokens.fim_suffix
    assert fim_prefix is not None
    assert fim_middle is not None
    assert fim_suffix is not None
    start = (*tokens.document_start, fim_prefix)
    if spm:
        return [
            Segment((*start, fim_suffix), suffix),
            Segment((fim_middle,), prefix),
            Segment((), middle),
        ]
    return [
        Segment(start, prefix),
        Segment((fim_suffix,), suffix),
        Segment((fim_middle,), middle),
    ]
