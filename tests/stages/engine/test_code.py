"""The code digest changes with what can change a stage's output, and with nothing else."""

from __future__ import annotations

import ast
import os
import sys
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


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What was parsed: nothing where the memo of an earlier process serves."""
    texts: list[bytes] = []
    parse = ast.parse
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(
        ast, "parse", lambda text, *more, **named: texts.append(text) or parse(text, *more, **named)
    )
    return texts


@pytest.mark.parametrize(("spoilt", "is_read"), [(1, True), (9, True), (10, False)])
def test_a_parse_that_another_thread_spoilt_is_tried_anew(
    room: Path, monkeypatch: pytest.MonkeyPatch, spoilt: int, is_read: bool
) -> None:
    expected = _digest(room)
    (room / "stage.py").write_text(STORY + "# another key of the memo\n")
    parse, left = ast.parse, [SystemError("AST constructor recursion depth mismatch")] * spoilt

    def parse_or_fail(source: bytes) -> ast.Module:
        if left:
            raise left.pop()
        return parse(source)

    monkeypatch.setattr(ast, "parse", parse_or_fail)
    if is_read:
        assert _digest(room) == expected
    else:
        with pytest.raises(SystemError, match="recursion depth"):
            _digest(room)


def _memo(room: Path) -> Path:
    (memo,) = (room / "__pycache__").glob("*.syntax*")
    return memo


def test_a_second_process_parses_nothing_until_a_source_changes(
    room: Path, parsed: list[bytes]
) -> None:
    first = _digest(room)
    assert len(parsed) == 1
    assert _digest(room) == first
    assert len(parsed) == 1
    (room / "stage.py").write_text(STORY + "# why\n")
    assert _digest(room) == first
    assert len(parsed) == 2
    (room / "weights.json").write_text("[1, 3]")
    assert _digest(room) != first
    assert len(parsed) == 3


@pytest.mark.parametrize(
    "held", [b"", b"0" * 10, b"f" * 64 + b" " + b"0" * 64 + b"\n", b"\xff" * 130, None]
)
def test_a_memo_that_is_cut_or_of_other_sources_counts_for_nothing(
    room: Path, parsed: list[bytes], held: bytes | None
) -> None:
    first = _digest(room)
    memo = _memo(room)
    whole = memo.read_bytes()
    memo.write_bytes(whole[:-1] if held is None else held)
    assert _digest(room) == first
    assert len(parsed) == 2
    assert memo.read_bytes() == whole


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_where_no_memo_can_be_written_each_process_computes_it(
    room: Path, parsed: list[bytes]
) -> None:
    room.chmod(0o555)
    assert _digest(room) == _digest(room)
    assert len(parsed) == 2


def test_a_memo_that_cannot_be_written_leaves_nothing(
    room: Path, parsed: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    assert _digest(room) == _digest(room)
    assert len(parsed) == 2
    assert not list((room / "__pycache__").iterdir())
