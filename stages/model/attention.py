"""Attention backends: which tokens a token sees, and the kernels that compute attention so.

One rule decides what is visible, and every backend makes its own mask from it. A backend that
does not support a model or batch raises an error; nothing falls back silently
(mosaicml/llm-foundry#1183 and huggingface/trl#5316 show what happens otherwise).

    sdpa    torch's scaled dot product attention, with a dense mask: the reference, on any device
    flex    FlexAttention (Dong et al. 2024): every mask, whole blocks of it skipped; compiled on
            CUDA; on a CPU torch has the forward pass alone (pytorch/pytorch#148752)
    varlen  FlashAttention inside each document (Dao 2023, FlashAttention-2, through
            `torch.nn.attention.varlen`): no mask and no work for pairs of tokens in different
            documents; CUDA, bf16 or fp16, windows, no prefixes

Shapes: B batch, L length, H query heads, K key and value heads, C channels of a head, T tokens
of the batch, N pieces, N1 = N + 1.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from stages.model.config import ModelConfig

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask


def first_of_piece(documents_BL: Tensor) -> Tensor:
    """Whether a token begins its piece, [batch, length] of bool."""
    first_BL = torch.ones_like(documents_BL, dtype=torch.bool)
    first_BL[:, 1:] = documents_BL[:, 1:] != documents_BL[:, :-1]
    return first_BL


@dataclass(frozen=True)
class Visibility:
    """Query sees key if both are of one document, the key is not later, and within the window.

    `documents_BL` numbers the piece of each token, equal numbers are adjacent, -1 is padding:
    it sees earlier padding and itself, so that no row of the softmax is empty. None: one document
    a row. `prefix_BL` marks keys that earlier tokens see too (prefix language models, Raffel et
    al. 2020, section 3.2.1); all True is attention in both directions. None: none of them.
    A `window` is the count of tokens that are seen, the query's own among them; it reaches as far
    ahead where there is a prefix. None, or a window no shorter than the row: no bound.
    `queries_Q` are the places of the tokens that see; None: all of the row.
    `offsets_N1`, of int32, are the places among the tokens of the batch where pieces begin, and the
    number of tokens, for those who counted them on the host; they say what `documents_BL` says.
    """

    batch: int
    length: int
    device: torch.device
    documents_BL: Tensor | None = None
    prefix_BL: Tensor | None = None
    window: int | None = None
    queries_Q: Tensor | None = None
    offsets_N1: Tensor | None = None

    @classmethod
    def from_batch(
        cls,
        tokens_BL: Tensor,
        documents_BL: Tensor | None,
        prefix_BL: Tensor | None,
        offsets_N1: Tensor | None = None,
    ) -> Visibility:
        """What the tokens of a batch see, without a window."""
        batch, length = tokens_BL.shape
        return cls(batch, length, tokens_BL.device, documents_BL, prefix_BL, offsets_N1=offsets_N1)

    @property
    def reach(self) -> int | None:
        """The window, where it bounds anything."""
        return self.window if self.window is not None and self.window < self.length else None

    @property
    def is_causal(self) -> bool:
        """Whether every token just sees all earlier ones of its row."""
        apart = self.documents_BL is not None or self.prefix_BL is not None
        return not apart and self.reach is None and self.queries_Q is None

    @property
    def queries(self) -> int:
        """How many tokens of a row see."""
        return self.length if self.queries_Q is None else len(self.queries_Q)

    def rule(self) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
        """(batch, head, query, key) of indexes to bool, broadcast: the form of FlexAttention."""
        documents_BL, prefix_BL, reach = self.documents_BL, self.prefix_BL, self.reach
        queries_Q = self.queries_Q

        def sees(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            if queries_Q is not None:
                query = queries_Q[query]
            seen = key <= query
            if prefix_BL is not None:
                seen = seen | prefix_BL[batch, key]
            if documents_BL is not None:
                seen = seen & (documents_BL[batch, query] == documents_BL[batch, key])
            if reach is not None:
                seen = seen & ((query - key).abs() < reach)
            return seen

        return sees

    def dense(self, first: int = 0) -> Tensor:
        """[batch or 1, 1, queries - first, length] of bool: what those from `first` on see."""
        index_L = torch.arange(self.length, device=self.device)
        index_Q = index_L[first : self.queries]
        apart = self.documents_BL is not None or self.prefix_BL is not None
        rows_B = torch.arange(self.batch if apart else 1, device=self.device)
        seen_BLL = self.rule()(
            rows_B[:, None, None], rows_B, index_Q[None, :, None], index_L[None, None, :]
        )
        return seen_BLL[:, None]


class AttentionBackend(ABC):
    """One implementation of attention with grouped key and value heads."""

    name: ClassVar[str]

    def check(self, config: ModelConfig) -> None:  # noqa: B027 - most support every layout
        """UsageError if it does not support the heads of such a model."""

    @abstractmethod
    def prepare(self, visible: Visibility) -> Any:
        """The mask that `attend` wants, made once a batch for all layers of one window.

        UsageError if the backend cannot honour it.
        """

    @abstractmethod
    def attend(
        self,
        query_BHLC: Tensor,
        key_BKLC: Tensor,
        value_BKLC: Tensor,
        mask: Any,
        scale: float | None = None,
    ) -> Tensor:
        """mixed_BHLC. `scale` multiplies the scores, 1 / sqrt(C) by default."""

    def refuse(self, what: str, hint: str) -> UsageError:
        """The error for what this backend does not support."""
        return UsageError(f"attention backend '{self.name}' {what}", hint=hint)


class Sdpa(AttentionBackend):
    """The reference. Rows of one document, seen causally, take torch's flash kernels.

    On CUDA only those kernels take fewer heads of keys and values than of queries, and they take
    neither a mask nor float32. Torch would do such attention by its math kernel, which holds the
    scores of every pair of tokens and every head: so heads are repeated there, for the
    memory-efficient kernel.
    """

    name = "sdpa"

    def prepare(self, visible: Visibility) -> Tensor | None:
        """None for plain causal attention, else what is added to scores: 0 or minus infinity.

        Of bool, torch would make the same of it again in each layer, and keep it for each.
        """
        return None if visible.is_causal else self.added(visible.dense(), visible.device)

    @staticmethod
    def added(seen_BLL: Tensor, device: torch.device) -> Tensor:
        """What is added to scores, by what each token sees."""
        half = torch.is_autocast_enabled(device.type)
        dtype = torch.get_autocast_dtype(device.type) if half else torch.float32
        hidden = torch.full((), float("-inf"), dtype=dtype, device=device)
        return torch.where(seen_BLL, torch.zeros_like(hidden), hidden)

    def attend(
        self,
        query_BHLC: Tensor,
        key_BKLC: Tensor,
        value_BKLC: Tensor,
        mask: Tensor | None,
        scale: float | None = None,
    ) -> Tensor:
        """Torch chooses the kernel."""
        groups = query_BHLC.shape[1] // key_BKLC.shape[1]
        in_flash = mask is None and value_BKLC.dtype in (torch.bfloat16, torch.float16)
        if query_BHLC.device.type == "cuda" and groups > 1 and not in_flash:
            key_BKLC, value_BKLC = (
                x.repeat_interleave(groups, dim=1) for x in (key_BKLC, value_BKLC)
            )
        return F.scaled_dot_product_attention(
            query_BHLC,
            key_BKLC,
            value_BKLC,
            attn_mask=None if mask is None else mask.type_as(value_BKLC),
            is_causal=mask is None,
            scale=scale,
            enable_gqa=query_BHLC.shape[1] != key_BKLC.shape[1],
        )


class Flex(AttentionBackend):
    """FlexAttention with a block mask: what rows of several documents, windows, prefixes need."""

    name = "flex"

    def prepare(self, visible: Visibility) -> BlockMask:
        from torch.nn.attention.flex_attention import create_block_mask

        on_cpu = visible.device.type == "cpu"
        # Compiled, it never holds the dense mask.
        create = create_block_mask if on_cpu else _compiled(create_block_mask)
        by_row = visible.documents_BL is not None or visible.prefix_BL is not None
        return create(
            visible.rule(),
            visible.batch if by_row else None,
            None,
            visible.queries,
            visible.length,
            device=visible.device,
        )

    def attend(
        self,
        query_BHLC: Tensor,
        key_BKLC: Tensor,
        value_BKLC: Tensor,
        mask: BlockMask,
        scale: float | None = None,
    ) -> Tensor:
        from torch.nn.attention.flex_attention import flex_attention

        # Autocast casts the operands of SDPA, not those of FlexAttention.
        query_BHLC, key_BKLC = query_BHLC.type_as(value_BKLC), key_BKLC.type_as(value_BKLC)
        on_cpu = query_BHLC.device.type == "cpu"
        if on_cpu and torch.is_grad_enabled() and query_BHLC.requires_grad:
            raise self.refuse("has no backward pass on a CPU", hint="train with 'sdpa' there")
        attend: Any = flex_attention if on_cpu else _compiled(flex_attention)
        return attend(
            query_BHLC,
            key_BKLC,
            value_BKLC,
            block_mask=mask,
            scale=scale,
            enable_gqa=query_BHLC.shape[1] != key_BKLC.shape[1],
        )


@cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` compiled once a process, whatever model calls it."""
    return torch.compile(function)


