"""The weights of a release: types, shards, and how much of them memory holds at a time."""

from __future__ import annotations

import gc
import json
import weakref

import pytest
import torch
from published_shapes import SHAPES
from safetensors.torch import load, load_file, save

from artifacts_schema.errors import InputError
from stages.export.folder import (
    ReleasedModel,
    ReleasedWeights,
    StoredWeights,
    convert_weight,
)
from stages.export.stage import Export
from stages.model.decoder import Decoder
from stages.model.files import model_files, read_model
from stages.model.huggingface.families import published_weights, to_config, to_weights
from stages.model.tensor_files import TensorSpec
from stages.tokenizer.training import transformers_config

TOKENS_BL = torch.arange(3, 23)[None]
INDEX = "model.safetensors.index.json"


def stored(model: Decoder, dtype: torch.dtype = torch.float32) -> StoredWeights:
    """A checkpoint's weights without a file."""
    state = {name: one.to(dtype) for name, one in model.state_dict().items()}
    specs = {name: TensorSpec(one.dtype, tuple(one.shape)) for name, one in state.items()}
    return StoredWeights(specs, lambda name: state[name])


def written(folder, model, *, dtype="keep", most=10**9, source=torch.float32):
    folder.mkdir(parents=True)
    weights = ReleasedWeights.plan(model.config, stored(model, source), dtype)
    return weights, weights.write(folder, most, lambda done: None)


@pytest.mark.parametrize("name", ["llama", "qwen3", "olmo2", "smollm3", "deepseek_v3"])
def test_shards_and_index_are_those_of_save_pretrained(name, tmp_path):
    from transformers import AutoModelForCausalLM

    model = Decoder(SHAPES[name], seed=3)
    config = json.dumps(to_config(model.config, bos=0, eos=1, pad=2))
    written(tmp_path / "one", model)
    (tmp_path / "one" / "config.json").write_text(config)
    native = AutoModelForCausalLM.from_pretrained(tmp_path / "one")
    native.save_pretrained(tmp_path / "theirs", max_shard_size=20_000)
    _, names = written(tmp_path / "ours", model, most=20_000)
    ours, theirs = (
        json.loads((tmp_path / side / INDEX).read_text()) for side in ("ours", "theirs")
    )
    assert ours["metadata"]["total_size"] == theirs["metadata"]["total_size"]
    assert ours["weight_map"].keys() == theirs["weight_map"].keys()
    files = sorted(name for name in names if name != INDEX)
    assert len(files) > 3
    assert files[-1] == f"model-{len(files):05d}-of-{len(files):05d}.safetensors"
    found = {}
    for file in files:
        tensors = load_file(tmp_path / "ours" / file)
        size = sum(one.nbytes for one in tensors.values())
        assert size <= 20_000 or len(tensors) == 1
        assert all(ours["weight_map"][one] == file for one in tensors)
        found.update(tensors)
    assert found.keys() == ours["weight_map"].keys()
    (tmp_path / "ours" / "config.json").write_text(config)
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "ours").eval()
    with torch.no_grad():
        logits_BLV = again(TOKENS_BL).logits
        torch.testing.assert_close(logits_BLV, model(TOKENS_BL), atol=1e-5, rtol=0)


def test_what_fits_is_one_file_without_an_index_and_has_the_bytes_of_safetensors(tmp_path):
    model = Decoder(SHAPES["llama"], seed=3)
    _, names = written(tmp_path / "one", model)
    assert names == ["model.safetensors"]
    expected = save(to_weights(model), metadata={"format": "pt"})
    assert (tmp_path / "one" / "model.safetensors").read_bytes() == expected


def test_tied_weights_are_stored_once_and_untied_ones_with_their_output_projection(tmp_path):
    for tied in (True, False):
        shape = {**SHAPES["llama"].plain(), "tied_embeddings": tied}
        model = Decoder(type(SHAPES["llama"])(**shape), seed=3)
        weights, _ = written(tmp_path / str(tied), model)
        assert ("lm_head.weight" in weights.specs) is not tied


@pytest.mark.parametrize(("source", "dtype", "expected"), [
    (torch.float32, "keep", torch.float32),
    (torch.bfloat16, "keep", torch.bfloat16),
    (torch.float32, "bfloat16", torch.bfloat16),
    (torch.bfloat16, "float16", torch.float16),
    (torch.float16, "float32", torch.float32),
])  # fmt: skip
def test_weights_are_released_in_the_type_asked_for(source, dtype, expected, tmp_path):
    model = Decoder(SHAPES["llama"], seed=3)
    weights, _ = written(tmp_path / "r", model, dtype=dtype, source=source)
    assert getattr(torch, weights.dtype) == expected
    found = load((tmp_path / "r" / "model.safetensors").read_bytes())
    assert {one.dtype for one in found.values()} == {expected}
    wanted = {name: one.to(source).to(expected) for name, one in to_weights(model).items()}
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


@pytest.mark.parametrize(("source", "dtype", "expected"), [
    (torch.float32, "keep", False),
    (torch.float32, "bfloat16", True),
    (torch.bfloat16, "keep", False),
    (torch.bfloat16, "float32", False),
])  # fmt: skip
def test_weights_are_rounded_where_a_number_of_the_release_is_another(source, dtype, expected):
    held = stored(Decoder(SHAPES["llama"], seed=3), source)
    model = ReleasedModel(SHAPES["llama"], held, dtype)
    model(TOKENS_BL)
    assert model.rounded is expected


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype", ["keep", "bfloat16"])
def test_a_block_at_a_time_gives_the_bits_of_the_whole_model(name, dtype):
    model = Decoder(SHAPES[name], seed=3)
    logits_BLV = ReleasedModel(model.config, stored(model), dtype)(TOKENS_BL)
    if dtype == "bfloat16":
        model = model.bfloat16().float()
    with torch.no_grad():
        assert torch.equal(logits_BLV, model(TOKENS_BL))


