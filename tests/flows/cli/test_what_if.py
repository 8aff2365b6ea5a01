"""`ingot what-if`: the same decision as a run makes, without one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from eight_documents import CONFIG, text_of

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from flows.analysis.corpus import Corpus
from flows.analysis.what_if import apply_settings, parse_sweep
from stages.filter.config import FilterConfig
from stages.filter.stage import Filter
from stages.pack.stage import Pack
from stages.tokenizer.stage import TokenizerStage

SETTINGS = [
    ["gopher_few_words=30"],
    ["gopher_few_words=58"],
    ["duplicates.threshold=0.95"],
    ["duplicates.threshold=null", "gopher_few_words=0"],
    ["duplicates.measure=containment", "duplicates.threshold=0.92"],
    ["duplicates.threshold=0.92", "duplicates.exact=raw"],
    ["duplicates.priority=[{by: length}]"],
    ["duplicates.priority=[{by: quality, signal: stop_words}, {by: source, order: [code]}]"],
    ["contamination.min_ngrams_hit=2"],
    ["languages=[]"],
    ["languages=[de]"],
    ["rules=[]"],
    ["rules=[fineweb@code]"],
    ["rules_by_source={}"],
    ["thresholds.gopher_few_stop_words=7", "gopher_many_words=250"],
]


@pytest.fixture
def asked(ingot, corpus):
    """`asked(*settings)` → the JSON of what-if."""

    def ask(*settings, **more):
        flags = [part for setting in settings for part in ("--set", setting)]
        flags += [part for name, value in more.items() for part in (f"--{name}", value)]
        result = ingot("what-if", "demo/filter", *flags, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return ask


def test_the_corpus_itself_is_what_the_arithmetic_says(corpus, read_table):
    """a, b: few words; c: excluded; d: German; f: copy of e. h has 3 hits, and 5 are needed."""
    assert read_table(corpus, "documents")["doc_id"].to_pylist() == ["e", "g", "h"]


@pytest.mark.parametrize("settings", SETTINGS, ids=" ".join)
def test_it_decides_as_a_run_with_that_config_does(
    store, corpus, inputs, run_stage, read_table, asked, settings
):
    opened = Corpus.open(store, "demo/filter")
    config = apply_settings(opened.config, settings)
    decided = opened.decide(config)
    made = run_stage(Filter, config.plain(), inputs)
    rows = read_table(made, "ledger").to_pylist()
    assert decided.doc_ids.to_pylist() == [row["doc_id"] for row in rows]
    assert decided.reasons.to_pylist() == [row["reason"] for row in rows]
    assert [decided.failing(n) for n in range(len(rows))] == [row["failing"] for row in rows]
    told = asked(*settings)
    total = told["retention"][0]
    kept = [row for row in rows if row["verdict"] == "kept"]
    assert total["after"]["documents"] == len(kept) == made.conservation.out
    assert total["after"]["characters"] == sum(row["characters"] for row in kept)
    before = set("egh")
    after = {row["doc_id"] for row in kept}
    assert told["gained"]["documents"] == len(after - before)
    assert told["lost"]["documents"] == len(before - after)
    assert told["decided_otherwise"] == 0


def test_gained_and_lost_name_rule_values_and_thresholds(asked):
    told = asked("gopher_few_words=30", "duplicates.threshold=0.95")
    rules = {
        moved["rule" if "rule" in moved else "reason"]: moved for moved in told["gained"]["by_rule"]
    }
    assert rules["gopher_few_words"] == {
        "reason": "gopher_few_words", "documents": 1, "characters": len(text_of("b")),
        "least": 45.0, "most": 45.0, "before": 50.0, "after": 30.0,
    }  # fmt: skip
    near = rules["near_duplicate"]
    assert (near["documents"], near["before"], near["after"]) == (1, 0.8, 0.95)
    assert near["least"] == pytest.approx(0.9)
    assert told["lost"]["by_rule"] == []
    lost = asked("gopher_many_words=299")["lost"]["by_rule"]
    assert [(m["reason"], m["documents"], m["most"], m["after"]) for m in lost] == [
        ("gopher_many_words", 1, 300.0, 299.0)
    ]


def test_samples_show_no_personal_data(ingot, asked):
    (sample,) = asked("gopher_few_words=30")["gained"]["samples"]
    assert sample["doc_id"] == "b"
    assert sample["excerpt"].startswith("write to email@example.com about b word")
    shown = ingot("what-if", "demo/filter", "--set", "gopher_few_words=30").stdout
    assert "somebody@" not in shown
    assert "gained b  gopher_few_words 45" in shown
    assert asked("gopher_few_words=30", samples=0)["gained"]["samples"] == []


def test_samples_hide_personal_data_that_the_corpus_keeps(store, run_stage, inputs, ingot):
    made = run_stage(Filter, {**CONFIG, "views": [], "personal_data": "keep"}, inputs)
    told = ingot("what-if", made.key, "--set", "gopher_few_words=30")
    assert told.exit_code == 0, told.output
    assert "somebody@" not in told.stdout


def test_retention_is_told_by_source_and_in_plain_lines(ingot, corpus):
    told = ingot("what-if", "demo/filter", "--set", "gopher_few_words=30").stdout.splitlines()
    assert told[0].startswith("filter ")
    rows: dict[str, list[str]] = {}
    for line in told:
        rows.setdefault(line.split()[0] if line else "", line.split())
    assert rows["documents"] == ["documents", "8", "3", "37.5%", "4", "50.0%", "+1"]
    assert rows["web"][:5] == ["web", "7", "2", "3", "+1"]
    assert rows["code"][:5] == ["code", "1", "1", "1", "+0"]
    assert "tokens: no tokenizer read this corpus" in told
    assert told[-1].startswith("16 decisions in ")


def test_no_change_is_said(ingot, corpus):
    assert (
        "the same documents stay"
        in ingot("what-if", "demo/filter", "--set", "gopher_few_words=49").stdout
    )


def test_without_settings_the_rules_are_listed_with_their_failures(ingot, asked):
    rows = {row["rule"]: row for row in asked()["rules"]}
    # a, b alone; g is code and is not asked.
    assert (rows["gopher_few_words"]["failing"], rows["gopher_few_words"]["failing_alone"]) == (
        2,
        2,
    )
    assert rows["gopher_few_words"]["stays"] == "words ≥ 50"
    assert rows["exclusion"]["failing"] == 1
    assert rows["language"]["failing_alone"] == 1
    assert "gopher_few_words " in ingot("what-if", "demo/filter").stdout


def test_a_sweep_is_what_each_value_alone_gives(asked, ingot):
    told = asked(sweep="gopher_few_words=10:60:6")["sweep"]
    assert [point["value"] for point in told["points"]] == [10, 20, 30, 40, 50, 60]
    assert (told["now"], told["documents"]) == (50, 8)
    for point in told["points"]:
        alone = asked(f"gopher_few_words={point['value']}")["retention"][0]["after"]
        assert point["documents"] == alone["documents"]
        assert point["characters"] == alone["characters"]
    beside = asked("duplicates.threshold=0.95", sweep="gopher_few_words=50:60:2")["sweep"]
    assert beside["points"][0]["documents"] == 4  # The copy stays too.
    shown = ingot("what-if", "demo/filter", "--sweep", "gopher_few_words=10:60:2").stdout
    assert "gopher_few_words, now 50; 8 documents" in shown
    assert "62.5%  ██████▎" in shown  # 5 of 8 at 10 words: a bar of 6.25 of 10 characters


def test_tokens_are_counted_where_the_corpus_was_packed(
    run_stage, read_table, read_input, corpus, asked
):
    given = {"documents": [(corpus, "documents")]}
    tokenizer = run_stage(TokenizerStage, {"vocabulary_size": 300, "held_share": 0.3}, given)
    measured = asked("gopher_many_words=299")
    assert measured["tokens"].startswith("bytes by the bytes per token of tokenizer")
    held = read_input(tokenizer, "tokenizer").read_json("training.json")["held"]
    (source,) = held.values()  # The other source was not held, and goes by this one.
    kept = sum(len(text_of(d)) for d in "egh") / source["bytes_per_token"]
    assert measured["retention"][0]["before"]["tokens"] == round(kept)
    packed = run_stage(
        Pack,
        {"sequence_length": 64, "held_out_share": 0.4},
        {**given, "tokenizer": [(tokenizer, "tokenizer")]},
    )
    told = asked("gopher_many_words=299")
    assert told["tokens"].startswith("counted in pack")
    tokens = {}
    for split in ("train", "held_out"):
        for path in [f.path for f in packed.output(split).files if f.path.endswith(".parquet")]:
            for row in read_table(packed, split, path).to_pylist():
                tokens[row["doc_id"]] = tokens.get(row["doc_id"], 0) + row["length"]
    assert told["retention"][0]["before"]["tokens"] == sum(tokens.values())
    assert told["lost"]["tokens"] == tokens["e"]
    # b is in no shard: by the tokens per character of e and h, the kept documents of its source.
    gained = asked("gopher_few_words=30")["gained"]["tokens"]
    rate = (tokens["e"] + tokens["h"]) / (len(text_of("e")) + len(text_of("h")))
    assert gained == round(rate * len(text_of("b")))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--set", "gopher_few_word=1"], "did you mean 'gopher_few_words'?"),
        (["--set", "fineweb_short_lines=1"], "it is a rule of fineweb@code"),
        (["--set", "gopher_few_words"], "--set gopher_few_words: expected path=value"),
        (["--set", "gopher_few_words=many"], "input should be a valid number"),
        (["--set", "duplicates.threshold=0.4"], "lies below dedup's floor 0.5"),
        (["--set", "duplicates.treshold=0.6"], "did you mean 'threshold'?"),
        (["--set", "duplicates.priority=[{by: quality, signal: edu}]"], "'edu', which was not"),
        (["--set", "duplicates.exact=true"], "input should be 'normalised' or 'raw'"),
        (["--set", "rules=[garbled]"], "needs signal 'replacement_character_share'"),
        (["--sweep", "gopher_few_words=1:2"], "expected RULE=A:B:N"),
        (["--sweep", "gopher_few_words=1:2:1"], "N from 2 to 100"),
        (["--sweep", "languages=1:2:2"], "languages"),
    ],
)
def test_a_wrong_question_is_one_line(ingot, corpus, arguments, told):
    result = ingot("what-if", "demo/filter", *arguments)
    assert result.exit_code == 2, result.output
    assert told in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_what_is_no_corpus_is_told_with_those_that_are(ingot, corpus, inputs):
    documents = inputs["documents"][0][0]
    for command in ("what-if", "presets"):
        result = ingot(command, documents.key)
        assert result.exit_code == 2
        assert "demo/filter" in result.stderr


def test_collected_inputs_are_named(ingot, corpus, inputs):
    signals = inputs["signals"][0][0]
    assert ingot("gc", "--artifact", signals.key, "--delete").exit_code == 0
    result = ingot("what-if", "demo/filter")
    assert result.exit_code == 2
    assert f"{signals.stage} {short(signals.key)}" in result.stderr


def test_nothing_is_written(ingot, store, corpus):
    before = sorted(Path(store.url).rglob("*"))
    ingot("what-if", "demo/filter", "--set", "gopher_few_words=30")
    ingot("presets", "demo/filter")
    assert sorted(Path(store.url).rglob("*")) == before


def test_thresholds_of_rules_that_go_are_pointed_at():
    config = FilterConfig(
        rules=("gopher_quality@datatrove",), thresholds={"gopher_few_words": 30.0}
    )
    with pytest.raises(UsageError, match=r"add --set 'thresholds=\{\}'"):
        apply_settings(config, ["rules=[fineweb@code]"])
    assert apply_settings(config, ["rules=[fineweb@code]", "thresholds={}"]).rules == (
        "fineweb@code",
    )


def test_a_sweep_ends_at_both_ends():
    assert parse_sweep("x=0:1:5") == ("x", [0.0, 0.25, 0.5, 0.75, 1.0])
    assert parse_sweep("duplicates.threshold=0.9:0.7:3") == (
        "duplicates.threshold",
        [0.9, 0.8, 0.7],
    )


def test_why_names_every_failing_rule_with_value_and_threshold(ingot, store, run_stage, inputs):
    made = run_stage(
        Filter,
        {**CONFIG, "thresholds": {"gopher_few_stop_words": 7, "gopher_few_words": 100}},
        inputs,
    )
    store.set_ref("demo/filter", made.stage, made.key)
    (told,) = json.loads(ingot("why", "https://example.org/d", "--json").stdout)["documents"]
    (ledger,) = [s for s in told["sightings"] if s["kind"] == "ledger"]
    assert ledger["values"]["failures"] == [
        {"rule": "language", "signal": "language", "value": "de", "threshold": "en"},
        {"rule": "gopher_few_words", "signal": "words", "value": 60.0, "threshold": 100.0},
        {"rule": "gopher_few_stop_words", "signal": "stop_words", "value": 6.0, "threshold": 7.0},
    ]
    shown = ingot("why", "https://example.org/d").stdout
    assert "dropped by language: language de, threshold en" in shown
    assert "also fails gopher_few_stop_words: stop_words 6, threshold 7" in shown
    assert "personal_data: email 1 (20 characters)" in shown
    again = run_stage(Filter, {**CONFIG, "thresholds": {"gopher_many_words": 305}}, inputs)
    store.set_ref("demo/filter", again.stage, again.key)
    copy = ingot("why", "https://example.org/f", "--in", "demo/filter").stdout
    assert "dropped by gopher_many_words: words 310, threshold 305, kept partner e: " in copy
    assert "also fails near_duplicate: similarity 0.9, threshold 0.8" in copy
