"""Settings of the judge stage."""

from __future__ import annotations

from pydantic import Field

from artifacts_schema.config import Config, Execution
from stages.scoring.dtypes import Dtype, dtype_field

CRITERION = (
    "Which of the two answers is better? Judge whether it does what was asked, is correct, "
    "harmless and clear. Length and order do not count."
)


class JudgeConfig(Config):
    """Who judges, by what, and how many pairs."""

    model: str | None = Field(
        default=None,
        min_length=1,
        description="Name of the model at the endpoint; null: the checkpoint of role `checkpoint` "
        "judges.",
    )
    criterion: str = Field(
        default=CRITERION, min_length=1, description="What the judge is asked about each pair."
    )
    max_pairs: int = Field(
        default=500,
        ge=1,
        description="Pairs of answers of each benchmark; a seeded draw where there are more.",
    )
    max_labelled: int = Field(
        default=500,
        ge=1,
        description="Preference pairs with which the judge's agreement with people is measured.",
    )
    dtype: Dtype = dtype_field()
    max_new_tokens: int = Field(
        default=512, ge=1, description="Most tokens of a verdict of the endpoint."
    )
    temperature: float = Field(default=0.0, ge=0, le=2, description="Of the endpoint's model.")
    parameters: dict[str, str | int | float | bool | None] = Field(
        default_factory=dict,
        description="Further parameters of the endpoint, as `reasoning_effort`; null leaves out "
        "one that is sent otherwise (`temperature`, `max_tokens`).",
    )
    seed: int = Field(
        default=0, ge=0, lt=2**31, description="Of draws, and of which answer is shown as A."
    )
    max_bad_share: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="Share of pairs without a verdict above which the stage fails.",
    )


class JudgeExecution(Execution):
    """Where the judge is, and how it is asked. The key is read when the stage runs, and kept
    nowhere."""

    url: str | None = Field(
        default=None,
        description="Base of an OpenAI-compatible API, as `https://HOST/v1`; plain http on this "
        "machine alone.",
    )
    key_variable: str | None = Field(
        default=None,
        pattern=r"^[A-Z_][A-Z0-9_]*$",
        description="Environment variable that holds the key of the API.",
    )
    key_file: str | None = Field(
        default=None,
        description="File that holds the key, which its owner alone may read (mode 0600).",
    )
    concurrency: int = Field(default=4, ge=1, le=64, description="Requests at once.")
    timeout: float = Field(default=120.0, gt=0, description="Seconds to wait for an answer.")
    attempts: int = Field(
        default=6, ge=1, description="Times that a request is made before the judge is away."
    )
    longest_wait: float = Field(
        default=60.0,
        gt=0,
        description="Longest pause between two attempts, in seconds, whatever the server asks for.",
    )
    max_requests: int | None = Field(
        default=None,
        ge=1,
        description="Requests of this run, attempts included, after which it ends; the same "
        "command continues.",
    )
    device: str = Field(
        default="auto", description="Of a judge that is a checkpoint: `cpu`, `cuda`, `auto`."
    )
    batch_tokens: int = Field(
        default=4096, ge=1, description="Tokens of one forward pass of such a judge."
    )
