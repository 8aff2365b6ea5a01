"""Settings of the stages harness and import_scores."""

from __future__ import annotations

from pydantic import Field

from artifacts_schema.config import Config, Execution
from stages.scoring.dtypes import Dtype, dtype_field


class HarnessConfig(Config):
    """Which tasks, and how they are put to the model."""

    tasks: tuple[str, ...] = Field(
        min_length=1,
        description="Names of tasks, groups and tags, or patterns of names of tasks in the "
        "snapshot's task files (`arc_*`). A name that no task file of the snapshot has is one that "
        "comes with lm-eval (`mmlu`). Of a group all tasks are measured, and its aggregate kept.",
    )
    data: dict[str, dict[str, str]] = Field(
        default_factory=dict,
        description="Of a task that comes with lm-eval, or of all whose names fit a pattern: "
        "split → file of the snapshot, which holds the rows in place of the data set that the task "
        "would download. `{task}` and `{dataset_name}` in a file's name are filled in.",
    )
    shots: int | None = Field(
        default=None,
        ge=0,
        description="Few-shot examples; null: as the task says. A task that says 0 keeps 0, as in "
        "lm-eval.",
    )
    limit: int | None = Field(
        default=None, ge=1, description="Only the first rows of each task, as lm-eval's `--limit`."
    )
    chat: bool = Field(
        default=False, description="Put prompts in the chat template of the checkpoint."
    )
    multiturn: bool = Field(
        default=True, description="With `chat`: each few-shot example is a turn of its own."
    )
    seed: int = Field(
        default=1234, ge=0, lt=2**31, description="Of few-shot examples that are drawn."
    )
    dtype: Dtype = dtype_field()
    max_new_tokens: int | None = Field(
        default=None, ge=1, description="Most tokens of an answer; null: as the task says."
    )
    trust_task_code: bool = Field(
        default=False,
        description="Import Python files of the snapshot that its task files name (`!function`). "
        "They run with all rights of this process: say so only of files that you have read.",
    )


class HarnessExecution(Execution):
    """How it is measured. Tasks are shared out among the workers, each with the whole model."""

    device: str = Field(
        default="auto",
        description="Where to compute: `cpu`, `cuda`, or `cuda:1` for the second GPU; `auto` is a "
        "CUDA device if there is one.",
    )
    batch_tokens: int = Field(
        default=4096,
        ge=1,
        description="Tokens of one forward pass, padding included; bounds memory.",
    )


class ImportScoresConfig(Config):
    """Which of the results are taken."""

    model: str | None = Field(
        default=None,
        min_length=1,
        description="Name of the model, as the result files have it, where they are of several.",
    )
    tasks: tuple[str, ...] = Field(
        default=(), description="Patterns of names of tasks, as `arc_*`; empty: all."
    )
    max_file_bytes: int = Field(
        default=64_000_000, ge=1, description="Longest file of results that is read."
    )
    max_row_bytes: int = Field(
        default=10_000_000, ge=1, description="Longest row of a file of samples."
    )
