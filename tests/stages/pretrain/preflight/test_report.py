"""What a report says, and when it keeps a run from starting."""

from __future__ import annotations

import json

import pytest

from artifacts_schema.errors import IngotError
from stages.pretrain.preflight_checks import Finding, Report, span


def test_refusals_are_one_error_with_what_helps():
    report = Report(
        (
            Finding("memory", "refusal", "9 GB of 8", "fewer rows"),
            Finding("disk", "warning", "tight"),
            Finding("store", "refusal", "read-only"),
            Finding("data", "ok", "fine"),
        ),
        0.5,
    )
    with pytest.raises(IngotError) as caught:
        report.raise_rejections()
    assert str(caught.value) == ("pre-flight: memory: 9 GB of 8; store: read-only (fewer rows)")
    assert [one.line() for one in report.findings[:2]] == [
        "memory: 9 GB of 8 (fewer rows)",
        "disk: tight",
    ]


def test_warnings_keep_nothing_from_starting_and_all_is_json():
    report = Report((Finding("disk", "warning", "tight", numbers={"free_bytes": 3}),), 0.25)
    report.raise_rejections()
    assert json.loads(json.dumps(report.to_json())) == {
        "findings": [
            {"check": "disk", "level": "warning", "said": "tight", "hint": "", "free_bytes": 3}
        ],
        "refused": False,
        "seconds": 0.25,
    }


def test_spans_are_for_people():
    assert [span(n) for n in (0.4, 119, 121, 7200, 200_000)] == [
        "0 s", "119 s", "2.0 min", "2.0 h", "2.3 days",
    ]  # fmt: skip
