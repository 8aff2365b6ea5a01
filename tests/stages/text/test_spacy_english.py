"""The splitter that equals spaCy's: against spaCy's own answers, kept or asked for."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from derive_spacy_english import TARGET
from zstandard import ZstdDecompressor

from stages.text.batch import count_sentences, split_texts

HERE = Path(__file__).parent
VECTORS = json.loads((HERE / "spacy_english_vectors.json").read_text())["vectors"]

SOURCES = {"text": 40_000, "labels": 60_000, "code": 400_000, "blocklists": 60_000, "pii": 60_000}
"""Folders of the shared data, and the characters that are compared of each of their files."""


def tokens(text: str) -> list[str]:
    """The tokens of one text."""
    found = split_texts([text], "spacy_english").tokens
    return [text[a:b] for a, b in zip(found.starts.tolist(), found.ends.tolist(), strict=True)]


@pytest.mark.parametrize(("text", "expected"), [(text, found) for text, found, _ in VECTORS])
def test_tokens_are_spacys(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_a_batch_of_all_gives_the_same() -> None:
    texts = [text for text, _, _ in VECTORS]
    batch = split_texts(texts, "spacy_english")
    joined = "".join(texts)
    spans = zip(batch.tokens.starts.tolist(), batch.tokens.ends.tolist(), strict=True)
    assert [joined[a:b] for a, b in spans] == [token for _, found, _ in VECTORS for token in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("can\ud800t \udc80.", ["can\ud800t", "\udc80."]),  # spaCy cannot read surrogates
        ("an IS_ALPHA b", ["an", "IS_ALPHA", "b"]),  # spaCy fails, and datatrove drops the word
    ],
)
def test_what_spacy_cannot_split_is_split(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_spacys_tables_are_complete() -> None:
    # Counts of spaCy 3.8: 1,347 rules of which four are white space; affix patterns find 362 again.
    data = json.loads(TARGET.read_text())
    assert data["version"].startswith("3.8.")
    assert data["licence"].startswith("MIT")
    assert len(data["exceptions"]) == 1343
    assert len(data["found_again"]) == 362
    strings = {exception.replace(" ", "") for exception in data["exceptions"]}
    assert {found.replace(" ", "") for found in data["found_again"]} <= strings


@pytest.fixture
def peers() -> str:
    """A Python that has spaCy and datatrove."""
    python = os.environ.get("INGOT_PEERS")
    if not python:
        pytest.skip("needs INGOT_PEERS: the path of a Python with spacy and datatrove")
    return python


def asked(python: str, texts: list[str]) -> list[tuple[list[str], int]]:
    """spaCy's tokens and number of sentences of each text."""
    given = "".join(json.dumps(text) + "\n" for text in texts)
    command = [python, str(HERE / "spacy_oracle.py")]
    answer = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    return [tuple(json.loads(line)) for line in answer.stdout.splitlines()]


def compare(python: str, texts: list[str]) -> None:
    """Asserts equal tokens and sentences, text by text."""
    counts = count_sentences(split_texts(texts, "spacy_english")).tolist()
    answers = asked(python, texts)
    for text, count, (expected, sentences) in zip(texts, counts, answers, strict=True):
        assert tokens(text) == expected
        assert count == sentences, text


@pytest.mark.full
def test_the_kept_answers_are_spacys(peers: str) -> None:
    answers = asked(peers, [text for text, _, _ in VECTORS])
    assert [(found, sentences) for _, found, sentences in VECTORS] == answers


@pytest.mark.full
def test_the_tables_are_spacys(peers: str) -> None:
    code = "import derive_spacy_english as d, json; print(json.dumps(d.derived()))"
    answer = subprocess.run(
        [peers, "-c", code], cwd=HERE, capture_output=True, text=True, check=True
    )
    assert json.loads(TARGET.read_text()) == json.loads(answer.stdout)


@pytest.mark.full
def test_real_text_code_and_urls_are_split_as_by_spacy(peers: str, shared_data: Path) -> None:
    texts: list[str] = []
    for folder, most in SOURCES.items():
        for path in sorted((shared_data / folder).glob("*.zst")):
            texts += _first(path, most)
    assert len(texts) >= 10_000
    compare(peers, texts)


def _first(path: Path, most: int) -> Iterator[str]:
    """The strings of a file's rows, up to about `most` characters of them."""
    for line in ZstdDecompressor().decompress(path.read_bytes(), 1 << 30).splitlines():
        for value in json.loads(line).values():
            if isinstance(value, str) and most > 0:
                most -= len(value)
                yield value[:20_000]


@pytest.mark.full
def test_texts_made_of_what_the_rules_look_at_are_split_as_by_spacy(peers: str) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}", file=sys.stderr)
    rng = random.Random(seed)
    data: dict[str, Any] = json.loads(TARGET.read_text())
    given = [*data["exceptions"], *data["found_again"], *data["found_again"]]
    marks = list(".,:;!?'’\"“”()[]<>-–—…+*^=/_~%$€@#&°s0189aBéDO日हि١８😀\x00\u200b\u0301|\\")
    spaces = [" ", " ", " ", "  ", "\n", "\t", "\u00a0", "\x1c", "\u3000"]
    numbers = [0, 1, 10, 16, 31, 99, 127, 168, 169, 172, 192, 199, 223, 224, 250, 254, 255, 256]

    def piece() -> str:
        kinds = (
            lambda: rng.choice(given).replace(" ", rng.choice(["", "", " "])),
            lambda: f"{rng.choice(numbers)}{rng.choice(data['after_digit'])}",
            lambda: "".join(rng.choices(marks, k=rng.randint(1, 5))),
            lambda: ".".join(str(rng.choice(numbers)) for _ in range(4)),
            lambda: rng.choice(["word", "Word", "www", "com", "://", "http", "...", "--", "US$"]),
            lambda: rng.choice(spaces),
        )
        return rng.choices(kinds, weights=[4, 1, 5, 1, 3, 4])[0]()

    compare(peers, ["".join(piece() for _ in range(rng.randint(1, 14))) for _ in range(20_000)])
