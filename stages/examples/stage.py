"""conversations, preferences, benchmarks: rows of data sets become one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from artifacts_schema import config as settings
from artifacts_schema.config import Execution
from artifacts_schema.errors import UsageError
from stages.engine import Context, Inputs, Maybe, One, Stage
from stages.examples.config import BenchmarksConfig, ExamplesConfig

if TYPE_CHECKING:
    from stages.examples.conversion import Convert


class ExamplesStage(Stage):
    """A stage that converts each row of a snapshot into a row of its table, or rejects it.

    Subclasses name their table (`outputs`), the function of `shapes` that converts a row, and the
    columns that name an example, if these must be unique.
    """

    reproducible = "bytes"
    inputs = {"snapshot": One("snapshot")}
    outputs: ClassVar[dict[str, str]] = {}
    libraries: ClassVar[tuple[str, ...]] = ("zstandard", "pyarrow")
    handles_documents = True
    Config, Execution = ExamplesConfig, Execution
    converter: ClassVar[str]
    unique: ClassVar[tuple[str, ...]] = ()

    def run(self, context: Context) -> None:
        """Convert every file."""
        from stages.examples import shapes
        from stages.examples.conversion import make_examples

        (table,) = self.outputs
        make_examples(context, table, getattr(shapes, self.converter), self.unique)


class Conversations(ExamplesStage):
    """Read instruction data; every conversation ends with what the assistant should learn to say.

    Shapes: `messages` or `conversations` (chat), `instruction`/`input`/`output` (Alpaca), and
    `prompt` with `completion` or `response`. Other names are mapped by `rename`.
    """

    name, version = "conversations", 2
    outputs = {"conversations": "conversations"}
    converter = "conversation_row"


class Preferences(ExamplesStage):
    """Read preference pairs: a prompt, the better answer and the worse one.

    `chosen` and `rejected` are answers, or whole conversations that agree up to the last answer;
    the prompt is `prompt`, `messages`, `conversations`, `instruction` (with `input`) or `question`.
    A row may have one answer instead, `completion`, whose `label` is true or false.
    """

    name, version = "preferences", 3
    outputs = {"preferences": "preferences"}
    converter = "preference_row"


class Benchmarks(ExamplesStage):
    """Read evaluation items: multiple choice, texts to be scored in bits per byte, or questions.

    Under a `task` its file says how rows become items, and how these are put to a model: in which
    formulations, after how many solved examples (role `fewshot`). Without one, known shapes are
    read: Ingot's own fields; `question` or `context` with `choices` and `gold` (index, letter or
    text of the right one); WinoGrande's `context_options`; and questions with an answer, which
    become texts. The benchmark is named by the task, else by the row, by `source` or by the file;
    an item's name must be its own within its benchmark.
    """

    name, version = "benchmarks", 4
    inputs = {
        "snapshot": One("snapshot"),
        "fewshot": Maybe("snapshot"),
        "tasks": Maybe("snapshot"),
    }
    outputs = {"benchmarks": "benchmarks"}
    libraries = ("zstandard", "pyarrow", "jinja2", "regex")
    Config = BenchmarksConfig
    converter = "benchmark_row"
    unique = ("benchmark", "item_id")

    @classmethod
    def complete(cls, config: settings.Config) -> settings.Config:
        """Name what the task says, if it is one that comes with Ingot."""
        assert isinstance(config, BenchmarksConfig)
        if config.task is None or config.task_digest is not None:
            return config
        from stages.examples.task_files import is_shipped, shipped_task

        if not is_shipped(config.task):
            return config
        digest = shipped_task(config.task).digest
        return config.model_copy(update={"task_digest": digest})

    @classmethod
    def check_plan(cls, config: BenchmarksConfig, inputs: Inputs) -> None:
        """An unknown task, a formulation it lacks, examples without a source."""
        roles = {role for role, values in inputs.items() if values}
        for role in ("fewshot", "tasks"):
            if config.task is None and role in roles:
                raise UsageError(f"role '{role}' is for rows under a `task`", where="task")
        if config.task is None or "tasks" in roles:
            return
        from stages.examples.task_files import shipped_task
        from stages.examples.task_rows import check_settings

        check_settings(config, shipped_task(config.task), has_source="fewshot" in roles)

    def run(self, context: Context) -> None:
        """Convert every file, by the task or by the shape of its rows."""
        from stages.examples.conversion import make_examples
        from stages.examples.shapes import benchmark_row
        from stages.examples.task_rows import prepare_task

        convert: Convert = benchmark_row
        tasks = []
        if context.config.task is not None:
            prepared = prepare_task(context)
            convert, tasks = prepared, [prepared.task.described()]
        make_examples(context, "benchmarks", convert, self.unique, context.config.files)
        context.write_json("benchmarks", "tasks.json", tasks)
