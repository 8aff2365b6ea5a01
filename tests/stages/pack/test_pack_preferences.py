"""The pack_preferences stage: pairs whole in sequences, both answers apart from each other."""

from __future__ import annotations

import json

import numpy as np
import pytest
from chat_data import message, preference
from click.testing import CliRunner

from artifacts_schema.errors import InputError
from flows.cli.main import main
from stages.engine.page import Artifact
from stages.pack.page import page
from stages.pack.preferences import fit_pair
from stages.pack.stage import PackPreferences
from stages.pairs.encoding import encode_pairs
from stages.tokens.chat import CHAT_TEMPLATE
from stages.tokens.vocabulary import SpecialTokens
from stages.training.chat_format import EncodedRow, Learning, choose_format
from stages.training.examples import held_out_split
from stages.training.token_marks import BEGINS, IGNORED, LEARNT, make_marks
from stages.training.token_shards import TokenShards
from tests.written_shards import every

LENGTH = 128
WORDS = ["the cat", "a dog ran", "naïve", "你好 12", "def the a"]


def pairs(count=40):
    return [
        preference(
            f"{i:032x}",
            f"{WORDS[i % 5]} {i}",
            " ".join(WORDS[: i % 3 + 1]),
            WORDS[4 - i % 2],
            source=["made", "found"][i % 2],
        )
        for i in range(count)
    ]


@pytest.fixture
def pack_preferences(run_stage, given, tokenizer, tokenizer_files):
    """`pack_preferences(rows, execution, **config)` → the manifest; rows lie in two shards."""
    own = tokenizer_files(tokenizer)

    def run(rows, execution=None, **config):
        half = len(rows) // 2
        tables = {"00000.parquet": rows[:half], "00001.parquet": rows[half:]}
        inputs = {
            "preferences": [given("preferences", tables)],
            "tokenizer": [given("tokenizer", own)],
        }
        config = {"sequence_length": LENGTH, "held_out_share": 0, **config}
        return run_stage(PackPreferences, config, inputs, execution)

    return run


def answers_of(shards):
    """preference id → ids and targets of each of its answers, read as training reads them."""
    results = {}
    for source in shards.sources:
        batch = shards.batch(*every(shards, source))
        for row, pieces in enumerate(shards.documents_of(*every(shards, source))):
            documents = batch.documents_BL[row]
            assert documents.max() + 1 == 2 * len(pieces)
            for number, piece in enumerate(pieces):
                assert piece.document_start == 0
                results[piece.doc_id] = [
                    (batch.tokens_BL[row, inside].tolist(), batch.targets_BL[row, inside].tolist())
                    for inside in (documents == 2 * number, documents == 2 * number + 1)
                ]
    return results


def test_a_pair_lies_whole_in_a_row_as_two_answers(
    pack_preferences, read_input, tokenizer, tokenizer_files
):
    rows = pairs()
    shards = TokenShards([read_input(pack_preferences(rows), "train")])
    assert shards.paired_sources == {"made", "found"}
    assert not shards.unpaired_sources
    described = tokenizer_files(tokenizer)["tokenizer_config.json"]
    special = SpecialTokens.from_config(tokenizer, described)
    chat_format = choose_format(
        CHAT_TEMPLATE, tokenizer, special, described, "2025-01-01", Learning()
    )
    results = answers_of(shards)
    assert results.keys() == {row["preference_id"] for row in rows}
    for row, encoded in zip(rows, encode_pairs(chat_format, rows), strict=True):
        for (ids, targets), ((answer,), side) in zip(
            results[row["preference_id"]],
            zip(encoded, ("chosen", "rejected"), strict=True),
            strict=True,
        ):
            # What `preference` reads: up to the last learnt token.
            stop = int(np.flatnonzero(answer.marks & LEARNT)[-1]) + 1
            assert ids == answer.ids[:stop].tolist()
            learnt = [target for target in targets if target != IGNORED]
            text = tokenizer.decode(learnt, skip_special_tokens=False)
            assert text == f"{row[side][0]['content']}<|im_end|>"


def test_its_bytes_do_not_depend_on_workers(pack_preferences, store):
    outputs = []
    for workers in (1, 2):
        manifest = pack_preferences(pairs(), {"workers": workers})
        outputs.append({name: one.digest for name, one in manifest.outputs.items()})
        store.backend.remove(f"artifacts/pack_preferences/{manifest.key}.json")
    assert outputs[0] == outputs[1]


def test_pairs_are_held_out_as_preference_holds_them_out(pack_preferences, read_input):
    rows = pairs()
    manifest = pack_preferences(rows, held_out_share=0.3, seed=5)
    names = [row["preference_id"] for row in rows]
    for split, numbers in zip(("train", "held_out"), held_out_split(names, 0.3, 5), strict=True):
        shards = TokenShards([read_input(manifest, split)])
        assert answers_of(shards).keys() == {names[number] for number in numbers.tolist()}


