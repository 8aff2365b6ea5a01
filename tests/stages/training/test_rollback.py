"""A run in trouble skips, goes back, or stops; and is the same however often it is killed."""

import json
import math
from dataclasses import dataclass, field

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from line_run import WATCHED, Killed, Lines, Watched, assert_bit_equal, train

from artifacts_schema.errors import IngotError, Stopped, StoreError
from artifacts_schema.store import failpoints
from stages.training.callbacks import Callback
from stages.training.guard import Rollback, Rollbacks
from stages.training.task import MicroBatch

STRUCK = (20, 22, 23)
"""Three training steps in trouble: the third goes back four trained steps before the first."""
LEFT_OUT = tuple(range(16, 24))


@pytest.fixture(scope="module")
def struck(tmp_path_factory):
    return train(tmp_path_factory.mktemp("struck"), bad=STRUCK)


def events(line):
    rows = line.tables["events"].to_pylist()
    return [(row["training_step"], row["kind"]) for row in rows]


def test_a_spike_alone_is_skipped_and_is_as_if_its_data_had_been_left_out(tmp_path):
    spiked = train(tmp_path / "a", bad=(20,))
    without = train(tmp_path / "b", left_out=(20,))
    for name, tensor in without.tensors.items():
        if name not in ("updates.ema",) and not name.startswith("ema."):
            assert torch.equal(tensor, spiked.tensors[name]), name
    assert events(spiked) == [(20, "spike")]
    assert spiked.progress.skipped == 1
    rows = spiked.tables["metrics"].to_pylist()
    assert [row["training_step"] for row in rows if row["skipped"]] == [20]
    assert spiked.rollbacks.made == ()


def test_several_go_back_and_what_led_there_is_as_if_it_had_never_been(struck, tmp_path):
    """The oracle is a run whose data was left out by its config, from its first step on."""
    without = train(tmp_path, left_out=LEFT_OUT)
    assert_bit_equal(struck, without, "metrics", "held_out")
    assert struck.rollbacks.excluded == ((16, 23),)
    assert events(struck) == [(20, "spike"), (22, "spike"), (23, "spike"), (23, "rollback")]
    assert events(without) == []


def test_an_event_before_the_rollback_is_told_once(tmp_path):
    """It stands in the log that was gone back to, so the rollback need not hold it."""
    line = train(tmp_path, bad=(12, *STRUCK))
    assert [step for step, _ in events(line)] == [12, 20, 22, 23, 23]


def test_the_rollback_event_says_what_was_decided_and_the_spikes_why(struck):
    *spikes, last = (json.loads(row["details"]) for row in struck.tables["events"].to_pylist())
    assert last == {"first": 16, "last": 23, "strikes": list(STRUCK)}
    assert all(one["loss_z"] > WATCHED.threshold and one["documents"] == 2 for one in spikes)
    assert "training step 20 skipped: loss" in struck.context.alerts[0][1]
    assert "training steps 16 to 23 are excluded" in struck.context.alerts[-1][1]


def test_documents_of_the_steps_in_trouble_are_listed_once_with_the_first_reason(struck):
    rows = struck.tables["excluded"].to_pylist()
    assert [row["doc_id"] for row in rows] == [f"{step:032x}" for step in STRUCK] + ["f" * 32]
    assert rows[-1] == {
        "doc_id": "f" * 32,
        "reason": "training step 20: spike",
        "source": "code",
        "training_step": 20,
    }


@pytest.mark.parametrize("every", [1, 2, 7, 100])
@pytest.mark.parametrize("prefetch", [0, 3])
def test_which_checkpoint_it_goes_back_to_changes_no_byte(tmp_path, struck, every, prefetch):
    assert_bit_equal(train(tmp_path, bad=STRUCK, every=every, prefetch=prefetch), struck)


@pytest.mark.parametrize("every", [1, 5])
@pytest.mark.parametrize("point", ["rollback decided", "rollback cleared"])
def test_killed_in_the_middle_of_a_rollback_it_ends_the_same(
    tmp_path, struck, killed_at, point, every
):
    with killed_at(point):
        train(tmp_path, bad=STRUCK, every=every)
    assert_bit_equal(train(tmp_path, bad=STRUCK, every=every), struck)


