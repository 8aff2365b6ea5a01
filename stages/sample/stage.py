"""The sample stage: a small crawl, code, lessons and questions, made of the running Python."""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from artifacts_schema import config as settings
from artifacts_schema.config import Execution
from artifacts_schema.errors import UsageError
from stages.engine import Context, Stage, check_bad_share
from stages.sample.config import SampleConfig

if TYPE_CHECKING:
    from stages.sample.defects import Located
    from stages.sample.modules import Module


class Sample(Stage):
    """Write everything the pipeline reads, from the documentation that every Python carries.

    Pages of documentation become a crawl of WARC files, with planted defects, which `truth` lists;
    source files become code; docstrings of modules that are in neither become conversations and
    preference pairs, and those of still others benchmark items, with minimal pairs of their
    sentences and statements. Questions for a tuned model are about both. Nothing depends on the
    machine: modules are documented in fresh interpreters with a fixed hash seed and an empty
    environment, and addresses of objects and folders are scrubbed, so that one version of Python
    gives the same bytes everywhere.
    """

    name, version, reproducible = "sample", 3, "bytes"
    outputs = {
        "crawl": "snapshot",
        "code": "snapshot",
        "conversations": "snapshot",
        "preferences": "snapshot",
        "benchmarks": "snapshot",
        "questions": "snapshot",
        "truth": "truth",
    }
    libraries = ("pyarrow",)
    Config, Execution = SampleConfig, Execution

    @classmethod
    def complete(cls, config: settings.Config) -> settings.Config:
        """Name the running Python, whose documentation this will be."""
        assert isinstance(config, SampleConfig)
        version = config.python_version or platform.python_version()
        return config.model_copy(update={"python_version": version})

    def run(self, context: Context) -> None:
        """Document, plant, and write seven outputs."""
        from stages.sample import modules
        from stages.sample.lessons import conversations, preferences, question_items

        config: SampleConfig = context.config
        python = _running_python(config)
        lists = [modules.CRAWL, modules.CONVERSATIONS, modules.BENCHMARKS]
        crawl, lessons, questions = (_take_share(names, config.share) for names in lists)
        documented = _document(context, [*crawl, *lessons, *questions])
        taught = [documented[name] for name in lessons if name in documented]
        quizzed = [documented[name] for name in questions if name in documented]
        pages = [page for name in crawl if name in documented for page in documented[name].pages]
        sources = [*_take_share(modules.CODE, config.share), *crawl]
        code = _read_code(context, [name for name in sources if name != modules.TOPICS])

        held_out = _read_code(context, [*questions, *_take_share(modules.PAIRS, config.share)])
        texts = [page.html for page in pages]
        items = _write_benchmarks(context, python, quizzed, held_out, texts, code)
        located = _write_crawl(context, python, pages, items)
        _write_truth(context, _snapshot("crawl", python), located)
        _write_snapshot(context, "code", python, code)
        for output, rows in (
            ("conversations", conversations(taught, config.seed)),
            ("preferences", preferences(taught, config.seed)),
            ("questions", question_items(taught, quizzed, config.seed)),
        ):
            context.count(**{output: len(rows)})
            _write_snapshot(context, output, python, {"docstrings.jsonl": _jsonl(rows)})


def _running_python(config: SampleConfig) -> str:
    running = platform.python_version()
    if config.python_version != running:
        raise UsageError(
            f"the plan names Python {config.python_version}, this is Python {running}",
            where="sample.python_version",
            hint=f"run it with Python {config.python_version}, or plan again here",
        )
    return running


def _take_share(names: Sequence[str], share: float) -> list[str]:
    """The first `share` of a list, but at least two."""
    return list(names[: max(2, math.ceil(len(names) * share))])


def _document(context: Context, names: Sequence[str]) -> dict[str, Module]:
    """Every module that this Python has, by name."""
    from stages.sample.modules import SCRATCH, document_group, groups, module_from_row

    results = context.map(document_group, groups(names))
    missing = {name: why for part in results for name, why in part.value["missing"].items()}
    reasons = [f"{name}: {why}" for name, why in missing.items()]
    for text in reasons:
        context.sample("module_missing", text)
    check_bad_share(len(missing), len(names), context.config.max_bad_share, reasons, "sample")
    context.count(modules_documented=len(names) - len(missing), modules_missing=len(missing))
    tables = [part.read_scratch(SCRATCH) for part in results]
    rows = [json.loads(record) for table in tables for record in table["record"].to_pylist()]
    return {row["module"]: module_from_row(row) for row in rows}


