"""The sample as committed: readable, told in full, and the same from every surrounding."""

from __future__ import annotations

import io
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import document_id
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from stages.engine import Input
from stages.engine.runner import run_stage as run_spec
from stages.engine.sources import SourceFile, snapshot_name, source_files
from stages.engine.spec import StageSpec
from stages.sample.config import SampleConfig
from stages.sample.crawl import jaccard, visible_text
from stages.sample.stage import Sample

CONFIG = {"share": 0.12, "crawl_files": 2, "planted": {"broken_record": 70}}
"""With 70 of 100 spoilt records at 12 %: nine, so that every manner is there."""

Made = tuple[Store, Manifest]


def run_in(folder: Path, config: dict[str, Any], workers: int = 1) -> Made:
    store = Store.open(str(folder / "store"))
    spec = StageSpec.make(Sample, config, {}, {"workers": workers})
    return store, run_spec(store, spec).manifest


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return run_in(tmp_path_factory.mktemp("sample"), CONFIG)


@pytest.fixture(scope="module")
def snapshot(made: Made) -> Callable[[str], Input]:
    store, manifest = made
    return lambda output: Input.from_manifest(store, manifest, output)


@pytest.fixture(scope="module")
def truth(snapshot: Callable[[str], Input]) -> list[dict[str, Any]]:
    return list(snapshot("truth").read_table("truth.parquet").to_pylist())


@pytest.fixture(scope="module")
def records(snapshot: Callable[[str], Input]) -> dict[str, Any]:
    """doc_id → (address, status, type, payload, promised length) as fastwarc reads the crawl."""
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    crawl, found = snapshot("crawl"), {}
    for file in source_files(crawl):
        data = io.BytesIO(read(file))
        for record in ArchiveIterator(data, record_types=WarcRecordType.response):
            name = document_id(snapshot_name(crawl), file.name, record.stream_pos)
            http = record.http_headers
            found[name] = (
                record.headers["WARC-Target-URI"],
                http.status_code if http else None,
                record.http_content_type,
                record.reader.read(),
                record.headers.get("WARC-Truncated"),
            )
    return found


def read(file: SourceFile) -> bytes:
    with file.open() as stream:
        return stream.read()


def lines(snapshot: Input) -> list[dict[str, Any]]:
    return [json.loads(line) for f in source_files(snapshot) for line in read(f).splitlines()]


def test_every_defect_is_told_with_the_id_of_its_record(
    truth: list[dict[str, Any]], records: dict[str, Any], made: Made
) -> None:
    assert {row["doc_id"] for row in truth} <= set(records)
    assert all(records[row["doc_id"]][0] == row["url"] for row in truth)
    assert len(records) == made[1].counts["records"]
    assert {row["defect"] for row in truth} == {
        "near_duplicate",
        "exact_duplicate",
        "boilerplate",
        "garbled",
        "repetition",
        "personal_data",
        "benchmark_leak",
        "broken_record",
    }


def test_all_records_are_whole_pages_but_the_broken_ones(
    truth: list[dict[str, Any]], records: dict[str, Any]
) -> None:
    broken = {row["doc_id"]: row["detail"] for row in truth if row["defect"] == "broken_record"}
    assert len(set(broken.values())) == 8
    for name, (_, status, kind, body, truncated) in records.items():
        if name not in broken:
            assert (status, kind, truncated) == (200, "text/html", None)
            assert body.decode().endswith("</html>\n")
    seen = {manner: records[name] for name, manner in broken.items()}
    assert seen["http_404"][1] == 404
    assert seen["http_500"][1] == 500
    assert seen["not_html"][2] == "image/png"
    assert seen["empty_body"][3] == b""
    assert seen["truncated"][4] == "length"
    assert seen["malformed_http"][1] is None
    assert not seen["cut_record"][3].endswith(b"</html>\n")


def test_copies_name_their_originals_and_are_as_alike_as_told(
    truth: list[dict[str, Any]], records: dict[str, Any]
) -> None:
    def article(name: str) -> str:
        return str(records[name][3].decode().split("<article>")[1].split("</article>")[0])

    copies = [row for row in truth if row["defect"].endswith("_duplicate")]
    assert copies
    for row in copies:
        alike = jaccard(article(row["doc_id"]), article(row["partner"]))
        assert alike == 1 if row["defect"] == "exact_duplicate" else 0.87 <= alike < 1


@pytest.mark.parametrize(("extractor", "least"), [("resiliparse", 0.95), ("trafilatura", 0.88)])
def test_extractors_find_the_article_and_leave_the_frame(
    truth: list[dict[str, Any]], records: dict[str, Any], extractor: str, least: float
) -> None:
    """Nearly all words of the articles: lists of links go, and trafilatura drops what repeats."""
    spoilt = {row["doc_id"] for row in truth}
    found = there = 0
    for name, (_, _, _, body, _) in sorted(records.items()):
        if name in spoilt:
            continue
        text = extract(extractor, body.decode())
        article = body.decode().split("<article>")[1].split("</article>")[0]
        assert "This site uses cookies" not in text
        assert "On this shelf" not in text
        found += len(re.findall(r"\w+", text))
        there += len(re.findall(r"\w+", visible_text(article)))
    assert least < found / there < 1.01


