"""Assembles one self-contained HTML file: no script, no external request, at most 10 MB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup

from artifacts_schema.store import Store
from flows.report.compare import (
    A,
    B,
    FigurePair,
    StepPair,
    align,
    facts_table,
    merged_table,
    pair_figures,
)
from flows.report.draw import NARROW
from flows.report.estimates import list_scores
from flows.report.front import Front, front_page
from flows.report.html import Block, HtmlWriter, write_page
from flows.report.lineage import lineage_svg, lineage_table
from flows.report.overview import cost, facts, figures_to_json, funnel
from flows.report.paired_scores import compare_runs, differences_table
from flows.report.subject import (
    Page,
    Step,
    Subject,
    artifact_facts,
    artifact_tables,
    find_subject,
    format_minute,
    load_pages,
    payload_location,
    step_gist,
)
from flows.report.views import (
    ROWS,
    CellView,
    TableView,
    plot_table,
    table_view,
)
from stages.engine.page import CurveFigure, Figure, Plot, TableFigure

LIMIT = 9_500_000
"""Most bytes of a report; above that the largest figures are omitted."""
FIGURES = 60
"""Most figures of a step."""


@dataclass
class Section:
    """A step in the page."""

    step: Step
    lead: str
    verdict: str = ""
    changes: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list)
    facts: list[tuple[str, list[tuple[str, str]]]] = field(default_factory=list)
    tables: list[Block] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    omitted: list[str] = field(default_factory=list)

    @property
    def gist(self) -> str:
        """The line that stands for the step while it is folded."""
        if self.problems:
            return self.problems[0]
        return "; ".join(self.changes) or step_gist(self.step)


def write_report(
    store: Store, ref: str, path: Path, *, against: str | None = None, full: bool = False
) -> Path:
    """Write the report of `ref` (a recipe, `recipe@id`, a name or a key) to `path`.

    With `against`, both are shown side by side and changes are marked. With `full`, every chapter
    is open, and printed. UsageError if `ref` or `against` is not in `store`, or if `path` cannot
    be written. Equal stores give equal bytes.
    """
    return write_page(report_html(store, ref, against=against, full=full), path)


def report_html(store: Store, ref: str, *, against: str | None = None, full: bool = False) -> str:
    """The report as text."""
    subject = find_subject(store, ref)
    writer = _Writer(full)
    if against is None:
        return writer.single(subject, load_pages(subject))
    return writer.comparison(find_subject(store, against), subject)


class _Writer(HtmlWriter):
    """Writes the page of one run, or of two side by side."""

    # One run -------------------------------------------------------------------------------------

    def single(self, subject: Subject, pages: Sequence[Page]) -> str:
        """The page of one run."""
        sections = [self._section(subject, page) for page in pages]
        return self._page(
            subject,
            sections,
            against=None,
            front=self._front(front_page(subject, pages)),
            changed=[],
            unchanged="",
            funnel=self.blocks(funnel(subject), level=3),
            cost=self.blocks(cost(subject), level=3),
        )

    def _front(self, front: Front) -> dict[str, Any]:
        """The first page's pictures and tables as HTML, small enough to stand side by side."""
        return {
            "verdict": front.verdict,
            "cards": front.facts,
            "plots": self.tiles((front.funnel, front.curve)),
            "scores": self.blocks([front.scores] if front.scores else [], level=2),
            "sample": self.blocks([front.sample] if front.sample else [], level=2),
            "commands": front.commands,
        }

    def _section(self, subject: Subject, page: Page) -> Section:
        section = Section(page.step, page.lead, problems=[page.problem] if page.problem else [])
        manifest = page.step.manifest
        if manifest is not None:
            section.facts = [("", artifact_facts(manifest))]
            section.tables = self.blocks(artifact_tables(subject, manifest))
            self.viewer.place = payload_location(subject, manifest)
        section.blocks = self.blocks(page.figures[:FIGURES])
        section.omitted = [figure.title for figure in page.figures[FIGURES:]]
        self.viewer.place = ""
        return section

    # Two runs ------------------------------------------------------------------------------------

    def comparison(self, a: Subject, b: Subject) -> str:
        """The page of run B against run A."""
        pages_a, pages_b = load_pages(a), load_pages(b)
        pairs = align(a, b)
        by_step_a, by_step_b = (
            {page.step.instance: page for page in pages} for pages in (pages_a, pages_b)
        )
        sections = []
        for pair in pairs:
            page_a = by_step_a.get(pair.a.instance) if pair.a else None
            page_b = by_step_b.get(pair.b.instance) if pair.b else None
            sections.append(self._compared(b if pair.b else a, pair, page_a, page_b))
        numbers = facts_table(facts(a, pages_a), facts(b, pages_b))
        known = list_scores(a, pages_a), list_scores(b, pages_b)
        beyond = table_view(differences_table(compare_runs(a, b, *known)), "")
        steps = _steps_table([pair for pair in pairs if not pair.same])
        same = [pair.any.instance for pair in pairs if pair.same]
        return self._page(
            b,
            sections,
            against=a,
            front=None,
            changed=[
                self.block(beyond, level=3),
                *(self.block(view, level=3) for view in (numbers, steps) if view.rows),
            ],
            unchanged=f"The same in {A} and {B}: {', '.join(same)}." if same else "",
            funnel=self._pairs(funnel(a), funnel(b), level=3),
            cost=self._pairs(cost(a), cost(b), level=3),
        )

    def _compared(
        self, subject: Subject, pair: StepPair, a: Page | None, b: Page | None
    ) -> Section:
        page = b or a
        assert page is not None, "a pair has a side"
        if pair.same or a is None or b is None:
            section = self._section(subject, page)
        else:
            section = Section(pair.any, page.lead)
            for letter, side in ((A, a), (B, b)):
                if side.problem:
                    section.problems.append(f"{letter}: {side.problem}")
                if side.step.manifest is not None:
                    section.facts.append((letter, artifact_facts(side.step.manifest)))
            manifests = [side.step.manifest for side in (a, b)]
            before, after = (artifact_tables(subject, m) if m else [] for m in manifests)
            section.tables = self._pairs(before, after)
            section.blocks = self._pairs(a.figures[:FIGURES], b.figures[:FIGURES])
        section.verdict, section.changes = pair.verdict, pair.changes
        return section

    def _pairs(self, a: Sequence[Figure], b: Sequence[Figure], level: int = 4) -> list[Block]:
        return [self._paired(pair, level) for pair in pair_figures(a, b)]

    def _paired(self, pair: FigurePair, level: int) -> Block:
        if pair.a is None or pair.b is None:
            badge = f"only in {B if pair.a is None else A}"
            return self.block(self.viewer.view(pair.any), badge, level)
        if pair.a == pair.b:
            return self.block(self.viewer.view(pair.any), "same", level)
        if isinstance(pair.a, TableFigure) and isinstance(pair.b, TableFigure):
            merged = merged_table(pair.a, pair.b)
            if merged is not None:
                return self.block(merged, "changed", level)
        if pair.overlay is not None:
            table = self._overlay_table(pair)
            view = self.viewer.plot(pair.overlay, table, paired=True)
            return self.block(view, "changed", level)
        sides = [
            (letter, self.viewer.view(figure, widths=(NARROW,)))
            for letter, figure in ((A, pair.a), (B, pair.b))
        ]
        return Block(self.macros.sides(sides, level), pair.any.title)

    def _overlay_table(self, pair: FigurePair) -> TableView:
        assert pair.overlay is not None, "called only for an overlay"
        if isinstance(pair.overlay, CurveFigure):
            return plot_table(pair.overlay, "")
        assert isinstance(pair.a, Plot), "an overlay is made of plots"
        assert isinstance(pair.b, Plot), "an overlay is made of plots"
        merged = merged_table(pair.a.table(), pair.b.table())
        return merged or plot_table(pair.overlay, "")

    # The page ------------------------------------------------------------------------------------

    def _page(
        self,
        subject: Subject,
        sections: Sequence[Section],
        *,
        against: Subject | None,
        **parts: Any,
    ) -> str:
        steps = [section.step for section in sections]
        states: dict[str, int] = Counter(step.state for step in subject.own)
        values = {
            **parts,
            "title": f"{subject.title} against {against.name}" if against else subject.title,
            "subject": subject,
            "against": against,
            "sections": sections,
            "states": states,
            "banner": _banner(subject, states),
            "lineage": Markup(lineage_svg(steps, label="What each step was made of")),
            "lineage_table": self.macros.table(table_view(lineage_table(steps), "")),
            "when": _when(subject),
        }
        html = self.render("report.html.jinja", values)
        while len(html.encode()) > LIMIT and _omit_largest(sections, len(html.encode()) - LIMIT):
            html = self.render("report.html.jinja", values)
        return html