def _write_crawl(
    context: Context, python: str, documented: Sequence[Any], items: Sequence[dict[str, Any]]
) -> list[Located]:
    """The WARC files; returns where each record lies."""
    from stages.sample.crawl import site_pages
    from stages.sample.defects import lay_out, plant

    config: SampleConfig = context.config
    pages = site_pages(documented, ".".join(python.split(".")[:2]))
    planted = config.planted.plain()
    counts = {kind: math.ceil(count * config.share) for kind, count in planted.items()}
    decoys = math.ceil(config.decoys * config.share)
    records = plant(pages, items, counts, decoys, python, config.seed)
    files, located = lay_out(records, config.crawl_files, config.seed)
    _write_snapshot(context, "crawl", python, files)
    context.count(pages=len(pages), records=len(records), decoys=decoys)
    return located


def _write_truth(context: Context, snapshot: str, located: Sequence[Located]) -> None:
    """One row a planted defect, with the id that its document (or broken record) gets."""
    import pyarrow as pa

    from artifacts_schema.identity import document_id
    from artifacts_schema.kinds import KINDS

    ids = {p.record.exchange.url: document_id(snapshot, p.file, p.offset) for p in located}
    rows = [
        {
            "defect": defect.kind,
            "doc_id": ids[place.record.exchange.url],
            "partner": ids[defect.partner_url] if defect.partner_url else defect.partner_item,
            "url": place.record.exchange.url,
            "count": defect.count,
            "detail": defect.detail,
        }
        for place in located
        if (defect := place.record.defect) is not None
    ]
    rows.sort(key=lambda row: (row["defect"], row["doc_id"]))
    schema = KINDS["truth"].tables["*.parquet"].arrow()
    context.write_table("truth", "truth.parquet", pa.Table.from_pylist(rows, schema=schema))
    for row in rows:
        context.count(**{f"planted_{row['defect']}": 1})


def _read_code(context: Context, names: Sequence[str]) -> dict[str, bytes]:
    """Source files under the names they have in the standard library."""
    from stages.sample.modules import source_file

    sources = {name: source_file(name) for name in names}
    missing = [name for name, source in sources.items() if source is None]
    for name in missing:
        context.sample("source_missing", name)
    check_bad_share(len(missing), len(names), context.config.max_bad_share, missing, "sample")
    files = {source[0]: source[1].encode() for source in sources.values() if source is not None}
    context.count(source_files=len(files), sources_missing=len(missing))
    return files


def _write_benchmarks(
    context: Context,
    python: str,
    quizzed: Sequence[Module],
    sources: dict[str, bytes],
    pages: Sequence[str],
    code: dict[str, bytes],
) -> list[dict[str, Any]]:
    """One file a benchmark, of items that neither a page nor a source file repeats.

    Returns the items with a prompt: pairs are not planted in pages.
    """
    from stages.sample.crawl import visible_text
    from stages.sample.lessons import docstring_items, drop_shared, text_items
    from stages.sample.pairs import balance, minimal_pairs

    seed = context.config.seed
    made = [*docstring_items(quizzed, seed), *text_items(quizzed)]
    made += minimal_pairs([data.decode() for data in sources.values()], seed)
    texts = [*map(visible_text, pages), *(data.decode() for data in code.values())]
    items = balance(drop_shared(made, texts), seed)
    names = sorted({item["benchmark"] for item in items})
    files = {f"{b}.jsonl": _jsonl([i for i in items if i["benchmark"] == b]) for b in names}
    _write_snapshot(context, "benchmarks", python, files)
    context.count(benchmark_items=len(items), benchmark_items_shared=len(made) - len(items))
    return [item for item in items if item["prompt"]]


def _snapshot(output: str, python: str) -> str:
    return f"python-{python}-{output}"


def _write_snapshot(context: Context, output: str, python: str, files: dict[str, bytes]) -> None:
    """A snapshot that carries its files."""
    entries = [
        {"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in sorted(files.items())
    ]
    for name, data in sorted(files.items()):
        context.write_bytes(output, f"files/{name}", data)
    listing = {"name": _snapshot(output, python), "files": entries}
    context.write_json(output, "snapshot.json", listing)
    context.count(**{f"{output}_bytes": sum(map(len, files.values()))})


def _jsonl(rows: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
