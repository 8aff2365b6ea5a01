"""What people said of the answers: the record of a judgement, and what holds after all records.

Records are only added. One that takes a judgement back names it (`undoes`); the judgement stays in
the file and no longer holds.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from artifacts_schema.errors import InputError

Verdict = Literal["ranked", "neither", "skipped"]
"""`neither`: no answer is acceptable. `skipped`: this person cannot or does not want to say."""


@dataclass(frozen=True)
class Judgement:
    """What a person said of a question's answers, in the order of `Question.texts`."""

    id: str
    """Chosen by the window that sent it: sent twice, it counts once."""
    prompt: str
    who: str
    when: str
    """UTC, ISO 8601, by the server's clock."""
    verdict: Verdict
    ranks: tuple[int, ...] = ()
    """Of each answer, 1 the best; equal ranks are a tie. Empty unless `ranked`."""
    order: tuple[int, ...] = ()
    """Answers in the order in which they were on the page."""

    @property
    def counts(self) -> bool:
        """Whether it says something of the answers."""
        return self.verdict != "skipped"

    def better(self) -> Iterator[tuple[int, int]]:
        """(better, worse) of all answers that are not tied."""
        for i, rank in enumerate(self.ranks):
            for j, other in enumerate(self.ranks):
                if rank < other:
                    yield i, j

    def as_row(self) -> dict[str, Any]:
        """As it is kept."""
        return {**asdict(self), "ranks": list(self.ranks), "order": list(self.order)}


def tidy_name(who: str) -> str:
    """A person's name as it is kept: one form of Unicode, no spaces around or doubled."""
    return " ".join(unicodedata.normalize("NFC", who).split())


def person_key(who: str) -> str:
    """What tells people apart: their tidy names without case."""
    return tidy_name(who).casefold()


class Judgements:
    """The judgements that hold, by question and person; names differ by more than their case."""

    def __init__(self, rows: Iterable[Mapping[str, Any]] = ()) -> None:
        self.by_id: dict[str, Judgement] = {}
        """Also those that were taken back."""
        self.undone: dict[str, str] = {}
        """Judgement that was taken back → the record that says so."""
        self._holding: dict[str, dict[str, Judgement]] = {}
        self._spellings: dict[str, str] = {}
        for number, row in enumerate(rows, start=1):
            try:
                self.add(row)
            except (KeyError, TypeError):
                raise InputError(f"record {number} is no judgement", where="judgements") from None

    def add(self, row: Mapping[str, Any]) -> None:
        """Take a record in."""
        if "undoes" in row:
            judgement = self.by_id[row["undoes"]]
            self.undone[judgement.id] = row["id"]
            self._by_person(judgement.prompt).pop(person_key(judgement.who), None)
            return
        fields = {**row, "ranks": tuple(row["ranks"]), "order": tuple(row["order"])}
        judgement = Judgement(**fields)
        self.by_id[judgement.id] = judgement
        self._by_person(judgement.prompt)[person_key(judgement.who)] = judgement
        self._spellings.setdefault(person_key(judgement.who), judgement.who)

    def _by_person(self, prompt: str) -> dict[str, Judgement]:
        return self._holding.setdefault(prompt, {})

    def spelling(self, who: str) -> str:
        """The name as this person wrote it first."""
        return self._spellings.get(person_key(who), tidy_name(who))

    def on(self, prompt: str) -> list[Judgement]:
        """Those of a question that say something of its answers, one a person."""
        return [one for one in self._holding.get(prompt, {}).values() if one.counts]

    def by(self, who: str, prompt: str) -> Judgement | None:
        """What a person said of a question, if that holds."""
        return self._holding.get(prompt, {}).get(person_key(who))

    def last_by(self, who: str) -> Judgement | None:
        """What a person said last, of what holds."""
        own = (one for one in self.by_id.values() if person_key(one.who) == person_key(who))
        return next((one for one in reversed(list(own)) if one.id not in self.undone), None)

    def holding(self) -> Iterator[Judgement]:
        """All that hold, skipped ones too."""
        for by_person in self._holding.values():
            yield from by_person.values()
