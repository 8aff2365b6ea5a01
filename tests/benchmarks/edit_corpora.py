"""Planted corpora by seed for `recall_by_edit`: every kind and strength of edit, and clean twins.

Texts are excerpts of the real texts of `../shared/data` in several scripts, each used once. A side
has half of the works, of the benchmarks' items, and of the labelled values (splits.py).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages.decontaminate.shingles import plain_words
from stages.signals.credentials import find_secrets
from stages.signals.personal_data import find_personal_data
from tests.benchmarks.decontamination import BENCHMARKS, length_class, read_items
from tests.benchmarks.labelled import rows_of
from tests.benchmarks.redaction_cases import KINDS, PERSONAL, SPLIT, Case, make_cases
from tests.benchmarks.splits import Side, seed_side, select, side
from tests.benchmarks.text_edits import EDITS, split_sentences, translate_digits

LATIN = (
    "en-textbooks",
    "en-textbooks-nc",
    "en-docs",
    "en-fiction",
    "en-classics",
    "de",
    "es",
    "fr",
)
PASSAGES = "parallel-xquad"
OTHERS = ("ar", "hi", "ja", "ru", "zh", PASSAGES)
SHARE_OF_LATIN = 0.5
EXCERPT = 1_500
"""Characters of an excerpt, about; a third of it in the scripts that write a word in one letter."""
LEVELS = ("light", "medium", "heavy")
NUMBERED = ("numbers changed", "digits translated")
"""Kinds that only texts with numbers can have."""
_NUMBER = re.compile(r"[0-9]+")
_FEWEST_NUMBERS = 3


@dataclass(frozen=True)
class Planted:
    """A text in which something was planted: by which edit, how strongly, and the clean twin.

    `original` is what the edit began with: a document, an item or a value, by stage.
    """

    kind: str
    level: str
    original: str
    text: str
    clean: str = ""
    item: str = ""


class Excerpts:
    """Excerpts of the real texts of a side, each given away once, in an order by seed."""

    def __init__(self, data: Path, seed: int, without: str = "") -> None:
        self._rng = random.Random(f"excerpts {seed}")
        self._pools = [
            [
                piece
                for name in names
                if name != without
                for piece in self._cut(data, name, seed_side(seed))
            ]
            for names in (LATIN, OTHERS)
        ]
        for pool in self._pools:
            self._rng.shuffle(pool)

    def _cut(self, data: Path, name: str, wanted: Side) -> Iterator[str]:
        for row in select(rows_of(data, f"text/{name}"), wanted):
            if "\ufffd" in row["text"] or "ltrc" in row["source"]:  # An old font, ill decoded.
                continue
            size = EXCERPT // 3 if row["lang"] in ("ja", "zh") else EXCERPT
            piece: list[str] = []
            for line in row["text"].split("\n"):
                piece.append(line)
                if sum(map(len, piece)) > size:
                    if is_usual(text := "\n".join(piece).strip()):
                        yield text
                    piece = []

    def take(self, fits: Callable[[str], bool] = lambda text: True) -> str:
        """The next excerpt that fits; those before it that do not are kept for later."""
        pool = self._pools[self._rng.random() >= SHARE_OF_LATIN]
        for candidates in (pool, *self._pools):
            for place in range(len(candidates) - 1, -1, -1):
                if fits(candidates[place]):
                    return candidates.pop(place)
        raise SystemExit("too few texts for so many documents")


def has_numbers(text: str) -> bool:
    """Whether a text can have its numbers changed."""
    return len(_NUMBER.findall(text)) >= _FEWEST_NUMBERS


def is_usual(text: str) -> bool:
    """Whether a text has some sentences and is no list of one line."""
    return 200 < len(text) < 3 * EXCERPT and len(split_sentences(text)) >= 3


def halves(text: str) -> tuple[str, str]:
    """A text in two, parted at the end of the line or sentence after its middle."""
    middle = len(text) // 2
    end = text.find("\n", middle)
    if end < 0 or end > 0.8 * len(text):
        pieces = split_sentences(text)
        end = len("".join(pieces[: (len(pieces) + 1) // 2]))
    return text[:end].strip(), text[end:].strip()


def _each(count: int) -> Iterator[tuple[str, str, float]]:
    for kind, edit in EDITS.items():
        for level, strength in zip(LEVELS, edit.levels, strict=True):
            for _ in range(count):
                yield kind, level, strength


def plant_copies(data: Path, seed: int, count: int) -> list[Planted]:
    """For dedup: `count` documents of each kind and strength beside their edited copies."""
    rng, excerpts = random.Random(f"copies {seed}"), Excerpts(data, seed)
    planted = []
    for kind, level, strength in _each(count):
        text = excerpts.take(has_numbers if kind in NUMBERED else lambda text: True)
        planted.append(Planted(kind, level, text, EDITS[kind].change(text, rng, strength)))
    return planted


@dataclass(frozen=True)
class PlantedItems:
    """Pages with planted items, and the rows of all benchmarks."""

    pages: list[Planted]
    rows: list[dict[str, Any]]


def plant_items(
    data: Path, seed: int, count: int, benchmarks: Sequence[str] = BENCHMARKS
) -> PlantedItems:
    """For decontamination: items of 8 words or more, edited, each in a page of prose of its own.

    Half of the items are of the benchmarks, as prompt and answer, and half are passages of XQuAD in
    the languages of the side. The clean twin of a page is its prose, edited in the same way.
    """
    rng, wanted = random.Random(f"items {seed}"), seed_side(seed)
    excerpts = Excerpts(data, seed, without=PASSAGES)
    english = [
        ({**item.row, "benchmark": item.benchmark}, f"{item.prompt} {item.answer}".strip())
        for item in read_items(data, benchmarks)
    ]
    foreign = [_passage(row) for row in select(rows_of(data, f"text/{PASSAGES}"), wanted)]
    ours = [
        (row, text)
        for row, text in english
        if side(f"{row['benchmark']}:{row['item_id']}") == wanted
        and length_class(text) in ("8-12", "13+")
    ]
    foreign = [(row, text) for row, text in foreign if length_class(text) == "13+"]
    pages = []
    for kind, level, strength in _each(count):
        pool = rng.choice((ours, foreign))
        row, text = rng.choice(pool)
        while kind in NUMBERED and not _NUMBER.search(text):
            row, text = rng.choice(pool)
        change = EDITS[kind].change
        before, after = halves(excerpts.take())
        changed = change(text, rng, strength)
        pages.append(
            Planted(
                kind,
                level,
                original=text,
                text=f"{before}\n\n{changed}\n\n{after}",
                clean=change(f"{before}\n\n{after}", rng, strength),
                item=f"{row['benchmark']}/{row['item_id']}",
            )
        )
    rows = [{**row, "metadata": None} for row, _ in (*english, *foreign)]
    return PlantedItems(pages, [{k: v for k, v in row.items() if v is not None} for row in rows])


def _passage(row: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The first sentences of a passage, at least 20 words of them, as an item without choices."""
    text = ""
    for sentence in split_sentences(row["text"]):
        text += sentence
        if len(plain_words(text)) >= 20:
            break
    name = f"xquad-{row['lang']}"
    item = {"benchmark": name, "item_id": row["id"], "form": "text", "prompt": text.strip()}
    return item, text.strip()


