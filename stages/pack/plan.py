"""What every shard is packed by: the same for all of them, sent to each worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from artifacts_schema.errors import InputError
from stages.text.chat import BEGIN_OF_TEXT, END_OF_TEXT, PADDING

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True)
class Plan:
    """Settings of one packing; `description` is the content of tokenizer.json."""

    description: str
    sequence_length: int
    strategy: str
    held_out_share: float
    seed: int

    def tokenizer(self) -> Tokenizer:
        """The tokenizer, set to read special tokens in a text as plain characters.

        Otherwise a page that spells `<|im_end|>` would put the real one into the training data.
        InputError if it lacks the tokens that mark begin and end of text and padding.
        """
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str(self.description)
        for token in (BEGIN_OF_TEXT, END_OF_TEXT, PADDING):
            if tokenizer.token_to_id(token) is None:
                raise InputError(f"the tokenizer has no token '{token}'", where="tokenizer.json")
        tokenizer.encode_special_tokens = True
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer


def token_type(vocabulary_size: int) -> str:
    """The smaller of uint16 and uint32 that holds every id."""
    return "uint16" if vocabulary_size <= 2**16 else "uint32"