def encoded(tokens, learnt_from=2):
    learnt = np.arange(tokens) >= learnt_from
    ids = np.arange(tokens, dtype=np.int64)
    return [EncodedRow(ids, make_marks(learnt, np.zeros(tokens, dtype=np.int64)), "")]


@pytest.mark.parametrize(
    ("chosen", "rejected", "wanted"),
    [
        (10, 6, (10, 6)),
        (15, 4, (12, 4)),
        (4, 15, (4, 12)),
        (12, 11, (8, 8)),
        (16, 8, (8, 8)),
        (30, 9, (8, 8)),
    ],
)
def test_of_a_pair_too_long_the_longer_answer_is_cut_to_what_is_free(chosen, rejected, wanted):
    pair = (encoded(chosen), encoded(rejected))
    kept, reason = fit_pair(pair, 16, "truncate")
    if wanted == (8, 8):  # Then they are the same.
        assert (kept, reason) == (None, "equal_answers")
        return
    assert kept is not None
    assert tuple(len(one.ids) for one in kept) == wanted
    assert reason == (None if chosen + rejected <= 16 else "truncated")
    assert fit_pair(pair, 16, "drop")[1] == (None if chosen + rejected <= 16 else "too_long")
    assert all(one.marks[0] & BEGINS for one in kept)


def test_a_prompt_without_room_for_an_answer_leaves_nothing_to_learn():
    pair = (encoded(12, learnt_from=9), encoded(14, learnt_from=9))
    assert fit_pair(pair, 16, "truncate") == (None, "nothing_to_learn")


def test_what_is_left_out_is_counted_and_listed(pack_preferences, read_table):
    equal = preference("e" * 32, "say yes", "yes", " yes ")
    long = preference("f" * 32, "the cat " * 100, "yes", "no")
    manifest = pack_preferences([*pairs(), equal, long])
    assert manifest.counts["equal_answers"] == manifest.counts["nothing_to_learn"] == 1
    assert manifest.conservation.dropped == {"nothing_to_learn": 1, "equal_answers": 1}
    excluded = read_table(manifest, "excluded").to_pylist()
    assert {(row["doc_id"], row["reason"]) for row in excluded} == {
        ("e" * 32, "equal_answers"),
        ("f" * 32, "nothing_to_learn"),
    }


def test_too_many_left_out_stop_the_stage(pack_preferences):
    rows = [preference(f"{i:032x}", "say", "yes", "yes") for i in range(4)]
    with pytest.raises(InputError, match="4 of 4 records are bad") as refused:
        pack_preferences(rows)
    assert refused.value.where == "preferences"


def test_a_single_answer_is_refused(pack_preferences):
    single = {**preference("e" * 32, "say yes", "yes", "no"), "rejected": []}
    with pytest.raises(InputError, match="one answer with a label, no pair"):
        pack_preferences([*pairs(), single])


def test_show_masks_prints_both_answers_and_the_page_has_them(pack_preferences, store):
    rows = pairs()
    manifest = pack_preferences(rows)
    result = CliRunner().invoke(
        main,
        ["show-masks", manifest.key[:16], "--json", "--conversations", "5", "--store", store.url],
    )
    assert result.exit_code == 0, result.output
    masks = json.loads(result.stdout)
    assert len(masks["pairs"]) == 5
    assert not masks["conversations"]
    by_id = {row["preference_id"]: row for row in rows}
    for pair in masks["pairs"]:
        row = by_id[pair["preference_id"]]
        for side in ("chosen", "rejected"):
            learnt = "".join(one["text"] for one in pair[side] if one["learnt"])
            assert learnt == f"{row[side][0]['content']}<|im_end|>"
            others = "".join(one["text"] for one in pair[side] if not one["learnt"])
            assert row["prompt"][0]["content"] in others
    figures = page(Artifact(store, manifest))
    assert "What is learnt of pair 1" in [one.title for one in figures]


def test_an_answer_after_earlier_turns_alone_is_learnt(pack_preferences, read_input, tokenizer):
    row = preference("a" * 32, "the cat", "a dog", "naïve")
    row["prompt"] = [
        message("user", "the"),
        message("assistant", "def"),
        message("user", "the cat"),
    ]
    shards = TokenShards([read_input(pack_preferences([*pairs(4), row]), "train")])
    for (_, targets), text in zip(answers_of(shards)["a" * 32], ("a dog", "naïve"), strict=True):
        learnt = [target for target in targets if target != IGNORED]
        assert tokenizer.decode(learnt, skip_special_tokens=False) == f"{text}<|im_end|>"
