"""Every kind by name. Side tables name the documents they describe by `sidecar_folder(digest)`."""

from __future__ import annotations

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from artifacts_schema.kinds.documents import DATA_KINDS
from artifacts_schema.kinds.examples import EXAMPLE_KINDS
from artifacts_schema.kinds.release import RELEASE_KINDS
from artifacts_schema.kinds.schema import Column, Kind, Table
from artifacts_schema.kinds.scores import SCORE_KINDS
from artifacts_schema.kinds.training import MODEL_KINDS

_ALL = (*DATA_KINDS, *EXAMPLE_KINDS, *MODEL_KINDS, *SCORE_KINDS, *RELEASE_KINDS)
KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}

__all__ = ["KINDS", "Column", "Kind", "Table", "kind_named", "sidecar_folder"]


def kind_named(name: str) -> Kind:
    """The kind called `name`; UsageError with the nearest name if there is none."""
    if name not in KINDS:
        raise UsageError(f"no kind '{name}'{did_you_mean(name, KINDS)}")
    return KINDS[name]


def sidecar_folder(documents_digest: str) -> str:
    """Folder of the tables that describe the documents output with this digest."""
    return documents_digest[:12]