@pytest.mark.parametrize("dies", [1, 6, 16, 19, 20, 22, 23, 24, 26, 40])
def test_killed_around_a_rollback_it_ends_the_same(tmp_path, struck, dies):
    with pytest.raises(Killed):
        train(tmp_path, bad=STRUCK, dies=dies)
    assert_bit_equal(train(tmp_path, bad=STRUCK), struck)


@pytest.mark.parametrize("visit", range(1, 10))
def test_killed_inside_any_save_it_ends_the_same(tmp_path, struck, killed_at, visit):
    with killed_at("checkpoint files written", visit):
        train(tmp_path, bad=STRUCK)
    assert_bit_equal(train(tmp_path, bad=STRUCK), struck)


def test_killed_again_and_again_it_ends_the_same(tmp_path, struck, killed_at):
    for step in (18, 23):
        with pytest.raises(Killed):
            train(tmp_path, bad=STRUCK, dies=step)
    with killed_at("rollback decided"):
        train(tmp_path, bad=STRUCK)
    with pytest.raises(Killed):
        train(tmp_path, bad=STRUCK, dies=25)
    assert_bit_equal(train(tmp_path, bad=STRUCK), struck)


def test_a_decision_that_cannot_be_written_is_no_decision(tmp_path, struck, monkeypatch):
    def full(path):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("artifacts_schema.files._sync", full)
        with pytest.raises(StoreError, match=r"rollbacks\.json"):
            train(tmp_path, bad=STRUCK)
    assert Rollbacks(tmp_path / "rollbacks.json").made == ()
    assert_bit_equal(train(tmp_path, bad=STRUCK), struck)


def test_a_second_rollback_goes_further_back_over_trained_steps(tmp_path):
    """Trouble goes on at 24: of the four trained steps before it none is left out already."""
    bad = (*STRUCK, 24, 25, 26)
    twice = train(tmp_path / "twice", bad=bad)
    assert [(one.first, one.last) for one in twice.rollbacks.made] == [(16, 23), (12, 26)]
    assert_bit_equal(twice, train(tmp_path / "a", left_out=range(12, 27)), "metrics", "held_out")


def test_rollbacks_that_do_not_help_end_in_a_verdict_that_names_steps_and_documents(tmp_path):
    bad = range(20, 60)
    with pytest.raises(IngotError) as raised:
        train(tmp_path, bad=bad, steps=60)
    assert raised.value.exit_code == 1
    said = str(raised.value)
    assert "training step 28: 2 rollbacks have not helped" in said
    assert "trouble at training steps 20, 21, 22, 23, 24, 25, 26, 27, 28" in said
    assert "documents: 3 of web, 1 of code" in said or "1 of code" in said
    assert "lower learning_rate.peak" in said


def test_without_a_checkpoint_to_go_back_to_the_run_begins_anew(tmp_path, struck, monkeypatch):
    """Somebody removed them: the decision stands, and the next start takes it up."""

    def remove(point):
        if point == "rollback decided":
            for folder in (tmp_path / "checkpoints").iterdir():
                (folder / "sealed.json").unlink()

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "on_failpoint", remove)
        with pytest.raises(Stopped, match="step 16") as raised:
            train(tmp_path, bad=STRUCK)
    assert raised.value.exit_code == 75
    assert_bit_equal(train(tmp_path, bad=STRUCK), struck)


def test_a_loss_that_is_not_finite_leads_back_as_well(tmp_path):
    broken = train(tmp_path / "a", broken=(20, 22, 23))
    without = train(tmp_path / "b", left_out=range(16, 24))
    assert_bit_equal(broken, without, "metrics", "held_out")
    assert [kind for _, kind in events(broken)] == ["not_finite"] * 3 + ["rollback"]


class Distorted(torch.autograd.Function):
    """The identity, whose gradient is multiplied."""

    @staticmethod
    def forward(context, loss, factor):
        context.factor = factor
        return loss.clone()

    @staticmethod
    def backward(context, gradient):
        return gradient * context.factor, None


