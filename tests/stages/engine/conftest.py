"""Runs go alike on a store in a folder and in a bucket."""

from __future__ import annotations

from pathlib import Path

import pytest

from artifacts_schema.store import Store


@pytest.fixture(params=["local", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store, in a folder and in a bucket."""
    if request.param == "s3":
        return Store.open(request.getfixturevalue("s3_url") + "/below/store")
    return Store.open(str(tmp_path / "store"))
