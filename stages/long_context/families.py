"""The families of items, each a function of a seed and of how much haystack there is.

Families, templates and numbers are those of RULER (Hsieh et al. 2024, arXiv 2404.06654;
NVIDIA/RULER, scripts/data/synthetic and scripts/synthetic.yaml, Apache-2.0), so that results can be
read beside published ones. What differs: words come from a list of our own; essays are the user's
documents, or noise where there are none; depths are a grid instead of drawn; keys and values are
never drawn twice; and each item has wrong answers as well, so that models too small to write a
right one can be measured by ranking.
"""

from __future__ import annotations

import json
import random
import string
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from stages.long_context.config import Family

T = TypeVar("T")

NOISE = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
ANSWER_TOKENS = {"niah": 128, "vt": 30, "cwe": 120, "fwe": 50, "qa_1": 32, "qa_2": 32}
"""RULER's `tokens_to_generate`."""
SHORT = 4096
"""Lengths below have fewer repetitions in `cwe`."""
EXAMPLE_TOKENS = 500
"""Of the solved example before `vt`; at most half of a shorter length."""


@dataclass(frozen=True)
class Problem:
    """An item: its prompt up to where the answer begins, right answers, and choices to rank.

    `question` is its end alone, which names nothing of the haystack.
    """

    prompt: str
    question: str
    references: tuple[str, ...]
    choices: tuple[str, ...]
    answer: int


@dataclass(frozen=True)
class Setting:
    """What an item is made with besides its name: `depth` in per cent of the haystack."""

    length: int
    depth: float | None
    choices: int
    sentences: tuple[str, ...] = ()
    """Of the user's documents."""
    example: str = ""
    """A solved item before this one."""


class Draws:
    """Draws that follow from a name. Of `random` only what Python promises to keep is used."""

    def __init__(self, *name: object) -> None:
        self._random = random.Random("/".join(map(str, name)))

    def fraction(self) -> float:
        """In [0, 1)."""
        return self._random.random()

    def below(self, count: int) -> int:
        """A number from 0."""
        return int(self._random.random() * count)

    def sample(self, values: Sequence[T], count: int) -> list[T]:
        """So many of the values, in random order. ValueError if there are fewer."""
        if count > len(values):
            raise ValueError(f"{count} of {len(values)}")
        moved: dict[int, int] = {}
        chosen = []
        for place in range(count):  # Fisher-Yates, of which only the swaps are kept.
            other = place + self.below(len(values) - place)
            chosen.append(values[moved.get(other, other)])
            moved[other] = moved.get(place, place)
        return chosen

    def letters(self, alphabet: str, count: int) -> str:
        """A made word."""
        return "".join(alphabet[self.below(len(alphabet))] for _ in range(count))

    def unlike(self, make: Callable[[], str], taken: set[str]) -> str:
        """The first that is not in `taken`, which gets it."""
        while (value := make()) in taken:
            pass
        taken.add(value)
        return value


