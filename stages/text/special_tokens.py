"""Tokens that have a role, of any tokenizer: found by its files, not by our names for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError

if TYPE_CHECKING:
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

    @classmethod
    def of(cls, tokenizer: Tokenizer, config: Mapping[str, Any]) -> SpecialTokens:
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
                f"pads with the token that ends documents ({spelling(config, 'eos_token')!r})",
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
        """What stands before a document: `[begin]`, or nothing."""
        return [] if self.begin is None else [self.begin]

    def plain(self) -> dict[str, int | None]:
        """JSON-ready: id (or None) by role."""
        return dict(vars(self))


def padded(vocabulary_size: int, multiple: int) -> int:
    """Rows of an embedding for that many tokens: the next multiple.

    Matrix products are fastest at multiples of 64 (NVIDIA's Deep Learning Performance guide; the
    vocabulary of nanoGPT is padded so).
    """
    return -(-vocabulary_size // multiple) * multiple


def spelling(config: Mapping[str, Any], name: str) -> str | None:
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
    token = spelling(config, name)
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
