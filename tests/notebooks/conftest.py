"""A store in which the tiny recipe has been run, for the notebooks to open."""

from __future__ import annotations

from pathlib import Path

import pytest

from flows.recipe.execute import execute
from flows.recipe.pipeline import Pipeline, Request

TINY = Path(__file__).parent.parent / "pipeline" / "tiny.yaml"


@pytest.fixture(scope="session")
def tiny_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the store; its recipe is called `tiny`."""
    folder = tmp_path_factory.mktemp("notebooks") / "store"
    assert execute(Pipeline.open(Request(str(TINY), str(folder))), jobs=2).is_done
    return folder
