"""Recipes whose parts contradict each other are refused before anything runs, by Ingot's stages.

Every case was accepted by the plan once, and failed only when its stage began.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from artifacts_schema.errors import UsageError
from artifacts_schema.store import Store
from flows.recipe.pipeline import Pipeline, Request
from flows.recipe.recipe import BUNDLED
from flows.recipe.upstream import check_steps


@pytest.fixture
def check(tmp_path):
    def check(*overrides, recipe="quickstart", **more):
        request = Request(str(recipe), str(tmp_path / "store"), overrides=overrides, **more)
        Pipeline.bind(request).check()

    return check


@pytest.mark.parametrize("recipe", ["quickstart", "web", "anneal", "long_context"])
def test_recipes_that_come_with_ingot_are_sound(check, recipe):
    assert check(recipe=recipe) is None
    with pytest.raises(UsageError):  # The check looks at this recipe's steps.
        check("pretrain.phases.0.mixture={wbe: 1.0}", recipe=recipe)


@pytest.mark.parametrize(
    ("overrides", "step", "field", "value"),
    [
        (["pretrain.phases.0.mixture={wbe: 1.0}"], "pretrain", "phases.0.mixture", "'wbe'"),
        (["pretrain.phases.0.mixture_end={prose: 1.0}"], "pretrain", "phases.0.mixture_end", "pro"),
        (["pretrain.epochs={cod: 2}"], "pretrain", "epochs", "'cod'"),
        (["web.source=notes"], "pretrain", "phases.0.mixture", "'web'"),
        (["tokenizer.weights={prose: 0.3}"], "tokenizer", "weights", "'prose'"),
        (["pretrain.model.context=128"], "pretrain", "model.context", "256"),
        (["pack.sequence_length=512"], "pretrain", "model.context", "512"),
        (["pretrain.phases.0.sequence_length=64"], "pretrain", "phases.0.sequence_length", "64"),
        (["pretrain.phases.0.learning_rate={}"], "pretrain", "phases.0", "learning rate"),
        (
            ["pretrain.phases.0.learning_rate={peak: 1.0e-3, warmup_steps: 5000}"],
            "pretrain",
            "phases.0",
            "5000",
        ),
        (["pretrain.skip=[{first: 5000, last: 6000}]"], "pretrain", "skip.0", "5,000"),
        (["pretrain.averages={last: 50, output: mean}"], "pretrain", "averages", "50 snapshots"),
        (["pretrain.checkpoints={every: 300}"], "pretrain", "checkpoints.every", "300"),
        (["pretrain.clock=continue"], "pretrain", "clock", "checkpoint"),
        (["pretrain.optimizer_state=keep"], "pretrain", "optimizer_state", "checkpoint"),
        (
            ["tokenizer.reserved_tokens=0", "pretrain.objective={parts: [{name: masked}]}"],
            "pretrain",
            "objective.parts.0",
            "reserved",
        ),
        (
            ["pretrain.optimizer={groups: [{match: 'blocks.*.nothing', rate: 2}]}"],
            "pretrain",
            "optimizer.groups.0",
            "blocks.*.nothing",
        ),
        (["sft.objective={parts: [{name: prefix}]}"], "sft", "objective", "token by token"),
        (["dpo.learning_rate={peak: 1.0e-5, warmup_tokens: 9}"], "dpo", "learning_rate", "tokens"),
    ],
)
def test_what_configs_contradict_is_refused_in_the_plan(check, overrides, step, field, value):
    with pytest.raises(UsageError) as error:
        check(*overrides)
    said = str(error.value)
    assert f"steps.{step}: config" in said
    assert field in said
    assert value in said


def test_all_that_is_wrong_is_listed_at_once(check):
    with pytest.raises(UsageError, match="2 problems") as error:
        check(
            "pretrain.phases.0.mixture={wbe: 1.0}", "pretrain.clock=continue",
            "dpo.learning_rate={decay: linear}",
        )  # fmt: skip
    said = str(error.value)
    assert all(one in said for one in ("'wbe'", "clock", "steps.dpo"))


ANNEAL = """\
name: given
extends: anneal
steps:
"""


@pytest.fixture
def given(tmp_path):
    def write(text):
        path = tmp_path / "given.yaml"
        path.write_text(ANNEAL.replace("anneal", str(BUNDLED / "anneal.yaml")) + text)
        return path

    return write


@pytest.mark.parametrize(
    ("setting", "field"),
    [
        ("anneal.model={qk_norm: head}", "model.qk_norm"),
        ("anneal.model={width: 384}", "model.width"),
    ],
)
def test_another_architecture_than_the_checkpoints_is_refused(check, setting, field):
    with pytest.raises(UsageError) as error:
        check(setting, recipe="anneal")
    assert "steps.anneal: config" in str(error.value)
    assert field in str(error.value)


def test_a_checkpoint_takes_longer_sequences_where_the_context_is_raised(check):
    with pytest.raises(UsageError, match=r"512.*256"):
        check("candidate_pack.sequence_length=512", "anneal.phases.1.sequence_length=512",
              "anneal.phases.0.sequence_length=256", recipe="anneal")  # fmt: skip
    check("candidate_pack.sequence_length=512", "anneal.phases.1.sequence_length=512",
          "anneal.phases.1.mixture={candidate: 1.0}", "anneal.phases.0.sequence_length=256",
          "anneal.model={context: 512}", recipe="anneal")  # fmt: skip


def test_held_out_sequences_beyond_the_checkpoints_context_are_refused(check, given):
    recipe = given("""\
  long_pack:
    stage: pack
    config: {sequence_length: 1024}
    inputs: {documents: filter, tokenizer: tokenizer}
  evaluate_anneal: {inputs: {held_out: "long_pack:held_out"}}
  evaluate_control: {inputs: {truth: "sample:truth"}}
""")
    with pytest.raises(UsageError, match="2 problems") as error:
        check(recipe=recipe)
    assert "1024" in str(error.value)
    assert "without a ledger" in str(error.value)


def test_a_plan_checks_without_what_trains_and_reads_tables():
    # A plan of a minute is one that nobody makes.
    code = (
        "import sys; from flows.recipe.pipeline import Pipeline, Request; import tempfile\n"
        "with tempfile.TemporaryDirectory() as store:\n"
        "    Pipeline.bind(Request('anneal', store)).check()\n"
        "print([m for m in ('torch', 'numba', 'numpy', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_no_document_can_be_turned_for_is_noted(check, tmp_path):
    request = Request(
        "quickstart", str(tmp_path / "store"), overrides=("pack.fim={sources: [cobol]}",)
    )
    pipeline = Pipeline.bind(request)
    notes = check_steps(pipeline.graph, Store.open(request.store), ["pack"])
    assert "cobol" in notes["pack"][0]
