"""conversations: instruction data in its common shapes becomes one table of conversations."""

from __future__ import annotations

from artifacts_schema.config import Execution
from stages.engine import Context, One, Stage
from stages.engine.reading.examples import ExamplesConfig


class Conversations(Stage):
    """Read instruction data; every conversation ends with what the assistant should learn to say.

    Shapes: `messages` or `conversations` (chat), `instruction`/`input`/`output` (Alpaca), and
    `prompt` with `completion` or `response`. Other names are mapped by `rename`.
    """

    name, version, reproducible = "conversations", 2, "bytes"
    inputs = {"snapshot": One("snapshot")}
    outputs = {"conversations": "conversations"}
    libraries = ("zstandard", "pyarrow")
    handles_documents = True
    Config, Execution = ExamplesConfig, Execution

    def run(self, context: Context) -> None:
        """Convert every file."""
        from stages.conversations.shapes import conversation_of
        from stages.engine.reading.examples import make_examples

        make_examples(context, "conversations", conversation_of)
