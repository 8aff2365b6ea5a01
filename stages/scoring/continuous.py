"""Texts that a model writes together and that come and go between its passes.

Iteration-level scheduling (Orca: Yu et al. 2022, OSDI, section 3.1): a step reads the prompts that
came since the last one and adds a token to every text. So no text waits for the end of another
one, and each has its own sampling and limits.

A text is what `Generator.stream` has for it alone, but for rounding: see
`stages.scoring.generation`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from artifacts_schema.errors import InputError
from stages.model.cache import KeyValueCache, RowsCache
from stages.scoring.generation import Ending, Generator, Limits, Row, Sampling, drop_row

_LEAST_KNOWN = 16
"""Tokens of a prompt that an earlier text must have for its keys and values to be taken over."""


@dataclass(eq=False)
class OpenText:
    """A text of a batch. It has left the batch once it has an `ending` or a `failure`."""

    row: Row
    sampling: Sampling
    limits: Limits
    failure: InputError | None = None

    @property
    def text(self) -> str:
        """What was written so far, as in `Written`."""
        return self.row.text

    @property
    def ending(self) -> Ending | None:
        """Why it ended; None while it is written."""
        return self.row.ending

    @property
    def tokens(self) -> int:
        """Tokens that were written, without a stop id."""
        return self.row.new_tokens - (self.row.ending == "end")

    @property
    def is_open(self) -> bool:
        """Whether more is to be written."""
        return self.ending is None and self.failure is None


@dataclass(frozen=True)
class _Known:
    """A text that left the batch, with its keys and values."""

    ids: tuple[int, ...]
    cache: KeyValueCache


class ContinuousBatch:
    """At most `places` texts that `generator` writes. For one thread.

    The keys and values of the last `places` texts that left stay, as much memory again: a prompt
    that begins like one of them (the next turn of a conversation) costs its other tokens alone.
    """

    def __init__(
        self, generator: Generator, *, places: int, stop_ids: Collection[int] = ()
    ) -> None:
        if places < 1:
            raise ValueError(f"a batch of {places} texts")
        self.places = places
        self._generator, self._stop_ids = generator, frozenset(stop_ids)
        self._unread: deque[OpenText] = deque()
        self._active: list[OpenText] = []
        self._cache = RowsCache(places)
        self._known: deque[_Known] = deque(maxlen=places)

    def __len__(self) -> int:
        """Texts in the batch."""
        return len(self._unread) + len(self._active)

    def add(
        self,
        prompt: Sequence[int],
        sampling: Sampling,
        *,
        max_new_tokens: int,
        stop_texts: Sequence[str] = (),
    ) -> OpenText:
        """Put a text into a free place; ValueError for prompt or limits as `Generator` has it."""
        assert len(self) < self.places
        limits = Limits(max_new_tokens, self._stop_ids, stop_texts)
        self._generator.check([prompt], limits)
        text = OpenText(self._generator.begin(prompt, sampling, limits, 0, 0), sampling, limits)
        self._unread.append(text)
        return text

    @torch.inference_mode()
    def remove(self, text: OpenText) -> None:
        """Free the place of a text before its end."""
        if text in self._unread:
            self._unread.remove(text)
        else:
            self._leave(self._active.index(text))

    @torch.inference_mode()
    def step(self) -> None:
        """Add a token to every text; texts that end leave the batch.

        Prompts are read in the order of their arrival, as many as one pass holds: a long one keeps
        the other texts waiting for itself alone.
        """
        for text in self._taken_out():
            self._unread.appendleft(text)
        before = len(self._active)
        if before:
            rows = [text.row for text in self._active]
            self._choose(self._active, self._generator.step(rows, self._cache))
        for texts, prefix, known in self._next_prompts():
            rows = [text.row for text in texts]
            logits_BV = self._generator.read(rows, self._cache, prefix, known)
            self._active += texts
            self._choose(texts, logits_BV)
        for place in reversed(range(len(self._active))):
            if not self._active[place].is_open:
                self._leave(place)

    def _taken_out(self) -> Iterator[OpenText]:
        """Texts that have outgrown the context; they leave the batch."""
        rows = [text.row for text in self._active]
        by_row = {id(text.row): text for text in self._active}
        outgrown = self._generator.take_out(rows, self._cache)
        self._active = [by_row[id(row)] for row in rows]
        return (by_row[id(row)] for row in outgrown)

    def _next_prompts(self) -> Iterator[tuple[list[OpenText], list[int], KeyValueCache]]:
        """Texts to be read in this step, with what is known of their beginning.

        Those of which nothing is known come together.
        """
        left, new = self._generator.read_tokens, list[OpenText]()
        while self._unread:
            length = len(self._unread[0].row.ids)
            if length > left < self._generator.read_tokens:
                break
            left -= length
            text = self._unread.popleft()
            prefix, known = self._known_prefix(text.row.ids)
            if prefix:
                yield [text], prefix, known
            else:
                new.append(text)
        if new:
            yield new, [], KeyValueCache()

    def _known_prefix(self, ids: Sequence[int]) -> tuple[list[int], KeyValueCache]:
        """What an earlier text and this one begin with, the last token left out, and its cache."""
        lengths = [_common(one.ids, ids[:-1]) for one in self._known]
        longest = max(lengths, default=0)
        if longest < _LEAST_KNOWN:
            return [], KeyValueCache()
        cache = self._known[lengths.index(longest)].cache.fork(longest)
        return list(ids[:longest]), cache

    def _choose(self, texts: Sequence[OpenText], logits_BV: Tensor) -> None:
        """The next token of each text; those with the same sampling are chosen together."""
        alike: dict[Sampling, list[int]] = {}
        for place, text in enumerate(texts):
            alike.setdefault(replace(text.sampling, seed=0), []).append(place)
        for sampling, places in alike.items():
            uniform = [texts[one].row.uniform[texts[one].row.new_tokens] for one in places]
            chosen = sampling.choose(logits_BV[places], torch.tensor(uniform, dtype=torch.float64))
            values_3B = torch.stack([one.double() for one in chosen]).cpu()
            for place, token, score, tie in zip(places, *values_3B.tolist(), strict=True):
                text = texts[place]
                try:
                    text.limits.append(
                        text.row, int(token), score, bool(tie), self._generator.tokenizer
                    )
                except InputError as error:
                    text.failure = error

    def _leave(self, place: int) -> None:
        """Take a text out of the batch; what was computed of it stays for later prompts."""
        text = self._active[place]
        if text.failure is None and text.row.seen_from == 0:
            ids = tuple(text.row.ids[: self._cache.lengths[place]])
            kept = [one for one in self._known if one.ids != ids[: len(one.ids)]]
            self._known = deque([*kept, _Known(ids, self._cache.copy(place))], self.places)
        drop_row(place, self._active, self._cache)


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two texts begin with alike."""
    pairs = zip(one, other, strict=False)
    differing = (place for place, (a, b) in enumerate(pairs) if a != b)
    return next(differing, min(len(one), len(other)))
