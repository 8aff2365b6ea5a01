"""`ingot why` and `ingot forget` follow conversations and preference pairs as they do documents."""

from __future__ import annotations

import json

import pytest
from chat_data import ITEMS, MAIL, PAIRS, TALKS

from stages.decontaminate.stage import Decontaminate
from stages.filter.stage import Filter
from stages.signals.stage import Signals


def whole(row):
    """The row with an id as ids are."""
    column = "conversation_id" if "conversation_id" in row else "preference_id"
    return {**row, column: identity(row[column])}


def identity(name):
    return name.encode().hex().ljust(32, "0")


@pytest.fixture
def roles(given, run_stage):
    chat = {
        "conversations": [given("conversations", {"0.parquet": [*map(whole, TALKS)]})],
        "preferences": [given("preferences", {"0.parquet": [*map(whole, PAIRS)]})],
    }
    measured = run_stage(Signals, {}, chat)
    benchmarks = [given("benchmarks", {"0.parquet": ITEMS})]
    held = run_stage(Decontaminate, {}, {**chat, "benchmarks": benchmarks})
    return {
        **chat,
        "signals": [(measured, "signals")],
        "views": [(measured, "views")],
        "contamination": [(held, "contamination")],
    }


@pytest.fixture
def decided(store, run_stage, roles):
    made = run_stage(Filter, {}, roles)
    store.set_ref("demo/chat_filter", made.stage, made.key)
    return made


def test_why_follows_a_conversation_to_its_verdict(ingot, decided):
    shown = ingot("why", identity("leak"), "--all").stdout
    told = " ".join(shown.split())
    assert "dropped by contamination: 4, threshold 1" in told
    assert "exam planets (4, user in messages/1/content)" in told
    kept = ingot("why", identity("mails"), "--all").stdout
    assert "kept, 3 edits" in kept
    (chain,) = json.loads(ingot("why", identity("mails"), "--all", "--json").stdout)["documents"]
    kinds = [one["kind"] for one in chain["sightings"]]
    assert kinds == ["conversations", "signals", "views", "contamination", "ledger", "corpus"]


def test_forgotten_rows_are_named_and_dropped(ingot, store, run_stage, read_table, roles, decided):
    told = ingot("forget", identity("mails"), identity("good")[:12], "--json")
    assert told.exit_code == 0, told.output
    said = json.loads(told.stdout)
    assert {row["doc_id"] for row in said["documents"]} == {identity("mails"), identity("good")}
    holds = {(one["stage"], one["how"]) for one in said["holdings"]}
    assert {("filter", "text"), ("filter", "rows"), ("signals", "rows")} <= holds
    assert said["reruns"][0]["ref"] == "demo/chat_filter"
    listed, _ = store.resolve("exclusions")
    again = run_stage(Filter, {}, {**roles, "exclusions": [(listed, "exclusions")]})
    left = read_table(again, "conversations")["conversation_id"].to_pylist()
    assert left == [identity("plain"), identity("gone")]
    assert read_table(again, "preferences")["preference_id"].to_pylist() == [identity("better")]
    assert again.conservation.dropped["exclusion"] == 2
    assert MAIL not in ingot("forget", identity("mails"), "--dry-run").stdout


def test_what_if_decides_about_chat_rows(ingot, decided):
    told = ingot("what-if", "demo/chat_filter", "--set", "contamination.min_ngrams_hit=2", "--json")
    assert told.exit_code == 0, told.output
    said = json.loads(told.stdout)
    assert said["decided_otherwise"] == 0
    assert said["gained"]["documents"] == 1
