"""Training a byte-level BPE tokenizer, and the two files that hold it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, processors, trainers
from tokenizers.pre_tokenizers import ByteLevel

from stages.text.chat import (
    BEGIN_OF_TEXT,
    CHAT_TEMPLATE,
    END_OF_TEXT,
    PADDING,
    SPECIAL_TOKENS,
    TURN_END,
    TURN_START,
)
from stages.tokenizer.pre_tokenizers import build_pre_tokenizer


def train(
    texts: Iterator[str], *, vocabulary_size: int, pre_tokenizer: str, min_frequency: int
) -> Tokenizer:
    """A byte-level BPE tokenizer of `texts` with Ingot's special tokens as ids 0 to 4.

    Merges depend on counts of pairs alone, ties falling to the lower ids: order of texts, threads
    and hash seeds do not matter. Fewer than `vocabulary_size` tokens come out where pairs that
    occur `min_frequency` times run out. `encode` puts `<|begin_of_text|>` first unless it is told
    `add_special_tokens=False`.
    """
    # llama.cpp looks whole words up before it merges when the name is llama-bpe; so do we, then.
    tokenizer = Tokenizer(models.BPE(ignore_merges=pre_tokenizer == "llama-bpe"))
    tokenizer.pre_tokenizer = build_pre_tokenizer(pre_tokenizer)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        min_frequency=min_frequency,
        show_progress=False,
        special_tokens=[AddedToken(t, special=True, normalized=False) for t in SPECIAL_TOKENS],
        initial_alphabet=sorted(ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator(texts, trainer=trainer)
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single=f"{BEGIN_OF_TEXT} $A",
                pair=f"{BEGIN_OF_TEXT} $A {BEGIN_OF_TEXT} $B:1",
                special_tokens=[(BEGIN_OF_TEXT, SPECIAL_TOKENS.index(BEGIN_OF_TEXT))],
            ),
        ]
    )
    return tokenizer


def transformers_config(pre_tokenizer: str) -> dict[str, Any]:
    """The content of tokenizer_config.json, by which `transformers` loads tokenizer.json."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BEGIN_OF_TEXT,
        "eos_token": END_OF_TEXT,
        "pad_token": PADDING,
        "additional_special_tokens": [TURN_START, TURN_END],
        "chat_template": CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": False,
        "pre_tokenizer": pre_tokenizer,
    }
