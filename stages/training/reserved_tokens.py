"""Tokens that a tokenizer keeps free: what stands for hidden tokens and for spans that are cut out.

No text is ever encoded to them, so they mean nothing until a model is trained on them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stages.text.special_tokens import spelling

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_RESERVED = re.compile(
    r"<\|?(?:reserved|reserved_special_token|extra|extra_id|unused|sentinel)_?(\d+)\|?>"
)
"""`<|reserved_0|>` (Ingot's own), `<|reserved_special_token_0|>` (Llama 3), `<|extra_0|>` (Qwen),
`<extra_id_0>` (T5), `<unused0>` (Gemma)."""


@dataclass(frozen=True)
class ReservedTokens:
    """Ids of the mask token and of the sentinels, in order.

    The mask token is the one that tokenizer_config.json names, else the first reserved one; the
    sentinels are the others. So neither depends on which objectives a run has.
    """

    mask: int | None
    sentinels: tuple[int, ...]

    @classmethod
    def of(cls, tokenizer: Tokenizer, config: Mapping[str, Any]) -> ReservedTokens:
        """Those of a tokenizer and `config`, the content of its tokenizer_config.json."""
        special = {
            token.content: index
            for index, token in tokenizer.get_added_tokens_decoder().items()
            if token.special
        }
        numbered = [
            (int(found[1]), index)
            for content, index in special.items()
            if (found := _RESERVED.fullmatch(content))
        ]
        reserved = [index for _, index in sorted(numbered)]
        named = spelling(config, "mask_token")
        if named is not None and named in special:
            mask = special[named]
            return cls(mask, tuple(index for index in reserved if index != mask))
        return cls(reserved[0] if reserved else None, tuple(reserved[1:]))