@dataclass
class BadGradients(Lines):
    """Losses that are as they should be, under gradients that in some steps are not."""

    factors: dict[int, float] = field(default_factory=dict)

    def micro_batches(self, model, batch):
        for share in super().micro_batches(model, batch):
            factor = self.factors.get(batch[0], 1.0)
            yield MicroBatch(Distorted.apply(share.loss, factor), share.tokens)


@pytest.mark.parametrize(("factor", "kind"), [(math.nan, "not_finite"), (1e6, "spike")])
def test_a_gradient_that_is_nan_or_explodes_under_a_sound_loss_leads_back(tmp_path, factor, kind):
    task = BadGradients(factors=dict.fromkeys(STRUCK, factor))
    line = train(tmp_path / "a", task=task)
    assert [found for _, found in events(line)] == [kind] * 3 + ["rollback"]
    details = [json.loads(row["details"]) for row in line.tables["events"].to_pylist()]
    assert all(0 < one["loss"] < 10 for one in details[:3])
    if kind == "not_finite":
        assert details[0]["fault"]["where"] == "backward"
    else:
        assert details[0]["grad_norm_z"] > WATCHED.threshold > details[0]["loss_z"]
    without = train(tmp_path / "b", left_out=LEFT_OUT)
    assert_bit_equal(line, without, "metrics", "held_out")


def test_where_there_is_no_memory_to_look_for_the_module_the_run_goes_on(tmp_path, monkeypatch):
    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("stages.training.loop.find_fault", full)
    line = train(tmp_path, broken=(20,))
    assert events(line) == [(20, "not_finite")]
    assert "fault" not in json.loads(line.tables["events"].to_pylist()[0]["details"])
    assert line.progress.training_step == 40


class Heard(Callback):
    """What a listener is told, in its order."""

    def __init__(self):
        self.calls = []

    def started(self, training_step, total):
        self.calls.append(("started", training_step))

    def step_done(self, done):
        self.calls.append(("step", done.training_step))

    def saved(self, training_step, seconds):
        assert seconds >= 0
        self.calls.append(("saved", training_step))

    def measured(self, training_step, tokens, measured):
        self.calls.append(("measured", training_step))

    def event(self, kind, training_step, **details):
        self.calls.append((kind, training_step))

    def ended(self, error):
        self.calls.append(("ended", type(error).__name__))


def test_listeners_hear_all_of_it_in_order(tmp_path):
    """One spike at 6 leaves out 4 to 6, so the checkpoint of 4 is of no use."""
    heard, eager = Heard(), WATCHED.model_copy(update={"strikes": 1, "margin": 2})
    train(tmp_path, bad=(6,), steps=8, every=4, callbacks=[heard], stability=eager)
    assert heard.calls == [
        *[("started", 0), ("measured", 0), ("saved", 0)],
        *[("step", 1), ("step", 2), ("step", 3), ("step", 4), ("saved", 4), ("step", 5)],
        *[("spike", 6), ("step", 6), ("rollback", 6), ("checkpoint_refused", 0), ("resume", 0)],
        *[("step", 1), ("step", 2), ("step", 3), ("saved", 4)],
        *[("step", 7), ("measured", 7), ("step", 8), ("measured", 8), ("saved", 8)],
        ("ended", "NoneType"),
    ]


def test_weights_that_a_fault_of_the_machine_made_nan_are_those_of_a_checkpoint_again(tmp_path):
    """Once, behind training step 21: skipping helps no more, the third step in trouble goes back.

    Four trained steps before 22, the first of them: 18 to 24 are left out.
    """

    class StruckByLightning(Lines):
        struck = False

        def held_out(self, model):
            found = super().held_out(model)
            if not self.struck and self.drawn and self.drawn[-1] == 21:
                StruckByLightning.struck = True
                with torch.no_grad():
                    model.weight[0, 1] = torch.nan
            return found

    line = train(tmp_path / "a", task=StruckByLightning())
    assert line.rollbacks.excluded == ((18, 24),)
    event = json.loads(line.tables["events"].to_pylist()[0]["details"])
    assert event["fault"]["text"] == "the weights of weight"
    without = train(tmp_path / "b", left_out=range(18, 25))
    assert_bit_equal(line, without, "metrics", "held_out")


