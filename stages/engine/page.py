"""What a stage's room contributes to a report.

A room may hold `page.py` with `page(artifact) -> list[Figure]`: what its artifact holds, and
`summary(artifact) -> list[Figure]`: the few figures worth a glance when a run ends. Both read
manifests and tables only, so a page can be made on any machine that sees the store, long after the
run. They bear no identity: a changed page leaves every key and every resume state as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import cast

from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from stages.engine.figures import Figure
from stages.engine.inputs import Input
from stages.engine.protocol import Stage

PAGE_FILE = "page.py"


@dataclass(frozen=True)
class Artifact:
    """A committed artifact as a page sees it."""

    store: Store
    manifest: Manifest

    def output(self, name: str) -> Input:
        """One of its outputs, readable like a stage's input."""
        return Input.of(self.store, self.manifest, name, full_check=False)

    def input(self, role: str) -> list[Input]:
        """What was given to a role; InputError if one was collected since."""
        given = self.manifest.inputs.get(role, ())
        return [Input.load(self.store, reference, full_check=False) for reference in given]

    def place(self, output: str) -> str:
        """Path or URL of an output's folder, for people."""
        return self.store.backend.full(self.store.payload(self.manifest, output))


def summary_of(stage: type[Stage], artifact: Artifact) -> Sequence[Figure]:
    """The few figures of a stage's `page.py` for the end of a run; none if it has none."""
    return _figures(stage, "summary", artifact)


def page_of(stage: type[Stage], artifact: Artifact) -> Sequence[Figure]:
    """All figures of a stage's `page.py`; none if its room has no page."""
    return _figures(stage, "page", artifact)


def _figures(stage: type[Stage], function: str, artifact: Artifact) -> Sequence[Figure]:
    if artifact.manifest.interim_of is not None:  # A page is about a run that is over.
        return ()
    module = _module(stage)
    make = getattr(module, function, None) if module is not None else None
    return cast(Sequence[Figure], make(artifact)) if make is not None else ()


def _module(stage: type[Stage]) -> ModuleType | None:
    package, _, module = stage.__module__.rpartition(".")
    if module != "stage" or find_spec(f"{package}.page") is None:
        return None
    return import_module(f"{package}.page")
