"""Messages in the shapes that data sets and APIs use: nothing of them is lost without a count."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stages.examples.conversion import BadExample, Origin
from stages.examples.messages import message, parse_message
from stages.examples.shapes import conversation_row, preference_row
from stages.examples.stage import Conversations

ORIGIN = Origin("0" * 32, "x.jsonl", "x")
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
CALL = {"id": "c1", "name": "weather", "arguments": '{"city": "Zürich"}'}
USER, ANSWER = message("user", "q"), message("assistant", "a")
CALLING = message("assistant", "", tool_calls=[CALL])
RESULT = message("tool", "12 °C", tool_call_id="c1", name="weather")
NAMELESS = {**CALL, "id": None}


def openai(arguments: Any) -> dict[str, Any]:
    """A row as OpenAI's fine-tuning files have it."""
    function = {"name": "weather", "arguments": arguments}
    return {
        "messages": [
            {"role": "user", "content": "q"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": "c1", "name": "weather", "content": "12 °C"},
            {"role": "assistant", "content": "a"},
        ],
        "tools": [WEATHER],
    }


def sharegpt() -> dict[str, Any]:
    """As LLaMA-Factory's glaive_toolcall."""
    return {
        "conversations": [
            {"from": "human", "value": "q"},
            {
                "from": "function_call",
                "value": '{"name": "weather", "arguments": {"city": "Zürich"}}',
            },
            {"from": "observation", "value": "12 °C"},
            {"from": "gpt", "value": "a"},
        ],
        "tools": json.dumps([WEATHER]),
    }


def legacy() -> dict[str, Any]:
    """As OpenAI's functions before tools."""
    call = {"name": "weather", "arguments": '{"city": "Zürich"}'}
    return {
        "messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": None, "function_call": call},
            {"role": "function", "name": "weather", "content": "12 °C"},
            {"role": "assistant", "content": "a"},
        ],
        "functions": [WEATHER],
    }


@pytest.mark.parametrize(
    ("fields", "calling", "result"),
    [
        (openai('{"city": "Zürich"}'), CALLING, RESULT),
        (openai({"city": "Zürich", "unit": None}), CALLING, RESULT),
        (
            sharegpt(),
            {**CALLING, "tool_calls": [NAMELESS]},
            {**RESULT, "tool_call_id": None, "name": None},
        ),
        (legacy(), {**CALLING, "tool_calls": [NAMELESS]}, {**RESULT, "tool_call_id": None}),
    ],
)
def test_tool_calls_results_and_tools_are_kept(fields, calling, result):
    made = conversation_row(fields, ORIGIN)
    assert made["messages"] == [USER, calling, result, ANSWER]
    assert json.loads(made["tools"]) == [WEATHER]
    assert made["metadata"] == "{}"


def test_a_query_is_answered_by_calls_as_in_xlam():
    calls = json.dumps([{"name": "weather", "arguments": {"city": "Zürich"}}])
    fields = {"id": 3, "query": "q", "answers": calls, "tools": json.dumps([WEATHER])}
    made = conversation_row(fields, ORIGIN)
    assert made["messages"] == [USER, {**CALLING, "tool_calls": [NAMELESS]}]
    assert json.loads(made["tools"]) == [WEATHER]
    assert json.loads(made["metadata"]) == {"id": 3}


@pytest.mark.parametrize("name", ["arguments", "parameters", "input"])
def test_arguments_are_those_of_the_key_that_has_any(name):
    """Parquet files have every key in every call."""
    call = {"name": "f", "arguments": None, "parameters": None, "input": None, name: {"x": 1}}
    made, rest = parse_message({"role": "assistant", "tool_calls": [call]})
    assert made["tool_calls"] == [{"id": None, "name": "f", "arguments": '{"x": 1}'}]
    assert rest == {}


def test_other_fields_of_calls_in_xlam_are_kept_where_their_message_is():
    answers = [{"name": "f", "arguments": {}}, {"name": "g", "arguments": {}, "score": 5}]
    row = {"query": "q", "answers": answers}
    for fields, position in ((row, "1"), ({**row, "system": "s"}, "2")):
        made = conversation_row(dict(fields), ORIGIN)
        kept = json.loads(made["metadata"])["message_fields"]["messages"]
        assert kept == {position: {"other_tool_call_fields": {"1": {"score": 5}}}}
        assert len(made["messages"][int(position)]["tool_calls"]) == 2


