"""Two models beside each other: which stands left, what people choose, and how often each wins.

For each question the sides are drawn anew. A blind page learns which model stood where when the
choice is made. Choices are lines of JSON in a file that only grows.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from artifacts_schema.errors import IngotError

Choice = Literal["left", "right", "tie"]
SIDES = ("left", "right")
_MOST_PENDING = 1000
"""Questions without a choice that are remembered."""


class Candidate(NamedTuple):
    """A model by its name in the store and the key of its artifact, which never moves."""

    name: str
    key: str


class Unknown(Exception):
    """No question of this number waits for a choice."""


class Summary(NamedTuple):
    """Choices between two models in a file."""

    first_wins: int
    second_wins: int
    ties: int
    interval: tuple[float, float] | None
    """Wilson's 95 % interval of the first one's share of the wins; None without a win."""

    def sentence(self, first: str, second: str) -> str:
        """For people."""
        wins = self.first_wins + self.second_wins
        text = f"{first} {self.first_wins}, {second} {self.second_wins}, ties {self.ties}"
        if self.interval is None:
            return text
        low, high = self.interval
        share = self.first_wins / wins
        return f"{text}; {first} won {share:.3f} [{low:.3f}, {high:.3f}] of {wins} (Wilson, 95 %)"


class Comparison:
    """Of two models; `file` gets the choices. IngotError if it cannot be written or read."""

    def __init__(
        self, candidates: tuple[Candidate, Candidate], file: Path, *, blind: bool, who: str
    ) -> None:
        self.candidates, self.file, self.blind, self.who = candidates, file, blind, who
        self._pending: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._writing = threading.Lock()
        self._append("")
        self.summary()

    def draw(self) -> str:
        """The number of a new question, its sides drawn."""
        number = secrets.token_hex(8)
        left = secrets.randbelow(2)
        self._pending[number] = (left, 1 - left)
        if len(self._pending) > _MOST_PENDING:
            self._pending.popitem(last=False)
        return number

    def names(self, number: str) -> tuple[str, str]:
        """Of the models on the left and on the right; Unknown without such a question."""
        left, right = self._sides(number)
        return self.candidates[left].name, self.candidates[right].name

    def resolve(self, alias: str) -> str | None:
        """The name of the model that `NUMBER:left` or `NUMBER:right` stands for; or None."""
        number, _, side = alias.partition(":")
        if side not in SIDES or number not in self._pending:
            return None
        return self.names(number)[SIDES.index(side)]

    def choose(self, number: str, choice: Choice, who: str) -> tuple[str, str]:
        """Write a choice down; returns the names of left and right. Unknown for a second choice."""
        left, right = (self.candidates[one] for one in self._sides(number))
        line = {
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "who": who or self.who,
            "left": left.name, "left_key": left.key,
            "right": right.name, "right_key": right.key,
            "choice": choice, "blind": self.blind,
        }  # fmt: skip
        self._append(json.dumps(line, ensure_ascii=False) + "\n")
        del self._pending[number]
        return left.name, right.name

    def summary(self) -> Summary:
        """Of all choices between these two in the file, by their keys."""
        from stages.scoring.uncertainty import wilson

        first, second = (one.key for one in self.candidates)
        wins, ties = {first: 0, second: 0}, 0
        for line in self._lines():
            if {line["left_key"], line["right_key"]} != {first, second}:
                continue
            if line["choice"] == "tie":
                ties += 1
            else:
                wins[line[f"{line['choice']}_key"]] += 1
        count = sum(wins.values())
        return Summary(
            wins[first], wins[second], ties, wilson(wins[first], count) if count else None
        )

    def _sides(self, number: str) -> tuple[int, int]:
        try:
            return self._pending[number]
        except KeyError:
            raise Unknown from None

    def _lines(self) -> Iterator[dict[str, Any]]:
        for number, text in enumerate(self.file.read_text(encoding="utf-8").splitlines(), 1):
            try:
                line = json.loads(text)
                is_choice = line["choice"] in get_args(Choice)
                is_choice = is_choice and isinstance(line["left_key"] + line["right_key"], str)
            except (ValueError, KeyError, TypeError):
                is_choice = False
            if not is_choice:
                raise IngotError(
                    f"line {number} is no choice", where=str(self.file), hint="name another file"
                )
            yield line

    def _append(self, text: str) -> None:
        """One write of whole lines, on disk when this returns, or no byte of it there."""
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
            number = os.open(self.file, flags, 0o600)
            with self._writing, os.fdopen(number, "ab", buffering=0) as file:
                end, raw = file.seek(0, os.SEEK_END), text.encode()
                try:
                    if file.write(raw) != len(raw):
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    os.fsync(file.fileno())
                except OSError:
                    file.truncate(end)
                    raise
        except OSError as error:
            raise IngotError(
                f"choices cannot be written: {error.strerror}", where=str(self.file)
            ) from None
