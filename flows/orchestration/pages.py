"""What a run shows in the UI, as Markdown and tables: plan, funnel, evaluation, lineage."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from flows.recipe.plan import Plan, PlannedStep
from stages.engine.figures import (
    Figure,
    PairsFigure,
    SamplesFigure,
    TableFigure,
    TextFigure,
)

BAR = 12
MOST_REASONS = 6
Made = tuple[str, Manifest]
"""A step's instance and what it made."""


def artifact_key(name: str) -> str:
    """A name in the form that Prefect allows: lowercase letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def plan_rows(steps: Iterable[PlannedStep]) -> list[dict[str, Any]]:
    """A row for each step: what happens to it, why, and its key where that is known."""
    return [
        {
            "step": step.instance,
            "action": step.action,
            "key": short(step.key or ""),
            "cause": "; ".join(part for part in (step.cause, step.note) if part),
        }
        for step in steps
    ]


def funnel_page(made: Iterable[Made]) -> str:
    """Records in and out of each step that accounts for them, and why the others went."""
    rows = []
    for instance, manifest in made:
        account = manifest.conservation
        if account is not None:
            share = account.out / account.records_in if account.records_in else 0.0
            rows.append(
                (
                    instance,
                    f"{account.records_in:,}",
                    f"{account.out:,}",
                    f"{share:.1%}",
                    _bar(share),
                    _reasons(account.dropped),
                )
            )
    return _table(("step", "in", "out", "kept", "", "dropped"), rows, right={1, 2, 3})


def figures_page(figures: Iterable[Figure]) -> str:
    """Figures as tables, one below the other; samples and texts are left to the report."""
    parts = []
    for figure in figures:
        if isinstance(figure, TextFigure | SamplesFigure | PairsFigure):
            continue
        table = figure if isinstance(figure, TableFigure) else figure.table()
        rows = [
            [column.show(cell) for column, cell in zip(table.columns, row, strict=True)]
            for row in table.rows
        ]
        right = {i for i, column in enumerate(table.columns) if column.align == "right"}
        shown = _table([column.heading for column in table.columns], rows, right=right)
        parts.append(f"### {_plain(table.title)}\n\n{shown}\n\n{_plain(table.note)}".strip())
    return "\n\n".join(parts)


def lineage_page(made: Sequence[Made]) -> str:
    """The steps' artifacts, a graph of what each was made of, and the same as a table."""
    nodes = {(manifest.stage, manifest.key): instance for instance, manifest in made}
    lines, rows = ["```mermaid", "flowchart TD"], []
    names = {node: f"n{i}" for i, node in enumerate(nodes)}
    for instance, manifest in made:
        this = names[manifest.stage, manifest.key]
        lines.append(f'  {this}["{_label(instance)}"]')
        parents: dict[tuple[str, str], list[str]] = {}
        for role, references in manifest.inputs.items():
            for reference in references:
                parents.setdefault((reference.stage, reference.key), []).append(role)
        for parent in parents:
            if parent not in names:
                names[parent] = f"n{len(names)}"
                lines.append(f'  {names[parent]}["{_label(parent[0])}"]')
            lines.append(f"  {names[parent]} --> {this}")
        of = ", ".join(nodes.get(parent, f"{parent[0]} {short(parent[1])}") for parent in parents)
        rows.append((instance, manifest.stage, f"`{short(manifest.key)}`", of))
    lines.append("```")
    return "\n".join([*lines, "", _table(("step", "stage", "key", "made of"), rows, code={2})])


def made_by(plan: Plan) -> list[Made]:
    """What stands of a plan."""
    return [(step.instance, step.manifest) for step in plan.steps if step.manifest is not None]


def line_of(values: Mapping[str, Any]) -> str:
    """Names and numbers in a line of a log."""
    return ", ".join(
        f"{name} {value:,.4g}"
        if isinstance(value, float)
        else f"{name} {value:,}"
        if isinstance(value, int) and not isinstance(value, bool)
        else f"{name} {value}"
        for name, value in values.items()
    )


def _reasons(dropped: Mapping[str, int]) -> str:
    ordered = sorted(dropped.items(), key=lambda item: (-item[1], item[0]))
    said = [f"{reason} {count:,}" for reason, count in ordered[:MOST_REASONS]]
    if rest := ordered[MOST_REASONS:]:
        said.append(f"{len(rest)} more reasons {sum(count for _, count in rest):,}")
    return ", ".join(said)


def _bar(share: float) -> str:
    full = round(BAR * min(max(share, 0.0), 1.0))
    return "█" * full + "░" * (BAR - full)


def _table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    right: set[int] = frozenset(),  # type: ignore[assignment]
    code: set[int] = frozenset(),  # type: ignore[assignment]
) -> str:
    line = ["---:" if i in right else "---" for i in range(len(heads))]
    body = [[cell if i in code else _plain(cell) for i, cell in enumerate(row)] for row in rows]
    shown = [[_plain(head) for head in heads], line, *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in shown)


def _plain(text: str) -> str:
    """Text in which nothing is markup; names and reasons may come from outside."""
    return re.sub(r"([\\`*<>|\[\]!&$~])", r"\\\1", " ".join(text.split()))


def _label(text: str) -> str:
    return re.sub(r"[^\w .\[\]-]", "", text)
