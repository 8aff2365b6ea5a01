"""Questions put to a tuned model: whether its answers name what they are asked about.

An answer counts if it has a whole sentence (`LEAST_WORDS` words or more, up to a full stop or a
question or exclamation mark) that holds the name. It says that the model keeps to the question
and ends what it begins; it does not say that the answer is true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tokenizers import Tokenizer

from stages.evaluate.benchmarks import Item
from stages.model.decoder import Decoder
from stages.parallel.ranks import ALONE, Ranks
from stages.scoring.generation import Generator, Sampling
from stages.scoring.observations import Observation

LEAST_WORDS = 4
NAMED = "named_in_a_sentence"
"""The metric."""


@dataclass(frozen=True)
class Prompt:
    """What the model is to continue: `form` is `text` or `chat`."""

    form: str
    text: str
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Writer:
    """A model that continues prompts, each up to a token of `stop` or `max_new_tokens`.

    The prompt with number i is drawn with `seed` + i; all ranks write the same.
    """

    model: Decoder
    tokenizer: Tokenizer
    stop: Collection[int]
    max_new_tokens: int
    temperature: float
    seed: int
    ranks: Ranks = ALONE
    check_stop: Callable[[], None] = lambda: None

    def write(self, prompts: Sequence[Prompt]) -> list[str]:
        """What follows each prompt, without special tokens."""
        with _generator(self.model) as generator:
            return [
                self._continue(generator, number, prompt) for number, prompt in enumerate(prompts)
            ]

    def _continue(self, generator: Generator, number: int, prompt: Prompt) -> str:
        self.check_stop()
        written = generator.generate(
            prompt.ids,
            Sampling(self.temperature, top_p=1.0, seed=self.seed + number),
            max_new_tokens=self.max_new_tokens,
            stop=self.stop,
            ranks=self.ranks,
        )
        text: str = self.tokenizer.decode(list(written), skip_special_tokens=True)
        return text


@contextmanager
def _generator(model: Decoder) -> Iterator[Generator]:
    """A generator over `model`, whose attention is put back behind it."""
    before = model.backend
    try:
        yield Generator(model)
    finally:
        model.attend_by(before)


def names_in_sentence(answer: str, name: str) -> bool:
    """Whether a whole sentence of `answer` holds `name`, which no letter or digit goes on from."""
    named = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    return any(
        sentence[-1] in ".!?" and len(sentence.split()) >= LEAST_WORDS and named.search(sentence)
        for sentence in re.split(r"(?<=[.!?])\s+", answer.strip())
        if sentence
    )


def judge(items: Sequence[Item], answers: Sequence[str]) -> list[Observation]:
    """1 or 0 for each question."""
    return [
        Observation(
            item.benchmark,
            item.item_id,
            NAMED,
            float(names_in_sentence(answer, item.choices[item.answer])),
        )
        for item, answer in zip(items, answers, strict=True)
    ]
