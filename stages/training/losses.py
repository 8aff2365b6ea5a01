"""From rows to losses: a forward pass, then the output layer on the tokens that have a target.

Three precisions: float32, or matrix products in bfloat16 or float16; weights, gradients and
optimizer state are float32 in all three.

All logits of a micro-batch (tokens times vocabulary) would be the largest tensor of a training
step, several times over. Here no more than a chunk of them is alive, in one of two ways:

- `linear_cross_entropy` gives the loss of every token, for losses that are no mean (DPO). Its
  backward pass computes each chunk of logits again.
- `mean_cross_entropy` gives the sum over a divisor that is known beforehand, which is what training
  minimises. Its gradient is known as soon as the logits are, so it is formed immediately and no
  logit is computed twice (as Liger Kernel does: Hsu et al. 2024, arXiv 2410.10989).

Matrix products are in the type of the output layer; softmax, loss and all sums in float32 (float64
for float64). `F.linear_cross_entropy` of torch 2.13 gives the sum or the losses, not both, and
neither log Z nor a soft cap.

Shapes: B rows, L tokens, N = B · L, M of them with a target; D width; V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from stages.parallel.tensor_parallel import CutVocabulary
from stages.training.config import TrainingPrecision
from stages.training.rows import Rows, TargetTokens, on_device

_REDUCED = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.bfloat16}


def product_type(precision: TrainingPrecision) -> torch.dtype:
    """The type of what matrix products give."""
    return _REDUCED.get(precision, torch.float32)


def autocast(device: torch.device, precision: TrainingPrecision) -> torch.autocast:
    """Inside it, matrix products are in the precision's type; in float32 nothing changes."""
    reduced = _REDUCED.get(precision)
    return torch.autocast(device.type, reduced or torch.bfloat16, enabled=reduced is not None)


_LEAST_TOKENS = 128
"""Least tokens of a chunk by default: with fewer, adding up the gradient of the matrix (V times D,
once a chunk) costs more than the products themselves."""


