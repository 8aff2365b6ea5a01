"""The checkpoint that a run starts from: each rank reads what it holds, whatever files it is in."""

from __future__ import annotations

import pytest
import torch
from ranks import run_ranks
from safetensors.torch import load, save

from artifacts_schema.errors import CorruptArtifact
from stages.engine.inputs import Input
from stages.model.config import Experts
from stages.model.files import model_files, read_model
from stages.parallel.boxes import local, whole
from stages.parallel.layout import Layout
from stages.parallel.ranks import CPU, Ranks
from stages.parallel.shard_files import ShardFiles
from stages.training.config import TrainingExecution
from stages.training.runtime import Runtime, place
from stages.training.start import read_start


@pytest.fixture
def several(given, checkpoint, read_input, in_several_files):
    """The checkpoint again, with its weights in files of 20 kB and an index."""
    return given("checkpoint", in_several_files(read_input(*checkpoint), 20_000))


def start(checkpoint: Input, layout: Layout):
    """Whole weights after the start, elements held and elements read of them."""
    ranks = Ranks.from_group(CPU)
    elements = 0
    part = ShardFiles.part

    def counted(files, name, box):
        nonlocal elements
        elements += torch.Size(box.shape).numel()
        return part(files, name, box)

    ShardFiles.part = counted
    model, weights = read_start(checkpoint, ranks)
    assert all(parameter.is_meta for parameter in model.parameters())
    assert elements == 0
    runtime = Runtime(CPU, "fp32", ranks=ranks, parallel=layout)
    place(model, TrainingExecution(), runtime, prefixes=False, weights=weights)
    ShardFiles.part = part
    held = sum(local(one).numel() for one in model.state_dict().values())
    return {n: whole(t).clone().numpy() for n, t in model.state_dict().items()}, held, elements


@pytest.mark.parametrize("layout", [Layout(shard=2), Layout(data=2)], ids=["parts", "copies"])
def test_a_rank_reads_what_it_holds(checkpoint, several, read_input, layout):
    expected = read_model(read_input(*checkpoint)).state_dict()
    total = sum(tensor.numel() for tensor in expected.values())
    for source in (checkpoint, several):
        results = run_ranks(2, start, read_input(*source), layout)
        for weights, held, elements in results:
            assert weights.keys() == expected.keys()
            for name, tensor in expected.items():
                assert (weights[name] == tensor.numpy()).all(), name
            assert elements == held
        assert sum(elements for *_, elements in results) == total * layout.data


def test_biases_of_routers_are_read_and_counts_start_at_zero(
    given, read_input, make_model, checkpoint
):
    """Memory of a model that is placed holds anything until it is set."""
    model = make_model(experts=Experts(experts=4, chosen=2, width=16, bias_rate=0.01))
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            if name.endswith("bias"):
                buffer += torch.arange(4.0)
    source = read_input(*checkpoint)
    others = {name: source.read_bytes(name) for name in ("tokenizer.json", "state.json")}
    made = read_input(*given("checkpoint", {**others, **model_files(model)}))

    def buffers():
        layout, ranks = Layout(shard=2), Ranks.from_group(CPU)
        placed, weights = read_start(made, ranks)
        runtime = Runtime(CPU, "fp32", ranks=ranks, parallel=layout)
        place(placed, TrainingExecution(), runtime, prefixes=False, weights=weights)
        return {name: buffer.tolist() for name, buffer in placed.named_buffers()}

    expected = {name: buffer.tolist() for name, buffer in model.named_buffers()}
    assert any(name.endswith("bias") for name in expected)
    assert run_ranks(2, buffers) == [expected, expected]


def test_weights_that_do_not_fit_are_refused_before_any_is_read(given, read_input, checkpoint):
    source = read_input(*checkpoint)
    files = {name: source.read_bytes(name) for name in source.paths()}
    weights = load(files["model.safetensors"])
    weights["more"] = torch.zeros(3)
    files["model.safetensors"] = save(weights)
    made = read_input(*given("checkpoint", files))

    def refused():
        with pytest.raises(CorruptArtifact, match="'more' is unknown"):
            read_start(made, Ranks.from_group(CPU))

    run_ranks(2, refused)
    refused()


def test_an_optimizer_takes_its_part_of_moments_in_several_files(tmp_path, make_model):
    from stages.model.tensor_files import specs_of, write_tensors
    from stages.parallel.data_parallel import spread_model
    from stages.training.config import OptimizerConfig
    from stages.training.optimizer import Optimizer

    moments = {}
    for name, parameter in make_model().named_parameters():
        for number, part in enumerate(("exp_avg", "exp_avg_sq"), start=1):
            moments[f"{name}.{part}"] = torch.full_like(parameter.detach(), number)
        moments[f"{name}.step"] = torch.tensor(9.0)
    scaler = {"loss_scaler.scale": torch.tensor(4.0, dtype=torch.float64),
              "loss_scaler.clean": torch.tensor(3)}  # fmt: skip
    tensors = {**moments, **scaler}
    write_tensors(
        lambda name: (tmp_path / name).open("wb"),
        "optimizer.safetensors",
        specs_of(tensors),
        tensors.get,
        most=20_000,
    )

    def load_parts(precision):
        model = make_model()
        spread_model(model, Layout(shard=2), CPU)
        optimizer = Optimizer(model, OptimizerConfig(), precision)
        with ShardFiles(sorted(tmp_path.glob("*.safetensors"))) as files:
            optimizer.load(files, where="here")
        loaded = {name: whole(tensor).clone() for name, tensor in optimizer.tensors().items()}
        wanted = moments if precision == "fp32" else tensors
        return loaded.keys() == wanted.keys() and all(
            torch.equal(loaded[name].to(tensor.dtype), tensor) for name, tensor in wanted.items()
        )

    for precision in ("fp32", "fp16"):
        assert run_ranks(2, load_parts, precision) == [True, True]
