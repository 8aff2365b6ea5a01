"""Adapters beside `peft`: the same function, the same merged weights, files that it reads."""

from __future__ import annotations

import json

import pytest
import torch

from artifacts_schema.errors import UsageError
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.files import build
from stages.model.huggingface.families import to_config, to_weights
from stages.training.adapters import (
    adapter_files,
    attach,
    describe_adapter,
    linear_weights,
    merged,
)
from stages.training.config import AdapterConfig
from stages.training.quantised import dequantise

peft = pytest.importorskip("peft")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

PLAIN = {
    "vocabulary_size": 96,
    "width": 32,
    "layers": 2,
    "heads": 4,
    "kv_heads": 2,
    "context": 32,
    "init_std": 0.1,
}
LATENT = {
    "latent": {"kv_rank": 12, "plain_width": 8, "rotary_width": 4, "value_width": 8},
    "experts": {"experts": 4, "chosen": 2, "shared": 1, "width": 16, "first": 1},
    "tied_embeddings": False,
}
FAMILIES = {
    "llama": {},
    "qwen3": {"qk_norm": "head"},
    "olmo2": {"qk_norm": "width", "norm": "output"},
    "smollm3": {"nope_every": 2},
    "deepseek_v3": {**LATENT, "kv_heads": 4},
}
TOKENS = torch.arange(40).view(2, 20) % 96


def logits(model: Decoder) -> torch.Tensor:
    with torch.no_grad():
        return model(TOKENS, torch.arange(20).expand(2, 20))


@pytest.fixture(params=list(FAMILIES))
def shape(request):
    shape = ModelConfig(**{**PLAIN, **FAMILIES[request.param]})
    config = to_config(shape, bos=0, eos=1, pad=2)
    assert config["model_type"] == request.param
    return shape


def adapted(shape: ModelConfig, config: AdapterConfig) -> Decoder:
    """A model whose adapters hold anything, as after training."""
    model = Decoder(shape, seed=1).eval()
    attach(model, config, seed=2)
    draw = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn(parameter.shape, generator=draw) * 0.05)
    return model


@pytest.mark.parametrize("method", ["lora", "dora"])
def test_peft_reads_the_adapter_beside_the_release_and_merges_to_the_same(shape, method, tmp_path):
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM

    config = AdapterConfig(method=method, rank=4, alpha=8)
    base, model = Decoder(shape, seed=1).eval(), adapted(shape, config)
    release, adapter = tmp_path / "release", tmp_path / "adapter"
    release.mkdir(), adapter.mkdir()
    (release / "config.json").write_text(json.dumps(to_config(shape, bos=0, eos=1, pad=2)))
    save_file(to_weights(base), release / "model.safetensors", metadata={"format": "pt"})
    for name, content in adapter_files(shape, model.state_dict(), config).items():
        (adapter / name).write_bytes(content)

    theirs = peft.PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(release).eval(), adapter
    )
    ours = logits(model)
    assert (ours - logits(base)).abs().max() > 0.05
    with torch.no_grad():
        assert torch.allclose(theirs(TOKENS).logits, ours, atol=2e-4)
    plain = build(shape, merged(model.state_dict(), config), where="merged")
    assert torch.allclose(logits(plain.eval()), ours, atol=2e-4)
    whole = theirs.merge_and_unload().state_dict()
    for name, weight in to_weights(plain).items():
        if name in whole:  # transformers stacks the weights of experts under other names.
            difference = (weight - whole[name]).norm() / whole[name].norm().clamp(min=1e-12)
            assert difference < 1e-6, name


def test_equal_adapters_give_equal_bytes():
    """The library writes entries of metadata in random order, by process and by call."""
    shape, config = ModelConfig(**{**PLAIN, **FAMILIES["llama"]}), AdapterConfig(rank=2)
    weights = adapted(shape, config).state_dict()
    files = {adapter_files(shape, weights, config)["adapter_model.safetensors"] for _ in range(12)}
    assert len(files) == 1


def test_an_adapter_is_nothing_at_first_and_its_seed_decides_what_it_becomes(shape):
    models = [Decoder(shape, seed=1).eval() for _ in range(3)]
    before = logits(models[0])
    for model, seed in zip(models, (0, 0, 1), strict=True):
        attach(model, AdapterConfig(rank=2), seed)
    assert all(torch.equal(logits(model), before) for model in models)
    first, same, other = (dict(model.named_parameters()) for model in models)
    trained = [name for name, one in first.items() if one.requires_grad]
    # A and B of r·(inputs + outputs) numbers for each matrix.
    assert sum(first[name].numel() for name in trained) == sum(
        2 * sum(models[0].get_submodule(name).base_layer.weight.shape)
        for name in linear_weights(shape)
    )
    assert all(torch.equal(first[name], same[name]) for name in trained)
    assert any(not torch.equal(first[name], other[name]) for name in trained)


