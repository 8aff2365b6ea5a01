import pytest
import yaml

from stages.export.card import Evaluation, at_chance, front_matter, model_card, results_table
from stages.export.stage import ExportConfig
from stages.export.verify import Verification
from stages.model.config import ModelConfig
from stages.model.count import count_parameters

MODEL = ModelConfig(vocabulary_size=400, width=32, layers=2, heads=4, kv_heads=2)
VERIFIED = Verification(2.5e-7, 120, "5.0.0", "2.11.0")
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
        "count": 1200,
        "baseline": baseline,
    }


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
        (row(value=0.3, error=None), False),
    ],
)
def test_a_score_is_told_from_chance_by_two_standard_errors(score, expected):
    assert at_chance(score) is expected


def test_every_score_stands_with_its_standard_error_and_count():
    table = results_table([row(benchmark="a|b", baseline=None)])
    assert table.splitlines()[-1] == r"| a\|b | accuracy | 0.5000 | 0.0500 | – | 1,200 |"


def test_the_front_matter_is_what_the_hub_reads():
    config = ExportConfig(name="my-model", license="apache-2.0", languages=("en",))
    planted = row(benchmark="planted/garbled", metric="recall")
    head = front_matter(config, [Evaluation("evaluate", "e" * 64, (row(), planted), ())])
    values = yaml.safe_load(head.strip("-"))
    assert values["license"] == "apache-2.0"
    assert values["library_name"] == "transformers"
    (entry,) = values["model-index"]
    assert entry["name"] == "my-model"
    assert [result["dataset"]["name"] for result in entry["results"]] == ["quiz"]


def test_the_card_says_what_it_is_where_it_came_from_and_what_it_is_not():
    rows = (row(value=0.26), row(benchmark="planted/garbled", metric="recall", value=1.0))
    sample = {"form": "chat", "prompt": "Who?\n", "completion": "Nobody."}
    evaluation = Evaluation("evaluate", "e" * 64, rows, (sample,))
    card = model_card(ExportConfig(), MODEL, LINEAGE, [evaluation], VERIFIED)
    assert f"{count_parameters(MODEL).total:,} parameters" in card
    assert "Not better than its baseline by two standard errors: quiz (accuracy)" in card
    assert "| checkpoint | dpo | `cccccccccccc` | `dddddddddddd` |" in card
    assert "1,200 training steps and 34,567 tokens" in card
    assert "    Who?\n    Nobody." in card
    assert "within 2.5e-07" in card


def test_a_release_without_evaluation_says_so():
    lineage = {**LINEAGE, "evaluations": [], "state": {}}
    card = model_card(ExportConfig(), MODEL, lineage, [], VERIFIED)
    assert "released without an evaluation" in card
    assert "model-index" not in card