class Pieces(NamedTuple):
    """Where pieces begin in the T tokens of a batch: [N + 1] of int32, the last is T.

    `longest` is a bound, the length of a row: of a true length, torch.compile would make a graph
    for each.
    """

    offsets: Tensor
    longest: int
    window: int | None


class Varlen(AttentionBackend):
    """Causal attention inside each document of a batch, with or without a window."""

    name = "varlen"

    def check(self, config: ModelConfig) -> None:
        """Refuse heads that FlashAttention does not have."""
        width = config.head_width
        if width % 8 or width > 256:
            raise self.refuse(f"has no heads of {width} channels", hint="8, 16, …, 256; or 'flex'")
        if config.value_width > width:
            raise self.refuse(
                f"cannot mix values of {config.value_width} channels by heads of {width}",
                hint="use 'flex' or 'sdpa'",
            )

    def prepare(self, visible: Visibility) -> Pieces:
        if visible.prefix_BL is not None:
            raise self.refuse("cannot show a prefix to earlier tokens", hint="use 'flex' or 'sdpa'")
        if visible.device.type != "cuda":
            raise self.refuse(f"does not run on {visible.device.type}", hint="use 'sdpa'")
        return find_pieces(visible)

    def attend(
        self,
        query_BHLC: Tensor,
        key_BKLC: Tensor,
        value_BKLC: Tensor,
        mask: Pieces,
        scale: float | None = None,
    ) -> Tensor:
        from torch.nn.attention.varlen import varlen_attn

        if value_BKLC.dtype not in (torch.bfloat16, torch.float16):
            raise self.refuse(f"does not compute in {value_BKLC.dtype}", hint="set precision: bf16")
        batch, heads, length, _ = query_BHLC.shape
        query_THC, key_TKC, value_TKC = (
            # Autocast casts the operands of SDPA, not those of this kernel.
            x.type_as(value_BKLC).transpose(1, 2).flatten(0, 1)
            for x in (query_BHLC, key_BKLC, value_BKLC)
        )
        mixed_THC = varlen_attn(
            query_THC,
            key_TKC,
            value_TKC,
            mask.offsets,
            mask.offsets,
            mask.longest,
            mask.longest,
            scale=scale,
            # The kernel's window counts the tokens before the query, ours the query as well.
            window_size=(-1 if mask.window is None else mask.window - 1, 0),
            enable_gqa=heads != key_TKC.shape[1],
        )
        assert isinstance(mixed_THC, Tensor)
        return mixed_THC.view(batch, length, heads, -1).transpose(1, 2)