def _omit_largest(sections: Sequence[Section], excess: int) -> bool:
    """Remove the largest figures until `excess` bytes are saved; False if there is no figure."""
    blocks = [(block.bytes, section, block) for section in sections for block in section.blocks]
    blocks.sort(key=lambda item: (-item[0], item[1].step.instance, item[2].title))
    for size, section, block in blocks:
        section.blocks.remove(block)
        section.omitted.append(block.title)
        excess -= size
        if excess <= 0:
            break
    return bool(blocks)


def _banner(subject: Subject, states: Mapping[str, int]) -> list[str]:
    """Lines above the numbers that say why the run is incomplete."""
    made, total = len(subject.made), len(subject.own)
    lines = list(subject.remarks)
    if made < total or subject.state != "done":
        why = {
            "interrupted": "This run was interrupted: its process is gone",
            "running": "This run was still running when the report was made",
            "failed": "This run failed",
            "stopped": "This run was stopped",
        }.get(subject.state, "This is incomplete")
        rest = ", ".join(f"{n} {s}" for s, n in states.items() if s not in ("made", "reused"))
        lines.append(f"{why}: {made} of {total} steps are made{f' ({rest})' if rest else ''}.")
    lines += [f"{s.instance}: {s.error}" for s in subject.own if s.state == "failed"]
    return lines


