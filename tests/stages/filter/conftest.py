"""A run of the stage on artifacts by role."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from stages.filter.stage import Filter


@pytest.fixture
def decide(run_stage: Any, read_table: Any) -> Callable[..., Any]:
    """Run the filter on artifacts by role; return its manifest, documents rows and ledger by id.

    Without views personal data is kept, where the config does not say otherwise.
    """

    def run(config: dict[str, Any], **roles: Any) -> Any:
        inputs = {
            role: found if isinstance(found, list) else [found] for role, found in roles.items()
        }
        keep = {} if "views" in roles else {"personal_data": "keep"}
        manifest = run_stage(Filter, {**keep, **config}, inputs)
        documents = read_table(manifest, "documents").to_pylist()
        ledger = read_table(manifest, "ledger").to_pylist()
        return manifest, documents, {row["doc_id"]: row for row in ledger}

    return run
