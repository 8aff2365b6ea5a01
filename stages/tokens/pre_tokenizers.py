"""The pre-tokenizers that llama.cpp implements and Ingot offers, under llama.cpp's names.

A release with any other cannot be run there: its converter knows a byte-level BPE by the name of
its pre-tokenizer (`src/llama-vocab.cpp`). They differ most in digits:

    gpt-2      runs of digits stay together
    smollm     each digit alone, then as gpt-2
    llama-bpe  up to three digits together
    qwen2      each digit alone, otherwise as llama-bpe
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.normalizers import Normalizer
    from tokenizers.pre_tokenizers import PreTokenizer


NAMES = ("gpt-2", "smollm", "llama-bpe", "qwen2")

LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|DIGITS"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Regex of Llama 3's tokenizer.json, its digits left open; Qwen 2's differs in them alone."""

DIGITS = {"llama-bpe": r"\p{N}{1,3}", "qwen2": r"\p{N}"}


def build_pre_tokenizer(name: str) -> PreTokenizer:
    """The pre-tokenizer that llama.cpp calls `name`; KeyError for another name."""
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split

    if name == "gpt-2":
        return ByteLevel(add_prefix_space=False, use_regex=True)
    if name == "smollm":
        return Sequence(
            [
                Digits(individual_digits=True),
                ByteLevel(add_prefix_space=False, use_regex=True),
            ]
        )
    pattern = LLAMA3_PATTERN.replace("DIGITS", DIGITS[name])
    return Sequence(
        [
            Split(Regex(pattern), behavior="isolated", invert=False),
            ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def llama_cpp_name(tokenizer: Tokenizer) -> str | None:
    """The name under which llama.cpp cuts and merges as `tokenizer` does; None where there is none.

    Told by structure: a BPE without byte fallback, affixes or normalizer, whose pre-tokenizer is
    one of the four and which looks whole words up first exactly where llama.cpp does (llama-bpe).
    Qwen 2's own tokenizer.json has an NFC normalizer, which llama.cpp runs without.
    """
    content = json.loads(tokenizer.to_str())
    model, normalizer = content["model"], content["normalizer"]
    plain = ("byte_fallback", "continuing_subword_prefix", "end_of_word_suffix", "dropout")
    if model["type"] != "BPE" or any(model.get(name) for name in plain):
        return None
    for name in NAMES:
        cuts = _state(build_pre_tokenizer(name)) == _settings(content["pre_tokenizer"])
        looks_up = bool(model.get("ignore_merges")) == (name == "llama-bpe")
        known = normalizer is None or (name == "qwen2" and normalizer == {"type": "NFC"})
        if cuts and looks_up and known:
            return name
    return None


def count_words(
    texts: Iterator[str], cut: PreTokenizer, normalizer: Normalizer | None = None
) -> dict[str, int]:
    """How often each word comes in `texts`, words being what `cut` leaves, in bytes' characters.

    `tokenizers` counts, in its own threads: the trainer's state holds the counts.
    """
    from tokenizers import Tokenizer, models, trainers

    counter = Tokenizer(models.WordLevel())
    counter.pre_tokenizer = cut
    if normalizer is not None:
        counter.normalizer = normalizer
    trainer = trainers.WordLevelTrainer(vocab_size=0, show_progress=False)
    counter.train_from_iterator(texts, trainer=trainer)
    state = json.loads(trainer.__getstate__())
    words: dict[str, int] = state["WordLevelTrainer"]["words"]
    return words


def _state(pre_tokenizer: PreTokenizer) -> Any:
    return _settings(json.loads(pre_tokenizer.__getstate__()))


def _settings(value: Any) -> Any:
    """A pre-tokenizer's JSON without what moves offsets only."""
    if isinstance(value, dict):
        return {key: _settings(item) for key, item in value.items() if key != "trim_offsets"}
    return [_settings(item) for item in value] if isinstance(value, list) else value
