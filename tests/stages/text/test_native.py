"""What is kept of compiled functions: it must not outlive what was compiled into it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

KERNEL = """
from stages.text.native import compiled
from constants import ADDED

@compiled
def plus(number):
    return number + ADDED

print(plus(1), sum(plus.stats.cache_hits.values()))
"""


def run(folder: Path) -> list[int]:
    """The sum, and how often kept machine code was used."""
    path = os.pathsep.join((str(folder), str(Path(__file__).parents[3])))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, str(folder / "kernel.py")]
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [int(word) for word in printed.stdout.split()]


def test_a_changed_constant_of_another_module_is_compiled_anew(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "constants.py").write_text("ADDED = 10\n")
    assert run(tmp_path) == [11, 0]
    assert run(tmp_path) == [11, 1]
    (tmp_path / "constants.py").write_text("ADDED = 200\n")
    assert run(tmp_path) == [201, 0]
