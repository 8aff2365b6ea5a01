"""Config: what differs from its default bears identity; wrong keys get the nearest right one."""

from __future__ import annotations

import pytest
from pydantic import Field

from artifacts_schema.config import Config, Execution
from artifacts_schema.errors import UsageError


class Inner(Config):
    threshold: float = Field(default=0.8, ge=0, le=1)
    exact: bool = True


class Outer(Config):
    words: int = 5
    names: tuple[str, ...] = ("a",)
    duplicates: Inner = Inner()
    table: dict[str, Inner] = {}


def test_defaults_leave_no_trace_in_the_identity():
    assert Outer().identity() == {}
    same = Outer(words=5, names=("a",), duplicates=Inner(threshold=0.8))
    assert same.identity() == {}


def test_only_the_changed_field_of_a_nested_config_is_named():
    changed = Outer(duplicates=Inner(threshold=0.7), table={"code": Inner(exact=False)})
    assert changed.identity() == {
        "duplicates": {"threshold": 0.7},
        "table": {"code": {"exact": False}},
    }


def test_a_default_that_differs_from_the_nested_class_is_told_apart():
    class Shifted(Config):
        inner: Inner = Inner(threshold=0.5)

    assert Shifted().identity() == {}
    assert Shifted(inner=Inner()).identity() == {"inner": {}}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"wrods": 3}, "unknown key 'wrods', did you mean 'words'?"),
        (
            {"duplicates": {"treshold": 1}},
            "unknown key 'duplicates.treshold', did you mean 'threshold'?",
        ),
        (
            {"duplicates": {"threshold": 1.5}},
            "duplicates.threshold: input should be less than or equal to 1",
        ),
        ({"words": "many"}, "words: input should be a valid integer"),
        ({"duplicates": {"threshold": float("nan")}}, "duplicates.threshold"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(values, message):
    with pytest.raises(UsageError) as caught:
        Outer.parse(values, where="filter")
    assert message in str(caught.value)
    assert str(caught.value).startswith("filter: ")


def test_all_problems_come_at_once():
    with pytest.raises(UsageError) as caught:
        Outer.parse({"wrods": 3, "words": "x"}, where="f")
    assert "wrods" in str(caught.value)
    assert "words: input" in str(caught.value)


def test_execution_is_not_a_config():
    class Bad(Config):
        how: Execution = Execution()

    with pytest.raises(TypeError, match="Execution"):
        Bad(how=Execution(workers=2)).identity()
