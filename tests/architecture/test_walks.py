"""How many files a reader meets on the way through the code, counted by a tracer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.walks import MOST_FILES, Functions, format_walk, trace_walks

pytestmark = [pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(1_200)]


@pytest.fixture(scope="module")
def walks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Functions]:
    return trace_walks(Path(tmp_path_factory.mktemp("walks")) / "run")


WALKS = [
    "step",
    "way",
    pytest.param("document", marks=pytest.mark.xfail(reason="120 files at the last count")),
]


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_takes_few_files(walks: dict[str, Functions], name: str) -> None:
    assert walks[name], "the tracer saw nothing"
    assert len(walks[name]) <= MOST_FILES[name], format_walk(name, walks[name])
