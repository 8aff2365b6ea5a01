"""The code digest changes with what can change a stage's output, and with nothing else."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from stages.engine import code
from stages.engine.protocol import Stage

STORY = (
    "from stages.engine import Stage\n\n\nclass Own(Stage):\n    '''A room.'''\n    name = 'own'\n"
)


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "stage.py").write_text(STORY)
    (tmp_path / "weights.json").write_text("[1, 2]")
    (tmp_path / "page.py").write_text("x = 1\n")
    return tmp_path


def _digest(room: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The digest as a fresh process would compute it."""
    spec = importlib.util.spec_from_file_location("own_room", room / "stage.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "own_room", module)
    spec.loader.exec_module(module)
    code._room_digest.cache_clear()
    stage: type[Stage] = module.Own
    return code.code_digest(stage)


@pytest.mark.parametrize(
    ("name", "content", "counts"),
    [
        ("stage.py", STORY.replace("A room", "Another"), False),
        ("stage.py", STORY + "# why\n", False),
        ("stage.py", STORY + "    version = 2\n", True),
        ("page.py", "x = 2\n", False),
        ("weights.json", "[1, 3]", True),
        ("words.json", "[]", True),
    ],
)
def test_what_bears_on_the_output_changes_the_digest(
    room: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str, counts: bool
) -> None:
    before = _digest(room, monkeypatch)
    (room / name).write_text(content)
    assert (_digest(room, monkeypatch) != before) is counts