def test_fields_of_messages_after_a_system_prompt_bear_their_position_in_the_row():
    asked = [{**USER, "lang": "de"}]
    talk = {"messages": [*asked, ANSWER], "system": "s"}
    pair = {"prompt": asked, "chosen": "a", "rejected": "b", "system": "s"}
    made = conversation_row(talk, ORIGIN), preference_row(pair, ORIGIN)
    kept = [json.loads(row["metadata"])["message_fields"] for row in made]
    assert kept == [{name: {"1": {"lang": "de"}}} for name in ("messages", "prompt")]


@pytest.mark.parametrize("empty", [[], "", "[]"])
def test_empty_tools_do_not_hide_functions(empty):
    row = {"messages": [USER, ANSWER], "tools": empty}
    made = conversation_row({**row, "functions": [WEATHER]}, ORIGIN)
    assert (json.loads(made["tools"]), made["metadata"]) == ([WEATHER], "{}")
    assert conversation_row(row, ORIGIN)["tools"] is None


@pytest.mark.parametrize("role", ["user", "tool", "system"])
def test_only_the_assistant_calls_tools(role):
    """ChatML as it is trained on and as a release's template has it differ for other callers."""
    with pytest.raises(BadExample) as found:
        parse_message({"role": role, "content": "q", "tool_calls": [CALL]})
    assert found.value.reason == "bad_tool_call"


@pytest.mark.parametrize(
    "said",
    [
        {"content": "a", "reasoning_content": "hm"},
        {"content": "a", "reasoning": "hm"},
        {"content": "a", "thinking": "hm", "reasoning_content": None},
        {"content": "a", "reasoning_content": "hm", "reasoning": "hm"},
        {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]},
        {"content": [{"type": "reasoning", "text": "hm"}, "a"]},
    ],
)
def test_reasoning_is_kept_under_any_of_its_names(said):
    assert parse_message({"role": "assistant", **said}) == (
        message("assistant", "a", reasoning="hm"),
        {},
    )


@pytest.mark.parametrize(
    ("said", "weight"),
    [
        ({"weight": 0}, 0.0),
        ({"weight": 0.5}, 0.5),
        ({"train": False}, 0.0),
        ({"training": True}, 1.0),
        ({"loss": False}, 0.0),
        ({}, None),
    ],
)
def test_the_weight_of_a_message_is_kept(said, weight):
    made, rest = parse_message({"role": "assistant", "content": "a", **said})
    assert (made["weight"], rest) == (weight, {})


def test_what_has_no_place_goes_to_the_metadata_by_message():
    rows = [
        {"role": "user", "content": "q", "timestamp": 5, "images": []},
        {"role": "assistant", "content": "a", "logprobs": None, "loss": 0.25},
    ]
    made = conversation_row({"messages": rows, "license": "MIT", "message_fields": 1}, ORIGIN)
    assert json.loads(made["metadata"]) == {
        "license": "MIT",
        "message_fields": 1,
        "message_fields_": {"messages": {"0": {"timestamp": 5, "images": []}, "1": {"loss": 0.25}}},
    }


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"content": None}, "no_text_content"),
        ({"content": None, "tool_calls": []}, "no_text_content"),
        ({"content": [{"type": "image_url", "image_url": {"url": "x"}}]}, "no_text_content"),
        ({"content": "a", "tool_calls": [{"function": {"arguments": "{}"}}]}, "bad_tool_call"),
        ({"content": "a", "tool_calls": [{"name": "f", "arguments": "{no"}]}, "bad_tool_call"),
        ({"content": "a", "tool_calls": [{"name": "f", "arguments": "NaN"}]}, "bad_tool_call"),
        ({"content": "a", "tool_calls": "[" * 100_000}, "bad_tool_call"),
        ({"content": "a", "tool_calls": 5}, "bad_tool_call"),
        (
            {"content": "a", "tool_calls": [{"name": "f", "arguments": "[" * 500 + "]" * 500}]},
            "bad_tool_call",
        ),
        ({"content": "a", "weight": -1}, "bad_weight"),
        ({"content": "a", "weight": float("inf")}, "bad_weight"),
    ],
)
def test_bad_messages_have_reasons(said, reason):
    with pytest.raises(BadExample) as found:
        parse_message({"role": "assistant", **said})
    assert found.value.reason == reason


