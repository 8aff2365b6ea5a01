"""Scores on a model card: of which checkpoint, how surely, and without contaminated items."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from artifacts_schema.identity import short
from artifacts_schema.manifest import InputRef, Manifest
from stages.engine import Input
from stages.export.provenance import HELD_OUT, Provenance, Relation, input_references
from stages.scoring.metrics import row_label

Row = Mapping[str, Any]
Setting = tuple[str, str | None, int | None]
"""Benchmark, formulation, shots."""

HIGHER_IS_BETTER = ("accuracy", "accuracy_by_bytes")
CLEAN = "_clean"
PIPELINE = "planted/"
HELD_OUT_TEXT = f"{HELD_OUT}/"


class Contamination(NamedTuple):
    """Items of a benchmark of which it is known whether the corpus holds an n-gram of them."""

    checked: int
    contaminated: int


def count_contaminated(items: Iterable[Row]) -> dict[Setting, Contamination]:
    """By benchmark, formulation and shots; rows of `items.parquet`, each item counted once."""
    flags: dict[Setting, dict[str, bool]] = {}
    for row in items:
        if row["contaminated"] is not None:
            flags.setdefault(_setting(row), {})[row["item_id"]] = row["contaminated"]
    return {
        setting: Contamination(len(by_item), sum(by_item.values()))
        for setting, by_item in flags.items()
    }


def _setting(row: Row) -> Setting:
    return row["benchmark"], row.get("formulation"), row.get("shots")


@dataclass(frozen=True)
class Evaluation:
    """An evaluation for the card, and which checkpoint it measured."""

    stage: str
    key: str
    results: tuple[Row, ...]
    generations: tuple[Row, ...]
    checkpoints: tuple[InputRef, ...]
    relation: Relation
    corpus: bool
    """Whether its planted defects were looked up in a corpus that the release was trained on."""
    revisions: Mapping[str, str]
    """Short digest of the data behind the scores: `benchmarks` and `held_out`."""
    contamination: Mapping[Setting, Contamination]

    @classmethod
    def read(cls, evaluation: Input, provenance: Provenance) -> Evaluation:
        """The tables of an evaluation output, and from its manifest what it measured."""
        manifest = evaluation.lineage()[0]
        checkpoints = tuple(input_references(manifest, "checkpoint"))
        return cls(
            evaluation.stage,
            evaluation.key,
            tuple(evaluation.read_table("results.parquet").to_pylist()),
            tuple(evaluation.read_table("generations.parquet").to_pylist()),
            checkpoints,
            provenance.relation(checkpoints),
            provenance.has(input_references(manifest, "ledger")),
            _revisions(manifest),
            count_contaminated(
                evaluation.read_table(
                    "items.parquet",
                    ["benchmark", "formulation", "shots", "item_id", "contaminated"],
                ).to_pylist()
            ),
        )

    @property
    def of_model(self) -> list[Row]:
        """Scores of the checkpoint."""
        return [row for row in self.results if not row["benchmark"].startswith(PIPELINE)]

    @property
    def of_corpus(self) -> list[Row]:
        """What the pipeline caught; of no checkpoint."""
        return [row for row in self.results if row["benchmark"].startswith(PIPELINE)]


def _revisions(manifest: Manifest) -> dict[str, str]:
    by_group = {
        "benchmarks": input_references(manifest, "benchmarks"),
        HELD_OUT: input_references(manifest, "token_shards"),
    }
    return {
        name: "-".join(short(reference.digest) for reference in references)
        for name, references in by_group.items()
        if references
    }


def at_chance(row: Row) -> bool:
    """Whether the 95 % interval of a score includes its baseline, or is worse."""
    if row["baseline"] is None:
        return False
    if row["metric"].removesuffix(CLEAN) in HIGHER_IS_BETTER:
        return row["low"] is None or not row["low"] > row["baseline"]
    return row["high"] is None or not row["high"] < row["baseline"]


def scores_table(evaluation: Evaluation) -> str:
    """A Markdown table of scores: how items were put, the interval, and contaminated items.

    A score without contaminated items stands in the row of the score of all.
    """
    rows = {(_setting(row), row["metric"]): row for row in evaluation.of_model}
    lines = [
        "| benchmark | formulation | shots | metric | value | 95 % interval | baseline | n "
        "| contaminated items | without them |",
        "|---|---|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    for (setting, metric), row in rows.items():
        if metric.endswith(CLEAN) and (setting, metric.removesuffix(CLEAN)) in rows:
            continue
        benchmark, formulation, shots = setting
        counted = evaluation.contamination.get(setting)
        cells = [
            plain_cell(benchmark),
            "–" if formulation is None else plain_cell(formulation.replace("_", " ")),
            "–" if shots is None else str(shots),
            metric,
            *_numbers(row),
            f"{counted.contaminated:,} of {counted.checked:,}" if counted else "not checked",
            _without_contaminated(counted, rows.get((setting, f"{metric}{CLEAN}"))),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _without_contaminated(counted: Contamination | None, clean: Row | None) -> str:
    if counted is None:
        return "–"
    if counted.contaminated == 0:
        return "the same"
    if clean is None:
        return "no item" if counted.contaminated == counted.checked else "–"
    value, interval, _, count = _numbers(clean)
    return f"{value} ({interval}), n {count}"


def results_table(rows: Sequence[Row]) -> str:
    """A Markdown table of what the pipeline caught, with intervals."""
    lines = [
        "| benchmark | metric | value | 95 % interval | baseline | n |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        cells = [plain_cell(row_label(row)), row["metric"], *_numbers(row)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _numbers(row: Row) -> tuple[str, str, str, str]:
    """Value, interval, baseline and count."""
    interval = "–" if row["low"] is None else f"{_number(row['low'])} to {_number(row['high'])}"
    return _number(row["value"]), interval, _number(row["baseline"]), f"{row['count']:,}"


SCORES_NOTE = (
    "Accuracy by log-likelihood of the choices (`by_bytes`: divided by their UTF-8 bytes), with "
    "Wilson's interval, baseline chance; bits per UTF-8 byte, lower is better, baseline the "
    "token-unigram model. `n` counts items, of bits per byte bytes. Formulation and shots: how "
    "items were put to the model; `–` where the benchmark has one way alone. An item is "
    "contaminated if it shares an n-gram with the corpus that the evaluation was given; "
    "`not checked`: it was given none. Computed in float32."
)


def evaluations_section(own: Sequence[Evaluation], rounded_to: str | None) -> str:
    """Scores of the release; `rounded_to` is the type its weights were rounded to afterwards."""
    parts = ["## Evaluation"]
    if not own:
        parts.append("This checkpoint was released without an evaluation.")
    for evaluation in own:
        name = f"`{evaluation.stage}/{short(evaluation.key)}`"
        measured = _checkpoints(evaluation)
        parts.append(f"Of {measured}, the checkpoint that is released here, artifact {name}:")
        if evaluation.of_model:
            parts.append(scores_table(evaluation))
        for row in evaluation.generations:
            written = f"{row['prompt']}{row['completion']}".replace("\n", "\n    ")
            parts.append(f"Sample ({row['form']}, prompt first):\n\n    {written}")
    if any(evaluation.of_model for evaluation in own):
        parts.insert(1, SCORES_NOTE)
        if rounded_to is not None:
            parts.insert(
                2, f"Scores are of the checkpoint before its weights were stored as {rounded_to}."
            )
    return "\n\n".join(parts)


def other_checkpoints_sections(evaluations: Sequence[Evaluation]) -> list[str]:
    """Scores of checkpoints that are not the released one; of these, no sample is shown."""
    titles: dict[Relation, str] = {
        "earlier": "## Earlier checkpoints\n\nScores of checkpoints that this model was trained "
        "from. They are not scores of this model.",
        "other": "## Other checkpoints\n\nScores of checkpoints that are not above this model. "
        "They are not scores of this model.",
    }
    sections = []
    for relation, title in titles.items():
        chosen = [e for e in evaluations if e.relation == relation and e.of_model]
        parts = [f"{_measured(evaluation)}\n\n{scores_table(evaluation)}" for evaluation in chosen]
        if parts:
            sections.append("\n\n".join([title, *parts]))
    return sections


def _checkpoints(evaluation: Evaluation) -> str:
    names = [f"`{one.stage}/{short(one.key)}`" for one in evaluation.checkpoints]
    return " and ".join(names) or "a checkpoint that its manifest does not name"


def _measured(evaluation: Evaluation) -> str:
    return f"Of {_checkpoints(evaluation)}, artifact `{evaluation.stage}/{short(evaluation.key)}`:"


def planted_table(evaluations: Sequence[Evaluation]) -> str:
    """Planted defects that the pipeline caught in this model's corpus, each score once."""
    rows = {
        (row["benchmark"], row["metric"], row["value"], row["count"]): row
        for evaluation in evaluations
        if evaluation.corpus
        for row in evaluation.of_corpus
    }
    return results_table(list(rows.values())) if rows else ""


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.4f}" if math.isfinite(value) else "not finite"


def plain_cell(text: str) -> str:
    """A text as one cell of a table in Markdown."""
    return text.replace("|", "\\|").replace("\n", " ")
