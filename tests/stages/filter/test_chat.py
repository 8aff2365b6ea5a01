"""Conversations and preference pairs: measured, decided on as a whole, redacted, accounted for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chat_data import ITEMS, MAIL, PAIRS, TALKS, call, conversation, message

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from stages.decontaminate.stage import Decontaminate
from stages.engine.page import Artifact, make_page
from stages.filter.stage import Filter
from stages.signals.stage import Signals

CHAT = ("conversations", "preferences")


@pytest.fixture
def chat(given: Any) -> dict[str, list[Any]]:
    return {
        "conversations": [
            given("conversations", {"00000.parquet": TALKS[:2], "00001.parquet": TALKS[2:]})
        ],
        "preferences": [given("preferences", {"00000.parquet": PAIRS})],
    }


@pytest.fixture
def beside(chat: Any, run_stage: Any, given: Any) -> dict[str, list[Any]]:
    """All that filter may be given about them; the conversation `gone` is on a list."""
    measured = run_stage(Signals, {}, chat)
    held = run_stage(
        Decontaminate, {}, {**chat, "benchmarks": [given("benchmarks", {"0.parquet": ITEMS})]}
    )
    listed = given("exclusions", {"0.parquet": [{"doc_id": "gone", "reason": "asked"}]})
    return {
        "signals": [(measured, "signals")],
        "views": [(measured, "views")],
        "contamination": [(held, "contamination")],
        "exclusions": [listed],
    }


@pytest.fixture
def decided(chat: Any, beside: Any, run_stage: Any) -> Manifest:
    return run_stage(Filter, {}, {**chat, **beside})


def verdicts(read_table: Any, made: Manifest) -> dict[str, str | None]:
    return {row["doc_id"]: row["reason"] for row in read_table(made, "ledger").to_pylist()}


def test_rows_are_dropped_as_a_whole_and_conserved(decided: Manifest, read_table: Any) -> None:
    """The default rules of prose would drop all of them: each has a few words."""
    assert verdicts(read_table, decided) == {
        "mails": None,
        "leak": "contamination",
        "short": "contamination",
        "plain": None,
        "gone": "exclusion",
        "better": None,
        "leaked": "contamination",
        "good": None,
    }
    kept = read_table(decided, "conversations")["conversation_id"].to_pylist()
    pairs = read_table(decided, "preferences")["preference_id"].to_pylist()
    assert (kept, pairs) == (["mails", "plain"], ["better", "good"])
    assert decided.conservation is not None
    assert (decided.conservation.records_in, decided.conservation.out) == (8, 4)
    assert decided.conservation.dropped == {"contamination": 3, "exclusion": 1}
    assert decided.counts["conversations_kept"] == decided.counts["preferences_kept"] == 2
    assert decided.counts["edits"] == 4
    assert decided.outputs["documents"].files == ()


def test_personal_data_is_replaced_wherever_it_stands_and_messages_stay_whole(
    decided: Manifest, read_table: Any
) -> None:
    mails, plain = read_table(decided, "conversations").to_pylist()
    better, good = read_table(decided, "preferences").to_pylist()
    assert (plain, good) == (TALKS[3], PAIRS[2])
    assert MAIL not in json.dumps([mails, better])
    before = TALKS[0]["messages"]
    for old, new in zip(before, mails["messages"], strict=True):
        unchanged = ("role", "tool_call_id", "name", "weight")
        assert [new[name] for name in unchanged] == [old[name] for name in unchanged]
    (called,) = mails["messages"][1]["tool_calls"]
    raw = before[1]["tool_calls"][0]["arguments"]
    address = json.loads(called["arguments"])["to"][0]
    assert called["arguments"] == raw.replace(MAIL, address)
    assert mails["messages"][1]["reasoning"] == f"The address is {address} as was said."
    assert better["chosen"][0]["content"] == f"Ask {address} about this."
    assert better["rejected"] == PAIRS[0]["rejected"]


def test_side_tables_name_message_and_role(beside: Any, read_table: Any) -> None:
    (held,), (measured,) = beside["contamination"], beside["views"]
    hits = {
        row["doc_id"]: [(h["item_id"], h["place"], h["role"]) for h in row["hits"]]
        for path in [f.path for f in held[0].output("contamination").files if "chat/" in f.path]
        for row in read_table(held[0], "contamination", path).to_pylist()
        if row["hits"]
    }
    assert hits == {
        "leak": [("planets", "messages/1/content", "user")],
        "short": [("moon", "messages/0/content", "user")],
        "leaked": [("planets", "prompt/0/content", "user")],
    }
    assert held[0].counts["conversations_hit"] == 2
    spans = {
        row["doc_id"]: [(s["view"], s["place"], s["label"]) for s in row["spans"]]
        for row in read_table(*measured).to_pylist()
        if row["spans"]
    }
    mail = [
        ("personal_data", f"messages/{place}", "email")
        for place in ("0/content", "1/reasoning", "1/tool_calls/0/arguments")
    ]
    assert spans == {
        "mails": mail,
        "better": [("personal_data", "chosen/0/content", "email")],
    }
    assert measured[0].counts["emails"] == 4


def test_personal_data_drops_or_stays_as_the_config_says(
    chat: Any, beside: Any, run_stage: Any, read_table: Any
) -> None:
    drop = run_stage(Filter, {"personal_data": {"email": "drop"}}, {**chat, **beside})
    told = verdicts(read_table, drop)
    assert (told["mails"], told["better"]) == ("personal_data_email", "personal_data_email")
    keep = run_stage(Filter, {"personal_data": "keep"}, {**chat, **beside})
    assert read_table(keep, "conversations").to_pylist()[0] == TALKS[0]


def test_named_sources_have_rules(chat: Any, beside: Any, run_stage: Any, read_table: Any) -> None:
    config = {
        "rules_by_source": {"pairs": ["gopher_quality@datatrove"]},
        "thresholds": {"gopher_few_words": 10},
    }
    told = verdicts(read_table, run_stage(Filter, config, {**chat, **beside}))
    assert told["good"] == "gopher_few_words"
    assert told["plain"] is None


def test_documents_and_chat_rows_are_decided_on_in_one_step_as_in_two(
    chat: Any, beside: Any, make_documents: Any, run_stage: Any, decided: Manifest
) -> None:
    documents = [make_documents([["A text about bread.", f"Write to {MAIL}."]])]
    measured = run_stage(Signals, {}, {"documents": documents})
    roles = {
        **chat,
        "documents": documents,
        "signals": [(measured, "signals"), *beside["signals"]],
        "views": [*beside["views"], (measured, "views")],
        "exclusions": beside["exclusions"],
    }
    made = run_stage(Filter, {"rules": []}, roles)
    assert made.counts["documents"] == made.counts["kept"] == 2
    assert made.outputs["preferences"].rows == 3  # Without contamination nothing else drops one.
    with pytest.raises(InputError, match="contamination"):
        run_stage(Filter, {"rules": []}, {**roles, "contamination": beside["contamination"]})


def test_side_tables_that_miss_a_conversation_are_refused(
    chat: Any, beside: Any, given: Any, run_stage: Any
) -> None:
    other = [given("conversations", {"00000.parquet": TALKS[:1]})]
    measured = run_stage(Signals, {}, {"conversations": other})
    with pytest.raises(InputError, match="views"):
        run_stage(Filter, {}, {**chat, "views": [(measured, "views")]})
    held = run_stage(
        Decontaminate,
        {},
        {"conversations": other, "benchmarks": [given("benchmarks", {"0.parquet": ITEMS})]},
    )
    with pytest.raises(InputError, match="contamination"):
        run_stage(
            Filter,
            {},
            {**chat, "views": beside["views"], "contamination": [(held, "contamination")]},
        )
    with pytest.raises(UsageError, match="views"):
        run_stage(Filter, {}, chat)
    with pytest.raises(InputError, match="conversations"):
        run_stage(Signals, {}, {"conversations": other * 2})
    with pytest.raises(UsageError, match="conversations or preferences"):
        run_stage(Filter, {}, {})


def test_no_row_group_of_the_kept_rows_is_too_large_to_be_read(
    given: Any, run_stage: Any, read_input: Any, monkeypatch: Any
) -> None:
    """pyarrow cannot read a row group that holds 2 GiB of nested text."""
    monkeypatch.setattr("stages.filter.chat._ROWS_AT_ONCE", 2)
    talks = [given("conversations", {"0.parquet": TALKS})]
    made = run_stage(Filter, {"personal_data": "keep"}, {"conversations": talks})
    (shard,) = read_input(made, "conversations").shards()
    groups = [group.to_pylist() for group in shard.row_groups()]
    assert groups == [TALKS[:2], TALKS[2:4], TALKS[4:]]


def test_two_workers_and_other_shards_decide_alike(
    chat: Any, beside: Any, run_stage: Any, read_table: Any, given: Any, decided: Manifest
) -> None:
    roles = {**chat, **beside}
    again = run_stage(Filter, {}, roles, {"workers": 2}, force=True)
    assert again.outputs == decided.outputs
    whole = {**chat, "conversations": [given("conversations", {"0.parquet": TALKS})]}
    measured = run_stage(Signals, {}, whole)
    made = run_stage(
        Filter,
        {"contamination": {"min_ngrams_hit": 1}},
        {**whole, "views": [(measured, "views")], "exclusions": beside["exclusions"]},
    )
    kept = {r["conversation_id"]: r for r in read_table(made, "conversations").to_pylist()}
    assert kept["mails"] == read_table(decided, "conversations").to_pylist()[0]


def test_a_secret_that_only_its_name_tells_is_redacted_in_json(
    given: Any, run_stage: Any, read_table: Any
) -> None:
    """`"api_key": "…"` is an assignment; the value by itself is none."""
    secret = "kD93jfLq9ZxYw2Pn7Rs5" + "Tv1Bc4Me6Hg0"
    arguments = json.dumps({"api_key": secret, "port": 5432})
    row = conversation(
        "key",
        message("user", "Log in."),
        message("assistant", "", tool_calls=[call(arguments)]),
    )
    talks = [given("conversations", {"0.parquet": [row]})]
    measured = run_stage(Signals, {}, {"conversations": talks})
    made = run_stage(Filter, {}, {"conversations": talks, "views": [(measured, "views")]})
    (kept,) = read_table(made, "conversations").to_pylist()
    called = json.loads(kept["messages"][1]["tool_calls"][0]["arguments"])
    assert called == {"api_key": "<secret:assigned>", "port": 5432}


def test_pages_count_conversations_and_pairs(store: Store, beside: Any, decided: Manifest) -> None:
    page: dict[str, Any] = {f.title: f for f in make_page(Filter, Artifact(store, decided))}
    account = {row[0]: row[1:] for row in page["Documents and characters kept"].rows}
    assert account["conversations"] == (5, 2, 0.4)
    assert account["preferences"] == (3, 2, 2 / 3)
    by_source = {row[:4] for row in page["Documents kept, by source and snapshot"].rows}
    assert by_source == {("talks", "conversations", 5, 2), ("pairs", "preferences", 3, 2)}
    (held,), (measured,) = beside["contamination"], beside["views"]
    found: dict[str, Any] = {f.title: f for f in make_page(Decontaminate, Artifact(store, held[0]))}
    searched = dict(found["Documents searched for benchmark items"].rows)
    assert searched["conversations searched"] == 5
    assert found["Benchmark items found in the documents"].rows == (("exam", 2, 2, 1.0, 3),)
    assert len(make_page(Signals, Artifact(store, measured[0]))) > 3
