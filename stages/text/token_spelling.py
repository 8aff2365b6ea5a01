"""What each token of a vocabulary stands for, whatever the vocabulary spells it with.

Vocabularies write bytes as characters of a fixed alphabet (GPT-2's `bytes_to_unicode`), a space as
`▁` (SentencePiece), a byte that no token holds as `<0xE4>`, and mark what continues a word
(WordPiece's `##`) or ends one (`</w>`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPACE = "▁"
_FALLBACK = re.compile(r"<0x([0-9A-F]{2})>")


def spelt_bytes(tokenizer: Tokenizer) -> dict[int, bytes]:
    """The bytes that each token stands for, by id, ids rising; none for special tokens.

    What a decoder drops or adds by its place in a text (the space before the first word, those
    between WordPiece's words) is not counted.
    """
    added = tokenizer.get_added_tokens_decoder()
    spell = _speller(tokenizer)
    spelt = {
        index: spell(token)
        for token, index in tokenizer.get_vocab(with_added_tokens=True).items()
        if index not in added
    }
    for index, token in added.items():
        spelt[index] = b"" if token.special else token.content.encode()
    return dict(sorted(spelt.items()))


def as_text(spelling: bytes) -> str:
    """A token's bytes as text; those of a split character as `\\xe4`."""
    return spelling.decode("utf-8", "backslashreplace")


def is_text(spelling: bytes) -> bool:
    """Whether a token's bytes are whole characters."""
    try:
        spelling.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def unknown_token(tokenizer: Tokenizer) -> int | None:
    """Id of the token that stands for what the vocabulary lacks; None if it lacks nothing."""
    named = getattr(tokenizer.model, "unk_token", None)
    if named is not None:
        return tokenizer.token_to_id(named)
    unknown: int | None = _described(tokenizer.model).get("unk_id")  # of Unigram
    return unknown


def _speller(tokenizer: Tokenizer) -> Callable[[str], bytes]:
    parts = [_described(part) for part in (tokenizer.pre_tokenizer, tokenizer.decoder)]
    types = {kind for part in parts for kind in _types(part)}
    spaces = SPACE in json.dumps([*parts, _described(tokenizer.normalizer)], ensure_ascii=False)
    prefix = getattr(tokenizer.model, "continuing_subword_prefix", None) or ""
    suffix = getattr(tokenizer.model, "end_of_word_suffix", None) or ""
    alphabet = byte_alphabet() if "ByteLevel" in types else {}

    def spell(token: str) -> bytes:
        if prefix and token.startswith(prefix) and token != prefix:
            token = token[len(prefix) :]
        ends = bool(suffix) and token.endswith(suffix)
        if ends:
            token = token[: -len(suffix)]
        if alphabet and all(character in alphabet for character in token):
            found = bytes(alphabet[character] for character in token)
        elif "ByteFallback" in types and (match := _FALLBACK.fullmatch(token)):
            found = bytes([int(match[1], 16)])
        else:
            found = (token.replace(SPACE, " ") if spaces else token).encode()
        return found + b" " if ends else found

    return spell


def _described(part: Any) -> Any:
    """A component of a tokenizer as in tokenizer.json; None for none."""
    return None if part is None else json.loads(part.__getstate__())


def _types(part: Any) -> Iterator[str]:
    """Types of a component and of those in it."""
    if isinstance(part, dict):
        if isinstance(part.get("type"), str):
            yield part["type"]
        for value in part.values():
            yield from _types(value)
    elif isinstance(part, list):
        for value in part:
            yield from _types(value)


@cache
def byte_alphabet() -> dict[str, int]:
    """The byte of each character of the byte-level alphabet (GPT-2's `bytes_to_unicode`).

    Printable bytes are themselves; the others, in order, are the characters from 256 on.
    """
    from tokenizers.pre_tokenizers import ByteLevel

    alphabet = sorted(ByteLevel.alphabet())
    same = {character: ord(character) for character in alphabet if ord(character) < 256}
    others = [byte for byte in range(256) if byte not in same.values()]
    return same | dict(zip(sorted(set(alphabet) - same.keys()), others, strict=True))


def pieces(tokenizer: Tokenizer, text: str, spelt: Mapping[int, bytes]) -> list[str]:
    """The tokens of `text`, each as what it stands for; special ones by their name."""
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    return [as_text(spelt[index]) or str(tokenizer.id_to_token(index)) for index in ids]
