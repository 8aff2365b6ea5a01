"""Texts to token ids, by `tokenizers` or by gigatoken, as one flat array for many documents.

Both read special tokens in a text as plain characters, and add none. gigatoken has no switch for
that: it is given the tokenizer without its special tokens.
"""

from __future__ import annotations

import json
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from artifacts_schema.errors import UsageError

if TYPE_CHECKING:
    from tokenizers import Tokenizer


@dataclass(frozen=True)
class Encoded:
    """Token ids of texts, one after the other; text i is ids[starts[i]:starts[i + 1]]."""

    ids: npt.NDArray[Any]
    starts: npt.NDArray[np.int64]

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Tokens of each text."""
        return np.diff(self.starts)


class Encoder(Protocol):
    """What turns texts into ids."""

    text_bytes: int
    """About so much text is best given at once."""

    def __call__(self, texts: pa.StringArray) -> Encoded:
        """The ids (uint32) of each text; no special token among them."""


class TokenizersEncoder:
    """`tokenizers` itself, which every other encoder must equal.

    It takes some 100 bytes for each token of a batch.
    """

    text_bytes = 1 << 20

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def __call__(self, texts: pa.StringArray) -> Encoded:
        """The ids of each text."""
        ids = array("I")
        starts = np.zeros(len(texts) + 1, dtype=np.int64)
        encode = self._tokenizer.encode_batch_fast
        for number, found in enumerate(encode(texts.to_pylist(), add_special_tokens=False)):
            ids.fromlist(found.ids)  # Three times as fast as an array made of each list.
            starts[number + 1] = len(ids)
        return Encoded(np.frombuffer(ids, dtype=np.uintc).astype(np.uint32, copy=False), starts)


class GigatokenEncoder:
    """gigatoken (github.com/marcelroed/gigatoken): text and ids pass without Python objects.

    UsageError if it is not installed or has no such tokenizer. A call takes a few milliseconds,
    whatever its size.
    """

    text_bytes = 1 << 23

    def __init__(self, description: str) -> None:
        try:
            import gigatoken
        except ImportError as problem:
            raise UsageError(
                "gigatoken is not installed",
                where="execution.encoder",
                hint="pip install 'ingot[gigatoken]', or set encoder: tokenizers",
            ) from problem
        try:
            self._tokenizer = gigatoken.Tokenizer.from_json(_without_special(description))
        except (RuntimeError, ValueError) as problem:
            said = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
            raise UsageError(
                f"gigatoken can not load this tokenizer: {said}",
                where="execution.encoder",
                hint="set encoder: tokenizers",
            ) from problem

    def __call__(self, texts: pa.StringArray) -> Encoded:
        """The ids of each text."""
        if not len(texts):
            return Encoded(np.empty(0, dtype=np.uint32), np.zeros(1, dtype=np.int64))
        found = self._tokenizer.encode_batch(_awkward(texts), parallel=False).layout
        starts = np.asarray(found.offsets.data, dtype=np.int64)
        ids = np.asarray(found.content.data, dtype=np.uint32)
        return Encoded(ids[starts[0] : starts[-1]], starts - starts[0])


def _awkward(texts: pa.StringArray) -> Any:
    """The same strings as an Awkward array; nothing is copied but the offsets."""
    import awkward
    from awkward.contents import ListOffsetArray, NumpyArray
    from awkward.index import Index64

    width = "<i8" if pa.types.is_large_string(texts.type) else "<i4"
    _, offsets, data = texts.buffers()
    held = np.frombuffer(offsets, width)[texts.offset : texts.offset + len(texts) + 1]
    characters = np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8)
    return awkward.Array(
        ListOffsetArray(
            Index64(held.astype(np.int64)),
            NumpyArray(characters, parameters={"__array__": "char"}),
            parameters={"__array__": "string"},
        )
    )


def _without_special(description: str) -> str:
    content = json.loads(description)
    added = content.get("added_tokens") or []
    content["added_tokens"] = [token for token in added if not token.get("special")]
    content["post_processor"] = None
    return json.dumps(content, ensure_ascii=False)
