"""What a hostile or broken folder is told, by file and field; nothing of it is run or trusted."""

from __future__ import annotations

import json
import struct
import tempfile

import pytest
import torch
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from safetensors.torch import save

from artifacts_schema.errors import InputError
from stages.import_model.weights import SafetensorsFile
from stages.model.huggingface.families import from_config
from stages.model.tensor_files import TensorSpec, write_safetensors

INDEX = "model.safetensors.index.json"
NORM = "model.norm.weight"


def edited(files, **changes):
    """The folder with tensors of model.safetensors changed, added or (None) left out."""
    from safetensors.torch import load

    tensors = {**load(files["model.safetensors"]), **changes}
    kept = {name: one for name, one in tensors.items() if one is not None}
    return {**files, "model.safetensors": save(kept)}


def with_header(entries, data=b""):
    header = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    return struct.pack("<Q", len(header)) + header + data


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"model_type": "gpt2"}, "config.json: model_type is 'gpt2'; known here: deepseek_v3"),
        ({"model_type": None}, "model_type is None"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu', only 'silu'"),
        ({"attention_bias": True}, "attention_bias is True"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000, not a whole number in 1"),
        ({"num_hidden_layers": 5}, r"tensor 'model.layers.4.input_layernorm.weight' is missing"),
        ({"num_hidden_layers": 3}, r"no place for: 'model.layers.3.* and 6 more"),
        ({"num_hidden_layers": True}, "num_hidden_layers is True"),
        ({"hidden_size": "32"}, "hidden_size is '32'"),
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"vocab_size": 2**31 - 1}, r"'model.embed_tokens.weight' is \[61, 32\], the config wants"),
        ({"hidden_size": 2**30, "vocab_size": 2**30}, "is .*the config wants"),
        ({"num_key_value_heads": 3}, "heads 4 is not a multiple of kv_heads 3"),
        ({"rms_norm_eps": 1e400}, "Infinity is no number of JSON"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings is 'yes'"),
        ({"quantization_config": {"quant_method": "fp8"}}, "quantization_config is set"),
        ({"rope_parameters": {"rope_type": "longrope"}}, "rope_type is 'longrope'; known are"),
        ({"rope_parameters": [1]}, r"rope_parameters is \[1\], not a table"),
        ({"rope_parameters": {"rope_type": "yarn"}, "max_position_embeddings": 0}, "not a whole"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor is 0.5"),
    ],
)  # fmt: skip
def test_a_config_that_is_wrong_is_refused_by_field(change, complaint, bring, folder):
    with pytest.raises(InputError, match=complaint):
        bring(folder("llama", **change))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({NORM: None}, f"tensor '{NORM}' is missing"),
        ({NORM: torch.ones(31)}, rf"'{NORM}' is \[31\], the config wants \[32\]"),
        ({NORM: torch.ones(32, dtype=torch.float64)}, f"'{NORM}' is of type F64, known are F32"),
        ({NORM: torch.ones(32, dtype=torch.int32)}, "is of type I32"),
        ({NORM: torch.ones(32).to(torch.float8_e4m3fn)}, "F8_E4M3.*before quantization"),
        ({NORM: torch.full((32,), float("nan"))}, f"not finite in '{NORM}'"),
        ({"model.extra": torch.ones(1)}, "no place for: 'model.extra'"),
    ],
)
def test_a_tensor_that_is_wrong_is_refused_by_name(change, complaint, bring, folder):
    with pytest.raises(InputError, match=complaint):
        bring(edited(folder(), **change))


def test_buffers_that_early_llamas_were_saved_with_are_left_out(bring, folder):
    early = {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)}
    assert bring(edited(folder(), **early)).has("model.safetensors")


def test_a_tied_head_may_be_there_twice_but_not_be_another_matrix(bring, folder):
    from safetensors.torch import load

    files = folder("smollm3")
    embedding = load(files["model.safetensors"])["model.embed_tokens.weight"]
    assert bring(edited(files, **{"lm_head.weight": embedding})).has("model.safetensors")
    with pytest.raises(InputError, match=r"tie_word_embeddings.*'lm_head\.weight'"):
        bring(edited(files, **{"lm_head.weight": embedding * 1.01}))


