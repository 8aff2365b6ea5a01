"""The same losses, gradient norms and weights on any layout as in one process."""

from functools import partial
from unittest.mock import patch

import numpy as np
import pytest
import torch
from parallel_training import CASES, EXPERTS, LENGTH, ROWS, STEPS, Training, whole_weights
from ranks import run_ranks

from stages.parallel.layout import Layout
from stages.training.guard import fingerprint
from stages.training.losses import differentiated
from stages.training.runtime import Runtime, compile_blocks, graph_breaks

TOLERANCE = {"muon": 1e-4, "bf16": 5e-3, "experts": 1e-4}
"""In nats; 1e-5 otherwise. Muon's iteration is in bfloat16, which carries the order of sums (1e-7)
into the third digit of an update; under bf16 all products are. Experts: of two whose scores differ
by less than rounding does, a token may take the other one."""


def train(layout: Layout, case: dict) -> dict:
    """Losses and gradient norms by step; weights, their mean and routers' biases at the end."""
    training = Training(layout, case)
    model, ranks = training.model, training.ranks
    first, steps = whole_weights(model, ranks), []
    for step in range(STEPS):
        steps.append(training.step(step))
        if step == STEPS // 2:
            measured = training.measured(step)
    with training.averages.applied(model):
        mean = whole_weights(model, ranks)
    return {
        "losses": [one["loss"] for one in steps],
        "by_token": [one["by_token"] for one in steps],
        "norms": [one["grad_norm"] for one in steps],
        "measured": measured,
        "first": first,
        "weights": whole_weights(model, ranks),
        "mean": mean,
        "buffers": {name: b.clone().numpy() for name, b in model.named_buffers()},
        "fingerprint": fingerprint(model, ranks),
    }


@pytest.fixture(scope="module")
def alone():
    """What one process gives in a case, trained once."""
    results = {}

    def result(name):
        if name not in results:
            torch.set_num_threads(1)
            results[name] = train(Layout(), CASES[name])
        return results[name]

    return result


LAYOUTS = {
    "ddp": Layout(data=2),
    "fsdp": Layout(shard=2),
    "zero-2": Layout(shard=2, zero=2),
    "zero-1": Layout(shard=2, zero=1),
    "fsdp-4": Layout(shard=4),
    "hybrid": Layout(data=2, shard=2),
    "tp-2": Layout(tensor=2),
    "tp-4": Layout(tensor=4),
    "pp-2": Layout(pipeline=2),
    "pp-4": Layout(pipeline=4),
    "pp-2-interleaved": Layout(pipeline=2, interleave=2),
    "pp-2-interleaved-dp-2": Layout(pipeline=2, interleave=2, data=2),
    "pp-2-interleaved-zero-1": Layout(pipeline=2, interleave=2, shard=2, zero=1),
    "cp-2": Layout(context=2),
    "tp-2-dp-2": Layout(tensor=2, data=2),
    "tp-2-fsdp-2": Layout(tensor=2, shard=2),
    "tp-2-pp-2": Layout(tensor=2, pipeline=2),
    "tp-2-cp-2": Layout(tensor=2, context=2),
    "tp-2-pp-2-dp-2": Layout(tensor=2, pipeline=2, data=2),
}
OF_EXPERTS = {
    "ep-2": Layout(shard=2, expert=2),
    "ep-2-hybrid": Layout(data=2, shard=2, expert=2),
    "ep-2-tp-2": Layout(data=2, expert=2, tensor=2),
    "ep-2-pp-2": Layout(data=2, expert=2, pipeline=2),
    "ep-4-cp-2": Layout(data=2, context=2, expert=4),
}
QUICK = {
    ("ddp", "adamw"), ("fsdp", "adamw"), ("tp-2", "adamw"), ("pp-2", "variants"),
}  # fmt: skip


