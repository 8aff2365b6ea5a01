"""Layers of an encoder in the form that a CPU computes fastest, in place of those of transformers.

PyTorch's own product lays out the weights again in each call, or leaves them as they lie. oneDNN
takes weights that were laid out once, adds bias and residual and applies the activation while the
numbers are in registers; on AVX-512 such products of float32 are 8 to 17 % faster (shapes of a
model of width 384). Of two rows or more, none was seen to depend on how many come with it, which
cannot be said of MKL's; a single row is summed in another order, so it runs twice. `Encoder` tries
each shape nevertheless.

Any `nn.Linear` is replaced. Blocks of the BERT family are replaced as a whole: query, key and value
are one product, and where the classifier reads nothing but the first token, the last block computes
no other token: of 6 layers that is a seventh of all products.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

BLOCKS = {
    "bert": "BertLayer",
    "roberta": "RobertaLayer",
    "xlm-roberta": "XLMRobertaLayer",
    "camembert": "CamembertLayer",
}
"""Blocks that are alike, by `model_type`; all classifiers on them read the first token."""
ACTIVATIONS = {"GELUActivation": "gelu", "ReLU": "relu"}
"""oneDNN's names of activations; others run after the product."""
ROWS = 512
"""For which the weights are laid out; others run with them too."""


def can_pack(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether this PyTorch has oneDNN's products for such a model, on this machine."""
    products = torch.ops.mkldnn
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    if not hasattr(products, "_linear_pointwise"):
        return False
    return dtype == torch.float32 or bool(products._is_mkldnn_bf16_supported())


def pack_model(model: nn.Module, *, first_token: bool) -> None:
    """Replace blocks and linear layers in place; results change in their last digits alone.

    With `first_token` the model is a classifier: the last block of a known family then gives the
    state of the first token alone, [row, 1, width].
    """
    config: Any = model.config
    if config.model_type in BLOCKS and config._attn_implementation == "sdpa":
        base: Any = model.base_model
        blocks = base.encoder.layer
        if all(_is_plain(block, BLOCKS[config.model_type]) for block in blocks):
            last = len(blocks) - 1
            for place, block in enumerate(blocks):
                blocks[place] = PackedBlock(block, first_token=first_token and place == last)
    _pack_linears(model)


def _is_plain(block: Any, name: str) -> bool:
    return type(block).__name__ == name and not (block.is_decoder or block.add_cross_attention)


def _pack_linears(module: nn.Module) -> None:
    for name, child in list(module.named_children()):
        if type(child) is nn.Linear:
            setattr(module, name, PackedLinear(child.weight, child.bias, keep=True))
        else:
            _pack_linears(child)


class PackedLinear(nn.Module):
    """x W^T + b with weights laid out once, with an activation or a residual in the same pass.

    With `keep` the plain `weight` stays, for models that look at it; else it can be freed.
    """

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        activation: nn.Module | None = None,
        *,
        keep: bool,
    ) -> None:
        super().__init__()
        if keep:
            self.weight = weight
        self.bias = bias
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), ROWS)
        self._fused = ACTIVATIONS.get(type(activation).__name__, "none")
        self._after = activation if self._fused == "none" else None

    def forward(self, x: Tensor) -> Tensor:
        if _is_single(x):
            return self(torch.cat([x, x]))[:1]  # type: ignore[no-any-return]
        y = torch.ops.mkldnn._linear_pointwise(x, self._packed, self.bias, self._fused, [], "none")
        return y if self._after is None else self._after(y)  # type: ignore[no-any-return]

    def add_to(self, residual: Tensor, x: Tensor) -> Tensor:
        """residual + x W^T + b, for a layer without an activation."""
        if _is_single(x):
            return self.add_to(torch.cat([residual, residual]), torch.cat([x, x]))[:1]
        return torch.ops.mkldnn._linear_pointwise.binary(  # type: ignore[no-any-return]
            x, residual, self._packed, self.bias, "add"
        )


def _is_single(x: Tensor) -> bool:
    return x.dim() > 1 and x.numel() == x.shape[-1]


class PackedBlock(nn.Module):
    """A post-norm block of the BERT family: attention, then two layers, each added and normalised.

    Shapes: states [row, token, width] in, the same out, or [row, 1, width] with `first_token`.
    """

    def __init__(self, block: Any, *, first_token: bool) -> None:
        super().__init__()
        attention = block.attention.self
        self._first_token = first_token
        self._heads = attention.num_attention_heads
        query = [] if first_token else [attention.query]
        joined = [*query, attention.key, attention.value]
        self._joined = PackedLinear(
            torch.cat([one.weight for one in joined]),
            torch.cat([one.bias for one in joined]),
            keep=False,
        )
        self._query = _without_plain(attention.query) if first_token else None
        self._output = _without_plain(block.attention.output.dense)
        self._output_norm = block.attention.output.LayerNorm
        self._up = _without_plain(block.intermediate.dense, block.intermediate.intermediate_act_fn)
        self._down = _without_plain(block.output.dense)
        self._down_norm = block.output.LayerNorm

    def forward(
        self, states: Tensor, attention_mask: Tensor | None = None, *others: Any, **options: Any
    ) -> Tensor:
        """`others` and `options` are those of decoders, which a plain encoder leaves empty."""
        rows, tokens, width = states.shape
        # [query, key, value] of [row, head, token, width of a head]
        parts = self._joined(states).view(rows, tokens, -1, self._heads, width // self._heads)
        parts = parts.permute(2, 0, 3, 1, 4)
        if self._query is not None:
            states = states[:, :1].contiguous()
            query = self._query(states).view(rows, 1, self._heads, -1).transpose(1, 2)
            attention_mask = None if attention_mask is None else attention_mask[:, :, :1]
        else:
            query = parts[0]
        mixed = scaled_dot_product_attention(query, parts[-2], parts[-1], attention_mask)
        mixed = mixed.transpose(1, 2).reshape(rows, -1, width)
        states = self._output_norm(self._output.add_to(states, mixed))
        return self._down_norm(self._down.add_to(states, self._up(states)))  # type: ignore[no-any-return]


def _without_plain(linear: nn.Linear, activation: nn.Module | None = None) -> PackedLinear:
    return PackedLinear(linear.weight, linear.bias, activation, keep=False)
