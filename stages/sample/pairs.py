"""Minimal pairs: a piece of held-out source text beside a copy with one fault, after BLiMP.

A model is right about a pair if it finds the text likelier than the copy (Warstadt et al. 2020,
arXiv 1912.00582). Neither length nor the frequency of words decides one. Both texts of
`word_order` have the same words, of which the copy exchanges two. In `brackets` and `quotes` the
copy closes a bracket or a string by the mark of another kind, and each such fault is there as often
as its reverse. At least `ENCLOSED` tokens stand between the two brackets, so that three words in a
row do not hold both.
"""

from __future__ import annotations

import io
import random
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

WORD_ORDER, BRACKETS, QUOTES = "word_order", "brackets", "quotes"
SENTENCE_WORDS, STATEMENT_TOKENS = range(8, 41), range(8, 81)
LEAST_PLAIN = 0.7
"""Share of a sentence's words that are lower-case letters alone."""
DISTANCES = range(2, 8)
"""Words from one exchanged word to the other."""
ENCLOSED = 3
"""Python tokens at least between a bracket and the one that closes it."""
LEAST_STRING = 6
"""Characters at least of a string whose end is changed, its quotes included."""

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_OTHER_QUOTE = {"'": '"', '"': "'"}
_LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)
_TRIPLE = re.compile(r"""(?s)[A-Za-z]*(\"{3}|'{3})(.*)\1""")
_PLAIN = re.compile("[a-z]+")


@dataclass(frozen=True)
class Pair:
    """A text, its copy with a fault, and what stands in the fault's place: (right, wrong)."""

    right: str
    wrong: str
    fault: tuple[str, str]


def minimal_pairs(sources: Sequence[str], seed: int) -> list[dict[str, Any]]:
    """Two-choice items without a prompt, of Python source files; still to be balanced."""
    statements = list(dict.fromkeys(s for source in sources for s in _statements(source)))
    return [
        _item(benchmark, number, pair, seed)
        for benchmark, pairs in (
            (WORD_ORDER, word_pairs(sources, seed)),
            (BRACKETS, _spoil(statements, _bracket_ends, BRACKETS, seed)),
            (QUOTES, _spoil(statements, _string_ends, QUOTES, seed)),
        )
        for number, pair in enumerate(pairs)
    ]


def _item(benchmark: str, number: int, pair: Pair, seed: int) -> dict[str, Any]:
    choices = [pair.right, pair.wrong]
    random.Random(f"{seed}/{benchmark}/{number}").shuffle(choices)
    return {
        "benchmark": benchmark,
        "item_id": f"{benchmark}-{number:04d}",
        "form": "multiple_choice",
        "prompt": "",
        "choices": choices,
        "answer": choices.index(pair.right),
        "fault": list(pair.fault),
    }


def word_pairs(sources: Iterable[str], seed: int) -> list[Pair]:
    """A pair for each sentence of docstrings and comments that has two words to exchange."""
    pairs = []
    for sentence in dict.fromkeys(s for source in sources for s in sentences(source)):
        words = sentence.split(" ")
        plain = [place for place, word in enumerate(words) if _PLAIN.fullmatch(word)]
        places = [
            (a, b) for a in plain for b in plain if b - a in DISTANCES and words[a] != words[b]
        ]
        if places:
            a, b = random.Random(f"{seed}/{sentence}").choice(places)
            fault = words[a], words[b]
            words[b], words[a] = fault
            pairs.append(Pair(sentence, " ".join(words), fault))
    return pairs


def sentences(source: str) -> Iterator[str]:
    """Sentences of the docstrings and comments of a source file, each on one line."""
    for paragraph in _paragraphs(source):
        for sentence in re.split(r"(?<=\.) (?=[A-Z])", " ".join(paragraph.split())):
            words = sentence.split(" ")
            plain = sum(bool(_PLAIN.fullmatch(word)) for word in words)
            if (
                len(words) in SENTENCE_WORDS
                and plain >= LEAST_PLAIN * len(words)
                and re.fullmatch(r"[A-Z][^>|]*\.", sentence)
            ):
                yield sentence


