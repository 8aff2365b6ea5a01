"""What every shard is packed by: the same for all of them, sent to each worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError, UsageError
from stages.pack.config import FillInTheMiddle, PackConfig, Repetition
from stages.tokens.vocabulary import SpecialTokens, load_plain_tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from stages.engine import Input


@dataclass(frozen=True)
class Plan:
    """Settings of one packing; `description` is the content of tokenizer.json."""

    description: str
    tokens: SpecialTokens
    vocabulary_size: int
    padded_vocabulary_size: int
    sequence_length: int
    strategy: str
    held_out_share: float
    seed: int
    repetition: Repetition | None = None
    fim: FillInTheMiddle | None = None
    encoder: str = "tokenizers"

    @classmethod
    def from_tokenizer(cls, config: PackConfig, tokenizer: Input) -> Plan:
        """The plan for a tokenizer of the store.

        InputError if its files do not say what ends a document and what pads, if a text can spell
        these into being, or if its sizes are not those of its vocabulary; UsageError if `fim` is
        set and it lacks the tokens.
        """
        description = tokenizer.read_bytes("tokenizer.json").decode()
        loaded = load_plain_tokenizer(description)
        tokens = SpecialTokens.from_config(loaded, tokenizer.read_json("tokenizer_config.json"))
        _check_borders(loaded, tokens)
        size = loaded.get_vocab_size()
        if config.fim and None in (tokens.fim_prefix, tokens.fim_middle, tokens.fim_suffix):
            raise UsageError(
                "the tokenizer has no tokens <|fim_prefix|>, <|fim_middle|> and <|fim_suffix|>",
                where="fim",
                hint="tokenizers trained here have them; leave fim out for this one",
            )
        return cls(
            description=description,
            tokens=tokens,
            vocabulary_size=size,
            padded_vocabulary_size=_padded_size(tokenizer.read_json("training.json"), size),
            sequence_length=config.sequence_length,
            strategy=config.strategy,
            held_out_share=config.held_out_share,
            seed=config.seed,
            repetition=config.repetition,
            fim=config.fim,
        )

    def tokenizer(self) -> Tokenizer:
        """The tokenizer, set to read special tokens in a text as plain characters."""
        return load_plain_tokenizer(self.description)

    @property
    def dtype(self) -> str:
        """The smaller of uint16 and uint32 that holds every id."""
        return "uint16" if self.vocabulary_size <= 2**16 else "uint32"


def _check_borders(tokenizer: Tokenizer, tokens: SpecialTokens) -> None:
    """No text may hold a token that borders documents, as it does where a model's own vocabulary
    has that token too (T5, XLM-R)."""
    for index in (tokens.begin, tokens.end, tokens.padding):
        token = "" if index is None else str(tokenizer.id_to_token(index))
        if token and index in tokenizer.encode(token, add_special_tokens=False).ids:
            raise InputError(
                f"a text that spells '{token}' becomes that token, so the borders of documents "
                "cannot be found",
                where="tokenizer.json",
                hint="import it again with other tokens for these roles (end_token, padding_token)",
            )


def _padded_size(training: dict[str, Any], vocabulary_size: int) -> int:
    padded = training.get("padded_vocabulary_size")
    stated = training.get("vocabulary_size")
    if not isinstance(padded, int) or stated != vocabulary_size or padded < vocabulary_size:
        raise InputError(
            f"says vocabulary_size {stated} and padded_vocabulary_size {padded}, but "
            f"tokenizer.json has {vocabulary_size} tokens",
            where="training.json",
            hint="train the tokenizer again, or import it again",
        )
    return padded
