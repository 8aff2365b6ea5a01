"""`ingot extend` and `ingot branch`: recipes that continue a run from a checkpoint."""

from __future__ import annotations

import random
import shutil

import pytest

from artifacts_schema.errors import UsageError
from artifacts_schema.store import Store
from flows.analysis.continued_run import ContinuedRun, parse_tokens
from flows.recipe.execute import execute
from flows.recipe.pipeline import Pipeline, Request
from flows.recipe.yaml_document import parse_yaml
from stages.pack.stage import Pack
from stages.pretrain.config import PretrainConfig
from stages.pretrain.stage import Pretrain
from stages.tokenizer.stage import TokenizerStage

STEP = 4 * 32
"""Tokens of a training step."""
WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "dog", "ran", "far", "away", "self", "def"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder for the artifacts of `base`: they are made once, and copied into later stores."""
    return tmp_path_factory.mktemp("finished")


@pytest.fixture
def store(tmp_path, finished):
    """A store that has the artifacts of `base`, if they were made before, but no names."""
    opened = Store.open(str(tmp_path / "store"))
    shutil.copytree(finished, tmp_path / "store", dirs_exist_ok=True)
    return opened


@pytest.fixture
def packed(run_stage, make_documents):
    """`packed(source, seed)` → token shards of one source, all with one tokenizer."""

    def documents(source, seed):
        draw = random.Random(seed)
        texts = [" ".join(draw.choices(WORDS, k=draw.randint(5, 40))) for _ in range(200)]
        return make_documents([[{"source": source, "text": text} for text in texts]])

    settings = {"vocabulary_size": 300, "held_share": 0.0}
    tokenizer = run_stage(TokenizerStage, settings, {"documents": [documents("web", 0)]})

    def pack(source="web", seed=0):
        given = {"documents": [documents(source, seed)], "tokenizer": [(tokenizer, "tokenizer")]}
        made = run_stage(Pack, {"sequence_length": 32, "held_out_share": 0.1}, given)
        return made, tokenizer

    return pack


@pytest.fixture
def pretrain(run_stage, packed):
    """`pretrain(phases, **config)` on one source."""
    shards, tokenizer = packed()

    def run(phases, more=(), start=None, **config):
        inputs = {
            "train": [(shards, "train"), *more],
            "held_out": [(shards, "held_out")],
            "tokenizer": [(tokenizer, "tokenizer")],
        }
        shape = {"width": 32, "layers": 1, "heads": 2, "kv_heads": 1, "context": 32}
        settings = {"model": shape, "precision": "fp32", "held_out_every": 50, **config}
        if start is not None:
            inputs["checkpoint"] = [(start, "checkpoint")]
        how = {"device": "cpu", "threads": 1, "checkpoint_every": 100}
        return run_stage(Pretrain, {"phases": phases, **settings}, inputs, how)

    return run


def stable(steps, warmup=2, **more):
    rate = {"peak": 1e-2, "warmup_share": (warmup + 0.1) / steps}
    sizes = {"tokens": steps * STEP, "sequences_per_batch": 4}
    return {"mixture": {"web": 1.0}, **sizes, "learning_rate": rate, **more}


def decay(steps, rate=None, **more):
    rate = {"decay": "linear", **(rate or {})}
    sizes = {"tokens": steps * STEP, "sequences_per_batch": 4}
    return {"mixture": {"web": 1.0}, **sizes, "learning_rate": rate, **more}


@pytest.fixture
def base(pretrain, store, tmp_path, finished):
    """Six stable training steps and three that decay, as demo/base."""
    run = pretrain([stable(6), decay(3)], checkpoints={"every": 4 * STEP})
    if not any(finished.iterdir()):
        for folder in ("artifacts", "data"):
            shutil.copytree(tmp_path / "store" / folder, finished / folder)
    return named(store, run)


def named(store, run, name="demo/base"):
    from artifacts_schema.store.commit import name_interims

    store.set_ref(name, "pretrain", run.key)
    name_interims(store, name, "pretrain", run.interims)
    return run


@pytest.fixture
def made(ingot, inline, store, tmp_path):
    """`made(*arguments)` → the config that a command wrote, and what a run of it made."""

    def run(*arguments):
        path = tmp_path / f"{arguments[0]}.yaml"
        result = ingot(*arguments, "--write", path)
        assert result.exit_code == 0, result.output
        step = parse_yaml(path.read_text(), "test").values["steps"]["base"]
        plan = execute(Pipeline.open(Request(str(path), store.url)), dispatch=inline)
        return PretrainConfig.parse(step["config"], where="test"), plan.step("base").manifest

    return run


def weights(manifest):
    found = {file.path: file.sha256 for file in manifest.outputs["checkpoint"].files}
    return found["model.safetensors"], found["optimizer.safetensors"]


def test_extended_it_is_the_run_that_was_never_interrupted(base, made, pretrain, store):
    """Two training steps more before the decay: as eight and three from the first on."""
    config, longer = made("extend", "demo/base", "--tokens", 2 * STEP)
    assert weights(longer) == weights(pretrain([stable(8), decay(3)]))
    assert (config.clock, config.optimizer_state) == ("continue", "keep")
    assert [phase.tokens for phase in config.phases] == [8 * STEP, 3 * STEP]
    assert config.phases[0].learning_rate.warmup_steps == 2, "as long as it was, of a longer phase"
    assert store.ref("demo-extended/base").key == longer.key
    (start,) = longer.inputs["checkpoint"]
    assert start.key == base.interims[1].key


def test_another_decay_takes_the_place_of_the_runs_own(base, made, pretrain):
    more = ("--decay", "1-sqrt", "--decay-tokens", 4 * STEP)
    config, longer = made("extend", "demo/base", "--tokens", STEP, *more)
    assert [phase.tokens for phase in config.phases] == [7 * STEP, 4 * STEP]
    assert config.phases[1].learning_rate.decay == "1-sqrt"
    assert weights(longer) == weights(pretrain([stable(7), decay(4, {"decay": "1-sqrt"})]))


def test_without_a_decay_it_goes_on_at_its_end(pretrain, made, store):
    named(store, pretrain([stable(6)]))
    config, longer = made("extend", "demo/base", "--tokens", 3 * STEP)
    assert [phase.tokens for phase in config.phases] == [9 * STEP]
    assert weights(longer) == weights(pretrain([stable(9)]))


def test_a_run_that_began_at_another_ones_rate_is_made_longer(pretrain, made, store):
    """Its first phase names no peak, and its data begins anew: the rate is that of its start."""
    first = pretrain([stable(5)])
    named(store, pretrain([{**stable(4), "learning_rate": {}}], start=first))
    config, longer = made("extend", "demo/base", "--tokens", 3 * STEP)
    assert config.phases[0].learning_rate.peak == 1e-2
    whole = pretrain([{**stable(7), "learning_rate": {}}], start=first)
    assert weights(longer) == weights(whole)


def test_a_decay_within_the_phase_stays_as_long_as_it_was(pretrain, made, store):
    phase = stable(8)
    phase["learning_rate"] |= {"decay": "linear", "decay_share": 0.25}
    named(store, pretrain([phase]))
    config, longer = made("extend", "demo/base", "--tokens", 4 * STEP)
    wanted = stable(12)
    wanted["learning_rate"] |= {"decay": "linear", "decay_share": 2 / 12}
    assert weights(longer) == weights(pretrain([wanted]))
    assert [phase.tokens for phase in config.phases] == [12 * STEP]


def test_a_branch_anneals_on_a_mixture_with_a_candidate(base, made, packed, pretrain, store):
    """40 % of what the run read and 60 % of another source, from the fourth training step."""
    candidate, _ = packed("candidate", seed=5)
    store.set_ref("demo/candidate", "pack", candidate.key)
    config, branch = made(
        "branch", f"demo/base@{base.interims[0].label}", "--tokens", 5 * STEP,
        "--mixture", "{web: 0.4, candidate: 0.6}", "--input", "train=demo/candidate:train",
    )  # fmt: skip
    first, second = config.phases
    assert first.tokens == 4 * STEP
    assert (first.learning_rate.warmup_steps, first.learning_rate.decay) == (2, "none")
    assert second.mixture == {"web": 0.4, "candidate": 0.6}
    assert (second.learning_rate.peak, second.learning_rate.decay) == (1e-2, "linear")
    mixture = {"mixture": {"web": 0.4, "candidate": 0.6}}
    whole = pretrain([stable(4), decay(5, **mixture)], more=[(candidate, "train")])
    assert weights(branch) == weights(whole)


def test_a_branch_may_change_something_else_and_read_the_same(base, made, store):
    ref = f"demo/base@{base.interims[0].label}"
    config, branch = made("branch", ref, "--set", "optimizer.clip=0.01", "--set", "seed=0")
    assert config.optimizer.clip == 0.01
    assert [phase.tokens for phase in config.phases] == [6 * STEP, 3 * STEP]
    assert branch.counts["training_steps"] == 9
    assert weights(branch) != weights(base)


def test_a_branch_says_how_it_runs_without_another_key(base, ingot, store, tmp_path):
    keys = []
    for more in ((), ("--set", "execution.device=cpu", "--set", "execution.threads=1")):
        path = tmp_path / f"{len(keys)}.yaml"
        tighter = ("--set", "optimizer.clip=0.01", *more)
        result = ingot("branch", f"demo/base@{base.interims[0].label}", *tighter, "--write", path)
        assert result.exit_code == 0, result.output
        keys.append(Pipeline.open(Request(str(path), store.url)).plan().step("base"))
    assert keys[0].key == keys[1].key
    assert keys[1].spec.execution["device"] == "cpu"


def test_from_within_a_decay_a_branch_goes_on_at_the_rate_that_it_had(pretrain, made, store):
    run = named(store, pretrain([stable(6), decay(4)], checkpoints={"every": 8 * STEP}))
    label = run.interims[-1].label
    config, _ = made("branch", f"demo/base@{label}", "--tokens", 2 * STEP, "--decay", "none")
    # The second of four updates of a linear decay has three quarters of the peak.
    assert config.phases[2].learning_rate.peak == pytest.approx(0.75 * 1e-2)
    assert config.phases[1].learning_rate.decay == "none"


def test_the_recipe_is_printed_where_no_file_is_named(base, ingot):
    result = ingot("extend", "demo/base", "--tokens", "1K", "--name", "more")
    assert result.exit_code == 0
    assert result.stdout.startswith("# Continues after training step 6 of demo/base.\n")
    assert parse_yaml(result.stdout, "test").values["name"] == "more"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["extend", "demo/base", "--tokens", "many"], "'many' is not a number of tokens"),
        (["extend", "demo/base", "--tokens", "1K", "--decay", "cosine"], "belong together"),
        (["extend", "demo/base", "--tokens", "1K", "--decay-tokens", "1K"], "belong together"),
        (["extend", "demo/base@9K", "--tokens", "1K"], "no permanent checkpoint at 9K"),
        (["branch", "demo/base", "--mixture", "{web: 1}"], "say how long: --tokens"),
        (["branch", "demo/base", "--set", "seed=1", "--tokens", "1K"], "seed 0 → 1"),
        (["branch", "demo/base"], "the phases end with training step 9"),
        (["branch", "demo/base", "--tokens", "1K", "--mixture", "{web: 2}"], "weights sum to 2"),
        (["branch", "demo/base@768", "--set", "model.qk_norm=head"], "model.qk_norm: qk_norm is"),
        (["branch", "demo/base@768", "--set", "epochs={cod: 1}"], "no source 'cod'"),
        (["branch", "demo/base", "--input", "checkpoint=demo/base"], "known here: held_out, train"),
    ],
)
def test_what_cannot_go_on_is_refused(base, ingot, arguments, told):
    result = ingot(*arguments)
    assert result.exit_code == 2
    assert told in result.output


def test_a_decay_from_the_first_step_on_leaves_no_rate_to_go_on_at(pretrain, ingot, store):
    named(store, pretrain([decay(6, {"peak": 1e-2})]))
    result = ingot("extend", "demo/base", "--tokens", "1K")
    assert result.exit_code == 2
    assert "ingot branch RUN --tokens" in result.output


@pytest.fixture
def moving(pretrain, packed, store):
    """Six stable steps from web to candidate, three that decay; and its other inputs."""
    candidate, _ = packed("candidate", seed=5)
    more = [(candidate, "train")]
    line = stable(6, mixture_end={"candidate": 1.0})
    run = pretrain([line, decay(3)], more=more, checkpoints={"every": 4 * STEP})
    return named(store, run), line, more


def test_a_mixture_that_goes_in_a_line_is_extended_by_a_phase_at_its_end(
    moving, made, pretrain, store
):
    run, line, more = moving
    config, longer = made("extend", "demo/base", "--tokens", 4 * STEP)
    assert [phase.tokens for phase in config.phases] == [6 * STEP, 4 * STEP, 3 * STEP]
    assert config.phases[1].mixture == {"candidate": 1.0}
    assert not config.phases[1].mixture_end
    steady = {**stable(4), "mixture": {"candidate": 1.0}, "learning_rate": {}}
    whole = pretrain([line, steady, decay(3)], more=more)
    assert weights(longer) == weights(whole)

    before, after = (plan_of(store, one) for one in (run, longer))
    rates = [before.schedule.rate(step) for step in range(1, 7)]
    assert [after.schedule.rate(step) for step in range(1, 7)] == rates
    assert {after.schedule.rate(step) for step in range(7, 11)} == {rates[-1]}
    read = set()
    for step in range(1, 7):
        then, now = before.clock.batch(step), after.clock.batch(step)
        assert then.sources.tolist() == now.sources.tolist()
        assert then.sequences.tolist() == now.sequences.tolist()
        read |= set(then.sources.tolist())
    assert len(read) == 2  # Else the mixture did not move.


def test_from_within_a_moving_mixture_the_phase_is_read_to_its_end_first(moving, made, store):
    run, *_ = moving
    config, longer = made("extend", f"demo/base@{run.interims[0].label}", "--tokens", 4 * STEP)
    assert [phase.tokens for phase in config.phases] == [6 * STEP, 4 * STEP, 3 * STEP]
    before, after = (plan_of(store, one) for one in (run, longer))
    for step in (5, 6):
        assert before.clock.batch(step).sequences.tolist() == (
            after.clock.batch(step).sequences.tolist()
        )


def test_another_decay_behind_a_moving_mixture_keeps_the_weights_of_its_end(moving, made):
    more = ("--decay", "linear", "--decay-tokens", 2 * STEP)
    config, _ = made("extend", "demo/base", "--tokens", 4 * STEP, *more)
    assert [phase.mixture for phase in config.phases[1:]] == [{"candidate": 1.0}] * 2


def test_a_decay_within_a_phase_whose_mixture_moves_is_not_lengthened(pretrain, ingot, store):
    phase = stable(6, mixture_end={"web": 1.0})
    phase["learning_rate"] |= {"decay": "linear", "decay_share": 0.25}
    named(store, pretrain([phase]))
    result = ingot("extend", "demo/base", "--tokens", "1K")
    assert result.exit_code == 2
    assert "phases.0.mixture_end" in result.output


def plan_of(store, manifest):
    return ContinuedRun.open(store, manifest.key).plan


def test_a_collected_checkpoint_is_named(base, ingot, store):
    from artifacts_schema.store.gc import remove_artifact

    remove_artifact(store, store.manifest("pretrain", base.interims[1].key))
    result = ingot("extend", "demo/base", "--tokens", "1K")
    assert result.exit_code == 2
    assert "training step 6" in result.output


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2B", 2 * 10**9),
        ("1.5M", 1_500_000),
        ("800_000", 800_000),
        ("2e9", 2 * 10**9),
        ("7k", 7000),
    ],
)
def test_numbers_of_tokens_as_people_write_them(text, number):
    assert parse_tokens(text, "--tokens") == number


@pytest.mark.parametrize("text", ["", "0", "-1", "B", "1.5.2M", "nan"])
def test_what_is_no_number_of_tokens(text):
    with pytest.raises(UsageError, match="--tokens"):
        parse_tokens(text, "--tokens")


def test_the_account_of_a_checkpoint_is_that_of_its_run(base, ingot, store):
    import json

    label = base.interims[0].label
    whole, part = (
        json.loads(ingot("account", ref, "--json").stdout)["accounts"][0]
        for ref in ("demo/base", f"demo/base@{label}")
    )
    assert part == whole
    store.backend.remove(f"artifacts/pretrain/{base.key}.json")
    result = ingot("account", f"demo/base@{label}")
    assert result.exit_code == 2
    assert "is not over, or was collected" in result.output
