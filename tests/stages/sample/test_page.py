from __future__ import annotations

from typing import Any

from artifacts_schema.kinds import KINDS
from artifacts_schema.store import Store
from stages.engine import Stage
from stages.engine.page import Artifact, make_page
from stages.sample.stage import Sample


def made(*rows: dict[str, Any]) -> type[Stage]:
    """A stage with a snapshot of 30 bytes in two files, and these rows of truth."""

    def run(self: Stage, context: Any) -> None:
        import pyarrow as pa

        context.write_json("crawl", "snapshot.json", {"name": "made", "files": []})
        context.write_bytes("crawl", "files/a", b"x" * 10)
        context.write_bytes("crawl", "files/b", b"x" * 20)
        schema = KINDS["truth"].tables["*.parquet"].arrow()
        truth = pa.Table.from_pylist(list(rows), schema=schema)
        context.write_table("truth", "truth.parquet", truth)
        context.count(records=100)

    members = {
        "name": "made",
        "version": 1,
        "reproducible": "bytes",
        "outputs": {"crawl": "snapshot", "truth": "truth"},
        "run": run,
    }
    return type("Made", (Stage,), members)


def planted(defect: str, number: int, count: int = 1) -> dict[str, Any]:
    url = f"https://x.example/{number}"
    return {
        "defect": defect,
        "doc_id": f"{number:032x}",
        "url": url,
        "count": count,
        "detail": "<b>",
    }


def test_what_was_made_and_planted_is_tabled(store: Store, run_stage: Any) -> None:
    rows = [planted("garbled", 3), planted("personal_data", 1, 4), planted("personal_data", 2, 2)]
    found = make_page(Sample, Artifact(store, run_stage(made(*rows))))
    page: dict[str, Any] = {figure.title: figure for figure in found}
    assert page["Snapshots made (bytes)"].rows == (("crawl", 2, 30),)
    assert page["Defects planted in the crawl (records)"].rows == (
        ("garbled", 1, 1),
        ("personal_data", 2, 6),
    )
    examples = page["Examples of planted defects"].rows
    assert examples[0] == ("garbled", "https://x.example/3", "<b>", None)
    assert len(examples) == 3


def test_nothing_planted_is_no_table(store: Store, run_stage: Any) -> None:
    found = make_page(Sample, Artifact(store, run_stage(made())))
    assert [figure.title for figure in found] == ["Snapshots made (bytes)"]
