"""benchmarks: evaluation items of several data sets become one table."""

from __future__ import annotations

from artifacts_schema.config import Execution
from stages.engine import Context, One, Stage
from stages.engine.reading.examples import ExamplesConfig


class Benchmarks(Stage):
    """Read evaluation items: multiple choice, or texts to be scored in bits per byte.

    Known shapes: Ingot's own fields; `question` or `context` with `choices` and `gold` (index,
    letter or text of the right one); WinoGrande's `context_options`; and questions with an answer,
    which become texts. The benchmark is named by the row, else by `source`, else by the file.
    """

    name, version, reproducible = "benchmarks", 2, "bytes"
    inputs = {"snapshot": One("snapshot")}
    outputs = {"benchmarks": "benchmarks"}
    libraries = ("zstandard", "pyarrow")
    handles_documents = True
    Config, Execution = ExamplesConfig, Execution

    def run(self, context: Context) -> None:
        """Convert every file; an item's name must be its own within its benchmark."""
        from stages.benchmarks.shapes import item_of
        from stages.engine.reading.examples import make_examples

        make_examples(context, "benchmarks", item_of, unique=("benchmark", "item_id"))
