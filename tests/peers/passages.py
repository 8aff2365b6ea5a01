"""Passages in many languages by seed, bent towards the rules of FineWeb-2 as `corpus.py` does.

A passage is a piece of public text of the language from a random place on. Half of them are as
they are; of the others each is cut near Gopher's 50 words, repeats runs or a phrase, has its lines
broken or joined, loses the marks at their ends, or has digits, marks or odd characters put in.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import zstandard
from peers.corpus import DATA

LABELS = json.loads(
    (Path(__file__).parents[2] / "stages" / "signals" / "fineweb_2_stop_words.json").read_text()
)["languages"]
ISO_639_3 = {row["lid.176"]: label[:3] for label, row in LABELS.items()}
ISO_639_3 |= {"et": "est", "fa": "pes", "lv": "lav", "tl": "tgl"}
"""Language → label of its declarations of human rights, and of its sentences from Tatoeba."""

DOCUMENTS = ("ar", "de", "es", "fr", "ja", "ru", "zh")
"""Languages with files of documents; of some others there are XQuAD's paragraphs."""


def passages(language: str, count: int, seed: int) -> list[str]:
    """`count` passages; the same for a seed."""
    texts = source_texts(language)
    return list(_make(texts, language, count, seed))


def _make(texts: list[str], language: str, count: int, seed: int) -> Iterator[str]:
    for number in range(count):
        rng = random.Random(f"{seed}/{language}/{number}")
        text = _piece(rng.choice(texts), rng)
        yield rng.choice(BENDS)(text, rng) if rng.random() < 0.5 else text


@cache
def source_texts(language: str) -> list[str]:
    """All there is of a language: documents, else paragraphs, declarations and sentences."""
    if language in DOCUMENTS:
        return [row["text"] for row in _read(language)]
    label = ISO_639_3[language]
    texts = [row["text"] for row in _read("parallel-xquad") if row["lang"] == language]
    texts += [row["text"] for row in _read("udhr") if row["lang"].split("_")[0] == label]
    sentences = [row["text"] for row in _read("langid-tatoeba") if row["lang"] == label]
    return texts + (["\n".join(sentences)] if sentences else [])


@cache
def _read(name: str) -> list[dict[str, str]]:
    with zstandard.open(DATA / f"{name}.jsonl.zst", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _piece(text: str, rng: random.Random) -> str:
    """Lines from a random place on, about 50 to 3,000 characters."""
    wanted = round(rng.lognormvariate(5.8, 0.9))
    lines = text.split("\n")
    start = rng.randrange(len(lines))
    taken: list[str] = []
    for line in lines[start:] + lines[:start]:
        left = wanted - sum(map(len, taken))
        if left <= 0:
            break
        cut = line[: max(left, 30)]
        taken.append(cut if len(cut) == len(line) else f"{cut}.")
    return "\n".join(taken)


def _cut(text: str, rng: random.Random) -> str:
    """Few words, around 50 of one to six letters."""
    return text[: rng.randint(40, 330)]


def _repeat_run(text: str, rng: random.Random) -> str:
    """A stretch that comes again, around a fifth of the text."""
    size = max(1, round(len(text) * rng.uniform(0.05, 0.35)))
    start = rng.randrange(max(1, len(text) - size))
    place = rng.randrange(len(text) + 1)
    return f"{text[:place]} {text[start : start + size]} {text[place:]}"


def _repeat_phrase(text: str, rng: random.Random) -> str:
    """A few characters again and again, up to a third of the text."""
    start = rng.randrange(max(1, len(text) - 12))
    phrase = f" {text[start : start + rng.randint(4, 12)].strip()} "
    for _ in range(round(len(text) * rng.uniform(0.05, 0.35) / len(phrase))):
        place = rng.randrange(len(text) + 1)
        text = text[:place] + phrase + text[place:]
    return text


def _repeat_lines(text: str, rng: random.Random) -> str:
    """Lines that come again."""
    lines = _broken(text, rng.randint(20, 60))
    for _ in range(round(len(lines) * rng.uniform(0.1, 0.8))):
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines[:5]))
    return "\n".join(lines)


def _break_lines(text: str, rng: random.Random) -> str:
    """Lines of 4 to 40 characters."""
    return "\n".join(_broken(text, rng.randint(4, 40)))


def _join_lines(text: str, rng: random.Random) -> str:
    return text.replace("\n", rng.choice((" ", "")))


def _drop_ends(text: str, rng: random.Random) -> str:
    """Lines without a mark at their ends, but for a few."""
    share = rng.uniform(0, 0.25)
    lines = _broken(text, rng.randint(15, 60))
    ends = (line if rng.random() < share else re.sub(r"\W+$", "", line) for line in lines)
    return "\n".join(ends)


def _put_in(text: str, rng: random.Random) -> str:
    """Digits, symbols, ellipses or bullets, up to half as many as words of four letters."""
    mark = rng.choice((" 12 ", " 3,456.7 ", "#", "...", "…", " - ", "\n- ", " | ", "*", " ok "))
    for _ in range(round(len(text) * rng.uniform(0, 0.13))):
        place = rng.randrange(len(text) + 1)
        text = text[:place] + mark + text[place:]
    return text


def _odd_characters(text: str, rng: random.Random) -> str:
    """Emoji, long numbers, zero-width and full-width characters, other scripts."""
    odd = (
        *(
            "😀",
            "👨\u200d👩\u200d👧",
            "\u200b",
            "\u3000",
            "\u00a0",
            "ﾊﾟﾝ",
            "\t",
            "\r\n",
            "\x00",
            "…",
            "ﷺ",
        ),
        *(
            "123,456,789,012,345,678,901",
            "日本",
            "กข",
            "한국",
            "http://example.com/?a=1",
        ),
    )
    for _ in range(rng.randint(1, 12)):
        place = rng.randrange(len(text) + 1)
        text = text[:place] + rng.choice(odd) + text[place:]
    return text


def _broken(text: str, width: int) -> list[str]:
    whole = text.replace("\n", " ")
    return [whole[start : start + width] for start in range(0, len(whole), width)]


BENDS: tuple[Callable[[str, random.Random], str], ...] = (
    *(_cut, _repeat_run, _repeat_phrase, _repeat_lines, _break_lines, _join_lines),
    *(_drop_ends, _put_in, _odd_characters),
)
