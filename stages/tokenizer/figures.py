"""How a tokenizer cuts text, shown from its own file: tokens by length, and texts in pieces."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

from stages.engine.figures import (
    Axis,
    BarFigure,
    Bars,
    Column,
    Sample,
    SamplesFigure,
    TableFigure,
    number,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from tokenizers import Tokenizer

    Ints = npt.NDArray[np.uint16]

LONGEST, LONGEST_CHARACTERS = 30, 80
"""Tokens in the table of the longest, and characters that it shows of each."""

LONGEST_BAR = 20
"""Bytes from which on lengths share a bar."""

BORDER = "│"

TEXTS = {
    "prose": "The tokenizer was trained once, in 2024, and is frozen: whatever a model learns "
    "afterwards, it learns in these pieces. Isn't that unforgettable?",
    "code": "def mean(values: list[float]) -> float:\n"
    "    # no values, no mean\n"
    "    return sum(values) / len(values) if values else 0.0\n",
    "numbers": "1 12 123 1234 12345 3.14159 1,000,000 2024-02-29 0x1F 1e-5 50%",
    "other languages": "Der Übergang über die Straße. C'était déjà l'été. Добрый день! "
    "你好，世界。 नमस्ते مرحبا 👩‍👩‍👧",
    "a chat turn": "<|im_start|>user\nHello<|im_end|>\n",
}
"""What is cut for show: the same texts for every tokenizer, so that two can be compared."""


def texts_in_pieces(tokenizer: Tokenizer) -> SamplesFigure:
    """A few texts with a border between each two tokens."""
    samples = []
    for name, text in TEXTS.items():
        pieces = cut(tokenizer, text)
        size = len(text.encode())
        facts = (
            ("tokens", len(pieces)),
            ("bytes", size),
            ("bytes per token", round(size / len(pieces), 2)),
        )
        samples.append(Sample(name, f"{name}, {len(pieces)} tokens", BORDER.join(pieces), facts))
    note = rf"{BORDER} stands between two tokens; a byte that is no whole character reads \xe4."
    return SamplesFigure("Texts cut into tokens", tuple(samples), note)


def cut(tokenizer: Tokenizer, text: str) -> list[str]:
    """The tokens of `text`, each as what it stands for; bytes of a split character as `\\xe4`."""
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    return [spelt(tokenizer, index) for index in ids]


def spelt(tokenizer: Tokenizer, index: int) -> str:
    """A token as text: the vocabulary spells every byte as one character of a fixed alphabet."""
    token = str(tokenizer.id_to_token(index))
    if index in tokenizer.get_added_tokens_decoder():
        return token
    return bytes(_bytes()[character] for character in token).decode("utf-8", "backslashreplace")


def tokens_by_length(lengths: Ints) -> BarFigure:
    """How many tokens stand for how many bytes; `lengths` as `token_byte_lengths` gives them."""
    counts = [0] * LONGEST_BAR
    for length in lengths.tolist():
        if length:
            counts[min(length, LONGEST_BAR) - 1] += 1
    labels = [f"{length}" for length in range(1, LONGEST_BAR)] + [f"{LONGEST_BAR} or more"]
    return BarFigure(
        "Tokens of the vocabulary by length in bytes",
        tuple(labels),
        Axis("tokens", format=",.0f"),
        (Bars("tokens", tuple(counts)),),
        label="bytes",
        note="Special tokens stand for no text and are left out.",
    )


def longest_tokens(tokenizer: Tokenizer, lengths: Ints) -> TableFigure:
    """The longest tokens, without runs of one character such as indentation."""
    longest = sorted(range(len(lengths)), key=lambda index: (-int(lengths[index]), index))
    rows: list[tuple[int, int, str]] = []
    runs = 0
    for index in longest:
        if len(rows) == LONGEST:
            break
        text = spelt(tokenizer, index)
        if len(set(text)) > 1 and lengths[index]:
            rows.append((index, int(lengths[index]), visible(text)))
        else:
            runs += 1
    columns = (number("id", ""), number("bytes"), Column("token"))
    note = "What the training text repeats most stubbornly; ␣ is a space."
    if runs:
        note += f" {runs:,} tokens that repeat one character, as indentation does, are left out."
    return TableFigure("Longest tokens", columns, tuple(rows), note)


def visible(text: str) -> str:
    """A token for a cell of a table: escapes as in JSON, ␣ for a space, long ones cut."""
    shown = json.dumps(text, ensure_ascii=False)[1:-1].replace(" ", "␣")
    cut_here = LONGEST_CHARACTERS - 1
    return shown if len(shown) <= LONGEST_CHARACTERS else f"{shown[:cut_here]}…"


@cache
def _bytes() -> dict[str, int]:
    """The byte of each character of the byte-level alphabet (GPT-2's `bytes_to_unicode`).

    Printable bytes are themselves; the others, in order, are the characters from 256 on.
    """
    from tokenizers.pre_tokenizers import ByteLevel

    alphabet = sorted(ByteLevel.alphabet())
    same = {character: ord(character) for character in alphabet if ord(character) < 256}
    others = [byte for byte in range(256) if byte not in same.values()]
    return same | dict(zip(sorted(set(alphabet) - same.keys()), others, strict=True))
