"""Three small stages that exercise every part of the engine: numbers in, squares and sums out."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from artifacts_schema.config import Config, Execution
from stages.engine import Context, Many, One, Shard, ShardOutput, Stage


class MakeConfig(Config):
    """What `Make` makes."""

    shards: int = Field(default=3, ge=0, description="Tables.")
    rows: int = Field(default=4, ge=1, description="Rows of each.")
    offset: int = Field(default=0, description="Added to every value.")


@dataclass(frozen=True)
class Block:
    """One table to make."""

    id: str
    start: int


def exclusions_table(values: list[int]) -> object:
    """A small table of a kind with two string columns."""
    import pyarrow as pa

    from artifacts_schema.kinds import KINDS

    schema = KINDS["exclusions"].tables["*.parquet"].arrow()
    return pa.table(
        {"doc_id": [f"{v:032x}" for v in values], "reason": [str(v) for v in values]}, schema=schema
    )


def make_block(block: Block, out: ShardOutput, rows: int, offset: int) -> dict[str, int]:
    """Write one table."""
    values = [block.start * rows + i + offset for i in range(rows)]
    out.write_table("exclusions", f"{block.id}.parquet", exclusions_table(values))
    return {"rows": rows, "sum": sum(values)}


class Make(Stage):
    """Numbers in several tables."""

    name, version, reproducible = "toy_make", 1, "bytes"
    outputs = {"exclusions": "exclusions"}
    handles_documents = True
    Config, Execution = MakeConfig, Execution

    def run(self, context: Context) -> None:
        config = context.config
        blocks = [Block(f"{i:05d}", i) for i in range(config.shards)]
        made = context.map(make_block, blocks, rows=config.rows, offset=config.offset)
        total = sum(result.value["rows"] for result in made)
        context.count(sum=sum(result.value["sum"] for result in made))
        context.conserve(records_in=total, out=total)


class DoubleConfig(Config):
    """What `Double` does."""

    factor: int = Field(default=2, ge=1, description="Factor.")


def measure(shard: Shard, out: ShardOutput) -> dict[str, int]:
    """First map: leave a scratch table."""
    table = shard.read(["reason"])
    out.write_scratch("values.parquet", table)
    return {"rows": table.num_rows}


@dataclass(frozen=True)
class Scaled:
    """A shard with what the first map left of it."""

    id: str
    measured: object


def scale(item: Scaled, out: ShardOutput, factor: int) -> dict[str, int]:
    """Second map: read the scratch, write the output."""
    kept = item.measured.read_scratch("values.parquet")["reason"].to_pylist()
    values = [int(v) * factor for v in kept]
    out.write_table("exclusions", f"{item.id}.parquet", exclusions_table(values))
    return {"sum": sum(values)}


class Double(Stage):
    """Every number times a factor, in two maps."""

    name, version, reproducible = "toy_double", 1, "bytes"
    inputs = {"exclusions": One("exclusions")}
    outputs = {"exclusions": "exclusions"}
    Config, Execution = DoubleConfig, Execution

    def run(self, context: Context) -> None:
        shards = context.one("exclusions").shards()
        measured = context.map(measure, shards)
        items = [Scaled(result.id, result) for result in measured]
        scaled = context.map(scale, items, factor=context.config.factor)
        context.count(sum=sum(result.value["sum"] for result in scaled))


class Join(Stage):
    """All numbers of many inputs in one table."""

    name, version, reproducible = "toy_join", 1, "bytes"
    inputs = {"exclusions": Many("exclusions", at_least=1)}
    outputs = {"exclusions": "exclusions"}

    def run(self, context: Context) -> None:
        values = [
            int(v)
            for given in context.many("exclusions")
            for shard in given.shards()
            for v in shard.read()["reason"].to_pylist()
        ]
        context.write_table("exclusions", "00000.parquet", exclusions_table(values))
