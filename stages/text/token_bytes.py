"""How many bytes of text each token stands for: the denominator of bits per byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

from artifacts_schema.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from tokenizers import Tokenizer


def token_byte_lengths(tokenizer: Tokenizer) -> npt.NDArray[np.uint16]:
    """[vocabulary_size] UTF-8 bytes of each token, 0 for special tokens.

    Exact for byte-level BPE, whose vocabulary spells every byte as one character of a fixed
    alphabet (`bytes_to_unicode` of GPT-2). InputError if a token is spelt with any other character,
    or if ids have gaps.
    """
    import numpy as np
    from tokenizers.pre_tokenizers import ByteLevel

    alphabet = frozenset(ByteLevel.alphabet())
    added = tokenizer.get_added_tokens_decoder()
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    lengths = np.zeros(len(vocabulary), dtype=np.uint16)
    if sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise InputError("the ids of the tokenizer's vocabulary have gaps", where="tokenizer.json")
    for token, index in vocabulary.items():
        if index in added:
            lengths[index] = 0 if added[index].special else len(token.encode())
        elif alphabet.issuperset(token):
            lengths[index] = len(token)
        else:
            raise InputError(
                f"token {index} ({token!r}) is not spelt in the byte-level alphabet",
                where="tokenizer.json",
                hint="only byte-level tokenizers are supported",
            )
    return lengths
