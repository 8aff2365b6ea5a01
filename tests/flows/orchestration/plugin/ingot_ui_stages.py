"""Stages for tests of the UI: one that makes numbers, one that learns until a gate is opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from threading import Event

from pydantic import Field

from artifacts_schema.config import Config
from stages.engine import Context, Many, ShardOutput, Stage


class Phase(Config):
    steps: int = Field(default=4, ge=1, le=100, description="Training steps.")
    rate: float | None = Field(default=None, gt=0, description="Learning rate.")


class NumbersConfig(Config):
    rows: int = Field(default=4, ge=1, le=1000, description="Numbers to make.")
    word: str = Field(default="kept", min_length=1, description="Why they stand.")


class Numbers(Stage):
    """Numbers from nothing."""

    name, version, reproducible = "ui_numbers", 1, "bytes"
    outputs = {"exclusions": "exclusions"}
    handles_documents = True
    Config = NumbersConfig

    def run(self, context: Context) -> None:
        kept = context.config.rows * 3 // 4 or 1
        context.write_table("exclusions", "00000.parquet", table(kept, context.config.word))
        lost = context.config.rows - kept
        dropped = {"a|b <script>alert(1)</script>": lost} if lost else {}
        context.conserve(records_in=context.config.rows, out=kept, dropped=dropped)


class LearnConfig(Config):
    gate: str = Field(default="", description="File without which it does not end.")
    phase: Phase = Field(default_factory=lambda: Phase(steps=3), description="The phase.")
    mixture: dict[str, float] = Field(default_factory=dict, description="Shares.")


@dataclass(frozen=True)
class Piece:
    id: str


def write_piece(piece: Piece, out: ShardOutput) -> dict[str, int]:
    out.write_table("exclusions", f"{piece.id}.parquet", table(1, piece.id))
    return {"rows": 1}


class Learn(Stage):
    """Two finished shards, a loss that falls, and a wait for the gate."""

    name, version, reproducible = "ui_learn", 1, "bytes"
    inputs = {"exclusions": Many("exclusions", at_least=1)}
    outputs = {"exclusions": "exclusions"}
    Config = LearnConfig

    def run(self, context: Context) -> None:
        context.map(write_piece, [Piece("00000"), Piece("00001")])
        for step in range(1, context.config.phase.steps + 1):
            context.metric(training_step=step, loss=4.0 / step)
        context.progress(1, 2, unit="gates")
        if context.config.gate:
            with open(f"{context.config.gate}.starts", "a") as starts:
                starts.write("started\n")
        while context.config.gate and not Path(context.config.gate).exists():
            context.check_stop()
            Event().wait(0.02)
        given = context.many("exclusions")
        read = sum(shard.read().num_rows for one in given for shard in one.shards())
        context.count(steps=context.config.phase.steps, read=read)


def table(rows: int, reason: str) -> object:
    import pyarrow as pa

    from artifacts_schema.kinds import KINDS

    schema = KINDS["exclusions"].tables["*.parquet"].arrow()
    values = {"doc_id": [f"{row:032x}" for row in range(rows)], "reason": [reason] * rows}
    return pa.table(values, schema=schema)
