"""The numbers in a GGUF file, as transformers and the gguf package read them."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
import torch
from peak_memory import peak_growth
from transformers import AutoConfig, AutoModelForCausalLM

from artifacts_schema.errors import InputError
from stages.export_gguf.source import Source
from stages.export_gguf.tensors import write_file
from stages.export_gguf.vocabulary import Vocabulary
from stages.model.huggingface.families import to_config, to_weights

from .conftest import FAMILIES

READ_BY_TRANSFORMERS = [name for name in FAMILIES if name.startswith(("llama", "qwen3"))]
Type = gguf.GGMLQuantizationType


@pytest.mark.parametrize("name", READ_BY_TRANSFORMERS)
def test_transformers_computes_the_same_logits_from_the_file(
    name, make_family, make_checkpoint, make_gguf
):
    model = make_family(name)
    made = make_gguf(make_checkpoint(model), type="F32")
    # What transformers reads of a file lacks the head width of Qwen 3, and the bounds of positions.
    described = to_config(model.config, bos=0, eos=1, pad=2)
    config = AutoConfig.for_model(described.pop("model_type"), **described)
    loaded = AutoModelForCausalLM.from_pretrained(
        made.path.parent, gguf_file=made.path.name, config=config, dtype=torch.float32
    )
    tokens = torch.randint(0, model.config.vocabulary_size, (2, 40), generator=torch.Generator())
    with torch.no_grad():
        theirs, ours = loaded.eval()(tokens).logits, model(tokens)
    assert (theirs - ours).abs().max() <= 1e-5 * ours.abs().max()


def test_transformers_reads_the_architecture_of_the_file(make_family, make_checkpoint, make_gguf):
    model = make_family("llama tied, free head width")
    made = make_gguf(make_checkpoint(model), type="F32")
    config = AutoConfig.from_pretrained(made.path.parent, gguf_file=made.path.name)
    described = to_config(model.config, bos=0, eos=1, pad=2)
    for field in (
        *("model_type", "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers"),
        *("num_attention_heads", "num_key_value_heads", "head_dim", "max_position_embeddings"),
        "tie_word_embeddings",
    ):
        assert getattr(config, field) == described[field], field
    assert config.rms_norm_eps == pytest.approx(described["rms_norm_eps"])
    assert config.rope_parameters["rope_theta"] == described["rope_theta"]


def unpaired(values, heads):
    """Rows of heads as halves again, by an index for each row."""
    width = values.shape[0] // heads
    order = [
        head * width + 2 * (row % (width // 2)) + row // (width // 2)
        for head in range(heads)
        for row in range(width)
    ]
    return values[order]


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q8_0", "Q4_0"])
def test_every_tensor_is_the_gguf_packages_own_of_the_weight(
    name, kind, make_family, make_checkpoint, make_gguf
):
    model = make_family(name)
    config, weights = model.config, to_weights(model)
    made = make_gguf(make_checkpoint(model), type=kind)
    names = gguf.get_tensor_name_map(
        gguf.MODEL_ARCH[name.split()[0].upper()], config.layers
    ).get_name
    tensors = {one.name: one for one in made.reader.tensors}
    for published, weight in weights.items():
        tensor = tensors.pop(names(published, try_suffixes=(".weight",)))
        values = gguf.dequantize(tensor.data, tensor.tensor_type)
        expected = weight.numpy()
        if weight.ndim == 1:
            assert tensor.tensor_type == Type.F32
        else:
            makes_logits = published == (
                "model.embed_tokens.weight" if "lm_head.weight" not in weights else "lm_head.weight"
            )
            if name == "olmo2 tied":
                makes_logits = False
            chosen = "Q8_0" if kind == "Q4_0" and makes_logits else kind
            if weight.shape[-1] % 32 and kind in ("Q8_0", "Q4_0"):
                chosen = "F16"
            assert tensor.tensor_type.name == chosen
            if published.endswith(("q_proj.weight", "k_proj.weight")) and name.startswith(
                ("llama", "smollm3")
            ):
                heads = config.heads if "q_proj" in published else config.kv_heads
                values = unpaired(values.reshape(expected.shape), heads)
            expected = gguf.dequantize(gguf.quantize(expected, Type[chosen]), Type[chosen])
        assert np.array_equal(values.reshape(expected.shape), expected), published
    if name == "olmo2 tied":  # Its graph has no tied output projection.
        output = tensors.pop("output.weight")
        assert output.tensor_type.name == ("Q8_0" if kind == "Q4_0" else kind)
        assert output.data.size > 0
    assert not tensors


def test_a_block_type_loses_as_little_as_its_scale_allows(make_family, make_checkpoint, make_gguf):
    model = make_family("llama")
    weight = to_weights(model)["model.layers.0.mlp.up_proj.weight"].numpy().reshape(-1, 32)
    for kind, levels in (("Q8_0", 127), ("Q4_0", 8)):
        tensors = make_gguf(make_checkpoint(model), type=kind).reader.tensors
        [stored] = [one for one in tensors if one.name == "blk.0.ffn_up.weight"]
        values = gguf.dequantize(stored.data, stored.tensor_type).reshape(-1, 32)
        # Half a step of the scale, which is itself rounded to float16; Q4_0 has one level less on
        # the side that its largest number is not on, so a step there.
        step = np.abs(weight).max(axis=1, keepdims=True) / levels
        allowed = (0.5 if kind == "Q8_0" else 1.0) * step * (1 + 2**-9) + levels * step * 2**-11
        assert (np.abs(values - weight) <= allowed).all()


@pytest.mark.parametrize(("kind", "value"), [("F16", 7e4), ("Q8_0", 9e6), ("Q4_0", 6e5)])
def test_a_number_that_the_type_cannot_hold_is_refused(
    kind, value, make_family, make_checkpoint, make_gguf
):
    model = make_family("llama")
    with torch.no_grad():
        model.blocks[1].mlp.up.weight[3, 5] = value
    with pytest.raises(InputError, match=rf"'model.layers.1.mlp.up_proj.weight' .* {kind} ends"):
        make_gguf(make_checkpoint(model), type=kind)


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q8_0", "Q4_0"])
def test_memory_holds_a_tensor_or_two_and_not_the_model(
    kind, make_model, make_checkpoint, read_input, tmp_path
):
    # Matrices of 4 and 8 MiB in float32, seven in each of four layers.
    model = make_model(width=1024, layers=4, heads=8, kv_heads=8, mlp_width=2048, init_std=0.02)
    source = Source.read(read_input(*make_checkpoint(model)))
    whole = sum(weight.nbytes for weight in to_weights(model).values())
    largest = max(weight.nbytes for weight in to_weights(model).values())
    described = source.tokenizer_config
    vocabulary = Vocabulary.read(
        source.tokenizer, described, model.config.vocabulary_size, where="checkpoint"
    )

    def write():
        with source.weights() as weight:
            path = tmp_path / kind
            write_file(path, "m", model.config, vocabulary, weight, kind, lambda done, total: None)

    assert peak_growth(write) <= 2 * largest < whole / 4


def test_a_release_gives_the_same_file_as_its_checkpoint(
    make_family, make_checkpoint, make_gguf, run_stage, read_input
):
    from stages.export.stage import Export
    from stages.export_gguf.stage import ExportGguf

    checkpoint = make_checkpoint(make_family("qwen3", context=128))
    release = run_stage(Export, {"max_shard_bytes": 30_000}, {"checkpoint": [checkpoint]})
    made = run_stage(ExportGguf, {}, {"release": [(release, "release")]})
    of_release = read_input(made, "gguf").read_bytes("ingot-model-Q8_0.gguf")
    assert of_release == make_gguf(checkpoint).path.read_bytes()
