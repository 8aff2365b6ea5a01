"""What the made sample contributes to a report."""

from __future__ import annotations

import pyarrow.compute as pc

from stages.engine.page import Artifact, Cell, Figure, TableFigure, make_table
from stages.engine.tally import LeastIds

TRUTH = "truth"
EXAMPLES = 2
DETAIL = 160


def page(artifact: Artifact) -> list[Figure]:
    """What was made, and which defects were planted in the crawl."""
    return [_snapshots(artifact), *_planted(artifact)]


def _snapshots(artifact: Artifact) -> TableFigure:
    rows = tuple(
        (
            name,
            len(output.files) - 1,
            sum(f.bytes for f in output.files if f.path != "snapshot.json"),
        )
        for name, output in artifact.manifest.outputs.items()
        if name != TRUTH
    )
    version = artifact.manifest.config.get("python_version")
    return make_table(
        "Snapshots made (bytes)",
        "snapshot | files:, | bytes:,",
        rows,
        f"All of it is the documentation and source code that Python {version} carries.",
    )


def _planted(artifact: Artifact) -> list[Figure]:
    """The truth by defect, and a few rows of it."""
    table = artifact.output(TRUTH).read_table("truth.parquet")
    if not len(table):
        return []
    planted: list[tuple[Cell, ...]] = sorted(
        (row["defect"], row["doc_id_count"], row["count_sum"])
        for row in table.group_by("defect")
        .aggregate([("doc_id", "count"), ("count", "sum")])
        .to_pylist()
    )
    least = LeastIds(EXAMPLES)
    for defect, *_ in planted:
        least.offer(str(defect), table.filter(pc.equal(table["defect"], defect)))
    examples = tuple(
        (defect, row["url"], row["detail"][:DETAIL], row["partner"])
        for defect, rows in least.groups.items()
        for row in rows
    )
    return [
        make_table(
            "Defects planted in the crawl (records)",
            "defect | records:, | occurrences:,",
            planted,
            f"Of {artifact.manifest.counts['records']:,} records. An evaluation counts which of "
            "them the pipeline caught.",
        ),
        make_table(
            "Examples of planted defects", "defect | address | what | copy or leak of", examples
        ),
    ]
