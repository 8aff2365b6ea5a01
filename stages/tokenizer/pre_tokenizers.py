"""The pre-tokenizers on offer: those that llama.cpp implements for BPE, under its names.

A release with any other cannot be run there: its converter knows a byte-level BPE by the name of
its pre-tokenizer (`src/llama-vocab.cpp`). They differ most in digits:

    gpt-2      runs of digits stay together
    smollm     each digit alone, then as gpt-2
    llama-bpe  up to three digits together
    qwen2      each digit alone, otherwise as llama-bpe
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers.pre_tokenizers import PreTokenizer

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
