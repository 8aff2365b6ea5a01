"""Settings of the stages evaluate and score."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from artifacts_schema.config import Config
from stages.sandbox.sandbox import Isolation
from stages.scoring.dtypes import Dtype, dtype_field
from stages.scoring.metrics import Normalisation
from stages.training.config import RanksExecution


class EvaluateConfig(Config):
    """What is measured. What the seed decides: which items a cap leaves, and sampled text."""

    dtype: Dtype = dtype_field()
    max_items: int = Field(
        default=1000,
        ge=1,
        description="Items of each benchmark; a seeded draw where there are more.",
    )
    max_held_out_tokens: int = Field(
        default=1_000_000,
        ge=1,
        description="Held-out tokens of each source; evenly spaced sequences where there are more.",
    )
    delimiter: str = Field(
        default=" ",
        description="Stands between prompt and choice where neither has white space of its own.",
    )
    unconditional: bool = Field(
        default=False,
        description="Measure choices after nothing as well, for `score`'s normalisation `pmi`: one "
        "more short pass for each choice.",
    )
    max_questions: int = Field(
        default=100,
        ge=1,
        description="Questions of each benchmark that a model with a chat template is asked, in a "
        "seeded order; the first few answers are kept.",
    )
    text_prompts: tuple[str, ...] = Field(
        default=("The first",), description="Beginnings of texts that the model goes on writing."
    )
    chat_prompts: tuple[str, ...] = Field(
        default=("Who are you?",), description="Questions put to the model in the chat format."
    )
    max_new_tokens: int = Field(default=64, ge=1, description="Most tokens of one generation.")
    temperature: float = Field(
        default=0.7, ge=0, le=10, description="Of sampled text; 0 takes the likeliest token."
    )
    seed: int = Field(default=0, ge=0, lt=2**31, description="Of every draw.")
    cluster_by: str | None = Field(
        default="cluster",
        description="Field of an item's metadata that items on one passage share: they are one "
        "unit for errors and intervals. Items without it are a unit each.",
    )
    max_bad_share: float = Field(
        default=0.10, ge=0, le=1, description="Share of unusable items above which the stage fails."
    )


class EvaluateExecution(RanksExecution):
    """How it is measured. Parts of benchmarks and sources are shared out among the workers.

    Each worker holds the whole model: on a GPU there is one by default, else one for each core.
    With a layout of several ranks there are no workers: all ranks measure each part together.
    """

    batch_tokens: int = Field(
        default=4096,
        ge=1,
        description="Tokens of one forward pass, padding included; bounds memory. Of several ranks "
        "each has so many.",
    )
    watchdog: float | None = Field(
        default=1800.0,
        gt=0,
        description="Of several ranks: seconds without a collective operation and without a file "
        "that is read or written, after which the run hangs: it logs stacks and ends with exit "
        "code 75; null: never.",
    )


class ScoreConfig(Config):
    """Which metrics of which items."""

    pass_at: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        default=(1, 10, 100),
        description="k of pass@k, of tasks that have so many samples; that of 1 is always there.",
    )
    isolation: Isolation = Field(
        default="namespaces",
        description="How programs that a model wrote are run. `limits`: as this user, with limits "
        "but able to read files and reach the network; for machines that forbid namespaces.",
    )
    program_seconds: int = Field(
        default=10, ge=1, le=600, description="Processor time of one program; more is a `timeout`."
    )
    program_memory: int = Field(
        default=512 << 20, ge=64 << 20, description="Bytes of address space of one program."
    )

    normalisations: tuple[Normalisation, ...] = Field(
        default=("sum", "characters", "bytes", "tokens"),
        min_length=1,
        description="How choices are ranked: by log-likelihood, by that over characters, UTF-8 "
        "bytes or tokens of the choice, or by that minus the log-likelihood of the choice after "
        "nothing (`pmi`, where `evaluate` had `unconditional`).",
    )
    benchmarks: tuple[str, ...] = Field(
        default=(), description="Patterns of names, as `arc_*`; empty: all."
    )
    formulations: tuple[str, ...] = Field(
        default=(),
        description="Of items that were put in several ways, these alone, as `cloze`; empty: all.",
    )
    shots: tuple[int, ...] = Field(
        default=(), description="Of these numbers of few-shot examples alone; empty: all."
    )
    max_overlap: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Leave out items of whose n-grams the corpus holds more than this share; needs "
        "`contamination`.",
    )
