"""A tokenizer in a report: facts, special tokens, sample, fertility, tokens, texts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stages.engine.page import (
    Artifact,
    BarFigure,
    Cell,
    Figure,
    Sample,
    SamplesFigure,
    TableFigure,
    make_bars,
    make_facts,
    make_table,
)
from stages.tokens.vocabulary import decode_vocabulary, format_token, format_tokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer


TOKENS = 8
"""Special tokens that are named in a sentence."""

LABELS = 40
"""Sources or languages that are listed, the largest."""

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


def page(artifact: Artifact) -> list[Figure]:
    """Facts, special tokens, training sample, fertility, tokens by length, texts in pieces."""
    from tokenizers import Tokenizer

    output = artifact.output("tokenizer")
    training: dict[str, Any] = output.read_json("training.json")
    tokenizer = Tokenizer.from_str(output.read_bytes("tokenizer.json").decode("utf-8"))
    token_bytes = decode_vocabulary(tokenizer)
    return [
        facts_table(artifact, training, tokenizer),
        special_tokens_table(training, tokenizer),
        *sample_figures(training, "source", "sources"),
        *sample_figures(training, "language", "languages"),
        *fertility_figures(training),
        tokens_by_length(token_bytes),
        texts_in_pieces(tokenizer, token_bytes),
        longest_tokens(token_bytes),
    ]


def facts_table(artifact: Artifact, training: dict[str, Any], tokenizer: Tokenizer) -> TableFigure:
    """What the tokenizer is, and on how much text it was trained or where it came from."""
    config = artifact.manifest.config
    special = sum(token.special for token in tokenizer.get_added_tokens_decoder().values())
    drawn = training.get("drawn_share")
    padded = training.get("padded_vocabulary_size")
    rows: list[tuple[str, Cell]] = [
        ("vocabulary", training["vocabulary_size"]),
        ("vocabulary asked for", config.get("vocabulary_size")),
        (
            "vocabulary with padding, rows of a model's embedding",
            padded if padded != training["vocabulary_size"] else None,
        ),
        ("special tokens", special),
        ("algorithm", training["algorithm"]),
        ("pre-tokenizer, by llama.cpp's name", training.get("pre_tokenizer") or "none of its own"),
        ("least occurrences of a token", config.get("min_frequency")),
        ("documents trained on", training.get("documents")),
        ("bytes trained on", training.get("bytes")),
        ("share of the text that was drawn", None if drawn is None else f"{drawn:.1%}"),
        *_import_rows(training),
    ]
    return make_facts("Tokenizer", rows)


def _import_rows(training: dict[str, Any]) -> tuple[tuple[str, Cell], ...]:
    """What is known of a tokenizer that was brought along, and what importing it changed."""
    if "origin" not in training:
        return ()
    lost = training.get("lost_texts") or ()
    return (
        ("came from snapshot", training["origin"].get("snapshot")),
        ("tokens added at the end", _join_tokens(training.get("added_tokens") or ())),
        ("changed", "; ".join(training.get("changes") or ()) or None),
        ("texts tried that decode to another text", len(lost)),
        ("such as", json.dumps(lost[0], ensure_ascii=False) if lost else None),
    )


def _join_tokens(tokens: Sequence[str]) -> str | None:
    more = f" and {len(tokens) - TOKENS:,} more" if len(tokens) > TOKENS else ""
    return ", ".join(tokens[:TOKENS]) + more or None


def special_tokens_table(training: dict[str, Any], tokenizer: Tokenizer) -> TableFigure:
    """Every special token with its id and role; those that are reserved in one row."""
    roles: dict[int, list[str]] = {}
    for role, index in training.get("special_tokens", {}).items():
        if index is not None:
            roles.setdefault(index, []).append(role.replace("_", " "))
    added = sorted(tokenizer.get_added_tokens_decoder().items())
    special = [(index, token.content) for index, token in added if token.special]
    spare = [item for item in special if item[0] not in roles]
    rows: list[tuple[Cell, ...]] = [
        (index, content, ", ".join(roles[index])) for index, content in special if index in roles
    ]
    if spare:
        ids = f"{spare[0][0]}" if len(spare) == 1 else f"{spare[0][0]} to {spare[-1][0]}"
        names = spare[0][1] if len(spare) == 1 else f"{spare[0][1]} … {spare[-1][1]}"
        rows.append((ids, names, f"none yet: {len(spare):,}"))
    note = "What spells one of them in a text is cut like any other text."
    if token_bytes := training.get("special_ids_in_text"):
        token = _join_tokens(token_bytes)
        note = f"A text that spells {token} becomes that token, so it may end a document."
    return make_table("Special tokens", "id: | token | role", rows, note)


def sample_figures(training: dict[str, Any], label: str, key: str) -> list[Figure]:
    """What it was trained on by source or language: the share asked for, and what there was."""
    parts: dict[str, dict[str, Any]] = training.get(key) or {}
    total = training.get("bytes") or sum(one["bytes"] for one in parts.values())
    if not parts or (label == "language" and not parts.keys() - {"unknown"}):
        return []
    ranked = sorted(parts, key=lambda name: (-parts[name]["bytes"], name))
    rows = [
        (
            name,
            parts[name]["documents"],
            parts[name]["bytes"],
            parts[name]["bytes"] / total if total else None,
            parts[name].get("asked_share"),
        )
        for name in ranked[:LABELS]
    ]
    headings = f"{label} | documents:, | bytes:, | share of bytes:.1% | asked for:.1%"
    note = f"A {label} with a larger share gets more of the vocabulary."
    short = [one["name"] for one in training.get("short") or () if one.get("by") == label]
    if short:
        note += f" There was less text than asked for of {', '.join(short[:LABELS])}."
    if len(ranked) > LABELS:
        note += f" The largest {LABELS} of {len(ranked):,}."
    return [make_table(f"Training sample by {label}", headings, rows, note).without_empty()]


_FERTILITY = {
    "documents": "documents:,",
    "bytes": "bytes:,",
    "words": "words:,",
    "tokens": "tokens:,",
    "tokens_per_word": "tokens per word:.3f",
    "continued_share": "continued:.1%",
    "bytes_per_token": "bytes per token:.3f",
}


def fertility_figures(training: dict[str, Any]) -> list[Figure]:
    """How documents are cut that were not trained on, by source."""
    held: dict[str, dict[str, Any]] = training.get("held") or {}
    if not held:
        return []
    sources = sorted(held)
    return [
        make_table(
            "Fertility on held documents",
            " | ".join(["source", *_FERTILITY.values()]),
            ((source, *map(held[source].__getitem__, _FERTILITY)) for source in sources),
            "Fertility is tokens per word, words as Unicode segments text (UAX #29); low is good. "
            "Continued words are more than one token. More bytes per token make shorter sequences.",
        ),
        make_bars(
            "Bytes per token by source",
            sources,
            "bytes per token:.3f",
            {"held documents": [held[source]["bytes_per_token"] for source in sources]},
            label="source",
            note="Of documents that were not trained on; a source far below the others is cut fine "
            "and costs more compute for its text.",
        ),
    ]


def texts_in_pieces(tokenizer: Tokenizer, token_bytes: Mapping[int, bytes]) -> SamplesFigure:
    """A few texts with a border between each two tokens."""
    samples = []
    for name, text in TEXTS.items():
        cut = format_tokens(tokenizer, text, token_bytes)
        size = len(text.encode())
        facts = (
            ("tokens", len(cut)),
            ("bytes", size),
            ("bytes per token", round(size / len(cut), 2)),
        )
        samples.append(Sample(name, f"{name}, {len(cut)} tokens", BORDER.join(cut), facts))
    note = rf"{BORDER} stands between two tokens; a byte that is no whole character reads \xe4."
    return SamplesFigure("Texts cut into tokens", tuple(samples), note)


def tokens_by_length(token_bytes: Mapping[int, bytes]) -> BarFigure:
    """How many tokens stand for how many bytes."""
    counts = [0] * LONGEST_BAR
    for spelling in token_bytes.values():
        if spelling:
            counts[min(len(spelling), LONGEST_BAR) - 1] += 1
    labels = [f"{length}" for length in range(1, LONGEST_BAR)] + [f"{LONGEST_BAR} or more"]
    return make_bars(
        "Tokens of the vocabulary by length in bytes",
        labels,
        "tokens:,.0f",
        {"tokens": counts},
        label="bytes",
        note="Special tokens stand for no text and are left out.",
    )


def longest_tokens(token_bytes: Mapping[int, bytes]) -> TableFigure:
    """The longest tokens, without runs of one character such as indentation."""
    text_tokens = [index for index, spelling in token_bytes.items() if spelling]
    longest = sorted(text_tokens, key=lambda index: (-len(token_bytes[index]), index))
    rows: list[tuple[int, int, str]] = []
    runs = 0
    for index in longest:
        if len(rows) == LONGEST:
            break
        text = format_token(token_bytes[index])
        if len(set(text)) > 1:
            rows.append((index, len(token_bytes[index]), visible(text)))
        else:
            runs += 1
    note = "What the training text repeats most stubbornly; ␣ is a space."
    if runs:
        note += f" {runs:,} tokens that repeat one character, as indentation does, are left out."
    return make_table("Longest tokens", "id: | bytes:, | token", rows, note)


def visible(text: str) -> str:
    """A token for a cell of a table: escapes as in JSON, ␣ for a space, long ones cut."""
    text_shown = json.dumps(text, ensure_ascii=False)[1:-1].replace(" ", "␣")
    cut_here = LONGEST_CHARACTERS - 1
    return text_shown if len(text_shown) <= LONGEST_CHARACTERS else f"{text_shown[:cut_here]}…"
