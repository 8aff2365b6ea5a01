"""Chat messages of several data sets, brought to one shape."""

from __future__ import annotations

import pytest

from stages.engine.reading.examples import BadExample
from stages.engine.reading.messages import check_order, messages_of

USER, REPLY = {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}


def talk(roles: str) -> list[dict[str, str]]:
    names = {"s": "system", "u": "user", "a": "assistant", "t": "tool"}
    return [{"role": names[letter], "content": "x"} for letter in roles]


def test_sharegpt_and_openai_shapes_are_one() -> None:
    assert messages_of([{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]) == [
        USER,
        REPLY,
    ]
    parts = [{"role": "User", "content": [{"type": "text", "text": "q"}]}, REPLY]
    assert messages_of(parts) == [USER, REPLY]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], "not_messages"),
        ("hello", "not_messages"),
        (["hello"], "not_messages"),
        ([{"role": "narrator", "content": "x"}], "unknown_role"),
        ([{"content": "x"}], "unknown_role"),
        ([{"role": "user", "content": None}], "no_text_content"),
        ([{"role": "user", "content": [{"type": "image"}]}], "no_text_content"),
    ],
)
def test_what_is_no_message_has_a_reason(value: object, reason: str) -> None:
    with pytest.raises(BadExample) as found:
        messages_of(value)
    assert found.value.reason == reason


@pytest.mark.parametrize("roles", ["ua", "sua", "uaua", "uatta", "suatauta"[:5]])
def test_orders_that_are_a_talk(roles: str) -> None:
    check_order(talk(roles), last="assistant")


@pytest.mark.parametrize(
    ("roles", "reason"),
    [
        ("u", "wrong_last_role"),
        ("s", "wrong_last_role"),
        ("a", "role_order"),
        ("uua", "role_order"),
        ("uaa", "role_order"),
        ("usa", "role_order"),
        ("uta", "role_order"),
    ],
)
def test_orders_that_are_none(roles: str, reason: str) -> None:
    with pytest.raises(BadExample) as found:
        check_order(talk(roles), last="assistant")
    assert found.value.reason == reason


def test_an_empty_message_is_told_of() -> None:
    with pytest.raises(BadExample) as found:
        check_order([USER, {"role": "assistant", "content": " \n"}], last="assistant")
    assert found.value.reason == "empty_message"
