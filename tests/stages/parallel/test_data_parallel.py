"""The same losses, gradient norms and weights on any layout as in one process."""

import numpy as np
import pytest
import torch
from ranks import run_ranks

from stages.model.config import Experts, ModelConfig
from stages.model.decoder import Decoder
from stages.model.experts import update_balance
from stages.parallel.boxes import whole
from stages.parallel.data_parallel import set_last_micro_batch, spread_model
from stages.parallel.layout import Layout
from stages.parallel.ranks import Ranks
from stages.training.averages import Averages
from stages.training.config import AveragesConfig, OptimizerConfig
from stages.training.guard import fingerprint
from stages.training.losses import Arithmetic
from stages.training.optimizer import Optimizer
from stages.training.rows import Rows
from stages.training.sample_clock import rank_rows
from stages.training.token_shards import IGNORED

CPU = torch.device("cpu")
STEPS, ROWS, LENGTH, VOCABULARY = 20, 10, 16, 97
"""Neither the rows nor the vocabulary can be divided by 2 ranks of 2 rows or by 4."""
EXPERTS = Experts(experts=4, chosen=2, width=16, bias_rate=0.01)
CASES = {
    "adamw": {},
    "muon": {"optimizer": {"name": "muon"}},
    "experts": {"model": {"experts": EXPERTS}},
    "z_loss": {"z_loss": 1e-2, "optimizer": {"clip": 0.1}},
    "bf16": {"precision": "bf16"},
}
TOLERANCE = {"muon": 1e-4, "bf16": 5e-3}
"""In nats; 1e-5 otherwise. Muon's iteration is in bfloat16, which carries the order of sums (1e-7)
into the third digit of an update; under bf16 all products are."""


def step_rows(step: int) -> Rows:
    """The batch of a step: some targets are left out, unevenly over rows."""
    draw = np.random.default_rng(step)
    tokens = draw.integers(0, VOCABULARY, (ROWS, LENGTH))
    targets = np.roll(tokens, -1, axis=1).astype(np.int64)
    targets[draw.random((ROWS, LENGTH)) < np.linspace(0, 0.9, ROWS)[:, None]] = IGNORED
    return Rows(tokens, targets, np.zeros((ROWS, LENGTH), dtype=np.int64))


def train(layout: Layout, case: dict) -> dict:
    """Losses and gradient norms by step; weights, their mean and routers' biases at the end."""
    ranks = Ranks.from_group(CPU)
    config = ModelConfig(
        vocabulary_size=VOCABULARY, width=32, layers=2, heads=4, kv_heads=2, mlp_width=48,
        context=LENGTH, **case.get("model", {}),
    )  # fmt: skip
    if ranks.world > 1:
        with torch.device("meta"):
            model = Decoder(config, seed=3)
        spread_model(model, layout, CPU)
        model.to_empty(device=CPU)
        model.initialise()
    else:
        model = Decoder(config, seed=3)
    first = {name: whole(p).clone().numpy() for name, p in model.named_parameters()}
    optimizer = Optimizer(model, OptimizerConfig(**case.get("optimizer", {})))
    averages = Averages(AveragesConfig(ema=0.9, output="ema"), STEPS)
    arithmetic = Arithmetic(CPU, case.get("precision", "fp32"))
    losses, norms, held_out = [], [], []
    for step in range(STEPS):
        rows = step_rows(step)
        own = rows.take(rank_rows(ROWS, ranks.rank, ranks.world))
        own = own.padded(-(-ROWS // ranks.world) - len(own))
        optimizer.zero_grad()
        loss, parts = torch.zeros((), dtype=torch.float64), own.split(2)
        for number, part in enumerate(parts):
            if ranks.world > 1:
                set_last_micro_batch(model, layout, last=number == len(parts) - 1)
            trained = arithmetic.train(
                model, part, targets=rows.targets, z_loss=case.get("z_loss", 0.0)
            )
            optimizer.backward(trained.loss)
            loss += trained.loss.detach()
        losses.append(float(ranks.sum(loss)))
        norms.append(float(whole(optimizer.clip())))
        optimizer.set_rate(3e-3)
        optimizer.step()
        update_balance(model, ranks.sum)
        averages.update(model, step + 1)
        with torch.no_grad(), averages.applied(model):
            own_losses_BL = arithmetic.losses(model, own)
        held_out.append(float(ranks.sum(own_losses_BL.sum().double())) / rows.targets)
    with averages.applied(model):
        mean = {name: whole(p).clone().numpy() for name, p in model.named_parameters()}
    return {
        "losses": losses,
        "norms": norms,
        "held_out": held_out,
        "first": first,
        "weights": {name: whole(p).clone().numpy() for name, p in model.named_parameters()},
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


def matrix():
    layouts = {
        "ddp": Layout(data=2),
        "fsdp": Layout(shard=2),
        "zero-2": Layout(shard=2, zero=2),
        "zero-1": Layout(shard=2, zero=1),
        "fsdp-4": Layout(shard=4),
        "hybrid": Layout(data=2, shard=2),
    }
    quick = {("ddp", "adamw"), ("fsdp", "adamw"), ("fsdp", "muon"), ("fsdp", "experts"),
             ("hybrid", "adamw")}  # fmt: skip
    for layout, value in layouts.items():
        for case in CASES:
            marks = [] if (layout, case) in quick else [pytest.mark.full]
            yield pytest.param(value, case, marks=marks, id=f"{layout}-{case}")


@pytest.mark.parametrize(("layout", "case"), matrix())
def test_a_layout_trains_as_one_process_does(alone, layout, case):
    tolerance = TOLERANCE.get(case, 1e-5)
    expected = alone(case)
    results = run_ranks(layout.world, train, layout, CASES[case])
    for result in results:
        for kind in ("losses", "held_out"):
            assert max(map(abs, np.subtract(result[kind], expected[kind]))) <= tolerance, kind
        assert np.allclose(result["norms"], expected["norms"], rtol=100 * tolerance)
        for name, weights in expected["first"].items():
            assert np.array_equal(result["first"][name], weights), name
        for kind in ("weights", "mean"):
            for name, weights in expected[kind].items():
                assert np.allclose(result[kind][name], weights, atol=100 * tolerance), name
        # The mean of weights is applied and taken off again.
        assert not all(
            np.array_equal(result["mean"][name], weights)
            for name, weights in result["weights"].items()
        )
    for other in results[1:]:  # Decisions are taken from these: the same bits on every rank.
        assert other["losses"] == results[0]["losses"]
        assert other["norms"] == results[0]["norms"]
        assert other["fingerprint"] == results[0]["fingerprint"]
        for name, buffer in results[0]["buffers"].items():
            assert np.array_equal(other["buffers"][name], buffer), name


def test_biases_of_routers_are_those_of_one_process(alone):
    """Summed over ranks, or each rank would balance its own tokens; nothing else shows it."""
    expected = alone("experts")["buffers"]
    result = run_ranks(2, train, Layout(data=2), CASES["experts"])[0]["buffers"]
    biases = [name for name in expected if name.endswith("bias")]
    assert biases
    for name in biases:
        assert np.abs(expected[name]).max() > 0
        assert np.allclose(result[name], expected[name], atol=EXPERTS.bias_rate + 1e-6)


def test_layouts_are_of_their_world():
    assert Layout(data=2, shard=4).world == 8