def extract(extractor: str, page: str) -> str:
    if extractor == "trafilatura":
        import trafilatura

        return trafilatura.extract(page) or ""
    from resiliparse.extract.html2text import extract_plain_text

    return str(extract_plain_text(page, main_content=True))


def test_only_planted_pages_leak_benchmark_items(
    truth: list[dict[str, Any]], records: dict[str, Any], snapshot: Callable[[str], Input]
) -> None:
    from stages.sample.lessons import drop_shared

    items = lines(snapshot("benchmarks"))
    leaks = {row["doc_id"]: row["partner"] for row in truth if row["defect"] == "benchmark_leak"}
    pages = {n: visible_text(r[3].decode(errors="replace")) for n, r in records.items()}
    code = [read(file).decode() for file in source_files(snapshot("code"))]
    clean = [text for name, text in pages.items() if name not in leaks]
    assert drop_shared(items, [*clean, *code]) == items
    for name, item in leaks.items():
        kept = {i["item_id"] for i in drop_shared(items, [pages[name]])}
        assert item not in kept


def test_the_other_outputs_hold_what_their_readers_expect(
    snapshot: Callable[[str], Input], made: Made
) -> None:
    counts = made[1].counts
    chats, pairs = lines(snapshot("conversations")), lines(snapshot("preferences"))
    assert len(chats) == counts["conversations"] > 20
    assert all(chat["messages"][-1]["role"] == "assistant" for chat in chats)
    assert len(pairs) == counts["preferences"] > 20
    assert all(set(pair) == {"prompt", "chosen", "rejected"} for pair in pairs)
    code = source_files(snapshot("code"))
    assert "_collections_abc.py" in [file.name for file in code]
    items = lines(snapshot("benchmarks"))
    assert {item["benchmark"] for item in items} == {
        "docstrings", "held_out_modules", "word_order", "brackets", "quotes",
    }  # fmt: skip


@pytest.mark.full
def test_the_sample_is_the_same_from_every_surrounding(made: Made, tmp_path: Path) -> None:
    """Another hash seed, folder, home, zone, locale and number of workers: the same digests."""
    program = tmp_path / "other.py"
    program.write_text(
        "import json, sys\n"
        "from artifacts_schema.store import Store\n"
        "from stages.engine.runner import run_stage\n"
        "from stages.engine.spec import StageSpec\n"
        "from stages.sample.stage import Sample\n"
        "if __name__ == '__main__':\n"
        "    spec = StageSpec.make(Sample, json.loads(sys.argv[1]), {}, {'workers': 2})\n"
        "    manifest = run_stage(Store.open('store'), spec).manifest\n"
        "    print(json.dumps({n: o.digest for n, o in manifest.outputs.items()}))\n"
    )
    root = Path(__file__).resolve().parents[3]
    surrounding = {
        "PATH": os.environ.get("PATH", ""),
        "PYTHONPATH": str(root),
        "PYTHONHASHSEED": "4321",
        "HOME": str(tmp_path),
        "TZ": "Pacific/Auckland",
        "LC_ALL": "C",
        "PYTHONDOCS": "https://elsewhere.example",
        "SOMETHING": "else",
    }
    done = subprocess.run(
        [sys.executable, str(program), json.dumps(CONFIG)],
        env=surrounding,
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    here = {name: output.digest for name, output in made[1].outputs.items()}
    assert json.loads(done.stdout.splitlines()[-1]) == here


def test_another_seed_gives_another_crawl_of_the_same_code(made: Made, tmp_path: Path) -> None:
    _, other = run_in(tmp_path, {**CONFIG, "seed": 1})
    assert other.outputs["code"].digest == made[1].outputs["code"].digest
    assert other.outputs["crawl"].digest != made[1].outputs["crawl"].digest


def test_the_plan_fills_in_the_running_python() -> None:
    completed = Sample.complete(SampleConfig())
    assert completed.identity() == {"python_version": platform.python_version()}


def test_another_python_than_planned_is_refused(run_stage: Callable[..., Manifest]) -> None:
    with pytest.raises(UsageError, match=r"3\.11\.0"):
        run_stage(Sample, {"python_version": "3.11.0"})


def test_a_python_without_its_library_is_refused_with_the_reasons(
    run_stage: Callable[..., Manifest], monkeypatch: pytest.MonkeyPatch
) -> None:
    from artifacts_schema.errors import InputError
    from stages.sample import modules

    monkeypatch.setattr(modules, "CRAWL", ("no_such_module", "nor_this"))
    with pytest.raises(InputError, match="no_such_module"):
        run_stage(Sample, {"share": 0.2})