def _when(subject: Subject) -> str:
    if subject.run is not None:
        start, end = subject.run.started, subject.run.updated
        day = format_minute(start)[:11]
        return f"{format_minute(start)} to {format_minute(end).removeprefix(day)} UTC"
    ends = sorted(
        str(s.manifest.telemetry.get("finished", ""))
        for s in subject.made
        if s.manifest is not None
    )
    return f"made until {format_minute(ends[-1])} UTC" if ends and ends[-1] else ""


def _steps_table(pairs: Sequence[StepPair]) -> TableView:
    rows, only = [], []
    for pair in pairs[:ROWS]:
        a = (pair.a.key or pair.a.state)[:12] if pair.a else ""
        b = (pair.b.key or pair.b.state)[:12] if pair.b else ""
        why = "; ".join(pair.changes)
        cells = (pair.any.instance, pair.verdict, why, a, b)
        rows.append(tuple(CellView(cell) for cell in cells))
        only.append("" if pair.a and pair.b else B if pair.b else A)
    columns = tuple((name, "left") for name in ("step", "compared", "why", f"key {A}", f"key {B}"))
    return TableView(title="Steps that differ", columns=columns, rows=tuple(rows), only=tuple(only))


def plain_report(store: Store, ref: str) -> dict[str, Any]:
    """The content of a report of `ref`, as JSON-ready values."""
    subject = find_subject(store, ref)
    pages = load_pages(subject)
    front = front_page(subject, pages)
    return {
        "name": subject.name,
        "state": subject.state,
        "verdict": list(front.verdict),
        "next": [{"command": c.line, "purpose": c.purpose} for c in front.commands],
        "facts": [
            {"label": f.label, "value": f.value, "detail": f.detail} for f in facts(subject, pages)
        ],
        "funnel": figures_to_json(funnel(subject)),
        "steps": [
            {
                "instance": page.step.instance,
                "stage": page.step.stage,
                "key": page.step.key,
                "state": page.step.state,
                "parents": list(page.step.parents),
                "problem": page.problem or None,
                "figures": figures_to_json(page.figures),
            }
            for page in pages
        ],
        "cost": figures_to_json(cost(subject)),
    }
