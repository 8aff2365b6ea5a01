"""A published model becomes a checkpoint with its logits, and nothing else does."""

from __future__ import annotations

import json

import pytest
import torch
from published_shapes import OWN, SHAPES
from safetensors.torch import load, save

from artifacts_schema.errors import InputError
from artifacts_schema.store.gc import remove_artifact
from stages.engine.page import Artifact
from stages.import_model.page import page
from stages.import_model.stage import ImportModel
from stages.model import tensor_files
from stages.model.decoder import Decoder
from stages.model.files import model_files, read_model
from stages.model.huggingface.families import to_config, to_weights

TOKENS_BL = torch.arange(3, 23)[None]
FAMILIES = ("llama", "qwen3", "olmo2", "smollm3", "deepseek_v3")


@pytest.mark.parametrize("name", FAMILIES)
def test_what_transformers_saved_in_shards_comes_with_its_logits(name, saved, bring):
    files, native = saved(name, max_shard_size="20KB")
    shards = [file for file in files if file.endswith(".safetensors")]
    assert len(shards) > 3
    checkpoint = bring({f"org/{file}": data for file, data in files.items()})
    model = read_model(checkpoint).eval()
    assert model.config == SHAPES[name]
    with torch.no_grad():
        torch.testing.assert_close(model(TOKENS_BL), native(TOKENS_BL).logits, atol=1e-5, rtol=0)


