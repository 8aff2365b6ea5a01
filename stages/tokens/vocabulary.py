"""The tokens of a vocabulary: those with a role, and the bytes of each.

Vocabularies write bytes as characters of a fixed alphabet (GPT-2's `bytes_to_unicode`), a space as
`▁` (SentencePiece), a byte that no token holds as `<0xE4>`, and mark what continues a word
(WordPiece's `##`) or ends one (`</w>`). The tokenizer's files say which tokens have a
role; our names for them do not matter. The byte lengths are the denominator of bits per byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from tokenizers import Tokenizer


BEGIN_OF_TEXT = "<|begin_of_text|>"
END_OF_TEXT = "<|end_of_text|>"
PADDING = "<|pad|>"
TURN_START = "<|im_start|>"
TURN_END = "<|im_end|>"
FIM_PREFIX = "<|fim_prefix|>"
FIM_MIDDLE = "<|fim_middle|>"
FIM_SUFFIX = "<|fim_suffix|>"

SPECIAL_TOKENS = (
    BEGIN_OF_TEXT,
    END_OF_TEXT,
    PADDING,
    TURN_START,
    TURN_END,
    FIM_PREFIX,
    FIM_MIDDLE,
    FIM_SUFFIX,
)
"""Every tokenizer that Ingot trains has these, with ids 0 to 7 in this order."""


@dataclass(frozen=True)
class SpecialTokens:
    """Ids of the tokens that have a role, of any tokenizer, trained here or brought along."""

    begin: int | None
    """Put before a document, where the tokenizer has such a token."""
    end: int
    """Ends a document."""
    padding: int
    """Fills rows; never occurs in text, and is not `end`."""
    turn_start: int | None = None
    turn_end: int | None = None
    fim_prefix: int | None = None
    fim_middle: int | None = None
    fim_suffix: int | None = None

    @property
    def ends(self) -> frozenset[int]:
        """Tokens after which a model has no more to say: of a document and of a turn."""
        return frozenset(one for one in (self.end, self.turn_end) if one is not None)

    @classmethod
    def from_config(cls, tokenizer: Tokenizer, config: Mapping[str, Any]) -> SpecialTokens:
        """Those of a tokenizer and `config`, the content of its tokenizer_config.json.

        Begin, end and padding are what `config` says (`bos_token`, `eos_token`, `pad_token`; a text
        or a table with its `content`); those of turns (ChatML) and of filling in the middle have
        fixed names, and are None where no special token is spelt so. InputError if end or padding
        lacks, if one is not in the vocabulary, or if padding is the token that ends documents.
        """
        end = _required(tokenizer, config, "eos_token")
        padding = _required(tokenizer, config, "pad_token")
        if end == padding:
            raise InputError(
                "pads with the token that ends documents "
                f"({read_token_text(config, 'eos_token')!r})",
                where="tokenizer_config.json",
                hint="name another `pad_token`; import_tokenizer adds one",
            )
        added = {
            token.content: index
            for index, token in tokenizer.get_added_tokens_decoder().items()
            if token.special
        }
        return cls(
            begin=_optional(tokenizer, config, "bos_token"),
            end=end,
            padding=padding,
            turn_start=added.get(TURN_START),
            turn_end=added.get(TURN_END),
            fim_prefix=added.get(FIM_PREFIX),
            fim_middle=added.get(FIM_MIDDLE),
            fim_suffix=added.get(FIM_SUFFIX),
        )

    @property
    def context(self) -> int:
        """What a text is scored after, where nothing precedes it: begin, else end."""
        return self.end if self.begin is None else self.begin

    @property
    def document_start(self) -> list[int]:
        """Tokens before a document: `[begin]`, or none."""
        return [] if self.begin is None else [self.begin]

    def plain(self) -> dict[str, int | None]:
        """JSON-ready: id (or None) by role."""
        return dict(vars(self))


def load_plain_tokenizer(description: str) -> Tokenizer:
    """The tokenizer of a tokenizer.json, set to read special tokens in a text as plain characters.

    Otherwise a page that spells `<|im_end|>` would put the real one into the training data. It
    neither cuts nor fills.
    """
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(description)
    tokenizer.encode_special_tokens = True
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def describe_tokenizer(
    tokenizer: Tokenizer, config: Mapping[str, Any], *, algorithm: str, multiple: int
) -> dict[str, Any]:
    """What training.json says a tokenizer is; `config` is that of tokenizer_config.json."""
    size = tokenizer.get_vocab_size()
    return {
        "algorithm": algorithm,
        "pre_tokenizer": config["pre_tokenizer"],
        "vocabulary_size": size,
        "padded_vocabulary_size": pad_vocabulary(size, multiple),
        "special_tokens": SpecialTokens.from_config(tokenizer, config).plain(),
    }


def pad_vocabulary(vocabulary_size: int, multiple: int) -> int:
    """Rows of an embedding for that many tokens: the next multiple.

    Matrix products are fastest at multiples of 64 (NVIDIA's Deep Learning Performance guide; the
    vocabulary of nanoGPT is padded so).
    """
    return -(-vocabulary_size // multiple) * multiple


def read_token_text(config: Mapping[str, Any], name: str) -> str | None:
    """The text of a token that tokenizer_config.json names, None where it names none."""
    value = config.get(name)
    if isinstance(value, Mapping):
        value = value.get("content")
    if value is not None and not isinstance(value, str):
        raise InputError(
            f"{name} is {value!r}, which is no token's text", where="tokenizer_config.json"
        )
    return value or None


def _optional(tokenizer: Tokenizer, config: Mapping[str, Any], name: str) -> int | None:
    token = read_token_text(config, name)
    if token is None:
        return None
    index = tokenizer.token_to_id(token)
    if index is None:
        raise InputError(
            f"{name} is {token!r}, which the vocabulary lacks", where="tokenizer_config.json"
        )
    return int(index)


def _required(tokenizer: Tokenizer, config: Mapping[str, Any], name: str) -> int:
    index = _optional(tokenizer, config, name)
    if index is None:
        raise InputError(
            f"names no {name}",
            where="tokenizer_config.json",
            hint="every tokenizer needs one that ends documents (eos_token) and one that fills "
            "rows (pad_token); import_tokenizer adds what lacks",
        )
    return index


SPACE = "▁"
"""A space in the vocabulary of SentencePiece."""
_FALLBACK = re.compile(r"<0x([0-9A-F]{2})>")


def decode_vocabulary(tokenizer: Tokenizer) -> dict[int, bytes]:
    """The bytes of each token by id, ids ascending; none for special tokens.

    What a decoder drops or adds by its place in a text (the space before the first word, those
    between WordPiece's words) is not counted.
    """
    added = tokenizer.get_added_tokens_decoder()
    spell = _find_token_decoder(tokenizer)
    spelt = {
        index: spell(token)
        for token, index in tokenizer.get_vocab(with_added_tokens=True).items()
        if index not in added
    }
    for index, token in added.items():
        spelt[index] = b"" if token.special else token.content.encode()
    return dict(sorted(spelt.items()))


def format_token(spelling: bytes) -> str:
    """A token's bytes as text; those of a split character as `\\xe4`."""
    return spelling.decode("utf-8", "backslashreplace")


def is_text(spelling: bytes) -> bool:
    """Whether a token's bytes are whole characters."""
    try:
        spelling.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def find_unknown_token(tokenizer: Tokenizer) -> int | None:
    """Id of the unknown token; None if the vocabulary can encode every text."""
    named = getattr(tokenizer.model, "unk_token", None)
    if named is not None:
        return tokenizer.token_to_id(named)
    unknown: int | None = _component_json(tokenizer.model).get("unk_id")  # of Unigram
    return unknown


def _find_token_decoder(tokenizer: Tokenizer) -> Callable[[str], bytes]:
    parts = [_component_json(part) for part in (tokenizer.pre_tokenizer, tokenizer.decoder)]
    types = {component["type"] for part in parts for component in _components(part)}
    spaces = SPACE in json.dumps(
        [*parts, _component_json(tokenizer.normalizer)], ensure_ascii=False
    )
    prefix = getattr(tokenizer.model, "continuing_subword_prefix", None) or ""
    suffix = getattr(tokenizer.model, "end_of_word_suffix", None) or ""
    alphabet = make_byte_alphabet() if "ByteLevel" in types else {}

    def spell(token: str) -> bytes:
        if prefix and token.startswith(prefix) and token != prefix:
            token = token[len(prefix) :]
        ends = bool(suffix) and token.endswith(suffix)
        if ends:
            token = token[: -len(suffix)]
        if alphabet and all(character in alphabet for character in token):
            spelling = bytes(alphabet[character] for character in token)
        elif "ByteFallback" in types and (match := _FALLBACK.fullmatch(token)):
            spelling = bytes([int(match[1], 16)])
        else:
            spelling = (token.replace(SPACE, " ") if spaces else token).encode()
        return spelling + b" " if ends else spelling

    return spell


def _component_json(part: Any) -> Any:
    """A component of a tokenizer as in tokenizer.json; None for none."""
    return None if part is None else json.loads(part.__getstate__())


def _components(part: Any) -> Iterator[dict[str, Any]]:
    """A component of a tokenizer and those in it."""
    if isinstance(part, dict):
        if isinstance(part.get("type"), str):
            yield part
        part = list(part.values())
    if isinstance(part, list):
        for value in part:
            yield from _components(value)


@cache
def make_byte_alphabet() -> dict[str, int]:
    """The byte of each character of the byte-level alphabet (GPT-2's `bytes_to_unicode`).

    Printable bytes are themselves; the others, in order, are the characters from 256 on.
    """
    from tokenizers.pre_tokenizers import ByteLevel

    alphabet = sorted(ByteLevel.alphabet())
    same = {character: ord(character) for character in alphabet if ord(character) < 256}
    others = [byte for byte in range(256) if byte not in same.values()]
    return same | dict(zip(sorted(set(alphabet) - same.keys()), others, strict=True))


def format_tokens(tokenizer: Tokenizer, text: str, spelt: Mapping[int, bytes]) -> list[str]:
    """The tokens of `text`, decoded one by one; special ones by their name."""
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    return [format_token(spelt[index]) or str(tokenizer.id_to_token(index)) for index in ids]


def count_token_bytes(tokenizer: Tokenizer) -> npt.NDArray[np.uint16]:
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
    measure = _find_byte_length(tokenizer)
    lengths = np.zeros(len(vocabulary), dtype=np.uint16)
    for token, index in sorted(vocabulary.items(), key=lambda item: item[1]):
        if index in added:
            length: int | None = 0 if added[index].special else len(token.encode())
        else:
            length = measure(token)
        if length is None or length > np.iinfo(np.uint16).max:
            raise InputError(
                f"token {index} ({token[:80]!r}) is not spelt in the byte-level alphabet",
                where="tokenizer.json",
                hint="only byte-level tokenizers, and those with a token for each byte, are "
                "supported",
            )
        lengths[index] = length
    return lengths


def _find_byte_length(tokenizer: Tokenizer) -> Callable[[str], int | None]:
    """What tells a token's bytes by its spelling, None where it cannot."""
    content = json.loads(tokenizer.to_str())
    parts = list(_components(content["decoder"]))
    kinds = {part["type"] for part in parts}
    if "ByteLevel" in kinds:
        alphabet = make_byte_alphabet().keys()
        return lambda token: len(token) if alphabet >= set(token) else None
    if not content["model"].get("byte_fallback") or "ByteFallback" not in kinds:
        return lambda token: None
    all_bytes = all(tokenizer.token_to_id(f"<0x{byte:02X}>") is not None for byte in range(256))
    if not all_bytes or not any(_marks_spaces(part) for part in parts):
        return lambda token: None
    return lambda token: (
        1 if _FALLBACK.fullmatch(token) else len(token.replace(SPACE, " ").encode())
    )


def _marks_spaces(part: dict[str, Any]) -> bool:
    if part["type"] == "Metaspace":
        return bool(part["replacement"] == SPACE)
    return part["type"] == "Replace" and part["pattern"] == {"String": SPACE}
