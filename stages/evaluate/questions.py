"""Questions put to a tuned model: whether its answers name what they are asked about.

An answer counts if it has a whole sentence (`LEAST_WORDS` words or more, up to a full stop or a
question or exclamation mark) that holds the name. It says that the model keeps to the question
and ends what it begins; it does not say that the answer is true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
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
    """A model that continues prompts, each up to a token of `stop_ids` or `max_new_tokens`.

    Passes have at most `batch_tokens` tokens in the cache; all ranks write the same.
    """

    model: Decoder
    tokenizer: Tokenizer
    stop_ids: Collection[int]
    max_new_tokens: int
    temperature: float
    seed: int
    batch_tokens: int
    ranks: Ranks = ALONE
    check_stop: Callable[[], None] = lambda: None

    def write(self, prompts: Sequence[Prompt]) -> list[str]:
        """What follows each prompt, without special tokens."""
        longest = max((len(prompt.ids) for prompt in prompts), default=0) + self.max_new_tokens
        batch = max(1, self.batch_tokens // min(longest, self.model.config.context))
        with Generator(
            self.model, self.tokenizer, batch=batch, ranks=self.ranks, check_stop=self.check_stop
        ) as generator:
            written = generator.write(
                [prompt.ids for prompt in prompts],
                Sampling(self.temperature, top_p=1.0, seed=self.seed),
                max_new_tokens=self.max_new_tokens,
                stop_ids=self.stop_ids,
            )
        return [one.text for one in written]


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
