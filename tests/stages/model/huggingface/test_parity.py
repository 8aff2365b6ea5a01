"""Logits as the native classes of `transformers` 5 have them, within 1e-5 in float32."""

from __future__ import annotations

import json

import pytest
import torch
from published_shapes import OWN, SHAPES
from safetensors.torch import save_file

from stages.model.huggingface.families import (
    family_of,
    from_config,
    from_weights,
    to_config,
    to_weights,
)

TOLERANCE = {"atol": 1e-5, "rtol": 0}
TOKENS_BL = torch.randint(0, 61, (2, 24), generator=torch.Generator().manual_seed(1))
names = pytest.mark.parametrize("name", SHAPES)


def publish(model, folder):
    """A folder as `export` writes it, without a tokenizer."""
    folder.mkdir(exist_ok=True)
    config = to_config(model.config, bos=0, eos=1, pad=2)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(to_weights(model), folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def load(folder):
    from transformers import AutoModelForCausalLM

    model, found = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    wrong = {key: names for key, names in found.items() if names}
    assert not wrong, wrong
    return model.eval()


@names
def test_a_published_decoder_has_the_logits_of_the_native_class(name, drawn, tmp_path):
    model = drawn(SHAPES[name])
    native = load(publish(model, tmp_path / "published"))
    assert type(native).__name__ == family_of(model.config).architecture
    assert type(native).__module__.startswith("transformers.models.")
    with torch.no_grad():
        ours, theirs = model(TOKENS_BL), native(TOKENS_BL).logits
    assert ours.std() > 0.1
    torch.testing.assert_close(ours, theirs, **TOLERANCE)


@names
def test_a_native_model_that_was_saved_comes_back_as_a_decoder_with_its_logits(
    name, drawn, tmp_path
):
    """What `save_pretrained` writes is read, not only what we wrote."""
    from safetensors.torch import load_file

    native = load(publish(drawn(SHAPES[name]), tmp_path / "published"))
    with torch.no_grad():
        for weight in native.parameters():
            weight.mul_(0.9)
    native.save_pretrained(tmp_path / "saved")
    values = json.loads((tmp_path / "saved" / "config.json").read_text())
    weights = load_file(tmp_path / "saved" / "model.safetensors")
    model = from_weights(values, weights, where="saved").eval()
    assert model.config == SHAPES[name]
    with torch.no_grad():
        torch.testing.assert_close(model(TOKENS_BL), native(TOKENS_BL).logits, **TOLERANCE)


@names
def test_rows_with_padding_on_either_side_agree_where_there_are_tokens(name, drawn, tmp_path):
    model = drawn(SHAPES[name])
    native = load(publish(model, tmp_path / "published"))
    mask_BL = torch.ones_like(TOKENS_BL)
    mask_BL[0, -7:] = 0
    mask_BL[1, :5] = 0
    positions_BL = (mask_BL.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        theirs = native(TOKENS_BL, attention_mask=mask_BL, position_ids=positions_BL).logits
        ours = model(TOKENS_BL, documents_BL=mask_BL - 1)
    kept = mask_BL.bool()
    torch.testing.assert_close(ours[kept], theirs[kept], **TOLERANCE)


@names
def test_config_and_weights_go_there_and_back_unchanged(name, drawn):
    model = drawn(SHAPES[name])
    values = json.loads(json.dumps(to_config(model.config, bos=0, eos=[1, 4], pad=2)))
    assert values["model_type"] == name.split()[0]
    assert from_config(values, where="config.json") == model.config
    again = from_weights(values, to_weights(model), where="weights")
    for key, weight in model.state_dict().items():
        assert torch.equal(weight, again.state_dict()[key]), key


@pytest.mark.parametrize("name", OWN)
def test_what_no_native_class_expresses_is_loaded_as_our_own(name, drawn, tmp_path):
    import stages.model.huggingface.auto_classes  # noqa: F401

    model = drawn(OWN[name])
    loaded = load(publish(model, tmp_path / "published"))
    assert type(loaded).__name__ == "IngotForCausalLM"
    loaded.save_pretrained(tmp_path / "saved")
    again = load(tmp_path / "saved")
    mask_BL = torch.ones_like(TOKENS_BL)
    mask_BL[1, :5] = 0
    with torch.no_grad():
        assert torch.equal(loaded(TOKENS_BL).logits, model(TOKENS_BL))
        assert torch.equal(again(TOKENS_BL).logits, model(TOKENS_BL))
        padded = again(TOKENS_BL, attention_mask=mask_BL).logits
    kept = mask_BL.bool()
    with torch.no_grad():
        alone = model(TOKENS_BL[1:, 5:])[0]
    torch.testing.assert_close(padded[kept][TOKENS_BL.shape[1] :], alone, **TOLERANCE)


def test_our_own_class_generates_what_its_logits_say(drawn, tmp_path):
    import stages.model.huggingface.auto_classes  # noqa: F401

    model = drawn(OWN["soft-capped logits"])
    loaded = load(publish(model, tmp_path / "published"))
    row = TOKENS_BL[:1, :6]
    for _ in range(4):
        with torch.no_grad():
            row = torch.cat((row, model(row)[:, -1:].argmax(-1)), dim=1)
    found = loaded.generate(TOKENS_BL[:1, :6], max_new_tokens=4, do_sample=False, eos_token_id=None)
    assert torch.equal(found, row)
    labels = TOKENS_BL.clone()
    labels[:, :3] = -100
    with torch.no_grad():
        found = loaded(TOKENS_BL, labels=labels)
        logp = model(TOKENS_BL)[:, 2:-1].log_softmax(-1)
    expected = -logp.gather(-1, TOKENS_BL[:, 3:, None]).mean()
    torch.testing.assert_close(found.loss, expected)


def test_interleaved_rotary_rows_are_told_from_halves(drawn, tmp_path):
    """`rope_interleave: false` means the decoder's own layout: no row moves."""
    from transformers import AutoModelForCausalLM, DeepseekV3Config

    model = drawn(SHAPES["deepseek_v3"])
    values = to_config(model.config, bos=0, eos=1, pad=2)
    weights = to_weights(model)
    halves = {**values, "rope_interleave": False}
    other = from_weights(halves, weights, where="weights").eval()
    assert not torch.equal(
        other.blocks[0].attention.kv_down.weight, model.blocks[0].attention.kv_down.weight
    )
    publish(model, tmp_path)
    config = DeepseekV3Config.from_pretrained(tmp_path, rope_interleave=False)
    native = AutoModelForCausalLM.from_pretrained(tmp_path, config=config).eval()
    with torch.no_grad():
        torch.testing.assert_close(other(TOKENS_BL), native(TOKENS_BL).logits, **TOLERANCE)
