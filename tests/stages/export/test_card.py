"""The card: what it says, and of which checkpoint it says it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import yaml

from artifacts_schema.manifest import InputRef
from stages.export.card import front_matter, model_card
from stages.export.card_scores import (
    Contamination,
    Evaluation,
    at_chance,
    count_contaminated,
    results_table,
    scores_table,
)
from stages.export.config import ExportConfig
from stages.export.provenance import Applied, Origin, TrainingData, Treatment
from stages.export.verify import Verification
from stages.model.config import ModelConfig
from stages.model.size import count_parameters

MODEL = ModelConfig(vocabulary_size=400, width=32, layers=2, heads=4, kv_heads=2)
VERIFIED = Verification(2.5e-7, 120, "5.0.0", "2.11.0", [7, 9], 0.5, 1e-4)
LINEAGE = {
    "checkpoint": {"stage": "dpo", "key": "c" * 64, "digest": "d" * 64},
    "evaluations": [{"stage": "evaluate", "key": "e" * 64, "digest": "f" * 64}],
    "state": {"training_step": 1200, "tokens": 34567},
}


def row(benchmark="quiz", metric="accuracy", value=0.5, error=0.05, baseline=0.25):
    return {
        "benchmark": benchmark,
        "metric": metric,
        "value": value,
        "standard_error": error,
        "low": None if error is None else value - 2 * error,
        "high": None if error is None else value + 2 * error,
        "count": 1200,
        "baseline": baseline,
    }


def reference(stage, letter, kind="checkpoint"):
    return InputRef(stage=stage, key=letter * 64, output=kind, kind=kind, digest=letter * 64)


def evaluated(
    *rows, relation="release", samples=(), corpus=False, letter="e", contamination=(), **revisions
):
    measured = {"release": "dpo", "earlier": "pretrain", "other": "elsewhere"}[relation]
    return Evaluation(
        "evaluate",
        letter * 64,
        rows,
        tuple(samples),
        (reference(measured, "a"),),
        relation,
        corpus,
        revisions,
        dict(contamination),
    )


def card_of(
    *evaluations, data=(), origins=(), lineage=LINEAGE, dtype="float32", rounded=False, **config
):
    return model_card(
        ExportConfig(**config), MODEL, dtype, lineage, data, origins, evaluations, VERIFIED,
        rounded=rounded,
    )  # fmt: skip


def section(card, title):
    """What stands under a heading of the second level."""
    return card.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (row(value=0.36), False),
        (row(value=0.34), True),
        (row(value=0.34, metric="accuracy_clean"), True),
        (row(metric="bits_per_byte", value=2.0, baseline=2.2), False),
        (row(metric="bits_per_byte", value=2.15, baseline=2.2), True),
        (row(metric="bits_per_byte", value=2.5, baseline=2.2), True),
        (row(baseline=None), False),
        (row(value=0.3, error=None), True),
        (row(value=math.nan), True),
    ],
)
def test_a_score_beats_its_baseline_if_its_whole_interval_does(score, expected):
    assert at_chance(score) is expected


def test_every_score_stands_with_its_interval_and_count():
    table = results_table([row(benchmark="a|b", baseline=None), row(error=None)])
    assert table.splitlines()[-2:] == [
        r"| a\|b | accuracy | 0.5000 | 0.4000 to 0.6000 | – | 1,200 |",
        "| quiz | accuracy | 0.5000 | – | 0.2500 | 1,200 |",
    ]


def flag(item, contaminated, benchmark="quiz", metric="accuracy", shots=5):
    return {
        "benchmark": benchmark, "formulation": "cloze", "shots": shots, "item_id": item,
        "metric": metric, "contaminated": contaminated,
    }  # fmt: skip


def test_items_with_flags_are_counted_once_whatever_was_measured_of_them():
    items = [flag(name, name == "a", metric=metric) for name in "abc" for metric in ("x", "y")]
    items += [flag("a", False, shots=0), flag("d", None), flag("a", None, "other")]
    assert count_contaminated(items) == {
        ("quiz", "cloze", 5): (3, 1),
        ("quiz", "cloze", 0): (1, 0),
    }


def cells_of(table):
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


def test_a_score_says_how_it_was_measured_and_what_it_is_without_contaminated_items():
    how = {"formulation": "multiple_choice", "shots": 5}
    contamination = {
        ("quiz", "multiple_choice", 5): Contamination(1200, 300),
        ("pure", None, None): Contamination(10, 0),
        ("known", None, None): Contamination(7, 7),
    }
    rows = [
        {**row(), **how},
        {**row(metric="accuracy_clean", value=0.4), **how, "count": 900},
        row("pure"), row("known"), row("held_out/web", "bits_per_byte", error=None),
        row("planted/garbled", "recall", 1.0),
    ]  # fmt: skip
    table = cells_of(scores_table(evaluated(*rows, contamination=contamination)))
    assert table[0] == [
        "quiz", "multiple choice", "5", "accuracy", "0.5000", "0.4000 to 0.6000", "0.2500",
        "1,200", "300 of 1,200", "0.4000 (0.3000 to 0.5000), n 900",
    ]  # fmt: skip
    assert [one[0] for one in table] == ["quiz", "pure", "known", "held_out/web"]
    assert [one[-2:] for one in table[1:]] == [
        ["0 of 10", "the same"], ["7 of 7", "no item"], ["not checked", "–"],
    ]  # fmt: skip
    assert table[3][1:3] == ["–", "–"]


def test_each_data_set_has_an_entry_of_its_own_as_the_hub_reads_it(tmp_path):
    from huggingface_hub import ModelCard

    own = evaluated(
        row(),
        row(metric="accuracy_clean", value=0.4),
        row("prose", "bits_per_byte", 2.0),
        row("held_out/web", "bits_per_byte", 1.5),
        row("held_out/code", "bits_per_byte", 1.6),
        row("held_out/none", "bits_per_byte", math.nan),
        row("planted/garbled", "recall", 1.0),
        benchmarks="b" * 12,
        held_out="h" * 12,
    )
    config = ExportConfig(name="my-model", license="apache-2.0", languages=("en",))
    head = front_matter(config, [own])
    values = yaml.safe_load(head.strip("-"))
    assert (values["license"], values["library_name"]) == ("apache-2.0", "transformers")
    (tmp_path / "README.md").write_text(f"{head}\n# my-model\n")
    data = ModelCard.load(tmp_path / "README.md").data
    assert data.model_name == "my-model"
    found = {
        (r.dataset_name, r.dataset_type, r.dataset_config, r.dataset_split, r.dataset_revision): (
            r.metric_type,
            r.metric_value,
        )
        for r in data.eval_results
    }
    bits = "bits_per_byte"
    assert found == {
        ("quiz", "quiz", "all", "test", "b" * 12): ("accuracy", 0.5),
        ("quiz, without contaminated items", "quiz", "clean", "test", "b" * 12): ("accuracy", 0.4),
        ("prose", "prose", "all", "test", "b" * 12): (bits, 2.0),
        ("held-out text of web", "held_out", "web", "held_out", "h" * 12): (bits, 1.5),
        ("held-out text of code", "held_out", "code", "held_out", "h" * 12): (bits, 1.6),
    }
    # One entry of the index for each, none with two metrics of one type.
    (entry,) = values["model-index"]
    assert len(entry["results"]) == 5
    assert all(len(result["metrics"]) == 1 for result in entry["results"])


def test_scores_of_another_checkpoint_are_not_those_of_the_release():
    own = evaluated(row(value=0.9))
    sample = {"form": "text", "prompt": "Once", "completion": " there was a fox"}
    earlier = evaluated(
        row("old", value=0.11), row("held_out/web", "bits_per_byte", 3.0),
        relation="earlier", samples=[sample], letter="b",
    )  # fmt: skip
    other = evaluated(row("foreign", value=0.12), relation="other", letter="7")
    card = card_of(earlier, own, other)
    head = card.split("\n---\n", 1)[0]
    assert "0.9" in head
    for missing in ("old", "held_out", "foreign", "0.11", "0.12"):
        assert missing not in head
    assert "| quiz | – | – | accuracy | 0.9000 |" in section(card, "Evaluation")
    assert "old" not in section(card, "Evaluation")
    assert "`pretrain/aaaaaaaaaaaa`" in section(card, "Earlier checkpoints")
    assert "| old | – | – | accuracy | 0.1100 |" in section(card, "Earlier checkpoints")
    assert "| foreign | – | – | accuracy | 0.1200 |" in section(card, "Other checkpoints")
    assert "there was a fox" not in card
    # Limits are of the release too: the bits of the earlier checkpoint are worse than its baseline.
    assert "Not shown to be better" not in card


def test_with_evaluations_of_other_checkpoints_alone_it_has_no_score():
    card = card_of(evaluated(row(), relation="earlier"))
    assert "model-index" not in card
    assert "released without an evaluation" in section(card, "Evaluation")
    assert "released without an evaluation" in section(card, "Limits")


def test_planted_defects_are_of_the_corpus_and_stand_once():
    planted = row("planted/garbled", "recall", 1.0)
    of_ours = [evaluated(row(), planted, corpus=True), evaluated(planted, corpus=True)]
    card = card_of(*of_ours)
    assert card.count("planted/garbled") == 1
    assert "planted/garbled" in section(card, "Training data")
    elsewhere = evaluated(row(), planted, corpus=False)
    assert "planted/garbled" not in card_of(elsewhere)


def test_a_benchmark_at_chance_is_named_once_with_its_metrics():
    again = evaluated(row(value=0.26), letter="9")
    twice = (evaluated(row(value=0.26), row(metric="accuracy_by_bytes", value=0.25)), again)
    (line,) = [line for line in card_of(*twice).splitlines() if "Not shown" in line]
    assert line.endswith(": quiz (accuracy, accuracy_by_bytes).")


def test_the_card_says_what_it_is_and_where_it_came_from():
    sample = {"form": "chat", "prompt": "Who?\n", "completion": "Nobody."}
    card = card_of(evaluated(row(), samples=[sample]))
    assert f"{count_parameters(MODEL).total:,} parameters" in card
    assert "| checkpoint | dpo | `cccccccccccc` | `dddddddddddd` |" in card
    assert "1,200 training steps and 34,567 tokens" in card
    assert "    Who?\n    Nobody." in card
    assert "within 2.5e-07" in card


def test_a_release_without_evaluation_says_so():
    card = card_of(lineage={**LINEAGE, "evaluations": [], "state": {}})
    assert "released without an evaluation" in card
    assert "model-index" not in card


# Training data -----------------------------------------------------------------------------------

FILTERED = TrainingData(
    trained=("pretrain", "a" * 64),
    data=reference("pack", "b", "token_shards"),
    treatments=(Treatment(("filter", "c" * 64), ("email", "phone"), ("card",), ("secret",)),),
    personal_data="all",
    benchmarks=(Applied(reference("benchmarks", "d", "benchmarks"), "all"),),
    decontaminated="all",
    forget_lists=(
        Applied(reference("forget", "1", "exclusions"), "all"),
        Applied(reference("forget", "2", "exclusions"), "all"),
    ),
)
RAW = TrainingData(
    ("sft", "e" * 64), reference("conversations", "f", "conversations"), (), "none", (), "none", ()
)


def test_what_was_redacted_dropped_kept_and_looked_for_stands_by_training_stage():
    text = section(card_of(data=[RAW, FILTERED]), "Training data")
    chat, web = text.split("`pretrain/aaaaaaaaaaaa` was trained on")
    assert "`sft/eeeeeeeeeeee` was trained on conversations `conversations/ffffffffffff`" in chat
    assert "not looked for" in chat
    assert "Not compared with any benchmark" in chat
    assert "No list of documents to forget" in chat
    assert "token shards `pack/bbbbbbbbbbbb`" in web
    assert "redacted: email, phone; dropped with what holds it: card; kept: secret." in web
    assert "Compared with benchmarks `benchmarks/dddddddddddd`" in web
    assert "2 lists of documents to forget" in web


def test_what_holds_for_part_of_the_data_is_not_said_of_all():
    in_part = Applied(reference("benchmarks", "e", "benchmarks"), "part")
    forgotten = Applied(reference("forget", "3", "exclusions"), "part")
    part = replace(
        FILTERED,
        treatments=(replace(FILTERED.treatments[0], covers="part"),),
        personal_data="part",
        benchmarks=(*FILTERED.benchmarks, in_part),
        forget_lists=(*FILTERED.forget_lists, forgotten),
    )
    lines = section(card_of(data=[part]), "Training data").splitlines()
    assert "- Part of this data went through no step that looks for personal data." in lines
    (treated,) = [line for line in lines if "redacted" in line]
    assert "by `filter/cccccccccccc`, which part of this data went through" in treated
    compared = [line for line in lines if "compared with" in line.lower()]
    assert ["`benchmarks/dddddddddddd`" in line for line in compared] == [True, False]
    assert ["`benchmarks/eeeeeeeeeeee`" in line for line in compared] == [False, True]
    assert [line.startswith("- Part of this data") for line in compared] == [False, True]
    assert "- 2 lists of documents to forget applied." in lines
    assert "- 1 list of documents to forget applied to part of this data." in lines


@pytest.mark.parametrize(
    ("covers", "start"), [("all", "- Compared"), ("part", "- Part of this data was compared")]
)
def test_benchmarks_that_were_collected_are_not_named_and_not_left_out(covers, start):
    data = replace(FILTERED, benchmarks=(), decontaminated=covers)
    assert f"{start} with benchmarks that were collected" in card_of(data=[data])


IMPORTED = Origin(reference("import_model", "9"), recorded=True)


def test_imported_weights_are_said_to_be_of_unknown_data():
    text = section(card_of(data=[RAW], origins=[IMPORTED]), "Training data")
    assert "`sft/eeeeeeeeeeee` was trained on" in text
    (line,) = [line for line in text.splitlines() if "`import_model/999999999999`" in line]
    assert "trained elsewhere" in line
    assert "not known" in line


@pytest.mark.parametrize(
    ("data", "origins", "expected", "missing"),
    [
        ([RAW], [], "trained from scratch with Ingot", "imported"),
        ([RAW], [IMPORTED], "trained with Ingot from imported weights", "scratch"),
        ([RAW], [replace(IMPORTED, recorded=False)], "nothing is on record", "scratch"),
        ([], [], "not trained with Ingot", "scratch"),
    ],
)
def test_a_model_that_nobody_described_is_described_by_its_origin(data, origins, expected, missing):
    card = card_of(data=data, origins=origins)
    head = card.split("\n# ingot-model\n", 1)[1].split("\n## ", 1)[0]
    assert expected in head
    assert missing not in head
    own = card_of(data=data, origins=origins, description="Mine.")
    assert "Mine." in own
    assert expected not in own


def test_scores_say_that_the_weights_were_rounded_after_they_were_measured():
    note = "before its weights were stored as bfloat16"
    rounded = card_of(evaluated(row()), dtype="bfloat16", rounded=True)
    assert note in section(rounded, "Evaluation")
    assert note not in card_of(evaluated(row()), dtype="bfloat16")
    assert note not in card_of(dtype="bfloat16", rounded=True)


def test_a_clean_score_is_of_the_corpus_that_the_evaluation_was_given():
    text = section(card_of(evaluated(row(metric="accuracy_clean"))), "Evaluation")
    assert "with the corpus that the evaluation was given" in text
    assert "with the training text" not in text


def test_data_of_a_model_that_was_trained_elsewhere_is_not_known():
    assert "not known" in section(card_of(), "Training data")
