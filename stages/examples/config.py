"""Settings of `conversations`, `preferences` and `benchmarks`."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from artifacts_schema.config import Config


class ExamplesConfig(Config):
    """What is read, and how much of it may be bad."""

    source: str | None = Field(
        default=None, min_length=1, description="Name of the data set; by default the file's stem."
    )
    rename: dict[str, str] = Field(
        default_factory=dict,
        description="Field of the data → the name under which Ingot knows it, where they differ.",
    )
    max_items: int | None = Field(
        default=None, ge=1, description="Only the first rows of each file, for a small run."
    )
    max_row_bytes: int = Field(
        default=10_000_000, ge=1, description="Longest row in bytes; longer ones are bad."
    )
    max_expansion: int = Field(
        default=200,
        ge=1,
        description="Decompressed over compressed bytes above which a file is refused as a bomb.",
    )
    max_bad_share: float = Field(
        default=0.10, ge=0, le=1, description="Share of bad rows above which the stage fails."
    )


Formulation = Literal["cloze", "multiple_choice", "hybrid", "free"]
"""How an item is put to a model: its choices ranked after the question, their letters after a list
of them, the choices after such a list; or the model writes an answer."""


class BenchmarksConfig(ExamplesConfig):
    """What is read, and, under a task, how its rows are put to a model."""

    task: str | None = Field(
        default=None,
        min_length=1,
        description="Task that says how rows become items: one that `ingot tasks` lists, or one of "
        "the role `tasks`; by default the rows' shape says it.",
    )
    task_digest: str | None = Field(
        default=None,
        pattern="^[0-9a-f]{16}$",
        description="What a task that comes with Ingot says; filled in when the plan is made.",
    )
    formulations: tuple[Formulation, ...] = Field(
        default=(),
        description="Ways to put each item to a model; by default the task's own first one.",
    )
    shots: tuple[int, ...] = Field(
        default=(),
        description="Numbers of solved examples before the question, each a variant of its own; "
        "by default the task's one number.",
    )
    fewshot_seed: int | None = Field(
        default=None,
        ge=0,
        description="Draws the examples of each item; by default they are the first of the source.",
    )
    files: str | None = Field(
        default=None,
        min_length=1,
        description="Pattern of the snapshot's files that hold items, such as `*test*`.",
    )
    fewshot_files: str | None = Field(
        default=None,
        min_length=1,
        description="Pattern of the files that hold the examples: of the role `fewshot`, or "
        "without it of the snapshot itself.",
    )

    @model_validator(mode="after")
    def _fits_a_task(self) -> Self:
        own = ("task_digest", "formulations", "shots", "fewshot_seed", "fewshot_files")
        extra = [name for name in own if getattr(self, name) not in (None, ())]
        if self.task is None and extra:
            raise ValueError(f"{extra[0]} is for rows under a `task`")
        if self.task is not None and self.source is not None:
            raise ValueError("source: under a task the benchmark is named by the task")
        for name in ("formulations", "shots"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ValueError(f"{name}: one of them is there twice")
        if any(not 0 <= number <= 100 for number in self.shots):
            raise ValueError("shots: from 0 to 100")
        return self
