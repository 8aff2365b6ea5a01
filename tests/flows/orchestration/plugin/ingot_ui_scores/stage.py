"""A quiz of 400 questions, of which so many are answered right as the config says."""

from __future__ import annotations

from pydantic import Field

from artifacts_schema.config import Config
from stages.engine import Context, Many, Stage

QUESTIONS = 400


class QuizConfig(Config):
    right: int = Field(default=200, ge=0, le=QUESTIONS, description="Right answers; 0 is an error.")


class Quiz(Stage):
    """An evaluation with Wilson's interval."""

    name, version, reproducible = "ui_quiz", 1, "bytes"
    inputs = {"exclusions": Many("exclusions", at_least=1)}
    outputs = {"evaluation": "evaluation"}
    Config = QuizConfig

    def run(self, context: Context) -> None:
        import pyarrow as pa

        from artifacts_schema.errors import InputError
        from artifacts_schema.kinds import KINDS
        from stages.scoring.uncertainty import wilson

        right = context.config.right
        if right == 0:
            raise InputError("nobody answered", where="quiz")
        low, high = wilson(right, QUESTIONS)
        row = {
            "benchmark": "quiz", "metric": "accuracy", "value": right / QUESTIONS,
            "standard_error": None, "low": low, "high": high, "count": QUESTIONS,
            "baseline": 0.25,
        }  # fmt: skip
        for name, table in KINDS["evaluation"].tables.items():
            rows = [row] if name == "results.parquet" else []
            made = pa.Table.from_pylist(rows, schema=table.arrow())
            context.write_table("evaluation", name, made)
