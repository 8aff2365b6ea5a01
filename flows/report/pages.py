"""The figures of each step, from its stage's page; what cannot be shown says why."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from artifacts_schema.errors import CorruptArtifact, IngotError, InputError
from flows.report.plain import one_line
from flows.report.subject import Step, Subject
from stages.engine.figures import Figure
from stages.engine.page import Artifact, page_of, summary_of
from stages.engine.registry import names, stage_named

log = logging.getLogger(__name__)

TITLE, NOTE = 200, 2_000
"""Characters of a figure's title, and of its note or any other line about a step."""
_ABSENT = {
    "waiting": "Not made yet: it waits for its turn.",
    "running": "Running when the record was written; nothing is committed yet.",
    "failed": "It failed, so nothing was committed.",
    "stopped": "It was stopped; what it had finished is kept, and the next run goes on from there.",
    "collected": "Its artifact was collected: what it held is not in the store any more.",
    "corrupt": "Its manifest cannot be read.",
}


@dataclass(frozen=True)
class Page:
    """What a step contributes: figures, and a line for what is missing."""

    step: Step
    figures: tuple[Figure, ...] = ()
    problem: str = ""

    @property
    def lead(self) -> str:
        """The first line of the stage's docstring; empty if the stage is not installed here."""
        if self.step.stage not in names():
            return ""
        try:
            text = stage_named(self.step.stage).__doc__ or ""
        except IngotError:
            return ""
        return text.strip().partition("\n")[0]


def pages_of(subject: Subject) -> list[Page]:
    """A page for each step, in order. A page that raises is logged and costs only itself."""
    return [_page(subject, step) for step in subject.steps]


def _page(subject: Subject, step: Step) -> Page:
    if step.manifest is None:
        return Page(step, problem=absence(step))
    if step.stage not in names():
        return Page(step)
    artifact = Artifact(subject.store, step.manifest)
    try:
        stage = stage_named(step.stage)
        figures: Sequence[Figure] = page_of(stage, artifact) or summary_of(stage, artifact)
        return Page(step, tuple(_headed(figure) for figure in figures))
    except CorruptArtifact as error:
        return Page(step, problem=_short(f"This page could not be made: {error}"))
    except InputError as error:
        what = "Its input was collected, so its page is not shown"
        return Page(step, problem=_short(f"{what}: {error}"))
    except Exception as error:
        log.exception("the page of %s could not be made", step.instance)
        what = f"{type(error).__name__}: {error}"
        return Page(step, problem=_short(f"This page could not be made: {what}"))


def _headed(figure: Figure) -> Figure:
    """A figure whose title is one line and whose note is no more than a paragraph."""
    return replace(figure, title=one_line(figure.title, TITLE), note=_short(figure.note))


def _short(text: str) -> str:
    return text if len(text) <= NOTE else f"{text[:NOTE]}…"


def absence(step: Step) -> str:
    """Why a step has no artifact, in a sentence or two."""
    text = _ABSENT.get(step.state, "Nothing is committed.")
    if step.state == "waiting" and step.parents:
        text = f"Not made yet: it waits for {', '.join(step.parents)}."
    return _short(f"{text} {step.error}") if step.error else text
