"""The code digest changes with what can change a stage's output, and with nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from stages.engine import provenance

STORY = (
    "from stages.engine import Stage\n\n\nclass Own(Stage):\n    '''A room.'''\n    name = 'own'\n"
)


@pytest.fixture
def room(tmp_path: Path) -> Path:
    (tmp_path / "stage.py").write_text(STORY)
    (tmp_path / "weights.json").write_text("[1, 2]")
    (tmp_path / "page.py").write_text("x = 1\n")
    return tmp_path


def _digest(room: Path) -> str:
    """The digest as a fresh process would compute it."""
    provenance._room_digest.cache_clear()
    return provenance._room_digest(room)


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
    room: Path, name: str, content: str, counts: bool
) -> None:
    before = _digest(room)
    (room / name).write_text(content)
    assert (_digest(room) != before) is counts
