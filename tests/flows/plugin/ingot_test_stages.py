"""Tiny stages with real kinds, for tests of recipes, plans and the command line.

`lines` makes a document of every line of a snapshot's text files, `measure` counts its characters,
`choose` keeps those of at least `least.characters`. They are found by entry point, as a user's are.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from pydantic import Field

from artifacts_schema.config import Config
from artifacts_schema.identity import document_id
from artifacts_schema.kinds import KINDS, Column, sidecar_folder
from stages.engine import Context, Many, One, ShardOutput, Stage
from stages.engine.sources import snapshot_name, source_files


class LinesConfig(Config):
    source: str = Field(default="web", description="Name of the source.")
    upper: bool = Field(default=False, description="Whether to shout.")


class Lines(Stage):
    """A document a line; empty lines are rejected."""

    name, version, reproducible = "lines", 1, "bytes"
    inputs = {"snapshot": One("snapshot")}
    outputs = {"documents": "documents", "rejected": "rejected"}
    handles_documents = True
    Config = LinesConfig

    def run(self, context: Context) -> None:
        import pyarrow as pa

        snapshot = context.one("snapshot")
        name, kept, rejected = snapshot_name(snapshot), [], []
        for file in source_files(snapshot):
            with file.open() as raw:
                offset = 0
                for line in raw:
                    if line.startswith(b"FAIL"):
                        raise ValueError("a line that cannot be read")
                    origin = {
                        "doc_id": document_id(name, file.name, offset),
                        "snapshot": name,
                        "url": f"https://example.org/{name}/{file.name}#{offset}",
                        "origin_file": file.name,
                        "origin_offset": offset,
                        "origin_length": len(line),
                    }
                    offset += len(line)
                    text = line.decode().strip()
                    if text:
                        shown = text.upper() if context.config.upper else text
                        more = {"source": context.config.source, "text": shown, "metadata": "{}"}
                        kept.append({**origin, **more})
                    else:
                        rejected.append({**origin, "reason": "empty"})
        for output, rows in (("documents", kept), ("rejected", rejected)):
            schema = KINDS[output].tables["*.parquet"].arrow()
            context.write_table(output, "00000.parquet", pa.Table.from_pylist(rows, schema))
        dropped = {"empty": len(rejected)} if rejected else {}
        context.conserve(records_in=len(kept) + len(rejected), out=len(kept), dropped=dropped)


class Measure(Stage):
    """Characters of each document."""

    name, version, reproducible = "measure", 1, "bytes"
    inputs = {"documents": One("documents")}
    outputs = {"signals": "signals"}

    def run(self, context: Context) -> None:
        import pyarrow as pa

        extra = [Column("characters", "int32", "Characters of the text.")]
        schema = KINDS["signals"].tables["*.parquet"].arrow(extra=extra)
        for shard in context.one("documents").shards():
            rows = [
                {"doc_id": row["doc_id"], "characters": len(row["text"])}
                for row in shard.read(["doc_id", "text"]).to_pylist()
            ]
            context.write_table("signals", shard.path, pa.Table.from_pylist(rows, schema))
        described = {"characters": {"description": "Characters.", "unit": "characters"}}
        context.write_json("signals", "signals.json", described)


class Least(Config):
    characters: int = Field(default=1, ge=0, description="Characters a document must have.")


class ChooseConfig(Config):
    least: Least = Field(default_factory=Least, description="Lower limits.")
    note: str | None = Field(default=None, description="Anything.")


class Choose(Stage):
    """Keep what is long enough."""

    name, version, reproducible = "choose", 1, "bytes"
    inputs = {"documents": Many("documents", at_least=1), "signals": Many("signals")}
    outputs = {"documents": "documents", "ledger": "ledger"}
    handles_documents = True
    Config = ChooseConfig

    def run(self, context: Context) -> None:
        import pyarrow as pa

        least, seen = context.config.least.characters, 0
        kept = []
        for documents in context.many("documents"):
            for shard in documents.shards():
                rows = shard.read().to_pylist()
                seen += len(rows)
                kept += [row for row in rows if len(row["text"]) >= least]
                ledger = [_verdict(row, least) for row in rows]
                schema = KINDS["ledger"].tables["*/*.parquet"].arrow()
                path = f"{sidecar_folder(documents.digest)}/{shard.path}"
                context.write_table("ledger", path, pa.Table.from_pylist(ledger, schema))
        schema = KINDS["documents"].tables["*.parquet"].arrow()
        context.write_table("documents", "00000.parquet", pa.Table.from_pylist(kept, schema))
        dropped = {"short": seen - len(kept)} if seen > len(kept) else {}
        context.conserve(records_in=seen, out=len(kept), dropped=dropped)


def _verdict(row: dict, least: int) -> dict:
    length = len(row["text"])
    keep = length >= least
    return {
        "doc_id": row["doc_id"],
        "verdict": "kept" if keep else "dropped",
        "reason": None if keep else "short",
        "failing": [] if keep else ["short"],
        "value": None if keep else float(length),
        "threshold": None if keep else float(least),
        "edits": 0,
        "characters": length,
    }


class Tokens(Stage):
    """Every character a token, one document a sequence of eight: enough to trace."""

    name, version, reproducible = "characters", 1, "bytes"
    inputs = {"documents": One("documents")}
    outputs = {"train": "token_shards"}

    def run(self, context: Context) -> None:
        import pyarrow as pa

        rows = []
        for shard in context.one("documents").shards():
            for row in shard.read(["doc_id", "text"]).to_pylist():
                for start in range(0, len(row["text"]), 8):
                    piece = {"doc_id": row["doc_id"], "document_start": start}
                    piece["content_hash"] = "0" * 16
                    length = min(8, len(row["text"]) - start)
                    rows.append({"sequence": len(rows), "start": 0, "length": length, **piece})
        schema = KINDS["token_shards"].tables["*/*.index.parquet"].arrow()
        table = pa.Table.from_pylist(rows, schema)
        context.write_table("train", "web/00000.index.parquet", table)
        shards = [{"file": "web/00000.tokens", "sequences": len(rows)}]
        described = {"sequence_length": 8, "sources": {"web": {"shards": shards}}}
        context.write_bytes("train", "shards.json", json.dumps(described).encode())


class Wait(Stage):
    """Does nothing until it is told to stop."""

    name, version, reproducible = "wait", 1, "bytes"
    inputs = {"snapshot": One("snapshot")}
    outputs = {"documents": "documents"}

    def run(self, context: Context) -> None:
        from threading import Event

        context.progress(1, 2, unit="naps")
        while True:
            context.check_stop()
            Event().wait(0.02)


class NapsConfig(Config):
    shards: int = Field(default=8, ge=1, description="How many.")
    seconds: float = Field(default=0.2, ge=0, description="How long each takes.")
    megabytes: int = Field(default=0, ge=0, description="Memory of those from the fourth on.")


@dataclass(frozen=True)
class Nap:
    id: str


def nap(item: Nap, out: ShardOutput, *, seconds: float, megabytes: int) -> dict:
    held = bytearray(megabytes << 20 if item.id >= "nap-0003" else 0)  # Written, so it is there.
    time.sleep(seconds)
    return {"name": item.id, "held": len(held)}


class Naps(Stage):
    """Shards that take their time, each kept once it is done."""

    name, version, reproducible = "naps", 1, "bytes"
    inputs = {"snapshot": One("snapshot")}
    outputs = {"signals": "signals"}
    Config = NapsConfig

    def run(self, context: Context) -> None:
        items = [Nap(f"nap-{number:04d}") for number in range(context.config.shards)]
        config = context.config
        how = {"seconds": config.seconds, "megabytes": config.megabytes}
        results = context.map(nap, items, workers=1, **how)
        described = {one.value["name"]: {"description": "A nap.", "unit": "s"} for one in results}
        context.write_json("signals", "signals.json", described)
