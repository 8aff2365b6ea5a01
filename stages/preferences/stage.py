"""preferences: pairs of a better and a worse answer become one table."""

from __future__ import annotations

from artifacts_schema.config import Execution
from stages.engine import Context, One, Stage
from stages.engine.reading.examples import ExamplesConfig


class Preferences(Stage):
    """Read preference pairs: a prompt, the better answer and the worse one.

    `chosen` and `rejected` are answers, or whole conversations that agree up to the last answer;
    the prompt is `prompt`, `messages`, `conversations`, `instruction` (with `input`) or `question`.
    """

    name, version, reproducible = "preferences", 2, "bytes"
    inputs = {"snapshot": One("snapshot")}
    outputs = {"preferences": "preferences"}
    libraries = ("zstandard", "pyarrow")
    handles_documents = True
    Config, Execution = ExamplesConfig, Execution

    def run(self, context: Context) -> None:
        """Convert every file."""
        from stages.engine.reading.examples import make_examples
        from stages.preferences.shapes import preference_of

        make_examples(context, "preferences", preference_of)