def find_pieces(visible: Visibility) -> Pieces:
    """Where the pieces of a batch begin.

    Where there are documents but no `offsets_N1`, the host waits for the device to count them.
    """
    batch, length = visible.batch, visible.length
    offsets_N1 = visible.offsets_N1
    if visible.documents_BL is None:
        offsets_N1 = torch.arange(0, batch * length + 1, length, device=visible.device).int()
    elif offsets_N1 is None:
        begins_N = first_of_piece(visible.documents_BL).flatten().nonzero().flatten()
        offsets_N1 = F.pad(begins_N, (0, 1), value=batch * length).int()
    if not torch.compiler.is_compiling() and "torch._dynamo" in sys.modules:
        # Their number differs from batch to batch, and no kernel that torch compiles depends on it:
        # one graph for all, from the first batch on. Where a whole model is compiled, not its
        # blocks, this runs inside the compiler, which refuses marks.
        torch._dynamo.mark_dynamic(offsets_N1, 0)
    return Pieces(offsets_N1, length, visible.reach)


_BACKENDS: dict[str, AttentionBackend] = {each.name: each for each in (Sdpa(), Flex(), Varlen())}


def attention_backend(name: str) -> AttentionBackend:
    """The backend called `name`; UsageError with the nearest name if there is none."""
    if name not in _BACKENDS:
        raise UsageError(f"no attention backend '{name}'{did_you_mean(name, _BACKENDS)}")
    return _BACKENDS[name]


def choose_attention(
    config: ModelConfig, device: torch.device, precision: str, *, prefixes: bool = False
) -> str:
    """The fastest backend that can do this model: what `auto` means, to be recorded by its name.

    On a GPU `varlen` for bf16 and fp16 (an objective with prefixes: `flex`), elsewhere `sdpa`.
    """
    if device.type != "cuda":
        return Sdpa.name
    if prefixes or precision == "fp32":
        return Flex.name
    try:
        _BACKENDS[Varlen.name].check(config)
    except UsageError:
        return Flex.name
    return Varlen.name