def test_a_number_that_overflows_the_type_is_refused_by_name():
    weight = torch.tensor([1.0, 70_000.0])
    with pytest.raises(InputError, match=r"'w' .*7e\+04, float16 .*6\.55e\+04") as caught:
        convert_weight(weight, torch.float16, "w")
    assert "bfloat16" in str(caught.value.hint)
    assert torch.equal(convert_weight(weight, torch.bfloat16, "w"), weight.bfloat16())
    # What was infinite before is no overflow: the check of logits finds it.
    assert convert_weight(torch.tensor([torch.inf]), torch.float16, "w").isinf().all()


def test_memory_holds_one_tensor_at_a_time(tmp_path):
    """Every tensor that is read is watched: when the next is read, none before it is alive."""
    model = Decoder(SHAPES["deepseek_v3"], seed=3)
    real = stored(model)
    alive: list[weakref.ref[torch.Tensor]] = []
    most = 0

    def read(name: str) -> torch.Tensor:
        nonlocal most
        tensor = real.read(name).clone()
        alive.append(weakref.ref(tensor))
        most = max(most, sum(one() is not None for one in alive))
        return tensor

    weights = ReleasedWeights.plan(model.config, StoredWeights(real.specs, read), "bfloat16")
    gc.disable()
    try:
        weights.write(tmp_path, 20_000, lambda done: None)
    finally:
        gc.enable()
    assert len(alive) == len(weights.specs)
    assert most == 1


def test_bytes_of_a_release_do_not_pass_through_memory_as_a_whole(tmp_path):
    import tracemalloc

    shape = {**SHAPES["llama"].plain(), "width": 256, "layers": 12, "vocabulary_size": 4096}
    model = Decoder(type(SHAPES["llama"])(**shape), seed=3)
    weights = ReleasedWeights.plan(model.config, stored(model), "keep")
    total = sum(spec.bytes for spec in weights.specs.values())
    largest = max(spec.bytes for spec in weights.specs.values())
    assert total > 3 * largest
    tracemalloc.start()
    weights.write(tmp_path, 10**9, lambda done: None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < largest  # The tensors are torch's; Python allocates no copy of one.


@pytest.mark.usefixtures("loaded_here")
def test_an_imported_bfloat16_checkpoint_is_released_at_its_size_with_equal_logits(
    run_stage, read_input, given, model, tokenizer
):
    files = {
        **model_files(model),
        "tokenizer.json": tokenizer.to_str().encode(),
        "tokenizer_config.json": transformers_config("llama-bpe"),
        "state.json": {},
    }
    own = {name: one.bfloat16() for name, one in load(files["model.safetensors"]).items()}
    checkpoint = given("checkpoint", {**files, "model.safetensors": save(own)})
    made = run_stage(Export, {"max_shard_bytes": 30_000}, {"checkpoint": [checkpoint]})
    assert made.counts["logit_difference"] <= 1e-5
    assert made.counts["weight_bytes"] == sum(one.nbytes for one in own.values())
    release = read_input(made, "release")
    assert release.read_json("config.json")["dtype"] == "bfloat16"
    index = release.read_json(INDEX)
    assert index["metadata"]["total_size"] == made.counts["weight_bytes"]
    assert set(index["weight_map"].values()) == set(release.paths("model-*.safetensors"))
    assert len(release.paths("model-*.safetensors")) == made.counts["weight_files"] > 1
    assert "weights in bfloat16" in release.read_bytes("README.md").decode()
    # Weights of a layer stand in it bit by bit.
    (weight,) = [w for w in published_weights(model.config) if w.name.endswith("1.mlp.up.weight")]
    name = weight.published[0]
    shard = load(release.read_bytes(index["weight_map"][name]))
    assert torch.equal(shard[name], own[weight.name])


@pytest.mark.usefixtures("loaded_here")
def test_a_trained_checkpoint_is_released_in_a_smaller_type_on_request(
    run_stage, read_input, checkpoint
):
    made = run_stage(Export, {"dtype": "float16"}, {"checkpoint": [checkpoint]})
    assert made.counts["logit_difference"] <= 1e-4
    release = read_input(made, "release")
    assert release.read_json("config.json")["dtype"] == "float16"
    model = read_model(read_input(checkpoint[0], "checkpoint"))
    halved = sum(one.nbytes for one in to_weights(model).values()) // 2
    assert made.counts["weight_bytes"] == halved


@pytest.mark.usefixtures("loaded_here")
def test_a_checkpoint_in_several_files_is_released_as_one_of_one_file(
    run_stage, read_input, checkpoint, given, in_several_files
):
    several = given("checkpoint", in_several_files(read_input(*checkpoint), 20_000))
    for settings in ({}, {"max_shard_bytes": 30_000}):
        releases = [
            read_input(run_stage(Export, settings, {"checkpoint": [source]}), "release")
            for source in (checkpoint, several)
        ]
        names = releases[0].paths("*.safetensors*")
        assert names == releases[1].paths("*.safetensors*")
        assert (INDEX in names) == bool(settings)
        for name in names:
            assert releases[0].read_bytes(name) == releases[1].read_bytes(name), name
