"""Questions put to a tuned model: whether its answers name what they are asked about."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tokenizers import Tokenizer

from stages.evaluate.benchmarks import Item
from stages.model.decoder import Decoder
from stages.parallel.ranks import ALONE, Ranks
from stages.scoring.answers import NAMED, names_in_sentence
from stages.scoring.generation import Generator, Sampling
from stages.scoring.observations import Observation


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