def test_an_untied_head_that_lacks_is_missing(bring, folder):
    with pytest.raises(InputError, match=r"tensor 'lm_head.weight' is missing"):
        bring(folder("smollm3", tie_word_embeddings=False))


def test_experts_of_different_types_become_one_weight_and_of_different_shapes_do_not(bring, folder):
    name = "model.layers.1.mlp.experts.3.up_proj.weight"
    half = {name: torch.ones(16, 32, dtype=torch.bfloat16)}
    assert bring(edited(folder("deepseek_v3"), **half)).has("model.safetensors")
    with pytest.raises(InputError, match=rf"'{name}' is \[15, 32\], the config wants \[16, 32\]"):
        bring(edited(folder("deepseek_v3"), **{name: torch.ones(15, 32)}))


def test_layers_that_predict_further_tokens_are_left_out(bring, folder):
    further = {"model.layers.4.eh_proj.weight": torch.ones(32, 64)}
    files = folder("deepseek_v3", num_nextn_predict_layers=1)
    assert bring(edited(files, **further)).has("model.safetensors")
    with pytest.raises(InputError, match=r"'model\.layers\.4\.eh_proj"):
        bring(edited(folder("deepseek_v3"), **further))


def entry(shape=(1,), places=(0, 4), dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": places}


ENTRY = json.dumps(entry())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x01\x00",
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 200) + b"{}",
        with_header(b"[]"),
        with_header(b"{"),
        with_header(b'{"a": 1, "a": 2}'),
        with_header(
            f'{{"a": {json.dumps(entry())}, "a": {json.dumps(entry())}}}'.encode(), b"0" * 4
        ),
        with_header(b"\xff{}"),
        with_header(b"[" * 100_000),
        with_header({"a": []}),
        with_header({"a": entry(places=[0])}),
        with_header({"a": entry(shape=[-1])}),
        with_header({"a": entry(shape=[2**62, 8])}),
        with_header({"a": entry()}),
        with_header({"a": entry(places=[4, 8])}, b"0" * 8),
        with_header({"a": entry(), "b": entry()}, b"0" * 8),
        with_header({"a": entry()}, b"0" * 9),
    ],
)
def test_a_file_that_is_no_safetensors_is_refused(data, bring, folder):
    with pytest.raises(InputError) as error:
        bring({**folder(), "model.safetensors": data})
    assert "model.safetensors" in str(error.value)


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"config.json": None}, r"has no config.json .*ingot snapshot add"),
        ({"model.safetensors": None}, "has no safetensors file"),
        ({"model.safetensors": None, "model.bin": b"\x80"}, "model.bin is a pickle"),
        ({"model.safetensors": None, "model.gguf": b"GGUF"}, "model.gguf is GGUF, not read"),
        (
            {"model.safetensors": None, "a.safetensors": b"", "b.safetensors": b""},
            "2 safetensors files and no model.safetensors.index.json",
        ),
        ({"config.json": b"[]"}, "config.json: is not a JSON object"),
        ({"config.json": b"{}" + b" " * 10**6}, "has 1,000,002 bytes, more than 1,000,000"),
        ({INDEX: b"{}"}, "has no weight_map"),
        ({INDEX: b'{"weight_map": {"a": "../../etc/passwd"}}'}, "which is no safetensors file"),
        ({INDEX: b'{"weight_map": {"a": "../x.safetensors"}}'}, "which the snapshot lacks"),
        ({INDEX: b'{"weight_map": {"a": 3}}'}, "which is no safetensors file"),
        (
            {INDEX: b'{"weight_map": {"a": "model.safetensors"}}'},
            "places 'model.embed_tokens.weight' in no file, it is in model.safetensors",
        ),
        ({"tokenizer.json": b'{"model": {"vocab": {"a": "0"}}}'}, "gives a token no id"),
        ({"tokenizer.json": b"{}"}, "tokenizer.json: has no vocabulary"),
    ],
)  # fmt: skip
def test_a_folder_that_is_none_of_a_model_is_refused(files, complaint, bring, folder):
    mixed = {**folder(), **files}
    with pytest.raises(InputError, match=complaint):
        bring({name: data for name, data in mixed.items() if data is not None})


