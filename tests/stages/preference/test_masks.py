"""What `ingot show-masks` and the page say is learnt of preference pairs, against the run."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from flows.cli.main import main
from stages.engine.page import Artifact, PairsFigure
from stages.preference.page import page
from stages.preference.stage import Dpo, Preference, Reward
from tests.stages.preference.test_dpo import QUICK, TINY, preference, said
from tests.stages.preference.test_kto import single

ROWS = [
    preference(n, chosen="yes " * (n % 3 + 1), rejected="no " * (n % 2 + 1)) for n in range(23)
] + [preference(99, "yes", " yes ")]


@pytest.fixture
def made(run_stage, checkpoint, given):
    def run(stage=Dpo, rows=ROWS, **config):
        inputs = {
            "checkpoint": [checkpoint],
            "preferences": [given("preferences", {"00000.parquet": rows})],
        }
        return run_stage(stage, {**TINY, **config}, inputs, QUICK)

    return run


@pytest.fixture
def ask(store, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *words: CliRunner().invoke(main, [*map(str, words), "--store", store.url])


def shown(ask, manifest, *words):
    result = ask("show-masks", manifest.key[:16], *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def learnt(pieces):
    return "".join(piece["text"] for piece in pieces if piece["learnt"])


def test_of_both_answers_the_answer_and_its_closing_token_are_learnt(ask, made):
    masks = shown(ask, made(), "--conversations", 5)
    by_id = {row["preference_id"]: row for row in ROWS}
    assert len(masks["pairs"]) == 5
    for pair in masks["pairs"]:
        row = by_id[pair["preference_id"]]
        for side in ("chosen", "rejected"):
            assert learnt(pair[side]) == row[side][0]["content"].strip() + "<|im_end|>"
            others = "".join(one["text"] for one in pair[side] if not one["learnt"])
            assert row["prompt"][0]["content"] in others
    shares = {one["speaker"]: one for one in masks["shares"]}
    assert shares["user"]["learnt"] == shares["template"]["learnt"] == 0
    assert shares["assistant"]["learnt"] == shares["assistant"]["tokens"] > 0
    assert masks["dropped"] == {"equal_answers": 1}


def test_an_earlier_answer_in_the_prompt_is_not_learnt(ask, made):
    earlier = [said("say blue", "user"), said("blue"), said("say yes", "user")]
    rows = [{**row, "prompt": earlier if n == 3 else row["prompt"]} for n, row in enumerate(ROWS)]
    pair = shown(ask, made(rows=rows), "--conversations", 9)["pairs"][3]
    assert learnt(pair["chosen"]) == "yes<|im_end|>"
    assert {one["learnt"] for one in pair["chosen"] if one["speaker"] == "assistant"} == {
        True,
        False,
    }


def test_a_reward_model_is_scored_at_the_last_token_alone(ask, made):
    masks = shown(ask, made(Reward))
    for pair in masks["pairs"]:
        for side in ("chosen", "rejected"):
            assert [one["learnt"] for one in pair[side]].count(True) == 1
            assert pair[side][-1]["learnt"]
    # One token of each answer of 23 pairs; ChatML ends with a line end of the template.
    assert {one["speaker"]: one["learnt"] for one in masks["shares"]}["template"] == 2 * 23


@pytest.mark.parametrize("stage", [Dpo, Reward])
def test_a_training_step_shows_the_pairs_that_it_read(ask, made, stage, monkeypatch):
    from stages.preference.pairs_task import PairsTask

    read = {}
    batch = PairsTask.batch

    def watched(self, training_step):
        numbers = batch(self, training_step)
        read[training_step] = [self.data.ids[number] for number in numbers.tolist()]
        return numbers

    monkeypatch.setattr(PairsTask, "batch", watched)
    manifest = made(stage)
    for step in (1, 3, max(read)):
        masks = shown(ask, manifest, "--training-step", step, "--conversations", 9)
        assert [pair["preference_id"] for pair in masks["pairs"]] == read[step]
    result = ask("show-masks", manifest.key[:16], "--training-step", max(read) + 1)
    assert result.exit_code == 2
    assert f"the run has {max(read)} training steps" in result.output


def test_both_answers_are_printed_beside_each_other_and_none_is_cut(ask, made):
    rows = [preference(n, chosen="yes " * 20, rejected="no " * 25) for n in range(20)]
    result = ask("show-masks", made(rows=rows).key[:16], "--conversations", 1)
    assert result.exit_code == 0, result.output
    lines = [line for line in result.stdout.splitlines() if "│" in line]
    left, right = zip(*(re.split("│", line) for line in lines), strict=True)
    assert {len(one) for one in left} == {(80 - 3) // 2 + 1}
    assert (left[0].strip(), right[0].strip()) == ("chosen", "rejected")
    words = ["".join(one.strip() for one in side[1:]).replace(" ", "") for side in (left, right)]
    assert words[0] == "⟦" + "yes" * 20 + "<|im_end|>⟧"
    assert words[1] == "⟦" + "no" * 25 + "<|im_end|>⟧"
    assert result.stdout.count("say yes or no to 0") == 1


def test_a_single_answer_is_shown_under_its_label(ask, made):
    manifest = made(Preference, [single(n, n % 2 > 0) for n in range(24)], loss="kto")
    result = ask("show-masks", manifest.key[:16], "--conversations", 2)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert [one for one in lines if one.endswith("desirable")] == ["undesirable", "desirable"]
    assert lines[lines.index("undesirable") + 1] == "⟦no<|im_end|>⟧"
    assert shown(ask, manifest)["pairs"][0]["chosen"] is None


@pytest.mark.parametrize("stage", [Dpo, Reward])
def test_the_page_shows_three_pairs_with_what_is_learnt_marked(made, store, stage):
    figures = {one.title: one for one in page(Artifact(store, made(stage)))}
    pairs = figures["What is learnt of pairs"]
    assert isinstance(pairs, PairsFigure)
    assert len(pairs.pairs) == 3
    first = pairs.pairs[0]
    assert first.heading == "say yes or no to 0"
    assert "say yes or no to 0" in first.left[0].text
    assert [part.text for part in first.left if part.differs] == (
        ["⟦\n⟧"] if stage is Reward else ["⟦yes<|im_end|>⟧"]
    )
    assert figures["Tokens by speaker"].rows
