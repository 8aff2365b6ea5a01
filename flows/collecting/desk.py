"""Who judges which prompt now: claims of windows, judgements that are kept, what is taken back.

A prompt goes to as many people as it needs: two for a share of prompts, chosen by a hash, else one.
While a window shows a prompt, that window holds a claim, so that two people have different ones; a
claim ends with the judgement, when the window closes, or after half an hour. What somebody sends
after that is kept all the same: work is never thrown away. One person judges a prompt once, in
however many windows.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from artifacts_schema.identity import canonical_sha256
from flows.collecting.collection import Question
from flows.collecting.judgements import Judgement, Judgements, Verdict, person_key
from flows.collecting.lines import DurableLines
from flows.collecting.outcome import Agreement, measure_agreement

CLAIM_SECONDS = 1800.0


class Conflict(Exception):
    """What a window sends does not go with what is known already; the text says why."""


@dataclass(frozen=True)
class _Claim:
    prompt: str
    who: str
    """Without case."""
    until: float
    """By the monotonic clock."""


@dataclass(frozen=True)
class View:
    """A question in the order in which a person sees its answers."""

    question: Question
    order: tuple[int, ...]
    ranks: tuple[int, ...] = ()
    """In that order: what was said before it was taken back."""


class Desk:
    """Hands prompts out and takes judgements in; safe to call from several threads."""

    def __init__(
        self,
        questions: Mapping[str, Question],
        lines: DurableLines,
        *,
        twice: float,
        seed: int = 0,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.questions, self.judgements = questions, Judgements(lines.rows)
        self._lines, self._seed, self._clock, self._now = lines, seed, clock, now
        self._claims: dict[str, _Claim] = {}
        self._lock = threading.Lock()
        limit = int(twice * 2**64)
        self._twice = {one for one in questions if _number(seed, "twice", one) < limit}

    @property
    def size(self) -> int:
        """Records so far."""
        return len(self._lines.rows)

    def agreement(self) -> Agreement:
        """Of people with each other, over what is known now."""
        with self._lock:
            return measure_agreement(self.questions, self.judgements)

    def needed(self, prompt: str) -> int:
        """How many people a prompt goes to."""
        return 2 if prompt in self._twice else 1

    def next(self, who: str, window: str) -> View | None:
        """The prompt that a window is to show, claimed for it; None where nothing is left."""
        with self._lock:
            claim = self._live_claims().get(window)
            if (
                claim is not None
                and claim.who == person_key(who)
                and not self._has_judged(who, claim.prompt)
            ):
                return self._claim(window, who, claim.prompt)
            self._claims.pop(window, None)
            prompt = self._first_open(who)
            return None if prompt is None else self._claim(window, who, prompt)

    def release(self, window: str) -> None:
        """A window is closed."""
        with self._lock:
            self._claims.pop(window, None)

    def judge(
        self,
        who: str,
        window: str,
        *,
        id: str,
        prompt: str,
        verdict: Verdict,
        ranks: Sequence[int] = (),
    ) -> None:
        """Keep a judgement; it is on disk when this returns. `ranks` are in the order shown.

        Conflict for an unknown prompt, ranks that are not of its answers, an id that another
        judgement has, and where this person has judged the prompt. StoreError where it is not kept.
        """
        with self._lock:
            who = self.judgements.spelling(who)
            question = self.questions.get(prompt)
            if question is None:
                raise Conflict("this prompt is not in the collection")
            order = self._order(question, who)
            by_answer = dict(zip(order, _dense(ranks), strict=False))
            if (verdict == "ranked") != bool(ranks) or len(ranks) not in (0, len(order)):
                raise Conflict(f"the prompt has {len(order)} answers, ranked are {len(ranks)}")
            judgement = Judgement(
                id,
                prompt,
                who,
                self._now().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                verdict,
                tuple(by_answer[number] for number in range(len(by_answer))),
                order,
            )
            if (kept := self.judgements.by_id.get(id)) is not None:
                if _content(kept) != _content(judgement):
                    raise Conflict(
                        "this prompt was saved with another ranking; undo it to change it"
                    )
                return  # The window did not hear that it was kept.
            if self._has_judged(who, prompt):
                raise Conflict("you have judged this prompt already, in another window")
            self._keep(judgement.as_row())
            self._claims.pop(window, None)

    def undo(self, who: str, window: str, *, id: str, undoes: str | None) -> View | None:
        """Take a judgement back, by default this person's last, and show its prompt again.

        None where there is none. Conflict for a judgement of somebody else, or one taken back.
        """
        with self._lock:
            who = self.judgements.spelling(who)
            if undoes is None:
                last = self.judgements.last_by(who)
                if last is None:
                    return None
                undoes = last.id
            judgement = self.judgements.by_id.get(undoes)
            if judgement is None or person_key(judgement.who) != person_key(who):
                raise Conflict("this is no judgement of yours")
            if self.judgements.undone.get(undoes, id) != id:
                raise Conflict("it was taken back already")
            if undoes not in self.judgements.undone:
                when = self._now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
                self._keep({"id": id, "undoes": undoes, "who": who, "when": when})
            view = self._claim(window, who, judgement.prompt)
            by_place = (judgement.ranks[number] for number in view.order if judgement.ranks)
            return View(view.question, view.order, tuple(by_place))

    def progress(self, who: str) -> dict[str, int]:
        """Prompts of the collection, those that need nobody any more, and this person's own."""
        with self._lock:
            who = self.judgements.spelling(who)
            own = [one for prompt in self.questions if (one := self.judgements.by(who, prompt))]
            missing = [max(0, self._missing(prompt)) for prompt in self.questions]
            return {
                "prompts": len(self.questions),
                "done": sum(1 for one in missing if not one),
                "missing": sum(missing),
                "own": sum(one.counts for one in own),
                "skipped": sum(not one.counts for one in own),
            }

    def _keep(self, row: Mapping[str, Any]) -> None:
        self._lines.append(row)
        self.judgements.add(row)

    def _missing(self, prompt: str) -> int:
        return self.needed(prompt) - len(self.judgements.on(prompt))

    def _has_judged(self, who: str, prompt: str) -> bool:
        return self.judgements.by(who, prompt) is not None

    def _first_open(self, who: str) -> str | None:
        """The first prompt that needs one person more, and this one."""
        claims = self._live_claims().values()
        claimed = Counter(one.prompt for one in claims)
        own = {one.prompt for one in claims if one.who == person_key(who)}
        return next(
            (
                prompt
                for prompt in self.questions
                if self._missing(prompt) > claimed[prompt]
                and prompt not in own
                and not self._has_judged(who, prompt)
            ),
            None,
        )

    def _live_claims(self) -> dict[str, _Claim]:
        now = self._clock()
        self._claims = {window: one for window, one in self._claims.items() if one.until > now}
        return self._claims

    def _claim(self, window: str, who: str, prompt: str) -> View:
        self._claims[window] = _Claim(prompt, person_key(who), self._clock() + CLAIM_SECONDS)
        question = self.questions[prompt]
        return View(question, self._order(question, who))

    def _order(self, question: Question, who: str) -> tuple[int, ...]:
        """A permutation of the answers that follows from seed, prompt and person."""
        numbers = list(range(len(question.texts)))
        draws = random.Random(_number(self._seed, question.id, person_key(who)))
        draws.shuffle(numbers)
        return tuple(numbers)


def _number(*parts: object) -> int:
    return int(canonical_sha256([str(part) for part in parts])[:16], 16)


def _dense(ranks: Sequence[int]) -> list[int]:
    """Ranks without gaps: 1 for the best."""
    places = {rank: place for place, rank in enumerate(sorted(set(ranks)), start=1)}
    return [places[rank] for rank in ranks]


def _content(judgement: Judgement) -> tuple[object, ...]:
    return judgement.prompt, judgement.who, judgement.verdict, judgement.ranks