@pytest.mark.parametrize("dies", [19, 21])
def test_killed_around_a_step_that_is_not_finite_it_ends_the_same(tmp_path, dies):
    whole = train(tmp_path / "whole", broken=(20,))
    with pytest.raises(Killed):
        train(tmp_path / "killed", broken=(20,), dies=dies)
    assert_bit_equal(train(tmp_path / "killed", broken=(20,)), whole)


def test_permanent_checkpoints_are_told_of_a_rollback_again_after_a_kill(tmp_path, killed_at):
    class Told:
        def __init__(self):
            self.calls = []

        def is_due(self, training_step):
            return True

        def commit(self, training_step, tokens, saved):
            self.calls.append((training_step, saved.state["left_out"]))

        def rolled_back(self, first):
            self.calls.append(("back", first))

    first, second = Told(), Told()
    with killed_at("rollback decided"):
        train(tmp_path, bad=STRUCK, permanent=first)
    train(tmp_path, bad=STRUCK, permanent=second)
    assert [step for step, _ in first.calls] == list(range(1, 23))
    assert second.calls[0] == ("back", 16)
    assert second.calls[1:] == [(step, [[16, 23]]) for step in range(16, 41)]


def test_at_most_four_checkpoints_lie_there_and_one_is_old_enough_to_go_back_to(tmp_path):
    class Looks:
        most = 0

        def is_due(self, training_step):
            return True

        def commit(self, training_step, tokens, saved):
            folders = list((tmp_path / "checkpoints").glob("*/sealed.json"))
            self.most = max(self.most, len(folders))

        def rolled_back(self, first):
            pass

    looks = Looks()
    train(tmp_path, every=1, steps=60, permanent=looks)
    assert 3 <= looks.most <= 5  # One more while it is being written.
    left = sorted(int(one.name[-12:]) for one in (tmp_path / "checkpoints").iterdir())
    # Two rollbacks to come may reach back 8 trained steps from the next one, 61.
    assert left[-2:] == [59, 60]
    assert 61 - 2 * 8 - 2 <= left[0] < 61 - 8
    assert len(left) <= 4


@settings(max_examples=200, deadline=None)
@given(
    ranges=st.lists(st.tuples(st.integers(1, 60), st.integers(0, 9)), max_size=4),
    step=st.integers(1, 80),
    trained=st.integers(0, 90),
)
def test_before_counts_trained_steps_alone(ranges, step, trained, tmp_path_factory):
    rollbacks = Rollbacks(tmp_path_factory.getbasetemp() / "none.json")
    rollbacks.made = tuple(Rollback(first, first + more, ()) for first, more in ranges)
    found = rollbacks.before(step, trained)
    kept = [one for one in range(found, step) if not rollbacks.excludes(one)]
    assert len(kept) == trained or (found == 1 and len(kept) < trained)
    for one in range(1, 81):
        assert rollbacks.excludes(one) == any(a <= one <= b for a, b in rollbacks.excluded)


def test_a_run_that_is_not_watched_only_skips_what_is_not_finite(tmp_path):
    calm = WATCHED.model_copy(update={"enabled": False})
    line = train(tmp_path, bad=STRUCK, broken=(30,), stability=calm)
    assert events(line) == [(30, "not_finite")]
    assert [row["training_step"] for row in line.tables["metrics"].to_pylist()] == list(
        range(1, 41)
    )


def test_asked_to_stop_after_a_rollback_it_goes_on_to_the_same_end(tmp_path, struck):
    with pytest.raises(Stopped):
        train(tmp_path, bad=STRUCK, every=100, context=Watched(stop_at=26))
    again = Lines(bad=STRUCK)
    assert_bit_equal(train(tmp_path, every=100, task=again), struck)
    assert again.drawn[0] == 27
