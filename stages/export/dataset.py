"""The stage that makes a data set of the Hub out of documents."""

from __future__ import annotations

from collections import Counter
from typing import Any

from artifacts_schema.config import MapExecution
from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.manifest import InputRef, Manifest
from stages.engine import Context, Inputs, Many, Maybe, Stage
from stages.export.config import DatasetConfig


class ExportDataset(Stage):
    """Write documents as a folder that `datasets.load_dataset` reads, with a data card.

    Parquet files of a stated size, those of each source in a folder and a configuration of its own.
    The card says what each step above kept and dropped and why, what was done about personal data,
    benchmarks, opt-outs and documents to forget; `croissant.json` describes files and columns for
    other readers. With `pages`, each document has the licence that
    its page names, and those marked against use for AI are left out. Documents on the list
    `exclusions` are refused. No file names a date or a machine.
    """

    name, version, reproducible = "export_dataset", 2, "bytes"
    inputs = {
        "documents": Many("documents", at_least=1),
        "pages": Many("pages"),
        "exclusions": Maybe("exclusions"),
    }
    outputs = {"dataset": "dataset"}
    worker_modules = ("stages.export.dataset_files",)
    libraries = ("pyarrow", "huggingface_hub")
    handles_documents = True
    Config, Execution = DatasetConfig, MapExecution

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """Licences to choose by, without the pages that name them."""
        _check(config, bool(inputs.get("pages")))

    def run(self, context: Context) -> None:
        """Count and check, plan files, write them, then the card."""
        from stages.export.croissant import CROISSANT, describe_dataset
        from stages.export.dataset_card import dataset_card, describe
        from stages.export.dataset_files import (
            Choice,
            plan_files,
            scan_documents,
            sum_counts,
            write_file,
        )
        from stages.export.provenance import Provenance, full_name

        config: DatasetConfig = context.config
        documents, pages = context.many("documents"), context.many("pages")
        _check(config, bool(pages))
        choice = Choice.from_inputs(config, pages, context.maybe("exclusions"))
        shards = [shard for one in documents for shard in one.shards()]
        scans = context.map(scan_documents, shards, choice=choice)
        planned = plan_files(shards, scans, config.shard_bytes)
        dropped: Counter[str] = Counter()
        for scan in scans:
            dropped.update(scan.value["dropped"])
        if not planned:
            raise InputError(
                "no document is left to publish",
                where="documents",
                hint="see which were left out, and why: licences, opted_out",
            )
        written = context.map(write_file, planned, choice=choice)
        sources: dict[str, dict[str, Any]] = {}
        for item, result in zip(planned, written, strict=True):
            one = sources.setdefault(
                item.source, {"name": item.folder, "files": [], "documents": 0, "bytes": 0}
            )
            one["files"].append(result.value["path"])
            for name in ("documents", "bytes"):
                one[name] += result.value[name]
        for name in ("languages", "licences"):
            for source, counts in sum_counts(scans, name).items():
                sources[source][name] = dict(counts)
        references = [
            InputRef(
                stage=one.stage, key=one.key, output=one.output, kind=one.kind, digest=one.digest
            )
            for one in documents
        ]
        own = (context.attempt.stage, context.attempt.key)
        described = []
        steps: dict[tuple[str, str], Manifest] = {}
        for read, reference in zip(documents, references, strict=True):
            provenance = Provenance.read(read)
            described.append(provenance.described(own, reference))
            for step in provenance.records_above(reference):
                steps[step.stage, step.key] = step
        facts = {
            "name": config.name,
            "license": config.license,
            "sources": sources,
            "left_out": dict(dropped),
            "pages": bool(pages),
            "made_of": [full_name(reference) for reference in references],
        }
        card = dataset_card(config, facts, list(reversed(steps.values())), described)
        context.write_json("dataset", "dataset.json", facts)
        context.write_bytes("dataset", "README.md", card.encode())
        files = [
            result.files["dataset", item.path].file
            for item, result in zip(planned, written, strict=True)
        ]
        croissant = describe_dataset(config, describe(config), facts, files)
        context.write_json("dataset", CROISSANT, croissant)
        total = sum(one["documents"] for one in sources.values())
        context.count(documents=total, bytes=sum(one["bytes"] for one in sources.values()))
        context.count(files=len(planned))
        context.conserve(
            records_in=sum(scan.value["rows"] for scan in scans), out=total, dropped=dropped
        )


def _check(config: DatasetConfig, has_pages: bool) -> None:
    if config.licences and not has_pages:
        raise UsageError(
            "licences are chosen by what pages name, and no pages are connected",
            where="licences",
            hint="connect the `pages` of the ingest step, or leave `licences` out",
        )