def differentiated(
    logits_MV: Tensor, targets_M: Tensor, softcap: float | None, z_loss: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Loss and log Z of each token, and the gradient of `loss + z_loss · log²Z` by its logits.

    The logits, which may be overwritten, are those before the soft cap, and so is the gradient; it
    has their type.
    """
    dtype = logits_MV.dtype
    target_M1 = targets_M[:, None]
    logits_MV, slope_MV = _capped(logits_MV, softcap)
    highest_M1, at_target_M1 = logits_MV.amax(1, keepdim=True), logits_MV.gather(1, target_M1)
    gradient_MV = logits_MV.sub_(highest_M1).exp_()
    sums_M = gradient_MV.sum(1)
    log_z_M = highest_M1[:, 0] + sums_M.log()
    losses_M = log_z_M - at_target_M1[:, 0]
    by_log_z_M = 1 + 2 * z_loss * log_z_M
    by_target_M1 = (by_log_z_M * (-losses_M).exp() - 1)[:, None]
    if slope_MV is not None:
        by_target_M1 = by_target_M1 * slope_MV.gather(1, target_M1)
    gradient_MV.mul_((by_log_z_M / sums_M)[:, None])
    if slope_MV is not None:
        gradient_MV.mul_(slope_MV)
    gradient_MV = gradient_MV.to(dtype).scatter_(1, target_M1, by_target_M1.to(dtype))
    return losses_M, log_z_M, gradient_MV


def _capped(logits_MV: Tensor, softcap: float | None) -> tuple[Tensor, Tensor | None]:
    """The capped logits in float32, and the slope of the cap at each: 1 - tanh²."""
    logits_MV = logits_MV.to(_wide(logits_MV.dtype))
    if softcap is None:
        return logits_MV, None
    logits_MV = logits_MV.div_(softcap).tanh_()
    slope_MV = 1 - logits_MV.square()
    return logits_MV.mul_(softcap), slope_MV


def _wide(dtype: torch.dtype) -> torch.dtype:
    """The type of sums: float32, or wider."""
    return torch.promote_types(dtype, torch.float32)


Differentiated = Callable[[Tensor, Tensor, float | None, float], tuple[Tensor, Tensor, Tensor]]
"""`differentiated`, or a compiled version of it."""


@dataclass(frozen=True)
class OutputLayer:
    """How logits come of states: `softcap · tanh(x · weightᵀ / softcap)`, the cap if there is one.

    `dtype` is that of the products; `logits` how many of them may be in memory at once (None: 2^21
    on a CPU, about its cache; 2^27 on a GPU; 128 tokens at the least). With `filled`, every chunk
    has as many tokens as those of so many tokens would have, the last is filled up: a compiled
    `differentiated` then sees one shape, and gives the same bits whatever it saw first.
    Where the `vocabulary` is cut over ranks, the matrix is this rank's part of it.
    """

    weight_VD: Tensor
    dtype: torch.dtype = torch.float32
    softcap: float | None = None
    logits: int | None = None
    differentiated: Differentiated = differentiated
    filled: int | None = None
    vocabulary: CutVocabulary | None = None

    def chunk(self, tokens: int) -> int:
        """Tokens of a chunk where `tokens` are cut into as few, of about equal size, as may be."""
        vocabulary = len(self.weight_VD)
        least = 1 if self.logits else _LEAST_TOKENS
        most = max(least, most_logits(self.weight_VD.device, self.logits) // vocabulary)
        return -(-tokens // max(1, -(-tokens // most)))

    def chunks(self, tokens: int) -> list[slice]:
        """`tokens` cut into parts, the last of which may be smaller."""
        size = max(1, self.chunk(self.filled or tokens))
        return [slice(start, min(start + size, tokens)) for start in range(0, tokens, size)]

    def differentiate(
        self, logits_MV: Tensor, targets_M: Tensor, z_loss: float = 0.0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """`differentiated` of a chunk, filled up if it is to be."""
        tokens = len(targets_M)
        if self.vocabulary is not None:
            capped_MV, slope_MV = _capped(logits_MV, self.softcap)
            losses_M, log_z_M, by_logits_MV = self.vocabulary.differentiated(
                capped_MV, targets_M, z_loss, slope_MV
            )
            return losses_M, log_z_M, by_logits_MV.to(logits_MV.dtype)
        lacking = self.chunk(self.filled) - tokens if self.filled else 0
        if not lacking:
            return self.differentiated(logits_MV, targets_M, self.softcap, z_loss)
        logits_MV = F.pad(logits_MV, (0, 0, 0, lacking))
        results = self.differentiated(
            logits_MV, F.pad(targets_M, (0, lacking)), self.softcap, z_loss
        )
        losses_M, log_z_M, by_logits_MV = (one[:tokens] for one in results)
        return losses_M, log_z_M, by_logits_MV


class MeanLoss(NamedTuple):
    """The loss, which alone can be differentiated, once; loss and log Z of each token."""

    loss: Tensor
    losses_M: Tensor
    log_z_M: Tensor


def most_logits(device: torch.device, logits: int | None = None) -> int:
    """Logits in memory at once: `logits`, or what suits the device.

    Without `logits` a chunk has 128 tokens at the least, however large the vocabulary is.
    """
    return logits or (2**27 if device.type == "cuda" else 2**21)


def linear_cross_entropy(x_MD: Tensor, layer: OutputLayer, targets_M: Tensor) -> Tensor:
    """Loss of each token in nats, `[M]` float32, differentiable by `x_MD` and the matrix."""
    losses_M: Tensor = _TokenLosses.apply(x_MD, layer.weight_VD, targets_M, layer)  # type: ignore[no-untyped-call]
    return losses_M


def mean_cross_entropy(
    x_MD: Tensor,
    layer: OutputLayer,
    targets_M: Tensor,
    *,
    divisor: float,
    z_loss: float = 0.0,
    weights_M: Tensor | None = None,
) -> MeanLoss:
    """Sum over tokens of `-log p(target) + z_loss · log²Z`, times a weight, over `divisor`.

    Z is the sum of the exponentials of a token's logits. The second term keeps them from drifting:
    Chowdhery et al. 2022, PaLM (arXiv 2204.02311), section 5, with 1e-4.
    """
    return MeanLoss(
        *_MeanLoss.apply(  # type: ignore[no-untyped-call]
            x_MD, layer.weight_VD, targets_M, layer, divisor, z_loss, weights_M
        )
    )


class _MeanLoss(Function):
    @staticmethod
    def forward(
        ctx: Any,
        x_MD: Tensor,
        weight_VD: Tensor,
        targets_M: Tensor,
        layer: OutputLayer,
        divisor: float,
        z_loss: float,
        weights_M: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        losses_M, log_z_M = x_MD.new_empty((2, len(x_MD)), dtype=_wide(layer.dtype))
        products = _Products(x_MD, targets_M, layer)
        for part in layer.chunks(len(x_MD)):
            factor_M = None if weights_M is None else weights_M[part]
            losses_M[part], log_z_M[part] = products.differentiate(part, z_loss, factor_M)
        ctx.gradients, ctx.divisor = (products.by_x_MD, products.by_weight_VD), divisor
        ctx.types = x_MD.dtype, weight_VD.dtype
        ctx.mark_non_differentiable(losses_M, log_z_M)
        ctx.set_materialize_grads(False)
        penalty = z_loss * weighted_sum(log_z_M.square(), weights_M) if z_loss else 0.0
        return (weighted_sum(losses_M, weights_M) + penalty) / divisor, losses_M, log_z_M

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, by_loss: Tensor, *_: None) -> tuple[Tensor | None, ...]:
        if ctx.gradients is None:
            raise ValueError("a mean loss is differentiated once: it scales gradients in place")
        gradients, ctx.gradients = ctx.gradients, None
        results = (
            one.mul_(by_loss / ctx.divisor).to(dtype)
            for one, dtype in zip(gradients, ctx.types, strict=True)
        )
        return *results, None, None, None, None, None


def weighted_sum(values_M: Tensor, weights_M: Tensor | None) -> Tensor:
    """The sum of values, times weights where there are any."""
    return values_M.sum() if weights_M is None else (values_M * weights_M).sum()


class _TokenLosses(Function):
    @staticmethod
    def forward(
        ctx: Any, x_MD: Tensor, weight_VD: Tensor, targets_M: Tensor, layer: OutputLayer
    ) -> Tensor:
        ctx.save_for_backward(x_MD, weight_VD, targets_M)
        ctx.layer = layer
        losses_M = x_MD.new_empty(len(x_MD), dtype=_wide(layer.dtype))
        products = _Products(x_MD, targets_M, layer)
        for part in layer.chunks(len(x_MD)):
            if layer.vocabulary is not None:
                losses_M[part] = layer.differentiate(products.logits(part), targets_M[part])[0]
                continue
            logits_MV, _ = _capped(products.logits(part), layer.softcap)
            losses_M[part] = F.cross_entropy(logits_MV, targets_M[part], reduction="none")
        return losses_M

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, by_losses_M: Tensor) -> tuple[Tensor | None, ...]:
        x_MD, weight_VD, targets_M = ctx.saved_tensors
        products = _Products(x_MD, targets_M, ctx.layer)
        for part in ctx.layer.chunks(len(x_MD)):
            products.differentiate(part, factor_M=by_losses_M[part])
        by_x_MD, by_weight_VD = products.by_x_MD, products.by_weight_VD
        return by_x_MD.to(x_MD.dtype), by_weight_VD.to(weight_VD.dtype), None, None


class _Products:
    """The matrix products of an output layer, and the gradients that add up over its chunks.

    Factors of the loss come after the products, in float32: what half precision sees is of the
    order of a probability, whatever the divisor and the scale of a loss scaler.
    """

    def __init__(self, x_MD: Tensor, targets_M: Tensor, layer: OutputLayer) -> None:
        self.targets_M, self.layer = targets_M, layer
        self.x_MD, self.weight_VD = x_MD.to(layer.dtype), layer.weight_VD.to(layer.dtype)

    @cached_property
    def by_x_MD(self) -> Tensor:
        """Gradient by the states, of each chunk once it is differentiated."""
        return torch.empty_like(self.x_MD, dtype=_wide(self.layer.dtype))

    @cached_property
    def by_weight_VD(self) -> Tensor:
        """Gradient by the matrix, of all chunks so far."""
        return torch.zeros_like(self.weight_VD, dtype=_wide(self.layer.dtype))

    def logits(self, part: slice) -> Tensor:
        """[tokens of `part`, vocabulary] Before any cap."""
        return F.linear(self.x_MD[part], self.weight_VD)

    def differentiate(
        self, part: slice, z_loss: float = 0.0, factor_M: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Loss and log Z of the tokens of a chunk; their gradients, times a factor, are added."""
        losses_M, log_z_M, by_logits_MV = self.layer.differentiate(
            self.logits(part), self.targets_M[part], z_loss
        )
        x_MD, by_x_MD = self.x_MD[part], by_logits_MV @ self.weight_VD
        if factor_M is None:
            self.by_x_MD[part] = by_x_MD
        else:
            self.by_x_MD[part] = by_x_MD * factor_M[:, None]
            x_MD = (x_MD * factor_M[:, None]).to(x_MD.dtype)
        _add_product(self.by_weight_VD, by_logits_MV, x_MD)
        return losses_M, log_z_M


def _add_product(sum_VD: Tensor, left_MV: Tensor, right_MD: Tensor) -> None:
    """`sum += leftᵀ · right`, in float32."""
    if left_MV.dtype == sum_VD.dtype:
        sum_VD.addmm_(left_MV.T, right_MD)
    elif left_MV.device.type != "cpu":
        # cuBLAS adds to the sum; `sum += mm(…)` would write and read another float32 of its size.
        torch.addmm(sum_VD, left_MV.T, right_MD, out_dtype=sum_VD.dtype, out=sum_VD)
    elif left_MV.dtype == torch.float16:  # Its sums over many tokens may exceed 65,504.
        sum_VD.addmm_(left_MV.float().T, right_MD.float())
    else:
        sum_VD.add_(left_MV.T @ right_MD)


@dataclass(frozen=True)
class TrainedRows:
    """What `Arithmetic.train` gives; `loss` alone can be differentiated, once.

    `loss` is `cross_entropy` and `z_loss` together, each a sum over tokens, times their weights if
    they have any, that is divided by the step's count of targets, or sum of their weights;
    `losses_BL` are the cross-entropies of the tokens, without weights.
    """

    loss: Tensor
    losses_BL: Tensor
    cross_entropy: Tensor
    z_loss: Tensor


@dataclass(frozen=True)
class Arithmetic:
    """Where a model computes, and in which precision.

    `logits` is how many of them may be in memory at once (None: what suits the device);
    `compiled`, that torch.compile compiles the blocks, and softmax, loss and gradient of a chunk of
    logits.
    """

    device: torch.device
    precision: TrainingPrecision
    logits: int | None = None
    compiled: bool = False

    def losses(self, model: nn.Module, rows: Rows) -> Tensor:
        """[B, L] Token losses in float32 on the device, 0 without a target; differentiable.

        Under bf16 and fp16 the matrix products are in that type, weights and loss in float32.
        """
        losses_BL: Tensor = self.losses_of_layers(model, rows)
        return losses_BL

    def losses_of_layers(
        self,
        model: nn.Module,
        rows: Rows,
        layers: range | None = None,
        states: Tensor | None = None,
    ) -> Tensor:
        """`losses`; of layers that end before the last, the states after them."""
        targets = TargetTokens.from_rows(rows, self.device)

        def token_losses(x_ND: Tensor, layer: OutputLayer) -> Tensor:
            return linear_cross_entropy(targets.select(x_ND), layer, targets.targets_M)

        made: Tensor = self.forward(model, rows, token_losses, layers, states)
        if layers is not None and layers.stop < model.config.layers:  # type: ignore[union-attr, operator]
            return made
        return targets.spread(made).view(rows.targets_BL.shape)

    def train(
        self, model: nn.Module, rows: Rows, *, targets: float, z_loss: float = 0.0
    ) -> TrainedRows:
        """What `rows` contribute to a training step that learns `targets` tokens in all, or tokens
        of so much weight.

        Cheaper than `losses` where a mean is what is learnt; its `loss` is differentiated once.
        """
        trained = self.train_layers(model, rows, targets=targets, z_loss=z_loss)
        assert isinstance(trained, TrainedRows)
        return trained

    def train_layers(
        self,
        model: nn.Module,
        rows: Rows,
        layers: range | None = None,
        states: Tensor | None = None,
        *,
        targets: float,
        z_loss: float = 0.0,
    ) -> TrainedRows | Tensor:
        """`train`; of layers that end before the last, the states after them."""
        tokens = TargetTokens.from_rows(rows, self.device)
        divisor = targets or 1

        def mean_loss(x_ND: Tensor, layer: OutputLayer) -> MeanLoss:
            return mean_cross_entropy(
                tokens.select(x_ND),
                layer,
                tokens.targets_M,
                divisor=divisor,
                z_loss=z_loss,
                weights_M=tokens.weights_M,
            )

        made = self.forward(model, rows, mean_loss, layers, states)
        if isinstance(made, Tensor):
            return made
        loss, losses_M, log_z_M = made
        return TrainedRows(
            loss,
            tokens.spread(losses_M).view(rows.targets_BL.shape),
            weighted_sum(losses_M, tokens.weights_M) / divisor,
            z_loss * weighted_sum(log_z_M.square(), tokens.weights_M) / divisor,
        )

    def forward(
        self,
        model: nn.Module,
        rows: Rows,
        loss: Callable[[Tensor, OutputLayer], Any],
        layers: range | None = None,
        states: Tensor | None = None,
    ) -> Any:
        """`loss` of the states [N, D] of a `stages.model.decoder.Decoder` and its output layer.

        It is computed inside the forward pass, where hooks of a sharded model make its parts whole.
        """
        arrays = {
            "documents_BL": rows.documents_BL,
            "prefix_BL": rows.prefix_BL,
            "positions_BL": rows.positions_BL,
        }
        if self.device.type != "cpu":
            arrays["offsets_N1"] = rows.offsets()
        tensors = {n: on_device(a, self.device) for n, a in arrays.items() if a is not None}
        softcap: float | None = model.config.logit_softcap  # type: ignore[union-attr, assignment]

        def output(x_BLD: Tensor, matrix_VD: Tensor) -> Any:
            reduced = torch.is_autocast_enabled(self.device.type)
            layer = OutputLayer(
                matrix_VD,
                torch.get_autocast_dtype(self.device.type) if reduced else x_BLD.dtype,
                softcap=softcap,
                logits=self.logits,
                differentiated=_compiled() if self.compiled else differentiated,
                filled=rows.targets_BL.size if self.compiled else None,
                vocabulary=getattr(model, "vocabulary", None),
            )
            with torch.autocast(self.device.type, enabled=False):
                return loss(x_BLD.flatten(0, 1), layer)

        with autocast(self.device, self.precision):
            tokens_BL = on_device(rows.tokens_BL, self.device)
            return model(tokens_BL, **tensors, output=output, layers=layers, states_BLD=states)


@cache
def _compiled() -> Differentiated:
    """One piece of code a shape: with a dynamic one its bits would depend on the first it saw."""
    return torch.compile(differentiated, dynamic=False, fullgraph=True)
