"""Bad words, by lists for each language that enter as a snapshot, such as LDNOOBW.

The rule is C4's (Raffel et al. 2020; mC4, Xue et al. 2021): a listed word or phrase, in any case,
between characters that are not part of a word; in Japanese, Thai and Chinese anywhere. A document
is held against the list of its own language alone. datatrove takes the exceptions for Japanese and
Chinese out of every list; here lists are used unchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError
from stages.engine.reading.row import Damage
from stages.engine.reading.rows import decompress_stream
from stages.engine.sources import source_files
from stages.engine.strict_json import parse_json
from stages.signals.outputs import Signal, count

if TYPE_CHECKING:
    from stages.engine import Input

WITHOUT_SPACES = ("ja", "th", "zh")
"""Languages in which a word of the list counts anywhere, also inside other words."""

BAD_WORD_SOURCE = "Raffel et al. 2020 (C4), Xue et al. 2021 (mC4); lists are given"
BAD_WORD_SIGNALS: tuple[Signal, ...] = (
    count(
        "bad_words",
        "occurrences",
        BAD_WORD_SOURCE,
        "Words and phrases of the list of its language; null where there is no list.",
        null=True,
    ),
    Signal("bad_word_share", "float64?", "share", BAD_WORD_SOURCE, "The same over words."),
)
"""Signals of runs with word lists."""

MOST_BYTES = 1 << 24
"""Bytes of the largest file of words."""

_FILE = "bad-words.json"
_WORD = re.compile(r"\w+")
_LANGUAGE = re.compile(r"[a-z]{2,3}")


class WordList:
    """The words and phrases of one language."""

    def __init__(self, terms: Sequence[str], *, anywhere: bool) -> None:
        self._anywhere = anywhere
        self._others: list[str] = []
        self._by_first: dict[str, list[str]] = {}
        for term in sorted(set(terms)):
            first = None if anywhere else _WORD.match(term)
            if first is None:
                self._others.append(term)
            else:
                self._by_first.setdefault(first[0], []).append(term)

    def occurrences(self, text: str) -> int:
        """How often words of the list occur in `text`, from left to right, the longest first."""
        lowered = text.lower()
        # Most texts share no first word with the list, and then hold none of its phrases.
        words = self._by_first.keys() & set(_WORD.findall(lowered)) if self._by_first else ()
        possible = [*self._others, *(term for word in words for term in self._by_first[word])]
        there = tuple(sorted(term for term in possible if term in lowered))
        if not there:
            return 0
        return sum(1 for _ in _compile_terms(there, self._anywhere).finditer(lowered))


@lru_cache(maxsize=4096)
def _compile_terms(terms: tuple[str, ...], anywhere: bool) -> re.Pattern[str]:
    longest_first = sorted(terms, key=lambda term: (-len(term), term))
    either = "|".join(map(re.escape, longest_first))
    return re.compile(either if anywhere else rf"(?<!\w)(?:{either})(?!\w)")


def measure_bad_words(
    texts: Sequence[str], languages: Sequence[str | None], words: Sequence[int], folder: Path
) -> dict[str, list[Any]]:
    """The columns of `BAD_WORD_SIGNALS`, by the lists that `pack_words` left in `folder`.

    `languages` are codes, of which the part before `-` or `_` counts; `words` is how many words
    each text has.
    """
    lists = load_words(folder)
    counts: list[int | None] = []
    for text, language in zip(texts, languages, strict=True):
        code = re.split("[-_]", language, maxsplit=1)[0].lower() if language else ""
        counts.append(lists[code].occurrences(text) if code in lists else None)
    shares = [
        None if occurrences is None else occurrences / max(int(total), 1)
        for occurrences, total in zip(counts, words, strict=True)
    ]
    return {"bad_words": counts, "bad_word_share": shares}


def pack_words(snapshots: Sequence[Input], folder: Path) -> None:
    """Read the lists of all snapshots into `folder` for `load_words`.

    A file is named by its language (`en`, `de.txt`), a phrase a line, or is JSON lines of `lang`
    and `term`. InputError for a file that is neither.
    """
    lists: dict[str, set[str]] = {}
    for snapshot in snapshots:
        for file in source_files(snapshot):
            for language, term in _read_terms(file):
                lists.setdefault(language, set()).add(term)
    folder.mkdir(parents=True, exist_ok=True)
    terms_by_language = {language: sorted(terms) for language, terms in sorted(lists.items())}
    (folder / _FILE).write_text(json.dumps(terms_by_language, ensure_ascii=False), encoding="utf-8")


@lru_cache(maxsize=1)
def load_words(folder: Path) -> dict[str, WordList]:
    """What `pack_words` left there, by language; once in each process."""
    terms_by_language = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    return {
        language: WordList(terms, anywhere=language in WITHOUT_SPACES)
        for language, terms in terms_by_language.items()
    }


def _read_terms(file: Any) -> Iterator[tuple[str, str]]:
    """Language and phrase of each entry of a file."""
    name = file.name.rsplit("/", 1)[-1].lower().split(".")[0]
    for number, line in enumerate(_read_lines(file), 1):
        language, term = name, line
        if line.startswith("{"):
            language, term = _parse_row(line, f"{file.name}:{number}")
        if not _LANGUAGE.fullmatch(language):
            raise InputError(
                f"'{language}' is no code of a language",
                where=f"signals.word_lists: {file.name}",
                hint="name a list by its language (`en`), or give JSON lines of lang and term",
            )
        if term.strip():
            yield language, term.strip().lower()


def _parse_row(line: str, where: str) -> tuple[str, str]:
    try:
        row = parse_json(line)
        return str(row["lang"]), str(row["term"])
    except (ValueError, KeyError, TypeError):
        raise InputError(
            "not a row of `lang` and `term`", where=f"signals.word_lists: {where}"
        ) from None


def _read_lines(file: Any) -> list[str]:
    content = b""
    try:
        with file.open() as stream:
            for chunk in decompress_stream(stream):
                content += chunk
                if len(content) > MOST_BYTES:
                    raise InputError(
                        f"a list of words of more than {MOST_BYTES >> 20} MiB",
                        where=f"signals.word_lists: {file.name}",
                    )
    except Damage as damage:
        raise InputError(
            f"cannot be read: {damage.detail}", where=f"signals.word_lists: {file.name}"
        ) from None
    lines = content.decode("utf-8", "replace").lstrip("\ufeff").split("\n")
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]
