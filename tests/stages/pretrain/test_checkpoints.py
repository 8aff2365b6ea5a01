"""Permanent checkpoints of a pretraining run, and runs that go on in its sample stream."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.identity import interim_key
from artifacts_schema.store.commit import list_interims
from artifacts_schema.store.gc import remove_artifact
from stages.engine import Input
from stages.engine.page import Artifact
from stages.model import tensor_files
from stages.pretrain.config import PretrainConfig
from stages.pretrain.page import page
from stages.pretrain.stage import Pretrain

STEP = 4 * 32
"""Tokens of a training step of the tiny run."""


@pytest.fixture
def inputs(packed):
    return packed()


def stable(steps, warmup=2, **more):
    """A phase of so many training steps with a constant rate after two steps of warmup."""
    rate = {"peak": 1e-2, "warmup_share": (warmup + 0.1) / steps}
    return {"tokens": steps * STEP, "sequences_per_batch": 4, "learning_rate": rate, **more}


def decay(steps, **more):
    rate = {"decay": "linear"}
    return {"tokens": steps * STEP, "sequences_per_batch": 4, "learning_rate": rate, **more}


MIXED = {"mixture": {"web": 0.25, "code": 0.75}}


@pytest.fixture
def interim(store):
    """`interim(run, step)`: what a run committed at a training step."""
    return lambda run, step: store.manifest("pretrain", interim_key(run.key, step))


def files(manifest, *names):
    """sha256 of files of the checkpoint."""
    found = {file.path: file.sha256 for file in manifest.outputs["checkpoint"].files}
    return [found[name] for name in names or sorted(found)]


BOTH = ("model.safetensors", "optimizer.safetensors")


def test_one_is_kept_before_the_decay_and_holds_what_a_run_that_ends_there_does(
    inputs, pretrain, interim, read_input
):
    run = pretrain(inputs, phases=[stable(6), decay(3)])
    assert [(one.at, one.label) for one in run.interims] == [(6, "768")]
    kept, short = interim(run, 6), pretrain(inputs, phases=[stable(6)])
    assert files(kept) == files(short)
    state = read_input(kept, "checkpoint").read_json("state.json")
    assert state["training_step"] == 6
    assert state["clock"]["token_positions"] == 6 * STEP
    assert kept.counts == {"training_steps": 6, "tokens": state["tokens"]}
    assert kept.layout == run.layout


def test_a_report_lists_them(inputs, pretrain, store):
    run = pretrain(inputs, phases=[stable(6), decay(3)])
    found = [one for one in page(Artifact(store, run)) if one.title.startswith("Checkpoints kept")]
    assert [one.rows for one in found] == [(("768", 6, run.interims[0].key[:12]),)]


def test_they_lie_every_so_many_tokens(inputs, pretrain):
    """Nine steps of 128: a token position every 300 is in steps 3, 5, 8; the phase ends with 6."""
    run = pretrain(inputs, checkpoints={"every": 300})
    assert [one.at for one in run.interims] == [3, 5, 6, 8]
    none = pretrain(inputs, checkpoints={"before_decay": False, "phase_edges": False})
    assert none.interims == ()
    bare = pretrain(inputs, checkpoints={"optimizer": False})
    (one,) = bare.interims
    assert none.key != bare.key != run.key
    assert one.outputs["checkpoint"] != run.interims[2].outputs["checkpoint"]


def test_the_plan_knows_them_from_the_shards_alone(inputs, pretrain, read_input, tiny):
    config = PretrainConfig.parse({**tiny, "checkpoints": {"every": 300}}, where="test")
    given = {role: [read_input(*one) for one in ones] for role, ones in inputs.items()}
    planned = Pretrain.milestones(config, given)
    assert [one.at for one in planned] == [3, 5, 6, 8, 9]
    assert [one.label for one in planned] == ["384", "640", "768", "1.0K", "1.2K"]
    run = pretrain(inputs, checkpoints={"every": 300})
    assert [one.label for one in run.interims] == [one.label for one in planned[:-1]]


@pytest.mark.full
@pytest.mark.parametrize("visit", [1, 2])
@pytest.mark.parametrize("point", ["interim written", "interim committed", "interim listed"])
def test_killed_while_one_is_committed_the_run_makes_the_same(
    inputs, pretrain, store, killed_at, point, visit
):
    every = {"every": 300}
    whole = pretrain(inputs, checkpoints=every)
    kept = [one.model_dump() for one in whole.interims]
    for stage, key in store.keys("pretrain"):
        store.backend.remove(f"artifacts/{stage}/{key}.json")
    with killed_at(point, visit):
        pretrain(inputs, checkpoints=every)
    assert len(list_interims(store, "pretrain", whole.key)) <= visit
    again = pretrain(inputs, checkpoints=every)
    assert again.outputs == whole.outputs
    assert [one.model_dump() for one in again.interims] == kept


# Going on ----------------------------------------------------------------------------------------


def continued(pretrain, inputs, start, **config):
    """A run that goes on behind `start`, moments and all."""
    more = {**inputs, "checkpoint": [(start, "checkpoint")]}
    return pretrain(more, clock="continue", optimizer_state="keep", **config)


LONGER = [stable(8), decay(4, **MIXED)]


def test_a_longer_run_is_bit_equal_to_one_that_was_never_interrupted(
    inputs, pretrain, interim, read_table
):
    """The extension of a run that is over: eight stable steps instead of six, then a decay."""
    short = pretrain(inputs, phases=[stable(6)])
    whole = pretrain(inputs, phases=LONGER)
    longer = continued(pretrain, inputs, short, phases=LONGER)
    assert files(longer) == files(whole)
    assert files(interim(longer, 8)) == files(interim(whole, 8))
    rows, every = (
        read_table(run, "training_run", "metrics.parquet").to_pylist() for run in (longer, whole)
    )
    assert rows == every[6:]


@pytest.mark.full
def test_a_run_goes_on_from_a_checkpoint_in_several_files_to_the_same_bits(
    inputs, pretrain, store, interim, read_input, monkeypatch
):
    """Weights, those behind their average, moments and averages; permanent checkpoints as well."""
    averaged = {"averages": {"ema": 0.9, "output": "ema"}}
    config = {"phases": LONGER, "checkpoints": {"every": 300}, **averaged}
    short = pretrain(inputs, phases=[stable(6)], **averaged)
    one = continued(pretrain, inputs, short, **config)
    monkeypatch.setattr(tensor_files, "MAX_FILE_BYTES", 20_000)
    store.backend.remove(f"artifacts/pretrain/{short.key}.json")
    several = pretrain(inputs, phases=[stable(6)], **averaged)
    groups = ("model", "trained", "optimizer", "averages")
    written = read_input(several, "checkpoint")
    assert all(written.has(f"{group}.safetensors.index.json") for group in groups)
    assert not any(written.has(f"{group}.safetensors") for group in groups)
    other = continued(pretrain, inputs, several, **config)
    assert one.key != other.key
    assert [kept.at for kept in one.interims] == [kept.at for kept in other.interims] != []
    pairs = [(interim(one, kept.at), interim(other, kept.at)) for kept in one.interims]
    for first, second in ((one, other), *pairs):
        assert tensors(read_input(first, "checkpoint")) == tensors(read_input(second, "checkpoint"))


@pytest.mark.full
@pytest.mark.parametrize("layout", [{"shard": 2}, {"data": 2}, {"shard": 2, "zero": 1}])
def test_ranks_go_on_from_a_checkpoint_in_several_files_as_one_process_does(
    inputs, pretrain, store, interim, read_input, read_table, monkeypatch, layout
):
    """Each reads what it holds; those behind the average, moments and averages too."""
    averaged = {"averages": {"ema": 0.9, "output": "ema"}}
    monkeypatch.setattr(tensor_files, "MAX_FILE_BYTES", 20_000)
    config = {"phases": LONGER, "checkpoints": {"every": 300}, **averaged}
    short = pretrain(inputs, phases=[stable(6)], **averaged)
    one = continued(pretrain, inputs, short, **config)
    kept = [one, *(interim(one, kept.at) for kept in one.interims)]
    expected = [weights(read_input(at, "checkpoint")) for at in kept]
    rows = [read_table(one, "training_run", f"{name}.parquet") for name in ("metrics", "held_out")]
    for manifest in kept:
        remove_artifact(store, manifest)
    other = continued(pretrain, inputs, short, execution={"layout": layout}, **config)
    assert other.layout["ranks"]["shard"] == layout.get("shard", 1)
    for before, name in zip(rows, ("metrics", "held_out"), strict=True):
        now = read_table(other, "training_run", f"{name}.parquet")
        assert now["tokens"].to_pylist() == before["tokens"].to_pylist()
        assert np.allclose(now["loss"], before["loss"], rtol=0, atol=1e-5)
    made = [other, *(interim(other, kept.at) for kept in other.interims)]
    assert len(made) == len(expected)
    for manifest, before in zip(made, expected, strict=True):
        now = weights(read_input(manifest, "checkpoint"))
        assert now.keys() == before.keys()
        for name, tensor in before.items():
            assert torch.allclose(now[name], tensor, atol=1e-4), name


def weights(checkpoint):
    """Every tensor by group and name."""
    return {
        (path.partition("-")[0].removesuffix(".safetensors"), name): tensor
        for path in checkpoint.paths("*.safetensors")
        for name, tensor in load(checkpoint.read_bytes(path)).items()
    }


def tensors(checkpoint):
    """Content of every tensor by group and name."""
    return {name: tensor.numpy().tobytes() for name, tensor in weights(checkpoint).items()}


def test_from_the_checkpoint_before_the_decay_as_well(inputs, pretrain, interim):
    first = pretrain(inputs, phases=[stable(6), decay(3)])
    whole = pretrain(inputs, phases=LONGER)
    assert files(continued(pretrain, inputs, interim(first, 6), phases=LONGER)) == files(whole)


@pytest.mark.full
def test_with_averages_it_goes_on_from_the_weights_and_keeps_the_averages(
    inputs, pretrain, interim, read_input
):
    averages = {"ema": 0.5, "output": "ema"}
    short = pretrain(inputs, phases=[stable(6)], averages=averages)
    plain = pretrain(inputs, phases=[stable(6)])
    assert files(short, "trained.safetensors") == files(plain, "model.safetensors")
    whole = pretrain(inputs, phases=LONGER, averages=averages)
    longer = continued(pretrain, inputs, short, phases=LONGER, averages=averages)
    assert files(longer) == files(whole)


def test_killed_it_goes_on_from_its_own_checkpoint(inputs, pretrain, store, killed_at):
    short = pretrain(inputs, phases=[stable(6)])
    whole = continued(pretrain, inputs, short, phases=LONGER)
    store.backend.remove(f"artifacts/pretrain/{whole.key}.json")
    with killed_at("checkpoint written", 2):
        continued(pretrain, inputs, short, phases=LONGER)
    assert continued(pretrain, inputs, short, phases=LONGER).outputs == whole.outputs


def test_a_branch_reads_on_in_each_source_whatever_the_mixture(inputs, pretrain, interim):
    """Annealing on another mixture from the sixth step: as in one run with these phases."""
    first = pretrain(inputs, phases=[stable(8), decay(3)], checkpoints={"every": 6 * STEP})
    phases = [stable(6), decay(5, **MIXED)]
    branch = continued(pretrain, inputs, interim(first, 6), phases=phases)
    assert files(branch) == files(pretrain(inputs, phases=phases))


def test_an_intervention_changes_what_comes_and_reads_the_same(
    inputs, pretrain, interim, read_table
):
    phases = [stable(8), decay(3)]
    first = pretrain(inputs, phases=phases, checkpoints={"every": 6 * STEP})
    tighter = continued(
        pretrain, inputs, interim(first, 6), phases=phases, optimizer={"clip": 0.01}
    )
    names = ["training_step", "tokens", "tokens/web", "tokens/code", "learning_rate"]
    rows, every = (
        read_table(run, "training_run", "metrics.parquet").select(names).to_pylist()
        for run in (tighter, first)
    )
    assert rows == every[6:]
    assert files(tighter, *BOTH) != files(first, *BOTH)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"seed": 1}, "seed 0 → 1"),
        ({"phases": [stable(8, **MIXED)]}, r"phases\.0: weights {} → {'web': 0\.25"),
        ({"phases": [stable(3), stable(6)]}, r"phases\.0: it is read in phases\.1 here"),
        ({"phases": [{**stable(8), "sequences_per_batch": 2}]}, "token positions before it"),
        ({"phases": [stable(6)]}, "the phases end with training step 6"),
    ],
)
def test_another_past_is_refused(inputs, pretrain, config, told):
    short = pretrain(inputs, phases=[stable(6)])
    with pytest.raises(UsageError, match=told):
        continued(pretrain, inputs, short, **{"phases": LONGER, **config})


def test_other_shards_are_refused_where_their_order_bears_on_the_past(
    inputs, packed, pretrain, run_stage
):
    """More of a source that was read, and a new source beside phases that go by size."""
    short = pretrain(inputs, phases=[stable(6)])
    more = {**inputs, "train": [*inputs["train"], *inputs["held_out"]]}
    with pytest.raises(UsageError, match=r"'(code|web)'.* \d+ .* \d+"):
        continued(pretrain, more, short, phases=LONGER)


def test_a_checkpoint_that_does_not_say_where_it_stood_is_refused(
    inputs, pretrain, given, read_input
):
    short = pretrain(inputs, phases=[stable(6)])
    found = read_input(short, "checkpoint")
    state = {**found.read_json("state.json")}
    del state["clock"]
    old = {name: found.read_bytes(name) for name in found.paths()}
    old["state.json"] = json.dumps(state).encode()
    more = {**inputs, "checkpoint": [given("checkpoint", old)]}
    with pytest.raises(InputError, match="clock"):
        pretrain(more, clock="continue", optimizer_state="keep", phases=LONGER)


def test_without_a_checkpoint_there_is_nothing_to_go_on_from(inputs, pretrain):
    with pytest.raises(UsageError, match=r"^clock: "):
        pretrain(inputs, clock="continue")


def test_what_a_continued_run_will_commit_lies_behind_its_checkpoint(inputs, pretrain, read_input):
    short = pretrain(inputs, phases=[stable(6)])
    config = PretrainConfig.parse(
        {"phases": LONGER, "clock": "continue", "checkpoints": {"every": 300}}, where="test"
    )
    given = {role: [read_input(*one) for one in ones] for role, ones in inputs.items()}
    given["checkpoint"] = [read_input(short, "checkpoint")]
    assert isinstance(given["checkpoint"][0], Input)
    assert [one.at for one in Pretrain.milestones(config, given)] == [8, 10, 12]


# Another program ---------------------------------------------------------------------------------


@pytest.mark.full
def test_changed_code_starts_over_unless_it_is_accepted(
    inputs, pretrain, store, killed_at, monkeypatch, caplog
):
    """Killed behind its second rolling checkpoint; then the program is another one."""
    from stages.engine import runner

    phases = [stable(6), decay(3)]
    whole = pretrain(inputs, phases=phases)
    store.backend.remove(f"artifacts/pretrain/{whole.key}.json")
    with killed_at("checkpoint written", 3):
        pretrain(inputs, phases=phases)
    monkeypatch.setattr(runner, "code_digest", lambda stage: "f" * 64)
    with caplog.at_level("INFO"), killed_at("checkpoint files written", 1):
        pretrain(inputs, phases=phases)
    assert not any(text.startswith("resumed at") for text in caplog.messages)
    again = pretrain(inputs, phases=phases)
    assert again.outputs == whole.outputs


def test_accepted_it_goes_on_and_says_so_in_the_log_and_among_the_events(
    inputs, run_stage, pretrain, tiny, store, killed_at, monkeypatch, caplog, read_table
):
    """Killed once more behind it, and resumed without the flag: the event is there, once."""
    from stages.engine import runner

    with killed_at("checkpoint written", 3):
        pretrain(inputs)
    before = runner.short(runner.code_digest(Pretrain))
    monkeypatch.setattr(runner, "code_digest", lambda stage: "f" * 64)
    how = {"device": "cpu", "micro_batch": 3, "checkpoint_every": 2, "threads": 1}
    with caplog.at_level("INFO"), killed_at("checkpoint written", 1):
        run_stage(Pretrain, tiny, inputs, how, accept_code=True)
    assert any(text.startswith("resumed at training step") for text in caplog.messages)
    said = f"continuing the work of another program: code {before} → ffffffffffff"
    assert said in caplog.messages
    events = read_table(pretrain(inputs), "training_run", "events.parquet").to_pylist()
    noted = [json.loads(row["details"]) for row in events if row["kind"] == "accept_code"]
    assert noted == [{"from": before, "to": "f" * 12}]
