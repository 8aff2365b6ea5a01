"""The sample stage: a small crawl, code, lessons and questions, made of the running Python."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from artifacts_schema import config as settings
from artifacts_schema.config import Config, Execution
from artifacts_schema.errors import UsageError
from stages.engine import Context, Stage, check_bad_share

if TYPE_CHECKING:
    from stages.sample.harvest import Module
    from stages.sample.plant import Located


class Planted(Config):
    """How many records of the whole crawl carry each defect."""

    near_duplicate: int = Field(
        default=8, ge=0, description="Copies with a banner and a few changed words."
    )
    exact_duplicate: int = Field(
        default=4, ge=0, description="Copies with the same content at another address."
    )
    boilerplate: int = Field(default=4, ge=0, description="Pages of links and nothing else.")
    garbled: int = Field(default=4, ge=0, description="Pages whose words are unreadable.")
    repetition: int = Field(default=4, ge=0, description="Pages that repeat a few sentences.")
    personal_data: int = Field(
        default=6, ge=0, description="Pages with invented e-mail and public IP addresses."
    )
    benchmark_leak: int = Field(
        default=6, ge=0, description="Pages with the text of a benchmark item pasted in."
    )
    broken_record: int = Field(
        default=8, ge=0, description="Records that cannot become documents, each in another way."
    )


class SampleConfig(Config):
    """What the sample holds."""

    python_version: str | None = Field(
        default=None,
        pattern=r"^\d+\.\d+\.\d+\S*$",
        description="Version of the Python that is documented; the plan fills in the running one.",
    )
    seed: int = Field(default=0, ge=0, description="Of what is planted where and asked how.")
    share: float = Field(
        default=1.0, gt=0, le=1, description="Share of the modules and of the planted records."
    )
    crawl_files: int = Field(default=4, ge=1, le=1000, description="WARC files of the crawl.")
    decoys: int = Field(
        default=6, ge=0, description="Pages that share a long notice without being duplicates."
    )
    planted: Planted = Field(default=Planted(), description="Defects planted in the crawl.")
    max_bad_share: float = Field(
        default=0.1, ge=0, le=1, description="Share of modules that this Python may lack."
    )


class Sample(Stage):
    """Write everything the pipeline reads, from the documentation that every Python carries.

    Pages of documentation become a crawl of WARC files, with defects planted and told in `truth`;
    source files become code; docstrings of modules that are in neither become
    conversations and preference pairs, and those of still others benchmark items. Nothing hangs on
    the machine: modules are documented in fresh interpreters with a fixed hash seed and an empty
    environment, and addresses of objects and folders are scrubbed, so that one version of Python
    gives the same bytes everywhere.
    """

    name, version, reproducible = "sample", 1, "bytes"
    outputs = {
        "crawl": "snapshot",
        "code": "snapshot",
        "conversations": "snapshot",
        "preferences": "snapshot",
        "benchmarks": "snapshot",
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
        """Document, plant, and write six outputs."""
        from stages.sample import modules
        from stages.sample.lessons import conversations, preferences

        config: SampleConfig = context.config
        python = _running_python(config)
        lists = [modules.CRAWL, modules.CONVERSATIONS, modules.BENCHMARKS]
        crawl, lessons, questions = (_first(names, config.share) for names in lists)
        documented = _document(context, [*crawl, *lessons, *questions])
        taught = [documented[name] for name in lessons if name in documented]
        asked = [documented[name] for name in questions if name in documented]
        pages = [page for name in crawl if name in documented for page in documented[name].pages]
        sources = [*_first(modules.CODE, config.share), *crawl]
        code = _read_code(context, [name for name in sources if name != modules.TOPICS])

        items = _write_benchmarks(context, python, asked, [page.html for page in pages], code)
        located = _write_crawl(context, python, pages, items)
        _write_truth(context, _snapshot("crawl", python), located)
        _write_snapshot(context, "code", python, code)
        for output, rows in (
            ("conversations", conversations(taught, config.seed)),
            ("preferences", preferences(taught, config.seed)),
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


def _first(names: Sequence[str], share: float) -> list[str]:
    """The first `share` of a list, but at least two."""
    return list(names[: max(2, math.ceil(len(names) * share))])


def _document(context: Context, names: Sequence[str]) -> dict[str, Module]:
    """Every module that this Python has, by name."""
    import json

    from stages.sample.harvest import SCRATCH, document_group, groups, module_of

    results = context.map(document_group, groups(names))
    missing = {name: why for part in results for name, why in part.value["missing"].items()}
    told = [f"{name}: {why}" for name, why in missing.items()]
    for text in told:
        context.sample("module_missing", text)
    check_bad_share(len(missing), len(names), context.config.max_bad_share, told, "sample")
    context.count(modules_documented=len(names) - len(missing), modules_missing=len(missing))
    rows = (json.loads(r) for part in results for r in _records(part.read_scratch(SCRATCH)))
    return {row["module"]: module_of(row) for row in rows}


def _records(table: Any) -> list[str]:
    return list(table.column("record").to_pylist())


def _write_crawl(
    context: Context, python: str, documented: Sequence[Any], items: Sequence[dict[str, Any]]
) -> list[Located]:
    """The WARC files; returns where each record lies."""
    from stages.sample.plant import layout, plant
    from stages.sample.site import site_pages

    config: SampleConfig = context.config
    pages = site_pages(documented, ".".join(python.split(".")[:2]))
    planted = config.planted.plain()
    counts = {kind: math.ceil(count * config.share) for kind, count in planted.items()}
    decoys = math.ceil(config.decoys * config.share)
    records = plant(pages, items, counts, decoys, python, config.seed)
    files, located = layout(records, config.crawl_files, config.seed)
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
    from stages.sample.harvest import source_file

    found = {name: source_file(name) for name in names}
    missing = [name for name, source in found.items() if source is None]
    for name in missing:
        context.sample("source_missing", name)
    check_bad_share(len(missing), len(names), context.config.max_bad_share, missing, "sample")
    files = {source[0]: source[1].encode() for source in found.values() if source is not None}
    context.count(source_files=len(files), sources_missing=len(missing))
    return files


def _write_benchmarks(
    context: Context,
    python: str,
    asked: Sequence[Module],
    pages: Sequence[str],
    code: dict[str, bytes],
) -> list[dict[str, Any]]:
    """One file a benchmark, of items that neither a page nor a source file repeats."""
    from stages.sample.quizzes import docstring_items, text_items, unshared
    from stages.sample.site import visible_text

    made = [*docstring_items(asked, context.config.seed), *text_items(asked)]
    texts = [*map(visible_text, pages), *(data.decode() for data in code.values())]
    items = unshared(made, texts)
    names = sorted({item["benchmark"] for item in items})
    files = {f"{b}.jsonl": _jsonl([i for i in items if i["benchmark"] == b]) for b in names}
    _write_snapshot(context, "benchmarks", python, files)
    context.count(benchmark_items=len(items), benchmark_items_shared=len(made) - len(items))
    return items


def _snapshot(output: str, python: str) -> str:
    return f"python-{python}-{output}"


def _write_snapshot(context: Context, output: str, python: str, files: dict[str, bytes]) -> None:
    """A snapshot that carries its files."""
    import hashlib

    listed = [
        {"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in sorted(files.items())
    ]
    for name, data in sorted(files.items()):
        context.write_bytes(output, f"files/{name}", data)
    listing = {"name": _snapshot(output, python), "files": listed}
    context.write_json(output, "snapshot.json", listing)
    context.count(**{f"{output}_bytes": sum(map(len, files.values()))})


def _jsonl(rows: Sequence[dict[str, Any]]) -> bytes:
    import json

    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