_SLOT = "\ue000"
"""Stands for a value while the text around it is edited."""
PERSONAL_SHARE = 0.5


def plant_values(data: Path, seed: int, count: int) -> list[Planted]:
    """For redaction: labelled sentences with a value, in edited prose that holds none.

    An edit never breaks a value, for then there is none; what a reader still takes for the value is
    edited too: digits of numbers translated, markup around it, capitals in an address. The clean
    twin holds a hard negative instead, edited in the same way.
    """
    rng, excerpts = random.Random(f"values {seed}"), Excerpts(data, seed)
    cases = {kind: make_cases(kind, seed, count=60) for kind in KINDS}
    planted = []
    for kind, level, strength in _each(count):
        label = _label(kind, rng)
        before, after = halves(excerpts.take(_holds_nothing))
        case, looks_alike = (
            rng.choice([one for one in cases[label] if bool(one.values) == wanted])
            for wanted in (True, False)
        )
        text, value = _edited_case(case, kind, before, after, rng, strength)
        clean, _ = _edited_case(looks_alike, kind, before, after, rng, strength)
        planted.append(Planted(kind, level, value, text, clean, item=label))
    return planted


def _label(kind: str, rng: random.Random) -> str:
    if kind == "digits translated":
        return rng.choice(("phone", "card"))
    if rng.random() < PERSONAL_SHARE:
        return rng.choice(PERSONAL)
    return rng.choice([label for label in KINDS if label not in PERSONAL and label != SPLIT])


def _holds_nothing(text: str) -> bool:
    return not find_personal_data(text) and not find_secrets(text)


def _edited_case(
    case: Case, kind: str, before: str, after: str, rng: random.Random, strength: float
) -> tuple[str, str]:
    """The edited page, and the value as it reads then (of a hard negative its whole sentence)."""
    (start, end), *_ = case.values or ((0, len(case.text)),)
    value = case.text[start:end]
    sentence = f"{case.text[:start]}{_SLOT}{case.text[end:]}"
    if kind == "template page":  # Another page of the template, which has a value of its own.
        before, after = EDITS[kind].change(before, rng, strength), ""
    # The value stands in the last third, so that no prefix that is cut holds it.
    page = f"{before}\n\n{sentence}\n\n{after[: len(before) // 3]}"
    while kind != "template page":
        changed = EDITS[kind].change(page, rng, strength)
        if changed.count(_SLOT) == 1:
            page = changed
            break
    value, written = _edited_value(value, case.kind, kind, rng)
    return page.replace(_SLOT, written), value


_WITHIN = ("url_password", "azure_storage_key", "assigned")
"""Kinds whose value is a part of an address, a line of settings or a string: not set off alone."""
_AROUND_VALUE = (("<b>", "</b>"), ("<td>", "</td>"), ("**", "**"), ("`", "`"), ("[", "](#)"))


def _edited_value(value: str, label: str, kind: str, rng: random.Random) -> tuple[str, str]:
    """The value as it reads after an edit, and with what is written around it."""
    if kind == "digits translated":
        value = translate_digits(value, rng, 1)
    elif kind == "casing" and label == "email":
        value = rng.choice((str.upper, str.lower, str.title))(value)
    elif kind == "markup" and label not in _WITHIN and rng.random() < 0.5:
        before, after = rng.choice(_AROUND_VALUE)
        return value, f"{before}{value}{after}"
    return value, value
