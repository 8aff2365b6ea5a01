"""Vocabularies: what each token stands for, and which of them no text can ever become.

A token is unreachable if no text is encoded to it: its merges lead elsewhere, the pre-tokenizer
always cuts it, or the normalizer changes it (Land & Bartolo 2024, "Fishing for Magikarp", arXiv
2405.05417, section 3.1). As there, tokens that are no whole characters are not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stages.text.token_spelling import as_text, is_text, spelt_bytes

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from stages.compare_tokenizers.contestants import Contestant
    from stages.engine import ShardOutput

CONTEXTS = ("", " ", "a", "1", ".", "\n")
"""What stands before a token's text when it is looked for: at first nothing."""

MORE_CONTEXTS = 200
"""Characters of the vocabulary that are tried besides, for what these did not find."""


def read_vocabulary(contestant: Contestant, out: ShardOutput) -> dict[str, Any]:
    """Ids of unreachable tokens as {"unreachable": […]}; id, text and bytes of all to scratch."""
    tokenizer = contestant.load().tokenizer
    spelt = spelt_bytes(tokenizer)
    columns = {
        "token_id": pa.array(list(spelt), pa.int64()),
        "token": pa.array([_shown(tokenizer, *item) for item in spelt.items()], pa.string()),
        "bytes": pa.array([len(spelling) for spelling in spelt.values()], pa.int32()),
    }
    out.write_scratch("vocabulary", pa.table(columns))
    return {"unreachable": unreachable_tokens(tokenizer, spelt)}


def unreachable_tokens(tokenizer: Tokenizer, spelt: Mapping[int, bytes]) -> list[int]:
    """Ids of tokens that are not found when their own text is encoded, whatever stands before it.

    What was not found alone is looked for after a few characters, since a tokenizer may only use it
    to continue a word. Special tokens are left out.
    """
    sought = {index: as_text(raw) for index, raw in spelt.items() if raw and is_text(raw)}
    for context in _contexts(sought.values()):
        if not sought:
            break
        texts = [context + text for text in sought.values()]
        found = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        sought = {
            index: text
            for (index, text), encoding in zip(sought.items(), found, strict=True)
            if index not in encoding.ids
        }
    return sorted(sought)


def _contexts(texts: Iterable[str]) -> Iterator[str]:
    single = sorted({text for text in texts if len(text) == 1 and text.isprintable()})
    yield from CONTEXTS
    yield from islice((one for one in single if one not in CONTEXTS), MORE_CONTEXTS)


def _shown(tokenizer: Tokenizer, index: int, spelling: bytes) -> str:
    return as_text(spelling) if spelling else str(tokenizer.id_to_token(index))
