"""`ingot curves`: evaluations of permanent checkpoints, by run, seed and model."""

from __future__ import annotations

import json

import numpy as np
import pytest
from pydantic import Field

from artifacts_schema.config import Config
from artifacts_schema.kinds import KINDS
from stages.engine import Many, Milestone, One, Stage

STEPS = (10, 20, 30, 40)


class TrainConfig(Config):
    """A seed, and a setting that makes another model."""

    seed: int = Field(default=0, description="Seed.")
    width: int = Field(default=1, description="Width.")


class Train(Stage):
    """Commits a checkpoint every ten training steps."""

    name, version, reproducible = "curve_train", 1, "bytes"
    inputs = {"truth": Many("truth")}
    outputs = {"checkpoint": "checkpoint"}
    Config = TrainConfig

    @classmethod
    def milestones(cls, config, inputs):
        """All but the last are committed on the way."""
        return tuple(Milestone(step, f"{step}K") for step in STEPS)

    def run(self, context):
        config = context.config
        for milestone in self.milestones(config, {})[:-1]:
            counts = {"training_steps": milestone.at, "tokens": milestone.at * 1000}
            state = [config.seed, config.width, milestone.at]
            with (
                context.interim(milestone, ["checkpoint"], **counts) as writers,
                writers.open("checkpoint", "state.json") as file,
            ):
                file.write(json.dumps(state).encode())
        last = STEPS[-1]
        context.write_json("checkpoint", "state.json", [config.seed, config.width, last])
        context.count(training_steps=last, tokens=last * 1000)


class MeasureConfig(Config):
    """Right answers of 200 by run (seed, width), benchmark and checkpoint."""

    right: dict[str, dict[str, tuple[int, ...]]] = Field(default={}, description="Of 200 items.")


class Measure(Stage):
    """An evaluation of 200 items a benchmark, of which so many are right."""

    name, version, reproducible = "curve_measure", 1, "bytes"
    inputs = {"checkpoint": One("checkpoint")}
    outputs = {"evaluation": "evaluation"}
    Config = MeasureConfig

    def run(self, context):
        from stages.scoring.observations import Observation, items_table, results_table

        seed, width, step = context.one("checkpoint").read_json("state.json")
        observed = [
            Observation(name, str(n), "accuracy", float(n < right[STEPS.index(step)]), 1.0, 0.25)
            for name, right in context.config.right[f"{seed} {width}"].items()
            for n in range(200)
        ]
        tables = KINDS["evaluation"].tables
        made = {"results.parquet": results_table(observed), "items.parquet": items_table(observed)}
        for path, table in tables.items():
            context.write_table("evaluation", path, made.get(path, table.arrow().empty_table()))
        context.write_json("evaluation", "tasks.json", [])


@pytest.fixture
def trained(run_stage, store):
    """`trained(seed, width)`: the checkpoints of a run, first to last."""

    def make(seed=0, width=1):
        last = run_stage(Train, {"seed": seed, "width": width}, {})
        interims = [store.manifest(last.stage, one.key) for one in last.interims]
        return [*interims, last]

    return make


@pytest.fixture
def measured(run_stage):
    """`measured(run, quiz=[…])`: right answers at each checkpoint of the run of seed 0, width 1.

    `also` are those of other runs, by (seed, width).
    """

    def make(run, also=(), **right):
        runs = {"0 1": run, **{name: other for name, (other, _) in dict(also).items()}}
        scores = {"0 1": right, **{name: theirs for name, (_, theirs) in dict(also).items()}}
        return [
            run_stage(Measure, {"right": scores}, {"checkpoint": [(checkpoint, "checkpoint")]})
            for checkpoints in runs.values()
            for checkpoint in checkpoints
        ]

    return make


