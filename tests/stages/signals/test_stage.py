"""The signals stage through the engine: rows beside the documents, spans, same bytes for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from artifacts_schema.errors import UsageError
from artifacts_schema.manifest import Manifest
from stages.signals.columns import choose_signals
from stages.signals.config import STOP_WORDS
from stages.signals.stage import Signals

SHARDS = [
    ["The first text of the set, with jane@corp.com and 7.7.7.7.", "zweiter Text", "x"],
    ["another\nanother\nanother", " "],
]

Documents = tuple[Manifest, str]
Make = Callable[..., Manifest]
Read = Callable[..., Any]


@pytest.fixture
def documents(make_documents: Callable[..., Documents]) -> Documents:
    return make_documents(SHARDS)


def run(run_stage: Make, documents: Documents, config: Any = None, **options: Any) -> Manifest:
    return run_stage(Signals, config or {}, {"documents": [documents]}, **options)


def test_rows_and_shards_are_those_of_the_documents(
    documents: Documents, run_stage: Make, read_table: Read
) -> None:
    made = run(run_stage, documents)
    for path, texts in zip(("00000.parquet", "00001.parquet"), SHARDS, strict=True):
        ids = read_table(*documents, path)["doc_id"].to_pylist()
        signals = read_table(made, "signals", path)
        assert signals["doc_id"].to_pylist() == ids
        assert read_table(made, "views", path)["doc_id"].to_pylist() == ids
        assert signals["characters"].to_pylist() == [len(text) for text in texts]
    assert made.conservation is not None
    assert (made.conservation.records_in, made.conservation.out) == (5, 5)
    assert made.counts["emails"] == made.counts["ip_addresses"] == 1


def test_the_manifest_counts_each_sort_that_is_found(
    make_documents: Callable[..., Documents], run_stage: Make, read_table: Read
) -> None:
    """Of each sort another number; the check digits of card and account hold."""
    sorts = (
        ("cards", "card_count", "card 4539712648350272\n", 1),
        ("ibans", "iban_count", "IBAN DE66480501610002129799\n", 2),
        ("phones", "phone_count", "call +1 415 555 2671\n", 3),
        ("secrets", "secret_count", "AKIAQYLPMN5HHHFPZAM2\n", 4),
        ("ip_addresses", "ip_count", "7.7.7.7\n", 5),
        ("emails", "email_count", "jane@corp.com\n", 6),
    )
    documents = make_documents([[text * times for *_, text, times in sorts], ["cafÃ© " * 4]])
    made = run(run_stage, documents)
    table = read_table(made, "signals")
    for name, column, _, times in sorts:
        assert (made.counts[name], sum(table[column].to_pylist())) == (times, times), name
    assert made.counts["mojibake_characters"] == 2 * 4


def test_every_column_is_described(
    documents: Documents, run_stage: Make, read_table: Read, read_input: Read
) -> None:
    made = run(run_stage, documents)
    described = read_input(made, "signals").read_json("signals.json")
    schema = read_table(made, "signals").schema
    assert [column["name"] for column in described["columns"]] == schema.names[1:]
    assert schema.names[1:] == [signal.name for signal in choose_signals()]
    assert all(
        column["description"] and column["source"] and column["unit"] and column["view"]
        for column in described["columns"]
    )
    assert described["stop_words"] == list(STOP_WORDS)
    assert schema.field("words").metadata[b"description"]


def test_columns_stand_in_one_order_and_the_splitter_is_told(
    documents: Documents, run_stage: Make, read_table: Read, read_input: Read
) -> None:
    groups = ["redpajama-v2", "dclm"]
    config = {"groups": groups, "line_rules": [], "splitter": "spacy_english"}
    made = run(run_stage, documents, config)
    names = read_table(made, "signals").column_names
    assert names.index("words@dclm") < names.index("rps_doc_word_count")
    assert read_input(made, "signals").read_json("signals.json")["splitter"] == "spacy_english"


def test_personal_data_is_a_view(documents: Documents, run_stage: Make, read_table: Read) -> None:
    """What stands in the place of a value is an example that RFC 2606 and RFC 5737 reserve."""
    views = read_table(run(run_stage, documents, {"line_rules": []}), "views")["spans"].to_pylist()
    text = SHARDS[0][0]
    assert [(s["view"], text[s["start"] : s["end"]], s["label"]) for s in views[0]] == [
        ("personal_data", "jane@corp.com", "email"),
        ("personal_data", "7.7.7.7", "ip_address"),
    ]
    email, address = (span["replacement"] for span in views[0])
    assert email.partition("@")[2].startswith("example.")
    assert address.startswith(("192.0.2.", "198.51.100.", "203.0.113."))
    assert views[1:] == [[], [], [], []]


def test_tags_may_stand_for_personal_data(
    documents: Documents, run_stage: Make, read_table: Read
) -> None:
    config = {"line_rules": [], "personal_data": {"replacement": "tags"}}
    (first, *_) = read_table(run(run_stage, documents, config), "views")["spans"].to_pylist()
    assert [span["replacement"] for span in first] == ["<EMAIL>", "<IP_ADDRESS>"]


def test_line_rules_and_groups_may_be_left_out(
    documents: Documents, run_stage: Make, read_table: Read
) -> None:
    made = run(run_stage, documents, {"line_rules": ["refinedweb"], "groups": []})
    names = set(read_table(made, "signals").column_names)
    assert {"words", "refinedweb/removed_word_share"} <= names
    assert not {"words@dclm", "c4@code/sentences", "special_symbol_share"} & names
    views = {span["view"] for row in read_table(made, "views")["spans"].to_pylist() for span in row}
    assert views == {"personal_data", "refinedweb"}


def test_stop_words_are_configurable(
    documents: Documents, run_stage: Make, read_table: Read
) -> None:
    made = run(run_stage, documents, {"stop_words": ["zweiter", "Text", "kein"]})
    assert read_table(made, "signals")["stop_words"].to_pylist() == [0, 2, 0, 0, 0]


def test_two_workers_give_the_same_bytes(documents: Documents, run_stage: Make, store: Any) -> None:
    one = run(run_stage, documents)
    two = run(run_stage, documents, execution={"workers": 2}, force=True)
    assert [out.digest for out in one.outputs.values()] == [
        out.digest for out in two.outputs.values()
    ]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"personal_data": {"phone_regions": ["XX"]}},
            "XX",
        ),
        ({"groups": ["dclm", "dclm"]}, "dclm, dclm"),
        ({"line_rules": ["c4@paper"]}, "line_rules"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    documents: Documents, run_stage: Make, config: Any, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        run(run_stage, documents, config)