@cache
def word_lists() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Adjectives and nouns."""
    words = json.loads(Path(__file__).with_name("words.json").read_text(encoding="utf-8"))
    return tuple(words["adjectives"]), tuple(words["nouns"])


def _name(draws: Draws) -> str:
    adjectives, nouns = word_lists()
    return f"{adjectives[draws.below(len(adjectives))]}-{nouns[draws.below(len(nouns))]}"


def _number(draws: Draws) -> str:
    return str(10**6 + draws.below(9 * 10**6))


def _uuid(draws: Draws) -> str:
    bits = sum(draws.below(2**32) << 32 * word for word in range(4))
    return str(uuid.UUID(int=bits, version=4))


_MAKERS = {"words": _name, "numbers": _number, "uuids": _uuid}


def rank(draws: Draws, right: str, wrong: Sequence[str]) -> tuple[tuple[str, ...], int]:
    """The right answer at a random place among wrong ones, and that place."""
    place = draws.below(len(wrong) + 1)
    return (*wrong[:place], right, *wrong[place:]), place


# Needles in a haystack


@dataclass(frozen=True)
class Needles:
    """What is hidden in what, as `scripts/synthetic.yaml` has it."""

    haystack: str
    """`noise`, `documents` or `needles` that are not asked for."""
    keys: str = "words"
    values: str = "numbers"
    hidden: int = 1
    """Keys that are hidden."""
    values_each: int = 1
    queries: int = 1
    """Keys that are asked for."""

    @property
    def has_depth(self) -> bool:
        """Whether one needle is asked for, so that it has one depth."""
        return self.queries * self.values_each == 1


NIAH: dict[str, Needles] = {
    "niah_single_1": Needles("noise"),
    "niah_single_2": Needles("documents"),
    "niah_single_3": Needles("documents", values="uuids"),
    "niah_multikey_1": Needles("documents", hidden=4),
    "niah_multikey_2": Needles("needles"),
    "niah_multikey_3": Needles("needles", keys="uuids", values="uuids"),
    "niah_multivalue": Needles("documents", values_each=4),
    "niah_multiquery": Needles("documents", hidden=4, queries=4),
}

_ONE = (
    "A special magic {kind} is hidden within the following text. Make sure to memorize it. "
    "I will quiz you about the {kind} afterwards.\n{context}\n",
    "What is the special magic {kind} for {query} mentioned in the provided text?"
    " The special magic {kind} for {query} mentioned in the provided text is",
)
_SEVERAL = (
    "Some special magic {kind} are hidden within the following text. Make sure to memorize it. "
    "I will quiz you about the {kind} afterwards.\n{context}\n",
    "What are all the special magic {kind} for {query} mentioned in the provided text?"
    " The special magic {kind} for {query} mentioned in the provided text are",
)


def needles_problem(needles: Needles, draws: Draws, size: int, setting: Setting) -> Problem:
    """Needles in a haystack of `size` sentences, paragraphs of noise or other needles.

    Wrong choices are values of needles that are not asked for, then values that are nowhere.
    """
    taken: set[str] = set()

    def key() -> str:
        return draws.unlike(lambda: _MAKERS[needles.keys](draws), taken)

    def value() -> str:
        return draws.unlike(lambda: _MAKERS[needles.values](draws), taken)

    def sentence(key: str, value: str) -> str:
        return f"One of the special magic {needles.values} for {key} is: {value}."

    pairs = [(key(), [value() for _ in range(needles.values_each)]) for _ in range(needles.hidden)]
    wanted = draws.sample(range(needles.hidden), needles.queries)
    queries = [pairs[number][0] for number in wanted]
    right = [one for number in wanted for one in pairs[number][1]]
    other = [
        one for number, (_, values) in enumerate(pairs) if number not in wanted for one in values
    ]
    more = max(0, (setting.choices - 1) * len(right) - len(other))
    places = [
        (draws.fraction() if setting.depth is None or number not in wanted else setting.depth / 100)
        for number, (_, values) in enumerate(pairs)
        for _ in values
    ]
    absent = [value() for _ in range(more)]
    start = draws.below(max(1, len(setting.sentences)))
    if needles.haystack == "needles":
        hay = [(key(), value()) for _ in range(size)]
        near = draws.sample(hay, min(size, setting.choices - 1))
        other = [one for _, one in near]
        units = [sentence(*one) for one in hay]
    elif needles.haystack == "documents" and setting.sentences:
        units = [setting.sentences[(start + n) % len(setting.sentences)] for n in range(size)]
    else:
        units = [NOISE] * size
    hidden = [sentence(name, one) for name, values in pairs for one in values]
    for place, one in sorted(zip(places, hidden, strict=True), reverse=True):
        units.insert(round(place * size), one)  # From the right, so that places stay.
    joined = (" " if needles.haystack == "documents" and setting.sentences else "\n").join(units)
    begin, end = _ONE if needles.has_depth else _SEVERAL
    kind = needles.values[:-1] if needles.has_depth else needles.values
    question = end.format(kind=kind, query=enumerate_words(queries))
    wrong = [*other, *absent]
    lists = [wrong[n * len(right) :][: len(right)] for n in range(setting.choices - 1)]
    right_choice, *wrong_choices = (f" {enumerate_words(one)}" for one in (right, *lists))
    choices, answer = rank(draws, right_choice, wrong_choices)
    prompt = begin.format(kind=kind, context=joined) + question
    return Problem(prompt, question, tuple(right), choices, answer)


def enumerate_words(words: Sequence[str]) -> str:
    """`one`, or `one, two, and three`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])}, and {words[-1]}"


# Variable tracking

_VT = (
    "Memorize and track the chain(s) of variable assignment hidden in the following text."
    "\n\n{context}\n",
    "Question: Find all variables that are assigned the value {value} in the text above."
    " Answer: According to the chain(s) of variable assignment in the text above, {count} variables"
    " are assigned the value {value}, they are: ",
)
HOPS = 4


def variables_problem(draws: Draws, size: int, setting: Setting, letters: int = 5) -> Problem:
    """A chain of assignments in `size` paragraphs of noise. Wrong choices are in no chain."""
    taken: set[str] = set()

    def names() -> list[str]:
        return [
            draws.unlike(lambda: draws.letters(string.ascii_uppercase, letters), taken)
            for _ in range(HOPS + 1)
        ]

    chain, value = names(), str(10_000 + draws.below(90_000))
    links = [f"VAR {chain[0]} = {value}"]
    links += [f"VAR {after} = VAR {before} " for before, after in pairwise(chain)]
    units = [NOISE] * size
    places = sorted(draws.sample(range(size), len(links)))
    for moved, (place, link) in enumerate(zip(places, links, strict=True)):
        units.insert(place + moved, link)
    begin, end = _VT
    question = end.format(value=value, count=len(chain))
    wrong = [" ".join(names()) for _ in range(setting.choices - 1)]
    choices, answer = rank(draws, " ".join(chain), wrong)
    prompt = setting.example + begin.format(context="\n".join(units)) + question
    return Problem(prompt, question, tuple(chain), choices, answer)


def solved_variables(draws: Draws, size: int) -> str:
    """An item of variable tracking with its answer, to be put before another."""
    problem = variables_problem(draws, size, Setting(0, None, 2), letters=3)
    return f"{problem.prompt} {' '.join(problem.references)}\n\n"