def test_an_index_and_its_files_must_agree(bring, saved):
    files, _ = saved("llama", max_shard_size="20KB")
    index = json.loads(files[INDEX])
    first, *_, last = sorted(set(index["weight_map"].values()))
    moved = {**index, "weight_map": {**index["weight_map"], NORM: first}}
    with pytest.raises(InputError, match=f"places '{NORM}' in {first}, it is in {last}"):
        bring({**files, INDEX: json.dumps(moved).encode()})
    more = {**index, "weight_map": {**index["weight_map"], "model.extra": first}}
    with pytest.raises(InputError, match=f"'model.extra' in {first}, it is in none"):
        bring({**files, INDEX: json.dumps(more).encode()})
    with pytest.raises(InputError, match=r"is in .* too"):
        bring({**files, last: files[first]})


def test_two_models_in_one_snapshot_are_refused_but_copies_below_are_not(bring, folder):
    files = folder()
    below = {f"onnx/{name}": b"not read" for name in files}
    assert bring({**files, **below}).has("model.safetensors")
    with pytest.raises(InputError, match=r"a/config\.json.* b/"):
        bring({f"{where}/{name}": data for where in "ab" for name, data in files.items()})


def test_named_code_is_not_run_but_told(bring, folder, caplog):
    bring({**folder("llama", auto_map={"AutoModel": "evil.Model"}), "evil.py": b"raise SystemExit"})
    assert "names code of its own (auto_map): not run" in caplog.text


GOOD = save({"a": torch.arange(6.0).view(2, 3), "b": torch.ones(4, dtype=torch.bfloat16)})


@settings(max_examples=300, deadline=None)
@drawn(
    st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=4),
    st.integers(0, len(GOOD)),
)
def test_whatever_the_bytes_are_reading_ends_in_tensors_or_an_input_error(changes, cut):
    data = bytearray(GOOD)
    for place, byte in changes:
        data[place] = byte
    data = bytes(data[: len(GOOD) - cut])
    with tempfile.TemporaryFile() as raw:
        raw.write(data)
        raw.seek(0)
        try:
            file = SafetensorsFile(raw, where="x")
            found = {name: file.read(name) for name in file.specs}
        except InputError:
            return
    assert all(one.isfinite().all() for one in found.values())


@settings(max_examples=50, deadline=None)
@drawn(
    st.dictionaries(
        st.text(min_size=1, max_size=8),
        st.tuples(
            st.lists(st.integers(0, 3), max_size=3),
            st.sampled_from((torch.float32, torch.bfloat16, torch.float16)),
        ),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from((None, {"format": "pt"})),
)
def test_what_is_written_is_what_the_safetensors_library_writes(described, metadata):
    import io

    tensors = {name: torch.randn(shape).to(dtype) for name, (shape, dtype) in described.items()}
    file = io.BytesIO()
    specs = {name: TensorSpec(t.dtype, tuple(t.shape)) for name, t in tensors.items()}
    write_safetensors(file, specs, tensors.get, metadata)
    assert file.getvalue() == save(tensors, metadata=metadata)


@settings(max_examples=200, deadline=None)
@drawn(
    st.dictionaries(
        st.sampled_from(
            [
                *("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"),
                *("intermediate_size", "rope_parameters", "head_dim", "layer_types", "model_type"),
                *("rms_norm_eps", "no_rope_layers", "n_group", "kv_lora_rank", "sliding_window"),
                *("use_sliding_window", "first_k_dense_replace", "qk_rope_head_dim"),
            ]
        ),
        st.recursive(
            st.none() | st.booleans() | st.integers(-3, 2**33) | st.floats() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=4)
                | st.dictionaries(
                    st.sampled_from(["rope_type", "factor", "rope_theta", "truncate"]), inner
                )
            ),
            max_leaves=5,
        ),
        max_size=4,
    ),
    st.sampled_from(["llama", "qwen3", "olmo2", "smollm3", "deepseek_v3", "ingot"]),
)
def test_whatever_a_config_says_it_is_a_shape_or_an_input_error(changes, family):
    from published_shapes import OWN, SHAPES

    from stages.model.huggingface.families import to_config

    shape = OWN["soft-capped logits"] if family == "ingot" else SHAPES[family]
    values = {**to_config(shape, bos=0, eos=1, pad=2), **changes}
    try:
        config = from_config(values, where="config.json")
    except InputError:
        return
    assert config.layers >= 1