def test_one_file_and_shards_of_a_model_give_the_bytes_that_training_would_write(saved, bring):
    files, _ = saved("deepseek_v3")
    checkpoint = bring(files)
    written = model_files(read_model(checkpoint))
    for name, data in written.items():
        assert checkpoint.read_bytes(name) == data, name
    sharded, _ = saved("deepseek_v3", max_shard_size="9KB")
    assert bring(sharded).read_bytes("model.safetensors") == written["model.safetensors"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_kept_bit_by_bit_and_computed_in_float32(dtype, saved, bring):
    files, native = saved("llama", dtype=dtype)
    checkpoint = bring(files)
    found = load(checkpoint.read_bytes("model.safetensors"))
    assert {one.dtype for one in found.values()} == {dtype}
    up = native.model.layers[2].mlp.up_proj.weight
    assert torch.equal(found["blocks.2.mlp.up.weight"], up)
    assert torch.equal(read_model(checkpoint).blocks[2].mlp.up.weight, up.float())


def test_a_tensor_of_another_type_among_them_keeps_its_own(folder, bring):
    files = folder("deepseek_v3")
    tensors = {name: one.bfloat16() for name, one in load(files["model.safetensors"]).items()}
    bias = "model.layers.1.mlp.gate.e_score_correction_bias"
    tensors[bias] = tensors[bias].float()
    checkpoint = bring({**files, "model.safetensors": save(tensors)})
    found = load(checkpoint.read_bytes("model.safetensors"))
    single = [name for name, one in found.items() if one.dtype == torch.float32]
    assert len(single) == 1
    assert torch.equal(found[single[0]], tensors[bias])


def test_the_same_snapshot_gives_the_same_bytes_again(store, run_stage, snapshot, folder):
    given = snapshot(folder())
    first = run_stage(ImportModel, {}, {"snapshot": given})
    remove_artifact(store, first)
    again = run_stage(ImportModel, {}, {"snapshot": given})
    assert again.output("checkpoint").digest == first.output("checkpoint").digest


def test_the_checkpoint_carries_the_tokenizer_that_is_given(bring, folder, imported_tokenizer):
    checkpoint = bring(folder(), imported_tokenizer(61))
    assert checkpoint.read_json("tokenizer_config.json") == {"eos_token": "<|end_of_text|>"}
    assert checkpoint.read_json("state.json")["origin"]["tokenizer"] == "tokenizer"


def test_else_the_tokenizer_that_lies_beside_the_model(bring, folder):
    own = {"model": {"type": "BPE", "vocab": {"a": 0, "b": 60}}, "added_tokens": [{"id": 3}]}
    checkpoint = bring({**folder(), "tokenizer.json": json.dumps(own).encode()})
    assert checkpoint.read_json("tokenizer.json") == own
    assert checkpoint.read_json("tokenizer_config.json") == {}
    larger = {**own, "added_tokens": [{"id": 61}]}
    with pytest.raises(InputError, match=r"62 .*61"):
        bring({**folder(), "tokenizer.json": json.dumps(larger).encode()})


def test_without_a_tokenizer_the_checkpoint_has_none(bring, folder):
    checkpoint = bring(folder())
    assert checkpoint.paths() == ["model.json", "model.safetensors", "state.json"]


@pytest.mark.parametrize("name", ["llama", "llama tied, free head width"])
def test_a_larger_tokenizer_is_refused_or_gets_mean_rows(name, bring, folder, imported_tokenizer):
    tokenizer = imported_tokenizer(70)
    with pytest.raises(InputError, match=r"70 .*61 .*new_tokens: mean"):
        bring(folder(name), tokenizer)
    plain, grown = bring(folder(name)), bring(folder(name), tokenizer, new_tokens="mean")
    before, after = read_model(plain), read_model(grown)
    assert after.config.vocabulary_size == 128
    for matrix, larger in (
        (before.embedding.weight, after.embedding.weight),
        *([] if before.head is None else [(before.head.weight, after.head.weight)]),
    ):
        assert torch.equal(larger[:61], matrix)
        torch.testing.assert_close(larger[61:], matrix.mean(0).expand(67, -1))
    with torch.no_grad():
        torch.testing.assert_close(after(TOKENS_BL)[..., :61], before(TOKENS_BL))


def test_the_page_says_what_it_is_and_where_it_came_from(
    store, run_stage, snapshot, folder, imported_tokenizer
):
    inputs = {"snapshot": snapshot(folder("qwen3")), "tokenizer": [imported_tokenizer(70)]}
    made = run_stage(ImportModel, {"new_tokens": "mean"}, inputs)
    (figure,) = page(Artifact(store, made))
    facts = dict(figure.rows)
    assert facts["model_type"] == "qwen3"
    assert facts["of which added"] == 67
    weights = load(folder("qwen3")["model.safetensors"])
    assert facts["parameters, as published"] == sum(one.numel() for one in weights.values())


@pytest.mark.parametrize("name", ["olmo2", "deepseek_v3", "soft-capped logits"])
def test_a_release_of_our_own_comes_back_as_the_checkpoint_it_was_made_of(name, bring):
    shape = {**SHAPES, **OWN}[name]
    model = Decoder(shape, seed=7)
    config = json.dumps(to_config(shape, bos=0, eos=1, pad=2)).encode()
    checkpoint = bring({"config.json": config, "model.safetensors": save(to_weights(model))})
    for file, data in model_files(model).items():
        assert checkpoint.read_bytes(file) == data


def test_fields_that_are_not_read_are_told(bring, folder, caplog):
    bring(folder("llama", attention_multiplier=0.5, use_sliding_window=False))
    (line,) = [r.getMessage() for r in caplog.records if "not read" in r.getMessage()]
    assert line.endswith("attention_multiplier")


def test_what_transformers_itself_saves_is_read_whole(saved, bring, caplog):
    for name in FAMILIES:
        bring(saved(name)[0])
    assert not [r for r in caplog.records if "not read" in r.getMessage()]


def test_a_large_model_is_written_in_several_files_tensor_by_tensor(bring, folder, monkeypatch):
    """As large as 20 kB, here; its tensors, bit for bit, are those of one file."""
    whole = bring(folder())
    monkeypatch.setattr(tensor_files, "MAX_FILE_BYTES", 20_000)
    checkpoint = bring({**folder(), "notes.txt": b"Another snapshot has another key."})
    assert not checkpoint.has("model.safetensors")
    index = checkpoint.read_json("model.safetensors.index.json")
    files = checkpoint.paths("model-*-of-*.safetensors")
    assert sorted(set(index["weight_map"].values())) == files
    assert len(files) > 3
    one, other = read_model(whole).state_dict(), read_model(checkpoint).state_dict()
    assert one.keys() == other.keys() == index["weight_map"].keys()
    assert all(torch.equal(other[name], tensor) for name, tensor in one.items())
    sizes = [one.numel() * one.element_size() for one in other.values()]
    assert index["metadata"]["total_size"] == sum(sizes)
