"""conversations, preferences, benchmarks: rows of data sets become one table."""

from __future__ import annotations

from typing import ClassVar

from artifacts_schema.config import Execution
from stages.engine import Context, One, Stage
from stages.examples.config import ExamplesConfig


class ExamplesStage(Stage):
    """A stage that converts each row of a snapshot into a row of its table, or rejects it.

    Subclasses name their table (`outputs`), the function of `shapes` that converts a row, and the
    columns that name an example, if these must be unique.
    """

    reproducible = "bytes"
    inputs = {"snapshot": One("snapshot")}
    outputs: ClassVar[dict[str, str]] = {}
    libraries = ("zstandard", "pyarrow")
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
    """

    name, version = "preferences", 2
    outputs = {"preferences": "preferences"}
    converter = "preference_row"


class Benchmarks(ExamplesStage):
    """Read evaluation items: multiple choice, texts to be scored in bits per byte, or questions.

    Known shapes: Ingot's own fields; `question` or `context` with `choices` and `gold` (index,
    letter or text of the right one); WinoGrande's `context_options`; and questions with an answer,
    which become texts. The benchmark is named by the row, else by `source`, else by the file; an
    item's name must be its own within its benchmark.
    """

    name, version = "benchmarks", 3
    outputs = {"benchmarks": "benchmarks"}
    converter = "benchmark_row"
    unique = ("benchmark", "item_id")
