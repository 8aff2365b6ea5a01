"""How many bytes of text each token stands for: the denominator of bits per byte."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from tokenizers import Tokenizer

MARK = "\u2581"
"""What stands for a space in the vocabulary of SentencePiece."""

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


def token_byte_lengths(tokenizer: Tokenizer) -> npt.NDArray[np.uint16]:
    """[vocabulary_size] UTF-8 bytes of each token, 0 for special tokens.

    Exact for byte-level tokenizers of every algorithm, whose vocabulary spells each byte as one
    character of a fixed alphabet (`bytes_to_unicode` of GPT-2), and for those that fall back to
    bytes (`<0x0A>`) and mark spaces (SentencePiece). One of the latter that puts a space before
    every text counts that space too. InputError if a token is spelt otherwise, if a text may be
    unknown, or if ids have gaps.
    """
    import numpy as np

    added = tokenizer.get_added_tokens_decoder()
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    if sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise InputError("the ids of the tokenizer's vocabulary have gaps", where="tokenizer.json")
    length_of = _spelling(tokenizer)
    lengths = np.zeros(len(vocabulary), dtype=np.uint16)
    for token, index in sorted(vocabulary.items(), key=lambda item: item[1]):
        if index in added:
            length: int | None = 0 if added[index].special else len(token.encode())
        else:
            length = length_of(token)
        if length is None or length > np.iinfo(np.uint16).max:
            raise InputError(
                f"token {index} ({token[:80]!r}) is not spelt in the byte-level alphabet",
                where="tokenizer.json",
                hint="only byte-level tokenizers, and those with a token for each byte, are "
                "supported",
            )
        lengths[index] = length
    return lengths


def _spelling(tokenizer: Tokenizer) -> Callable[[str], int | None]:
    """What tells a token's bytes by its spelling, None where it cannot."""
    from tokenizers.pre_tokenizers import ByteLevel

    content = json.loads(tokenizer.to_str())
    parts = list(_parts(content["decoder"]))
    kinds = {part["type"] for part in parts}
    if "ByteLevel" in kinds:
        alphabet = frozenset(ByteLevel.alphabet())
        return lambda token: len(token) if alphabet.issuperset(token) else None
    if not content["model"].get("byte_fallback") or "ByteFallback" not in kinds:
        return lambda token: None
    all_bytes = all(tokenizer.token_to_id(f"<0x{byte:02X}>") is not None for byte in range(256))
    if not all_bytes or not any(_marks_spaces(part) for part in parts):
        return lambda token: None
    return lambda token: 1 if _BYTE.fullmatch(token) else len(token.replace(MARK, " ").encode())


def _parts(decoder: Any) -> Iterator[dict[str, Any]]:
    """A decoder's parts, those of a sequence one by one."""
    if decoder is None:
        return
    if decoder["type"] == "Sequence":
        for part in decoder["decoders"]:
            yield from _parts(part)
    else:
        yield decoder


def _marks_spaces(part: dict[str, Any]) -> bool:
    if part["type"] == "Metaspace":
        return bool(part["replacement"] == MARK)
    return part["type"] == "Replace" and part["pattern"] == {"String": MARK}
