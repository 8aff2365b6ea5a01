"""Packed layers: the results of transformers' own, and those of a row alone in any batch."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import transformers

from stages.encoders.packed import PackedBlock, PackedLinear, can_pack, pack_model

pytestmark = pytest.mark.skipif(
    not can_pack(torch.device("cpu"), torch.float32), reason="this PyTorch has no oneDNN"
)
SHAPE = {
    "vocab_size": 90,
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 80,
    "initializer_range": 0.4,
}
TOKENS, PADDED = 24, 5


def draw_inputs(rows: int) -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    ids = torch.randint(5, 90, (rows, TOKENS))
    mask = torch.ones_like(ids)
    ids[::2, -PADDED:], mask[::2, -PADDED:] = 1, 0
    return {"input_ids": ids, "attention_mask": mask}


def packed_copy(model: Any, *, first_token: bool) -> Any:
    packed = copy.deepcopy(model)
    with torch.inference_mode():
        pack_model(packed, first_token=first_token)
    return packed


@pytest.mark.parametrize("activation", ["gelu", "relu", "gelu_new"])
@pytest.mark.parametrize("family", ["Bert", "Roberta", "XLMRoberta", "Camembert"])
def test_a_packed_classifier_gives_the_logits_of_transformers(family: str, activation: str) -> None:
    torch.manual_seed(2)
    config = getattr(transformers, f"{family}Config")(**SHAPE, hidden_act=activation)
    model = getattr(transformers, f"{family}ForSequenceClassification")(config).eval()
    packed = packed_copy(model, first_token=True)
    assert sum(isinstance(one, PackedBlock) for one in packed.modules()) == 3
    inputs = draw_inputs(6)
    with torch.inference_mode():
        expected, logits = model(**inputs).logits, packed(**inputs).logits
    assert expected.std() > 0.1
    torch.testing.assert_close(logits, expected, rtol=1e-5, atol=1e-5)


def test_an_encoder_without_a_head_keeps_the_states_of_all_tokens() -> None:
    torch.manual_seed(2)
    model = transformers.BertModel(transformers.BertConfig(**SHAPE)).eval()
    inputs = draw_inputs(6)
    with torch.inference_mode():
        states = packed_copy(model, first_token=False)(**inputs).last_hidden_state
        expected = model(**inputs).last_hidden_state
    torch.testing.assert_close(states, expected, rtol=1e-5, atol=1e-5)


def test_of_other_models_the_linear_layers_are_packed() -> None:
    torch.manual_seed(2)
    config = transformers.DistilBertConfig(vocab_size=90, dim=48, n_layers=2, n_heads=4)
    model = transformers.DistilBertForSequenceClassification(config).eval()
    packed = packed_copy(model, first_token=True)
    assert not any(type(one) is torch.nn.Linear for one in packed.modules())
    inputs = draw_inputs(6)
    with torch.inference_mode():
        expected, logits = model(**inputs).logits, packed(**inputs).logits
    torch.testing.assert_close(logits, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("width", "outputs"), [(384, 1152), (1536, 384), (768, 1)])
def test_a_row_of_a_packed_product_has_the_same_bytes_in_any_number_of_rows(
    width: int, outputs: int
) -> None:
    """Of a single row too, which oneDNN itself sums in another order at width 1,536."""
    torch.manual_seed(4)
    x, residual = torch.randn(40, width), torch.randn(40, outputs)
    with torch.inference_mode():
        layer = PackedLinear(torch.randn(outputs, width), torch.randn(outputs), keep=False)
        whole, added = layer(x), layer.add_to(residual, x)
        for rows in (1, 2, 3, 7, 16, 33):
            assert torch.equal(layer(x[:rows]), whole[:rows])
            assert torch.equal(layer.add_to(residual[-rows:], x[-rows:]), added[-rows:])
