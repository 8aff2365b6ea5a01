"""Duplicates artifacts made by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from artifacts_schema.kinds import sidecar_folder
from artifacts_schema.manifest import Manifest

Given = tuple[Manifest, str]
Copy = tuple[str, str, Sequence[tuple[str, float | None]]]
"""doc_id, exact class, partners with their similarity."""


def folder(documents: Given) -> str:
    """The folder of tables that describe an output."""
    manifest, output = documents
    return sidecar_folder(manifest.output(output).digest)


def partner(
    doc_id: str, similarity: float | None, containment: float | None = None, band: int = 0
) -> dict[str, Any]:
    """A pair as a row lists it; contained as much as it is similar, unless told."""
    held = similarity if containment is None else containment
    return {"doc_id": doc_id, "similarity": similarity, "containment": held, "band": band}


def copy_row(doc_id: str, exact: str, partners: Any, text: str | None = None) -> dict[str, Any]:
    """A row of duplicates; partners are made ones, or (doc_id, similarity)."""
    made = [one if isinstance(one, dict) else partner(*one) for one in partners]
    return {"doc_id": doc_id, "exact_class": exact, "text_class": text or exact, "partners": made}


def copies(
    given: Callable[..., Given],
    tables: Mapping[str, Sequence[Copy]],
    floor: float = 0.5,
    **parameters: Any,
) -> Given:
    """A duplicates artifact by path; all that is equal is equal to the byte."""
    rows = {path: [copy_row(*one) for one in table] for path, table in tables.items()}
    told = {"parameters": {"floor": floor, **parameters}}
    return given("duplicates", {**rows, "statistics.json": told})