def matrix():
    """Each layout with each case that it can divide; those that are quick in `make test`."""
    for layout, value in (LAYOUTS | OF_EXPERTS).items():
        for case in CASES:
            cuts_vocabulary = value.tensor > 1 and case == "uneven"
            if cuts_vocabulary or (layout in OF_EXPERTS and case != "experts"):
                continue
            marks = [] if (layout, case) in QUICK else [pytest.mark.full]
            yield pytest.param(value, case, marks=marks, id=f"{layout}-{case}")


@pytest.mark.parametrize(("layout", "case"), matrix())
def test_a_layout_trains_as_one_process_does(alone, layout, case, record_property):
    """The largest differences, in nats, are in a report: `--junitxml F -o junit_family=xunit1`."""
    tolerance = TOLERANCE.get(case, 1e-5)
    expected = alone(case)
    results = run_ranks(layout.world, train, layout, CASES[case])
    result = results[0]
    for kind in ("losses", "by_token", "measured"):
        scale = {"losses": 1, "by_token": ROWS * LENGTH, "measured": ROWS * LENGTH}[kind]
        largest = np.abs(np.subtract(result[kind], expected[kind])).max() / scale
        record_property(kind, float(largest))
        assert largest <= tolerance, kind
    assert np.allclose(result["norms"], expected["norms"], rtol=100 * tolerance)
    assert result["first"].keys() == expected["first"].keys()
    for name, weights in expected["first"].items():
        assert np.array_equal(result["first"][name], weights), name
    for kind in ("weights", "mean"):
        for name, weights in expected[kind].items():
            assert np.allclose(result[kind][name], weights, atol=100 * tolerance), name
    # The mean of weights is applied and taken off again.
    assert not all(
        np.array_equal(result["mean"][name], weights) for name, weights in result["weights"].items()
    )
    buffers = {}
    for other in results:  # Decisions are taken from these: the same bits on every rank.
        assert other["losses"] == result["losses"]
        assert other["norms"] == result["norms"]
        assert other["fingerprint"] == result["fingerprint"]
        for name, buffer in other["buffers"].items():
            assert np.array_equal(buffers.setdefault(name, buffer), buffer), name
    assert buffers.keys() == expected["buffers"].keys()


@pytest.mark.full
def test_biases_of_routers_are_those_of_one_process(alone):
    """Summed over ranks, or each rank would balance its own tokens; nothing else shows it."""
    expected = alone("experts")["buffers"]
    result = run_ranks(2, train, Layout(data=2), CASES["experts"])[0]["buffers"]
    biases = [name for name in expected if name.endswith("bias")]
    assert biases
    for name in biases:
        assert np.abs(expected[name]).max() > 0
        assert np.allclose(result[name], expected[name], atol=EXPERTS.bias_rate + 1e-6)


def train_compiled(layout: Layout, case: dict) -> tuple[list[float], dict]:
    """Losses of three steps whose blocks are compiled, and what broke the graphs."""
    by_aot = partial(compile_blocks, backend="aot_eager")  # Traced as ever; no C compiler.
    with (
        patch("parallel_training.Runtime", partial(Runtime, compiled=True)),
        patch("stages.training.runtime.compile_blocks", by_aot),
        patch("stages.training.losses._compiled", lambda: differentiated),
    ):
        training = Training(layout, case)
        return [training.step(step)["loss"] for step in range(3)], graph_breaks()


@pytest.mark.parametrize(
    "layout",
    [
        pytest.param(Layout(tensor=2), id="tp-2", marks=pytest.mark.full),
        pytest.param(Layout(context=2), id="cp-2", marks=pytest.mark.full),
        pytest.param(Layout(pipeline=2), id="pp-2", marks=pytest.mark.full),
        pytest.param(Layout(shard=2), id="fsdp", marks=pytest.mark.full),
    ],
)
def test_blocks_are_compiled_as_a_whole_with_their_collectives(alone, layout):
    losses, breaks = run_ranks(layout.world, train_compiled, layout, CASES["adamw"])[0]
    assert np.abs(np.subtract(losses, alone("adamw")["losses"][:3])).max() <= 1e-5
    assert breaks == {}
