"""What tests of several commands share: the command itself, and a corpus that a filter decided."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))
import eight_documents as eight

from artifacts_schema.kinds import KINDS, Column, sidecar_folder
from flows.cli.main import main
from stages.engine import One, Stage
from stages.filter.stage import Filter


@pytest.fixture
def ingot(store):
    """`ingot(*arguments)` on the test's store; the click result."""

    def call(*arguments):
        return CliRunner().invoke(main, [*map(str, arguments), "--store", store.url])

    return call


@pytest.fixture
def measured(run_stage):
    """`measured(kind, documents, tables)`: what a stage that read `documents` wrote of a kind."""

    def make(kind, documents, tables):
        import pyarrow as pa

        def run(self, context):
            for path, rows in tables.items():
                if path.endswith(".json"):
                    context.write_json(kind, path, rows)
                    continue
                known = KINDS[kind].table_for(path)
                more = [n for n in (rows[0] if rows else {}) if n not in pa_names(known)]
                types = {n: "string?" if n == "language" else "float64?" for n in more}
                schema = known.arrow([Column(n, types[n], "") for n in more])
                context.write_table(kind, path, pa.Table.from_pylist(rows, schema=schema))

        def pa_names(table):
            return {column.name for column in table.columns}

        members = {
            "name": f"measured_{kind}",
            "version": 1,
            "reproducible": "bytes",
            "inputs": {"documents": One("documents")},
            "outputs": {kind: kind},
            "run": run,
        }
        return run_stage(type("Measured", (Stage,), members), {}, {"documents": [documents]}), kind

    return make


@pytest.fixture
def inputs(given, measured, make_documents):
    """Everything that a filter may be given about the eight documents, in two shards."""
    documents = make_documents([[eight.document(d) for d in shard] for shard in eight.SHARDS])
    folder = sidecar_folder(documents[0].output("documents").digest)
    floor = {"parameters": {"floor": 0.5}}
    pairs = eight.tables(eight.copies, f"{folder}/") | {"statistics.json": floor}
    overlap = eight.tables(eight.hits, f"{folder}/") | {"items.parquet": []}
    return {
        "documents": [documents],
        "signals": [measured("signals", documents, eight.tables(eight.signals))],
        "views": [measured("views", documents, eight.tables(eight.spans))],
        "duplicates": [measured("duplicates", documents, pairs)],
        "contamination": [measured("contamination", documents, overlap)],
        "exclusions": [given("exclusions", {"0.parquet": [{"doc_id": "c", "reason": "x"}]})],
    }


@pytest.fixture
def corpus(store, run_stage, inputs):
    manifest = run_stage(Filter, eight.CONFIG, inputs)
    store.set_ref("demo/filter", manifest.stage, manifest.key)
    return manifest