@pytest.fixture
def curves(ingot):
    def run(*words):
        result = ingot("curves", *words, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return run


def test_the_evaluations_of_a_run_are_found_and_judged(trained, measured, curves):
    """By hand: .25 of 200 is chance, 100 right is .5 with an error of .0354 (n - 1)."""
    run = trained()
    measured(run, quiz=[50, 60, 90, 100], noise=[50, 56, 48, 52])
    report = curves(run[-1].key[:16])
    scores = {one["benchmark"]: one for one in report["scores"]}
    assert [p["tokens"] for p in scores["quiz"]["curves"][0]["points"]] == [
        10_000, 20_000, 30_000, 40_000
    ]  # fmt: skip
    quiz, noise = scores["quiz"], scores["noise"]
    assert quiz["monotonicity"] == 1
    assert quiz["above_chance"] == pytest.approx(0.25 / np.sqrt(0.25 / 199))
    assert quiz["verdict"] == "trust (one seed)"
    # Ranks 2, 4, 1, 3 against 1, 2, 3, 4: 1 - 6 · (1 + 4 + 4 + 1) / 60 = 0.
    assert noise["monotonicity"] == pytest.approx(0)
    assert noise["verdict"] == "at chance; does not follow training"
    low, high = noise["monotonicity_interval"]
    assert low < 0 < high


def test_seeds_of_one_model_give_the_noise_and_models_an_order(trained, measured, curves):
    """Last scores .50 and .51 of one model; the wide one is ahead at every checkpoint but the last.

    .505 over the sample deviation .00707 is 71.4; tau is 1, 1 and -1.
    """
    small, again, wide = trained(0), trained(1), trained(0, width=2)
    also = {
        "1 1": (again, {"quiz": [60, 72, 84, 102]}),
        "0 2": (wide, {"quiz": [70, 80, 90, 96]}),
    }
    measured(small, also, quiz=[60, 70, 80, 100])
    (score,) = curves(*(run[-1].key[:16] for run in (small, again, wide)))["scores"]
    assert score["signal"] == pytest.approx(0.505 / (0.01 / np.sqrt(2)))
    assert score["ordering"] == pytest.approx(1 / 3)
    assert {curve["model"] for curve in score["curves"]} != {c["run"] for c in score["curves"]}
    assert score["verdict"] == "trust"


def test_a_fall_beyond_chance_is_named_and_a_small_one_is_not(trained, measured, ingot, curves):
    run = trained()
    measured(run, quiz=[60, 100, 70, 69])
    report = curves(run[-1].key[:16])
    assert [(f["from_step"], f["to_step"]) for f in report["falls"]] == [(20, 30)]
    assert report["falls"][0]["paired"]["high"] < 0
    assert report["compared"] == 3
    shown = ingot("curves", run[-1].key[:16]).stdout
    assert "20 → 30" in shown
    assert "1 of 3 pairs of checkpoints fell beyond chance" in shown


def test_a_fall_is_a_message_of_the_run_that_measured_the_later_checkpoint(
    trained, measured, store, monkeypatch
):
    """100 → 70 of 200 at steps 20 → 30; a run that reused that evaluation says nothing again."""
    from flows.report import paired_scores
    from flows.report.subject import Step, Subject

    made = measured(trained(), quiz=[60, 100, 70, 69])

    def messages(state):
        steps = [
            Step(f"evaluate[{n}]", one.stage, one.key, state if n == 2 else "reused", one)
            for n, one in enumerate(made)
        ]
        subject = Subject("run", "run", store, tuple(steps))
        monkeypatch.setattr(paired_scores, "find_subject", lambda store, name: subject)
        monkeypatch.setattr(paired_scores, "load_runs", lambda store, recipe: iter(()))
        run = type("Run", (), {"name": "run", "recipe": "run", "id": "1"})()
        return paired_scores.find_regressions(store, run)

    (fall,) = messages("made")
    assert (fall.before, fall.after) == (0.5, 0.35)
    assert "training step 20 to 30" in str(fall)
    assert fall.high < 0
    assert messages("reused") == []


def test_a_recipe_or_its_evaluations_may_be_named_instead(trained, measured, curves, store):
    run = trained()
    for place, one in enumerate(measured(run, quiz=[50, 60, 90, 100])):
        store.set_ref(f"signal/evaluate[{STEPS[place]}K]", one.stage, one.key)
    (by_recipe,) = curves("signal")["scores"]
    (two,) = curves("signal/evaluate[10K]", "signal/evaluate[40K]")["scores"]
    assert by_recipe == curves(run[-1].key[:16])["scores"][0]
    assert [p["step"] for p in two["curves"][0]["points"]] == [10, 40]
    assert two["verdict"] == "fewer than 4 checkpoints"


def test_scores_of_other_settings_do_not_mix(trained, measured, run_stage, curves):
    run = trained()
    measured(run, quiz=[50, 60, 90, 100])
    other = {"right": {"0 1": {"quiz": [7, 7, 7, 7]}}}
    run_stage(Measure, other, {"checkpoint": [(run[0], "checkpoint")]})
    report = curves(run[-1].key[:16])
    assert [p["value"] for p in report["scores"][0]["curves"][0]["points"]] == [
        0.25, 0.3, 0.45, 0.5
    ]  # fmt: skip


def test_the_page_draws_every_curve_with_its_intervals(trained, measured, ingot, tmp_path):
    run = trained()
    measured(run, quiz=[50, 60, 90, 100])
    path = tmp_path / "curves.html"
    result = ingot("curves", run[-1].key[:16], "--output", path)
    assert result.exit_code == 0, result.output
    html = path.read_text()
    assert "<svg" in html
    assert "Which scores can be trusted at this scale" in html
    assert "<script" not in html


def test_what_makes_no_curve_is_refused(trained, measured, ingot):
    run = trained()
    (one,) = measured(run[:1], quiz=[50])
    result = ingot("curves", one.key[:16])
    assert result.exit_code == 2
    assert "for_each" in result.output
    assert ingot("curves", "nothing").exit_code == 2
