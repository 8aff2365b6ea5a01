"""Questions put to a tuned model: whether its answers name what they are asked about."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from tokenizers import Tokenizer

from stages.evaluate.benchmarks import Item
from stages.model.decoder import Decoder
from stages.parallel.ranks import ALONE, Ranks
from stages.scoring.answers import NAMED, names_in_sentence
from stages.scoring.generation import Generator, Sampling, Written
from stages.scoring.observations import Observation


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

    def write(
        self,
        prompts: Sequence[Prompt],
        *,
        stop_texts: Sequence[str] = (),
        samples: int = 1,
        first_number: int = 0,
    ) -> list[Written]:
        """What follows each prompt, all samples of it one after another. See `Writing`."""
        longest = max((len(prompt.ids) for prompt in prompts), default=0) + self.max_new_tokens
        batch = max(1, self.batch_tokens // min(longest, self.model.config.context))
        with Generator(
            self.model, self.tokenizer, batch=batch, ranks=self.ranks, check_stop=self.check_stop
        ) as generator:
            return generator.write(
                [prompt.ids for prompt in prompts],
                Sampling(self.temperature, top_p=1.0, seed=self.seed),
                max_new_tokens=self.max_new_tokens,
                stop_ids=self.stop_ids,
                stop_texts=stop_texts,
                samples=samples,
                first_number=first_number,
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