def _paragraphs(source: str) -> Iterator[str]:
    """Paragraphs of strings in triple quotes, and blocks of whole lines of comments."""
    block: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        own_line = token.type == tokenize.COMMENT and token.line.lstrip().startswith("#")
        if own_line:
            block.append(token.string.lstrip("#"))
        elif block and token.type != tokenize.NL:
            yield from "\n".join(block).split("\n\n")
            block = []
        if token.type == tokenize.STRING and (match := _TRIPLE.fullmatch(token.string)):
            yield from re.split(r"\n\s*\n", match[2])


@dataclass(frozen=True)
class _Statement:
    """The text of a logical line, and its tokens as (type, text, offset)."""

    text: str
    tokens: tuple[tuple[int, str, int], ...]


def _statements(source: str) -> Iterator[_Statement]:
    """Logical lines of a source file without comments, docstrings and f-strings."""
    lines = source.splitlines(keepends=True)
    line: list[tokenize.TokenInfo] = []
    commented = False
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NEWLINE:
            plain = not commented and not any(map(_is_special_string, line))
            if plain and len(line) in STATEMENT_TOKENS:
                yield _statement(lines, line)
            line, commented = [], False
        elif token.type == tokenize.COMMENT:
            commented = bool(line)
        elif token.type not in _LAYOUT:
            line.append(token)


def _is_special_string(token: tokenize.TokenInfo) -> bool:
    """Whether it is a string in triple quotes, or (since Python 3.12) a part of an f-string."""
    if token.type == tokenize.STRING:
        return bool(_TRIPLE.fullmatch(token.string))
    return tokenize.tok_name[token.type].startswith(("FSTRING", "TSTRING"))


def _statement(lines: Sequence[str], tokens: Sequence[tokenize.TokenInfo]) -> _Statement:
    first, left = tokens[0].start

    def offset(place: tuple[int, int]) -> int:
        return sum(map(len, lines[first - 1 : place[0] - 1])) + place[1] - left

    last = tokens[-1].end
    text = "".join(lines[first - 1 : last[0]])[left : left + offset(last)]
    return _Statement(text, tuple((t.type, t.string, offset(t.start)) for t in tokens))


def _bracket_ends(statement: _Statement) -> Iterator[tuple[int, str]]:
    """(offset, wrong bracket) of each closing bracket that encloses enough, in each wrong way."""
    opened: list[int] = []
    for place, (kind, text, offset) in enumerate(statement.tokens):
        if kind != tokenize.OP:
            continue
        if text in _CLOSING:
            opened.append(place)
        elif text in _CLOSING.values() and place - opened.pop() > ENCLOSED:
            yield from ((offset, wrong) for wrong in _CLOSING.values() if wrong != text)


def _string_ends(statement: _Statement) -> Iterator[tuple[int, str]]:
    """(offset, wrong quote) of the end of each string whose text has no such quote."""
    for kind, text, offset in statement.tokens:
        if kind == tokenize.STRING and len(text) >= LEAST_STRING and text[-1] in _OTHER_QUOTE:
            wrong = _OTHER_QUOTE[text[-1]]
            if wrong not in statement.text:
                yield offset + len(text) - 1, wrong


def _spoil(
    statements: Iterable[_Statement],
    ends: Callable[[_Statement], Iterable[tuple[int, str]]],
    name: str,
    seed: int,
) -> list[Pair]:
    """A pair for each statement in which something closes; of the kind least frequent in code."""
    pairs = []
    for text, candidates in {s.text: tuple(ends(s)) for s in statements}.items():
        if candidates:
            rng = random.Random(f"{seed}/{name}/{text}")
            rare = [(at, wrong) for at, wrong in candidates if text[at] != ")"]
            at, wrong = rng.choice(rare or candidates)
            pairs.append(Pair(text, text[:at] + wrong + text[at + 1 :], (text[at], wrong)))
    return pairs


def balance(items: Sequence[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """Of `brackets` and `quotes` as many pairs of each fault as of its reverse.

    Of the more frequent one a seeded draw is kept. Other items stay; so does the order.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for item in items:
        if item["benchmark"] in (BRACKETS, QUOTES):
            groups.setdefault(tuple(item["fault"]), []).append(item["item_id"])
    dropped: set[str] = set()
    for (right, wrong), group in groups.items():
        excess = max(0, len(group) - len(groups.get((wrong, right), ())))
        dropped |= {*random.Random(f"{seed}/{right}{wrong}").sample(group, excess)}
    return [item for item in items if item["item_id"] not in dropped]
