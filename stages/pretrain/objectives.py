"""What a language model learns from packed sequences: next tokens, hidden ones, or cut-out spans.

An objective turns the rows of the data into the rows that the model sees: their tokens, the target
of each token, and which tokens are visible to earlier ones. It does so on the host, before the
step, by draws that depend on seed, training step, row and position alone. Held-out rows are drawn
as training step 0: the same at every measurement.

Reserved tokens replace hidden tokens and spans that are cut out. No text is ever encoded to them,
so they mean nothing until a model is trained on them.

Shapes: B rows, L tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from artifacts_schema.errors import UsageError
from stages.engine import Input
from stages.pretrain.config import ObjectiveConfig, ObjectivePart
from stages.pretrain.corruption import (
    Uniform,
    corrupt_spans,
    mask_tokens,
    most_spans,
    row_draws,
    split_documents,
    token_draws,
)
from stages.tokens.vocabulary import read_token_text
from stages.training.rows import Rows
from stages.training.token_shards import PADDED, TokenShards

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
    def from_tokenizer(cls, tokenizer: Tokenizer, config: Mapping[str, Any]) -> ReservedTokens:
        """Those of a tokenizer and `config`, the content of its tokenizer_config.json."""
        special = {
            token.content: index
            for index, token in tokenizer.get_added_tokens_decoder().items()
            if token.special
        }
        numbered = [
            (int(results[1]), index)
            for content, index in special.items()
            if (results := _RESERVED.fullmatch(content))
        ]
        reserved = [index for _, index in sorted(numbered)]
        named = read_token_text(config, "mask_token")
        if named is not None and named in special:
            mask = special[named]
            return cls(mask, tuple(index for index in reserved if index != mask))
        return cls(reserved[0] if reserved else None, tuple(reserved[1:]))


@dataclass(frozen=True)
class Vocabulary:
    """What objectives ask of a tokenizer: tokens with a role, and which tokens are text.

    `text_V` is False for special tokens.
    """

    end: int
    padding: int
    reserved: ReservedTokens
    text_V: NDArray[np.bool_]


class Objective:
    """A mixture of objectives; each sequence of a step has one of them, drawn by its share.

    Without a `vocabulary` it is the causal one alone. UsageError where the tokenizer has reserved
    too few tokens for `config` in sequences of `length` tokens.
    """

    def __init__(
        self,
        config: ObjectiveConfig,
        seed: int = 0,
        vocabulary: Vocabulary | None = None,
        length: int = 0,
    ) -> None:
        self.config, self.seed = config, seed
        self.parts = config.parts
        self._ends = np.cumsum([part.share for part in self.parts])[:-1]
        self._vocabulary = vocabulary
        if not self.is_causal:
            if vocabulary is None:
                raise ValueError("objectives other than causal need a vocabulary")
            reserved = vocabulary.reserved
            has_mask = reserved.mask is not None
            check_reserved(config, length, has_mask=has_mask, sentinels=len(reserved.sentinels))

    @property
    def is_causal(self) -> bool:
        """Whether rows stay as they are."""
        return all(part.name == "causal" for part in self.parts)

    def rows(self, rows: Rows, training_step: int, first_row: int = 0) -> Rows:
        """What the model sees of the rows from `first_row` on of a training step (0: held-out)."""
        vocabulary = self._vocabulary
        if vocabulary is None or self.is_causal:
            return rows
        size, length = rows.tokens_BL.shape
        part_B = np.searchsorted(
            self._ends, row_draws(size, self.seed, training_step, first_row), side="right"
        )
        drawn_BL = token_draws((size, length), self.seed, training_step, first_row)
        made = Rows(
            rows.tokens_BL.copy(),
            rows.targets_BL.copy(),
            rows.documents_BL.copy(),
            np.zeros((size, length), dtype=np.bool_),
        )
        assert made.prefix_BL is not None
        for number, part in enumerate(self.parts):
            chosen = part_B == number
            if part.name == "causal" or not chosen.any():
                continue
            new = _transform(part, rows.take(chosen), drawn_BL[chosen], vocabulary)
            made.tokens_BL[chosen], made.targets_BL[chosen] = new.tokens_BL, new.targets_BL
            made.documents_BL[chosen], made.prefix_BL[chosen] = new.documents_BL, new.prefix_BL
        return made


def check_reserved(config: ObjectiveConfig, length: int, *, has_mask: bool, sentinels: int) -> None:
    """Raise UsageError where a tokenizer has reserved too few tokens for `config`.

    `length` is that of the longest sequences, in tokens; `sentinels` are reserved tokens beside the
    mask token.
    """
    have = sentinels + has_mask
    for number, part in enumerate(config.parts):
        needed = 0
        if part.name == "masked" and not has_mask:
            needed = 1
        if part.name == "span_corruption":
            spans = most_spans(length, part.corrupted, part.mean_span)
            needed = spans + 1 if spans > sentinels else 0
        if needed:
            raise UsageError(
                f"{part.name} needs {needed} reserved tokens in sequences of {length:,}, the "
                f"tokenizer has {have}",
                where=f"objective.parts.{number}",
                hint=f"train the tokenizer with reserved_tokens: {needed}"
                + ("" if part.name == "masked" else ", raise mean_span, or pack shorter"),
            )


def build_objective(
    config: ObjectiveConfig, shards: TokenShards, tokenizer: Input, seed: int
) -> Objective:
    """The objective of a run over `shards`; the tokenizer is read for what is not causal alone.

    UsageError where the tokenizer has reserved too few tokens for the longest sequences, and where
    some of them hold conversations, whose marks only next-token prediction reads.
    """
    if all(part.name == "causal" for part in config.parts):
        return Objective(config, seed)
    if shards.marked_sources:
        name = next(part.name for part in config.parts if part.name != "causal")
        sources = ", ".join(sorted(shards.marked_sources))
        raise UsageError(
            f"conversations ({sources}) are learnt by the objective causal alone, not {name}",
            where="objective.parts",
            hint="leave objective out, or train on them in a step of their own",
        )
    reserved = ReservedTokens.from_tokenizer(
        Tokenizer.from_str(tokenizer.read_bytes("tokenizer.json").decode("utf-8")),
        json.loads(tokenizer.read_bytes("tokenizer_config.json")),
    )
    vocabulary = Vocabulary(shards.end_id, shards.padding_id, reserved, shards.token_bytes() > 0)
    return Objective(config, seed, vocabulary, max(shards.lengths.values()))


def _transform(part: ObjectivePart, rows: Rows, drawn_BL: Uniform, vocabulary: Vocabulary) -> Rows:
    """Packed rows as one objective shows them, by a draw for each token."""
    if part.name == "prefix":
        targets_BL, prefix_BL = split_documents(rows.targets_BL, rows.documents_BL, drawn_BL)
        return Rows(rows.tokens_BL, targets_BL, rows.documents_BL, prefix_BL)
    if part.name == "span_corruption":
        return corrupt_spans(
            rows.tokens_BL,
            rows.documents_BL,
            drawn_BL,
            corrupted=part.corrupted,
            mean_span=part.mean_span,
            sentinels=np.array(vocabulary.reserved.sentinels, dtype=np.int64),
            end_id=vocabulary.end,
            padding_id=vocabulary.padding,
        )
    assert vocabulary.reserved.mask is not None
    inside_BL = rows.documents_BL != PADDED
    tokens_BL, targets_BL = mask_tokens(
        rows.tokens_BL,
        inside_BL & vocabulary.text_V[rows.tokens_BL],
        drawn_BL,
        corrupted=part.corrupted,
        masked=part.masked,
        replaced=part.replaced,
        mask_id=vocabulary.reserved.mask,
        text_ids=np.flatnonzero(vocabulary.text_V),
    )
    return Rows(tokens_BL, targets_BL, rows.documents_BL, inside_BL)
