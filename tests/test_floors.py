"""The least versions that may be installed of what reads bytes from outside."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
READERS = ("jinja2", "pyarrow", "sentencepiece", "urllib3")
"""Earlier versions of these have published holes."""


@pytest.mark.parametrize("name", READERS)
def test_the_floor_of_a_reader_with_known_holes_is_the_tested_version(name):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    floor = next(d for d in project["dependencies"] if re.match(rf"{name}\b", d))
    tested = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text().lower().splitlines()
        if "==" in line
    )
    assert floor == f"{name}>={tested[name]}"
