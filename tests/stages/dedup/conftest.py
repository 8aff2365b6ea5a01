"""What tests of increments share: indexes as inputs, with the documents that they describe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store

Given = tuple[Manifest, str]


@pytest.fixture
def earlier_inputs(store: Store) -> Callable[..., dict[str, list[Given]]]:
    """`earlier_inputs(*indexes)` → roles of `dedup` for these indexes and their documents."""

    def described(index: Manifest) -> Iterator[Given]:
        role = "dedup_index" if index.stage == "merge_indexes" else "documents"
        for reference in index.inputs.get(role, ()):
            manifest = store.manifest(reference.stage, reference.key)
            assert manifest is not None
            if role == "documents":
                yield manifest, reference.output
            else:
                yield from described(manifest)

    def inputs(*indexes: Any) -> dict[str, list[Given]]:
        given = [one if isinstance(one, tuple) else (one, "dedup_index") for one in indexes]
        return {
            "earlier_documents": [one for index, _ in given for one in described(index)],
            "dedup_index": given,
        }

    return inputs
