"""Adapters that `peft` saved, merged into the checkpoint that they belong to."""

from __future__ import annotations

import json

import pytest
import torch
from published_shapes import SHAPES
from safetensors.torch import load, save

from artifacts_schema.errors import InputError
from stages.engine.page import Artifact
from stages.import_model.page import page
from stages.import_model.stage import ImportAdapter, ImportModel
from stages.model.decoder import Decoder
from stages.model.files import read_model
from stages.model.huggingface.families import to_weights
from stages.training.adapters import CONFIG_FILE, WEIGHTS_FILE, adapter_files, attach, merged
from stages.training.config import AdapterConfig

pytest.importorskip("peft")


@pytest.fixture
def base(run_stage, snapshot, folder):
    """`base(name)` → the checkpoint of a random tiny model of a family."""
    return lambda name="llama": run_stage(ImportModel, {}, {"snapshot": snapshot(folder(name))})


@pytest.fixture
def bring_adapter(run_stage, snapshot, base, read_input):
    def run(files, manifest=None):
        inputs = {
            "snapshot": snapshot(files),
            "checkpoint": [(manifest or base(), "checkpoint")],
        }
        made = run_stage(ImportAdapter, {}, inputs)
        return read_input(made, "checkpoint")

    return run


def trained(name="llama", **config):
    """Files of an adapter that holds anything, and the weights of the model with it merged."""
    config = AdapterConfig(**{"rank": 2, **config})
    model = Decoder(SHAPES[name], seed=5)
    attach(model, config, seed=0)
    draw = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn(parameter.shape, generator=draw) * 0.05)
    files = adapter_files(model.config, model.state_dict(), config)
    return files, merged(model.state_dict(), config)


def changed(files, tensors=None, **config):
    """The files with other settings, or other tensors and no record of the base."""
    values = json.loads(files[CONFIG_FILE]) | config
    weights = files[WEIGHTS_FILE] if tensors is None else save(tensors)
    return {CONFIG_FILE: json.dumps(values).encode(), WEIGHTS_FILE: weights}


@pytest.mark.parametrize("name", ["llama", "qwen3", "olmo2", "smollm3", "deepseek_v3"])
@pytest.mark.parametrize("method", ["lora", "dora"])
def test_an_adapter_of_a_run_comes_back_as_its_merged_weights(base, bring_adapter, name, method):
    files, expected = trained(name, method=method)
    weights = read_model(bring_adapter(files, base(name))).state_dict()
    assert {n for n in expected if not torch.equal(weights[n], expected[n])} == set()


def test_an_adapter_that_peft_trained_is_what_peft_merges(base, bring_adapter, tmp_path, folder):
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    (tmp_path / "base").mkdir()
    for name, content in folder("qwen3").items():
        (tmp_path / "base" / name).write_bytes(content)
    config = LoraConfig(r=3, lora_alpha=6, use_rslora=True, target_modules=["q_proj", "down_proj"])
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(tmp_path / "base"), config)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.normal_(std=0.1)
    model.save_pretrained(tmp_path / "adapter")
    files = {path.name: path.read_bytes() for path in (tmp_path / "adapter").iterdir()}
    ours = to_weights(read_model(bring_adapter(files, base("qwen3"))))
    theirs = model.merge_and_unload().state_dict()
    for name, weight in ours.items():
        assert torch.allclose(weight, theirs[name], rtol=1e-6, atol=1e-7), name


def test_tokenizer_template_and_record_are_there(bring_adapter, store):
    files, _ = trained()
    checkpoint = bring_adapter(files)
    state = checkpoint.read_json("state.json")
    assert state["stage"] == "import_adapter"
    assert state["adapter"]["matrices"] == 7 * SHAPES["llama"].layers
    (figure,) = page(Artifact(store, store.find(checkpoint.key)))
    assert dict(figure.rows)["times B A"] == 16


def test_an_adapter_of_other_weights_is_refused_by_its_record(base, bring_adapter):
    model = Decoder(SHAPES["llama"], seed=6)
    attach(model, AdapterConfig(rank=2), seed=0)
    files = adapter_files(model.config, model.state_dict(), AdapterConfig(rank=2))
    with pytest.raises(InputError, match="was trained beside other weights"):
        bring_adapter(files, base("llama"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"peft_type": "IA3"}, "peft_type is 'IA3'"),
        ({"modules_to_save": ["lm_head"]}, "sets modules_to_save"),
        ({"rank_pattern": {"q_proj": 4}}, "sets rank_pattern"),
        ({"fan_in_fan_out": True}, "sets fan_in_fan_out"),
        ({"bias": "all"}, "trains biases"),
        ({"r": 0}, "are no numbers above 0"),
        ({"lora_alpha": None}, "are no numbers above 0"),
    ],
)
def test_settings_of_another_function_are_refused(bring_adapter, settings, message):
    files, _ = trained()
    with pytest.raises(InputError, match=message):
        bring_adapter(changed(files, **settings))


def test_tensors_that_do_not_fit_are_named(bring_adapter):
    files, _ = trained(targets=("q_proj",))
    tensors = load(files[WEIGHTS_FILE])
    name = "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight"
    wide = {**tensors, name: torch.zeros(tensors[name].shape[0] + 1, 2)}
    with pytest.raises(InputError, match=r"q_proj\.lora_B\.weight' has the shape \[\d+, 2\], its"):
        bring_adapter(changed(files, wide))
    half = {one: tensor for one, tensor in tensors.items() if one != name}
    with pytest.raises(InputError, match=r"layers\.0\.self_attn\.q_proj\.weight has no lora_B"):
        bring_adapter(changed(files, half))
    odd = {**tensors, "base_model.model.lm_head.lora_A.weight": torch.zeros(2, 2)}
    with pytest.raises(InputError, match=r"lm_head\.lora_A\.weight' belongs to no matrix"):
        bring_adapter(changed(files, odd))


def test_a_pickle_and_two_adapters_are_refused(bring_adapter):
    files, _ = trained()
    with pytest.raises(InputError, match=r"has no adapter_model\.safetensors beside"):
        bring_adapter({CONFIG_FILE: files[CONFIG_FILE], "adapter_model.bin": b"x"})
    twice = {f"{n}/{name}": content for n in "ab" for name, content in files.items()}
    with pytest.raises(InputError, match=r"holds 2 files named adapter_config\.json"):
        bring_adapter(twice)
