"""One run over phases of several sequence lengths, each with a rotary base of its own."""

from __future__ import annotations

from itertools import count

import pytest

from artifacts_schema.errors import InputError, Stopped, UsageError

RATE = {"peak": 1e-2, "warmup_share": 0.3}
SHORT = {
    "tokens": 32 * 4 * 4,
    "sequence_length": 32,
    "sequences_per_batch": 4,
    "learning_rate": RATE,
}
LONG = {
    "tokens": 96 * 2 * 3,
    "sequence_length": 96,
    "rope_base": 50_000.0,
    "sequences_per_batch": 2,
    "learning_rate": {"decay": "linear"},
}
MODEL = {"width": 32, "layers": 2, "heads": 2, "kv_heads": 1, "context": 96}


@pytest.fixture
def inputs(packed):
    """The same documents and tokenizer, packed to 32 and to 96 tokens."""
    short, long = packed(), packed(sequence_length=96)
    return {
        "train": [*short["train"], *long["train"]],
        "held_out": long["held_out"],
        "tokenizer": short["tokenizer"],
    }


@pytest.fixture
def run(inputs, pretrain):
    """`run(**changed)` of both phases."""

    def made(execution=None, stop=lambda: False, **changed):
        config = {"model": MODEL, "phases": [SHORT, LONG], **changed}
        return pretrain(inputs, execution=execution, stop=stop, **config)

    return made


def test_each_phase_reads_its_length_and_the_checkpoint_says_the_last_base(
    run, read_input, read_table
):
    manifest = run()
    rows = read_table(manifest, "training_run", "metrics.parquet").to_pylist()
    long = [row["tokens/code@96"] + row["tokens/web@96"] for row in rows]
    short = [row["tokens/code@32"] + row["tokens/web@32"] for row in rows]
    assert len(rows) == 4 + 3
    assert not any(long[:4])
    assert all(long[4:])
    assert all(short[:4])
    assert not any(short[4:])
    shape = read_input(manifest, "checkpoint").read_json("model.json")
    assert shape["rope_base"] == 50_000.0
    account = read_input(manifest, "training_run").read_json("run.json")
    assert [phase["sequence_length"] for phase in account["phases"]] == [32, 96]
    assert account["sources"]["web@96"]["planned_sequences_by_phase"][0] == 0


@pytest.mark.full
@pytest.mark.parametrize("done", [3, 4, 5, 7])
def test_a_run_stopped_in_either_phase_or_at_the_end_gives_the_same_bytes(run, done):
    """Behind its last step it reads no batch any more, and the base is set all the same."""
    whole, looks = run(), count()
    with pytest.raises(Stopped):
        run(stop=lambda: next(looks) >= done - 1, held_out_every=100 + done)
    resumed = run(held_out_every=100 + done)
    assert resumed.outputs["checkpoint"].digest == whole.outputs["checkpoint"].digest


def test_the_base_bears_on_the_weights(run):
    """Else it would be set too late, or on another model."""
    other = [SHORT, {**LONG, "rope_base": None}]
    one, two = run(), run(phases=other)
    assert one.outputs["checkpoint"].digest != two.outputs["checkpoint"].digest


def test_what_does_not_fit_is_said_before_the_first_step(run, inputs, pretrain):
    with pytest.raises(UsageError, match="sequences of 96 tokens, model context 32"):
        run(model={**MODEL, "context": 32})
    with pytest.raises(UsageError, match=r"phases\.0.*32, 96"):
        run(phases=[{**SHORT, "sequence_length": None}])
    both = {**inputs, "held_out": [(one[0], "held_out") for one in inputs["train"]]}
    with pytest.raises(InputError, match=r"held_out.*32, 96"):
        pretrain(both, model=MODEL, phases=[SHORT, LONG])


def test_a_checkpoint_of_short_sequences_goes_on_with_long_ones(run, inputs, pretrain, read_input):
    """The context may grow: no weight depends on it."""
    short = pretrain(inputs, model={**MODEL, "context": 32}, phases=[SHORT])
    start = {**inputs, "checkpoint": [(short, "checkpoint")]}
    longer = pretrain(start, model={"context": 96}, phases=[{**LONG, "learning_rate": RATE}])
    shape = read_input(longer, "checkpoint").read_json("model.json")
    assert (shape["context"], shape["rope_base"]) == (96, 50_000.0)
    with pytest.raises(UsageError, match="sequences of 96 tokens, model context 32"):
        pretrain(start, model={}, phases=[{**LONG, "learning_rate": RATE}])