# Common words

_CWE = (
    "Below is a numbered list of words. In these words, some appear more often than others. "
    "Memorize the ones that appear most often.\n{context}\n",
    "Question: What are the 10 most common words in the above list?"
    " Answer: The top 10 words that appear most often in the list are:",
)
COMMON = 10


def common_words_problem(draws: Draws, size: int, setting: Setting) -> Problem:
    """`size` words of which ten are repeated more often, after a solved example.

    Wrong choices are words of the list that are not among the ten.
    """
    short = setting.length < SHORT
    often, seldom = (6, 1) if short else (30, 3)
    words = _words(draws, 20 if short else 40)
    solved = _repeat(draws, words, *((3, 1) if short else (10, 3)))
    solved = "".join(_CWE).format(context=solved) + _numbered(words[:COMMON])
    words = _words(draws, size)
    context, common = _repeat(draws, words, often, seldom), words[:COMMON]
    wrong = [_numbered(draws.sample(words[COMMON:], COMMON)) for _ in range(setting.choices - 1)]
    choices, answer = rank(draws, _numbered(common), wrong)
    begin, question = _CWE
    prompt = f"{solved}\n{begin.format(context=context)}{question}"
    return Problem(prompt, question, tuple(common), choices, answer)


def _words(draws: Draws, size: int) -> list[str]:
    """Different words; pairs of words where the lists are too short."""
    adjectives, nouns = word_lists()
    single = [*adjectives, *nouns]
    if size <= len(single):
        return draws.sample(single, size)
    pairs = draws.sample(range(len(adjectives) * len(nouns)), size)
    return [f"{adjectives[one % len(adjectives)]}-{nouns[one // len(adjectives)]}" for one in pairs]


def _repeat(draws: Draws, words: list[str], often: int, seldom: int) -> str:
    """The first ten words so often, and the others, in random order, numbered."""
    repeated = [*words[:COMMON] * often, *words[COMMON:] * seldom]
    return _numbered(draws.sample(repeated, len(repeated)))[1:]


def _numbered(words: Sequence[str]) -> str:
    return "".join(f" {number}. {word}" for number, word in enumerate(words, 1))


# Frequent words

_FWE = (
    "Read the following coded text and track the frequency of each coded word. "
    "Find the three most frequently appeared coded words. {context}\n",
    "Question: Do not provide any explanation. Please ignore the dots '....'. "
    "What are the three most frequently appeared words in the above coded text?"
    " Answer: According to the coded text above, the three most frequently appeared words are:",
)
ZETA_2 = 1.6449340668482264
"""Zeta(2) = π²/6: frequencies fall with the square of the rank."""
RARER = 5
"""Words after the three that a text must hold, to make wrong choices of."""


def frequent_words_problem(draws: Draws, size: int, setting: Setting) -> Problem:
    """Coded words, about `size`, whose frequency falls by Zipf's law; the first are dots.

    Wrong choices are rarer words of the text.
    """
    most = max(4 + RARER, setting.length // 50 - 1)
    taken: set[str] = set()
    coded = [
        draws.unlike(lambda: draws.letters(string.ascii_lowercase, 6), taken) for _ in range(most)
    ]
    coded[0] = "..."
    counts = [int(size / (rank * rank * ZETA_2)) for rank in range(1, most + 1)]
    words = [word for word, count in zip(coded, counts, strict=True) for _ in range(count)]
    context = " ".join(draws.sample(words, len(words)))
    rarer = range(4, sum(count > 0 for count in counts))
    wrong: dict[str, None] = {}
    while len(wrong) < setting.choices - 1:
        ranks = sorted(draws.sample(rarer, 3))
        wrong[f" {enumerate_words([coded[one] for one in ranks])}"] = None
    choices, answer = rank(draws, f" {enumerate_words(coded[1:4])}", list(wrong))
    begin, question = _FWE
    return Problem(
        begin.format(context=context) + question, question, tuple(coded[1:4]), choices, answer
    )


def has_depth(family: Family) -> bool:
    """Whether the place of what is asked for is chosen."""
    return family in NIAH and NIAH[family].has_depth


def answer_tokens(family: Family) -> int:
    """Room that RULER leaves for an answer."""
    return ANSWER_TOKENS["niah" if family in NIAH else family]


def least_size(family: Family, choices: int) -> int:
    """The least haystack with which an item has one right answer and enough wrong ones."""
    if family in NIAH:
        return choices - 1 if NIAH[family].haystack == "needles" else 1
    # Of `fwe` the rank of the last word that is needed must have a count of one.
    return {"vt": HOPS + 1, "cwe": 2 * COMMON, "fwe": round((4 + RARER) ** 2 * ZETA_2) + 1}[family]


def make_problem(family: Family, draws: Draws, size: int, setting: Setting) -> Problem:
    """The item of a family with a haystack of `size`."""
    if family in NIAH:
        return needles_problem(NIAH[family], draws, size, setting)
    makers = {
        "vt": variables_problem, "cwe": common_words_problem, "fwe": frequent_words_problem
    }  # fmt: skip
    return makers[family](draws, size, setting)
