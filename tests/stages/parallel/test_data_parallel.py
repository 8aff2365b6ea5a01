"""The same losses, gradient norms and weights on any layout as in one process."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from ranks import run_ranks

from stages.model.config import Experts, LatentAttention, ModelConfig
from stages.model.decoder import Decoder
from stages.model.experts import update_balance
from stages.parallel.layout import Layout
from stages.parallel.ranks import Ranks
from stages.parallel.shard_files import gather_on_first
from stages.training.averages import Averages
from stages.training.config import AveragesConfig, OptimizerConfig, TrainingExecution
from stages.training.guard import fingerprint
from stages.training.loop import StepSums
from stages.training.optimizer import Optimizer, treatments
from stages.training.rows import Rows
from stages.training.runtime import Runtime, clip_function, place
from stages.training.sample_clock import rank_rows
from stages.training.task import MicroBatch
from stages.training.token_shards import IGNORED

CPU = torch.device("cpu")
STEPS, ROWS, LENGTH, VOCABULARY = 20, 10, 16, 96
"""The rows cannot be divided by 2 ranks of 2 rows, or by 4."""
EXPERTS = Experts(experts=4, chosen=2, width=16, bias_rate=0.01)
CASES = {
    "adamw": {},
    "uneven": {"model": {"vocabulary_size": 97}},
    "muon": {"optimizer": {"name": "muon"}},
    "experts": {"model": {"experts": EXPERTS}},
    "z_loss": {"z_loss": 1e-2, "optimizer": {"clip": 0.1}},
    "bf16": {"precision": "bf16"},
    "variants": {
        "model": {
            "tied_embeddings": True, "norm": "output", "qk_norm": "width", "logit_softcap": 9.0
        }
    },
    "heads": {"model": {"qk_norm": "head"}, "execution": {"activation_checkpointing": "full"}},
    "latent": {
        "model": {
            "latent": LatentAttention(
                query_rank=16, kv_rank=16, plain_width=8, rotary_width=4, value_width=8
            )
        }
    },
}  # fmt: skip
TOLERANCE = {"muon": 1e-4, "bf16": 5e-3, "experts": 1e-4}
"""In nats; 1e-5 otherwise. Muon's iteration is in bfloat16, which carries the order of sums (1e-7)
into the third digit of an update; under bf16 all products are. Experts: of two whose scores differ
by less than rounding does, a token may take the other one."""


def step_rows(step: int, vocabulary: int = VOCABULARY) -> Rows:
    """The batch of a step: two documents a row; targets are left out, unevenly over rows."""
    draw = np.random.default_rng(step)
    tokens = draw.integers(0, vocabulary, (ROWS, LENGTH))
    targets = np.roll(tokens, -1, axis=1).astype(np.int64)
    targets[draw.random((ROWS, LENGTH)) < np.linspace(0, 0.9, ROWS)[:, None]] = IGNORED
    documents = np.arange(LENGTH) >= draw.integers(1, LENGTH, (ROWS, 1))
    return Rows(tokens, targets, documents.astype(np.int64))


def train(layout: Layout, case: dict) -> dict:
    """Losses and gradient norms by step; weights, their mean and routers' biases at the end."""
    ranks = Ranks.from_group(CPU, layout)
    config = ModelConfig(
        **{
            "vocabulary_size": VOCABULARY, "width": 32, "layers": 4, "heads": 8, "kv_heads": 4,
            "mlp_width": 48, "context": LENGTH, **case.get("model", {}),
        }
    )  # fmt: skip
    with torch.device("meta") if ranks.world > 1 else nullcontext():
        model = Decoder(config, seed=3)
    settings = OptimizerConfig(**case.get("optimizer", {}))
    of_all = treatments(model, settings)
    runtime = Runtime(
        CPU, case.get("precision", "fp32"), micro_batch=2, ranks=ranks, parallel=layout
    )
    place(model, TrainingExecution(**case.get("execution", {})), runtime, prefixes=False)
    first = whole_weights(model, ranks)
    optimizer = Optimizer(model, settings, of_all=of_all, clip=clip_function(model, runtime))
    averages = Averages(AveragesConfig(ema=0.9, output="ema"), STEPS)
    losses, norms, by_token = [], [], []
    for step in range(STEPS):
        rows = step_rows(step, config.vocabulary_size)
        own = rows.take(rank_rows(ROWS, ranks.row, layout.rows))
        own = own.padded(runtime.rows_of_step(ROWS) - len(own)).of_context(ranks)
        optimizer.zero_grad()
        sums = StepSums()
        for number, trained in runtime.passes(
            model, own.split(2), targets=rows.targets, z_loss=case.get("z_loss", 0.0)
        ):
            optimizer.backward(trained.loss)
            told = {} if number is None else {"tokens": trained.losses_BL.sum()}
            sums.add(MicroBatch(trained.loss, 0, told))
        values = sums.floats(optimizer.clip(), ranks)
        losses.append(values["loss"][0])
        by_token.append(values["tokens"][0])
        norms.append(values["grad_norm"][0])
        optimizer.set_rate(3e-3)
        optimizer.step()
        update_balance(model, ranks.sum_same_layers)
        averages.update(model, step + 1)
        if step == STEPS // 2:
            with torch.no_grad(), averages.applied(model):
                measured = runtime.losses(model, own).double().sum()
    with averages.applied(model):
        mean = whole_weights(model, ranks)
    return {
        "losses": losses,
        "by_token": by_token,
        "norms": norms,
        "measured": float(ranks.sum(measured)),
        "first": first,
        "weights": whole_weights(model, ranks),
        "mean": mean,
        "buffers": {name: b.clone().numpy() for name, b in model.named_buffers()},
        "fingerprint": fingerprint(model, ranks),
    }


def whole_weights(model, ranks) -> dict:
    """All weights, on rank 0."""
    weights = gather_on_first(dict(model.named_parameters()), ranks)
    return {name: weight.clone().numpy() for name, weight in weights.items()}


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
    ("ddp", "adamw"), ("fsdp", "adamw"), ("fsdp", "muon"), ("fsdp", "experts"),
    ("hybrid", "adamw"), ("tp-2", "adamw"), ("tp-2", "variants"), ("pp-2", "variants"),
    ("cp-2", "adamw"), ("ep-2", "experts"), ("tp-2-fsdp-2", "muon"),
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
def test_a_layout_trains_as_one_process_does(alone, layout, case):
    tolerance = TOLERANCE.get(case, 1e-5)
    expected = alone(case)
    results = run_ranks(layout.world, train, layout, CASES[case])
    result = results[0]
    for kind in ("losses", "by_token", "measured"):
        scale = {"losses": 1, "by_token": ROWS * LENGTH, "measured": ROWS * LENGTH}[kind]
        assert np.abs(np.subtract(result[kind], expected[kind])).max() <= tolerance * scale, kind
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


def test_biases_of_routers_are_those_of_one_process(alone):
    """Summed over ranks, or each rank would balance its own tokens; nothing else shows it."""
    expected = alone("experts")["buffers"]
    result = run_ranks(2, train, Layout(data=2), CASES["experts"])[0]["buffers"]
    biases = [name for name in expected if name.endswith("bias")]
    assert biases
    for name in biases:
        assert np.abs(expected[name]).max() > 0
        assert np.allclose(result[name], expected[name], atol=EXPERTS.bias_rate + 1e-6)
