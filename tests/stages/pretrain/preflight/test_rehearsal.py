"""Save and resume of a tiny model: of every architecture, and where the disk garbles it."""

from __future__ import annotations

import pytest
import torch

from artifacts_schema.errors import UsageError
from stages.model import attention
from stages.model.attention import Sdpa
from stages.model.config import Experts, LatentAttention, ModelShape, RopeScaling
from stages.model.decoder import Decoder
from stages.pretrain import preflight_trial
from stages.pretrain.preflight_trial import check_resume, tiny
from stages.training import losses
from stages.training import runtime as training_runtime
from stages.training.config import OptimizerConfig, TrainingExecution
from stages.training.runtime import compile_blocks, compiled_graphs, runtime

LATENT = LatentAttention(query_rank=48, kv_rank=32, plain_width=32, rotary_width=16, value_width=24)
EXPERTS = Experts(experts=8, chosen=3, width=48, groups=2, chosen_groups=1)
SHAPES = {
    "plain": {},
    "mha": {"heads": 6, "kv_heads": 6},
    "qwen3": {"qk_norm": "head", "head_width": 48},
    "olmo2": {"qk_norm": "width", "norm": "output"},
    "windows": {"window": 128, "window_pattern": "SSSL", "nope_every": 4, "logit_softcap": 30.0},
    "yarn": {"rope_scaling": RopeScaling(factor=4, original_context=64), "rope_share": 0.5},
    "deepseek": {"latent": LATENT, "experts": EXPERTS, "tied_embeddings": False},
    "experts": {"experts": Experts(experts=64, chosen=6, width=32, shared=2, first=0)},
}


EXECUTION = TrainingExecution(device="cpu", threads=1)


@pytest.fixture
def how():
    with runtime(EXECUTION, "fp32", seed=1) as found:
        yield found


def config_of(name):
    return ModelShape(width=192, layers=6, **SHAPES[name]).with_vocabulary(5000)


@pytest.mark.parametrize("name", SHAPES)
def test_the_tiny_model_has_the_parts_of_the_large_one(name):
    large, small = config_of(name), tiny(config_of(name))
    model = Decoder(small, seed=0)
    assert sum(p.numel() for p in model.parameters()) < 40_000

    def kinds(config):
        names = [n for n, _ in Decoder(config, seed=0).named_parameters()]
        return {n.split(".", 2)[-1] for n in names}

    assert kinds(small) == kinds(large)


@pytest.mark.parametrize("name", ["plain", "deepseek"])
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_it_goes_on_to_the_same_bits_and_leaves_nothing(how, tmp_path, name, optimizer):
    before = torch.get_rng_state()
    settings = OptimizerConfig(name=optimizer, groups=({"match": "blocks.5.*", "rate": 0.5},))
    finding = check_resume(tmp_path / "work", config_of(name), settings, how, EXECUTION)
    assert finding.level == "ok", finding.message
    assert torch.equal(torch.get_rng_state(), before)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("file", ["model.safetensors", "optimizer.safetensors"])
def test_a_state_that_comes_back_changed_is_a_refusal(how, tmp_path, monkeypatch, file):
    load = preflight_trial.load_file

    def garbled(path):
        tensors = load(path)
        if path.name == file:
            name = sorted(n for n, t in tensors.items() if t.ndim > 1)[0]
            tensors[name].view(-1)[0] += 1e-6
        return tensors

    monkeypatch.setattr(preflight_trial, "load_file", garbled)
    finding = check_resume(tmp_path, config_of("plain"), OptimizerConfig(), how, EXECUTION)
    assert finding.level == "refusal"
    assert finding.message.endswith("differs")


def test_a_disk_that_takes_nothing_is_a_refusal(how, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(preflight_trial, "save_file", full)
    finding = check_resume(tmp_path, config_of("plain"), OptimizerConfig(), how, EXECUTION)
    assert (finding.level, finding.check) == ("refusal", "resume")
    assert "No space left" in finding.message


class Recorder(Sdpa):
    """A backend of another name, which counts the masks that are asked of it."""

    name = "recorder"

    def __init__(self):
        self.seen = []

    def prepare(self, visible):
        self.seen.append(visible.documents_BL is not None)
        return super().prepare(visible)


@pytest.mark.full
def test_it_has_the_attention_checkpointing_and_compilation_of_the_run(tmp_path, monkeypatch):
    """A stand-in for a GPU: the backend that `auto` finds there, and blocks that are compiled."""
    recorder, compiled = Recorder(), []
    monkeypatch.setitem(attention._BACKENDS, recorder.name, recorder)
    monkeypatch.setattr(training_runtime, "choose_attention", lambda *_, **__: recorder.name)
    monkeypatch.setattr(
        training_runtime,
        "compile_blocks",
        lambda model: (compiled.append(model), compile_blocks(model, backend="aot_eager")),
    )
    monkeypatch.setattr(losses, "_compiled", lambda: losses.differentiated)
    execution = TrainingExecution(
        device="cpu", threads=1, compile="on", activation_checkpointing="full"
    )
    torch._dynamo.reset()
    before = compiled_graphs()
    with runtime(execution, "fp32", seed=1) as how:
        finding = check_resume(tmp_path, config_of("plain"), OptimizerConfig(), how, execution)
    assert finding.level == "ok", finding.message
    assert len(compiled) == 2  # The model, and the one that goes on from its files.
    assert all("forward" in vars(block) for model in compiled for block in model.blocks)
    assert compiled_graphs() > before
    assert recorder.seen == [True] * 4  # Four updates, over rows of several documents.


def test_a_backend_that_the_execution_names_is_rehearsed(how, tmp_path):
    """FlexAttention has no backward pass on a CPU: the rehearsal meets that before the run does."""
    execution = TrainingExecution(device="cpu", threads=1, attention="flex")
    with pytest.raises(UsageError, match="flex"):
        check_resume(tmp_path, config_of("plain"), OptimizerConfig(), how, execution)