def test_targets_are_named_as_in_the_release():
    model = Decoder(ModelConfig(**PLAIN), seed=1)
    attach(model, AdapterConfig(targets=("q_proj", "down_proj")), 0)
    names = {name for name, one in model.named_parameters() if one.requires_grad}
    assert {name.split(".lora")[0] for name in names} == {
        f"blocks.{layer}.{module}" for layer in (0, 1) for module in ("attention.query", "mlp.down")
    }


def test_a_target_that_no_matrix_has_is_refused_with_those_that_there_are():
    model = Decoder(ModelConfig(**PLAIN), seed=1)
    with pytest.raises(UsageError, match=r"no matrix of a layer is named 'q_prj'") as refused:
        attach(model, AdapterConfig(targets=("q_prj",)), 0)
    assert refused.value.where == "adapter.targets.0"
    assert "q_proj" in refused.value.hint


@pytest.mark.parametrize("kind", ["nf4", "fp4"])
@pytest.mark.parametrize("method", ["lora", "dora"])
def test_matrices_in_four_bits_are_dequantised_before_the_adapter_is_merged(
    shape, method, kind, tmp_path
):
    """Beside `bitsandbytes` and `peft`: its own products, then `merge_and_unload` of plain ones."""
    functional = pytest.importorskip("bitsandbytes.functional")
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM

    config = AdapterConfig(method=method, rank=4, alpha=8, quantised=kind)
    base, model = Decoder(shape, seed=1).eval(), adapted(shape, config)
    ours = logits(model)
    weights = dequantise(model.state_dict())
    plain = build(shape, merged(weights, config), where="merged").eval()
    assert torch.allclose(logits(plain), ours, atol=2e-4)

    # The base that the adapter belongs to: each matrix there and back by the library's functions.
    rounded = Decoder(shape, seed=1).eval()
    for name in linear_weights(shape):
        matrix = rounded.get_parameter(f"{name}.weight")
        packed = functional.quantize_4bit(
            matrix.detach(), quant_type=kind, compress_statistics=True, blocksize=64
        )
        with torch.no_grad():
            matrix.copy_(functional.dequantize_4bit(*packed))
    assert not torch.equal(logits(rounded), logits(base))
    release, adapter = tmp_path / "release", tmp_path / "adapter"
    release.mkdir(), adapter.mkdir()
    (release / "config.json").write_text(json.dumps(to_config(shape, bos=0, eos=1, pad=2)))
    save_file(to_weights(rounded), release / "model.safetensors", metadata={"format": "pt"})
    for name, content in adapter_files(shape, weights, config).items():
        (adapter / name).write_bytes(content)
    theirs = peft.PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(release).eval(), adapter
    )
    with torch.no_grad():
        assert torch.allclose(theirs(TOKENS).logits, ours, atol=2e-4)
    whole = theirs.merge_and_unload().state_dict()
    for name, weight in to_weights(plain).items():
        if name in whole:
            difference = (weight - whole[name]).norm() / whole[name].norm().clamp(min=1e-12)
            assert difference < 1e-6, name


def test_a_packed_model_takes_an_eighth_and_trains_the_adapter_alone():
    pytest.importorskip("bitsandbytes")
    shape = ModelConfig(**{**PLAIN, "width": 256, "heads": 4})
    model = Decoder(shape, seed=1)
    before = sum(w.nbytes for n, w in model.state_dict().items() if n.startswith("blocks."))
    said = describe_adapter(model).rpartition(" of ")[2]
    attach(model, AdapterConfig(rank=1, quantised="nf4"), 0)
    state = model.state_dict()
    packed = sum(w.nbytes for n, w in state.items() if n.startswith("blocks.") and "lora_" not in n)
    assert packed < before / 7  # Four bits of 32, and a byte for each 64 numbers.
    model(TOKENS).square().sum().backward()
    graded = {name for name, one in model.named_parameters() if one.grad is not None}
    assert graded == {name for name in state if "lora_" in name}
    total = int(said.split()[0].replace(",", ""))
    lora = sum(state[name].numel() for name in graded)
    assert f"of {total + lora:,} numbers" in describe_adapter(model)


def test_without_bitsandbytes_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("stages.training.quantised.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="need bitsandbytes") as refused:
        attach(Decoder(ModelConfig(**PLAIN), seed=1), AdapterConfig(quantised="nf4"), 0)
    assert refused.value.where == "adapter.quantised"


@pytest.mark.parametrize("target", ["gate_proj", "down_proj", "gate_up_proj", "experts"])
def test_stacked_weights_of_experts_are_refused_by_name(target):
    model = Decoder(ModelConfig(**{**PLAIN, **FAMILIES["deepseek_v3"]}), seed=1)
    with pytest.raises(UsageError, match=f"'{target}' is of experts") as refused:
        attach(model, AdapterConfig(targets=("q_proj", target)), 0)
    assert refused.value.where == "adapter.targets.1"
    assert "gate_proj" not in refused.value.hint


def test_without_peft_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("stages.training.adapters.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="adapters need peft"):
        attach(Decoder(ModelConfig(**PLAIN), seed=1), AdapterConfig(), 0)
