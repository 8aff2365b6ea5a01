"""What people read: alignment, sizes, durations, and progress lines."""

from __future__ import annotations

import pytest

from flows.cli.output import Column, clean, duration, excerpt, plain_table, size
from flows.cli.progress import LineObserver, format_progress
from flows.recipe.plan import PlannedStep


def test_a_plain_table_is_aligned_by_width_on_screen():
    # A CJK character takes two cells.
    lines = plain_table([Column("name"), Column("n", right=True)], [["日本", "1"], ["abcd", "20"]])
    assert lines == ["name   n", "日本   1", "abcd  20"]


@pytest.mark.parametrize(
    ("count", "told"), [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1_234_567, "1.2 MB"),
                        (5e15, "5,000.0 TB")]
)  # fmt: skip
def test_sizes_are_decimal(count, told):
    assert size(count) == told


@pytest.mark.parametrize(
    ("seconds", "told"), [(4.21, "4.2 s"), (185, "3 min 05 s"), (7800, "2 h 10 min")]
)
def test_durations_use_two_units_at_most(seconds, told):
    assert duration(seconds) == told


def test_text_is_made_safe_and_short():
    assert clean("a\x1b[31mb\r\n\u202ec") == r"a\x1b[31mb\r\n\u202ec"
    assert excerpt("one\n\n two   three", 9) == "one two …"


def test_progress_lines_come_every_few_seconds_and_no_more(capsys):
    now = [0.0]
    lines = LineObserver(now=lambda: now[0])
    step = PlannedStep("read", "read", "lines", "run", "missing", "ab" * 32)
    lines.started(step)
    for second in range(31):
        now[0] = float(second)
        lines.event(step, {"type": "progress", "done": second, "total": 30, "unit": "shards"})
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "read: run abababababab (missing)",
        "read: 15 of 30 shards",
        "read: 30 of 30 shards",
    ]


def test_progress_names_its_series():
    event = {"done": 1200, "total": 5000, "unit": "tokens", "label": "train"}
    assert format_progress(event) == "train: 1,200 of 5,000 tokens"


def test_only_one_module_prints():
    """What a command prints is cleaned in `output` (and in rich texts made of cleaned parts)."""
    import re
    from pathlib import Path

    import flows

    raw = re.compile(r"\b(?:click\.s?echo|print|sys\.std(?:out|err)\.write)\(")
    folder = Path(flows.__file__).parent
    found = [
        f"{path.name}:{number}"
        for path in sorted([*folder.glob("cli/*.py"), *folder.glob("report/*.py")])
        if path.name != "output.py"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if raw.search(line) and not re.search(r"(?:def |\.)print\(", line)
    ]
    assert found == []