def test_an_empty_turn_is_bad_unless_it_calls_a_tool():
    for said in ({"content": ""}, {"content": "", "reasoning": "hm"}):
        with pytest.raises(BadExample) as found:
            conversation_row({"messages": [USER, {"role": "assistant", **said}]}, ORIGIN)
        assert found.value.reason == "empty_message"


def test_parquet_gives_the_same_rows_as_json_lines(snapshot, run_stage, read_table):
    """`datasets` writes every field in every message, null where a message lacks it."""
    rows = [
        openai({"city": "Zürich"}),
        {"messages": [USER, {"role": "assistant", "content": "a", "reasoning_content": "hm"}]},
        {"messages": [USER, {"role": "assistant", "content": "a", "weight": 0.0}]},
    ]
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    made = [
        read_table(
            run_stage(Conversations, {}, {"snapshot": snapshot(files, "same")}), "conversations"
        ).to_pylist()
        for files in ({"a.jsonl": lines}, {"a.parquet": sink.getvalue()})
    ]
    unnamed = [[{**row, "conversation_id": ""} for row in table] for table in made]
    assert unnamed[0] == unnamed[1]
    assert unnamed[0][0]["messages"][1] == CALLING
    assert unnamed[0][1]["messages"][1]["reasoning"] == "hm"
    assert unnamed[0][2]["messages"][1]["weight"] == 0.0


def test_a_preference_may_be_between_answers_with_tool_calls():
    better = [CALLING, RESULT, ANSWER]
    worse = [message("assistant", "no idea")]
    whole = {"chosen": [USER, *better], "rejected": [USER, *worse], "tools": [WEATHER]}
    for fields in (whole, {"prompt": [USER], "chosen": better, "rejected": worse}):
        made = preference_row(dict(fields), ORIGIN)
        assert (made["prompt"], made["chosen"], made["rejected"]) == ([USER], better, worse)
    assert json.loads(preference_row(dict(whole), ORIGIN)["tools"]) == [WEATHER]
    after = {"prompt": [USER, CALLING, RESULT], "chosen": "a", "rejected": "b"}
    assert preference_row(after, ORIGIN)["prompt"] == [USER, CALLING, RESULT]


def test_ultrafeedback_repeats_its_prompt_and_another_prompt_is_kept():
    rows = {"chosen": [USER, ANSWER], "rejected": [USER, message("assistant", "b")]}
    made = preference_row({"prompt": "q", "score_chosen": 8.0, **rows}, ORIGIN)
    assert json.loads(made["metadata"]) == {"score_chosen": 8.0}
    made = preference_row({"prompt": "another", **rows}, ORIGIN)
    assert json.loads(made["metadata"]) == {"prompt": "another"}


def test_a_prompt_that_repeats_a_message_is_not_kept_beside_it():
    talk = {"messages": [{"role": "user", "content": "q "}, ANSWER]}
    for prompt, kept in ((" q", {}), ("another", {"prompt": "another"})):
        made = conversation_row({**talk, "prompt": prompt}, ORIGIN)
        assert json.loads(made["metadata"]) == kept


@pytest.mark.parametrize("name", ["messages", "conversations"])
@pytest.mark.parametrize("system", [{}, {"system": "s"}])
def test_a_conversation_that_repeats_the_pair_is_not_kept_beside_it(name, system):
    other = message("assistant", "b")
    answers = {"chosen": [ANSWER], "rejected": [other]}
    whole = {side: [USER, *answer] for side, answer in answers.items()}
    for fields in ({"prompt": "q", **answers}, whole, {"prompt": [USER], **whole}):
        for said in whole.values():
            row = {
                **fields,
                **system,
                name: [{"role": m["role"], "value": m["content"]} for m in said],
            }
            made = preference_row(row, ORIGIN)
            assert made["metadata"] == "{}"
            assert (made["prompt"][-1], made["chosen"], made["rejected"]) == (
                USER,
                [ANSWER],
                [other],
            )


@pytest.mark.parametrize(
    "said", [[USER, message("assistant", "c")], [USER, {**ANSWER, "lang": "de"}], "text", [5]]
)
def test_a_conversation_that_tells_more_than_the_pair_is_kept(said):
    row = {"prompt": "q", "chosen": "a", "rejected": "b", "messages": said}
    made = preference_row(row, ORIGIN)
    assert json.loads(made["metadata"]) == {"messages": said}
