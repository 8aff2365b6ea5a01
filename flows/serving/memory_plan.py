"""What serving a model takes on a GPU: memory of weights and cache, and the most tokens a second.

A token of each of B answers reads every weight that it multiplies once, and the keys and values of
its own text: where matrices are not reused, that is what bounds it (Pope et al. 2022, arXiv
2211.05102, section 2.1). So tokens a second are at most B × bandwidth / (weights + B × cache); a
server reaches a part of that. Weights and cache are in 16 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from stages.model.config import ModelConfig

BYTES = 2
"""Of a number in 16 bits."""


class Gpu(NamedTuple):
    """Memory in bytes, bandwidth in bytes a second, and the maker's page that states both."""

    name: str
    memory: float
    bandwidth: float
    source: str


_NVIDIA = "https://www.nvidia.com/en-us/data-center"
GPUS = (
    Gpu("H200 SXM", 141e9, 4.8e12, f"{_NVIDIA}/h200/"),
    Gpu("H100 SXM", 80e9, 3.35e12, f"{_NVIDIA}/h100/"),
    Gpu(
        "A100 SXM 80GB", 80e9, 2.039e12,
        "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/"
        "nvidia-a100-datasheet-nvidia-us-2188504-web.pdf",
    ),
    Gpu("L40S", 48e9, 0.864e12, f"{_NVIDIA}/l40s/"),
    Gpu(
        "RTX 4090", 24e9, 1.008e12,
        "https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf",
    ),
    Gpu("L4", 24e9, 0.3e12, f"{_NVIDIA}/l4/"),
)  # fmt: skip
"""NVIDIA's pages and data sheets of these cards; of the RTX 4090 the architecture's white paper."""


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes and speed of `batch` answers whose texts have `length` tokens."""

    batch: int
    length: int
    weights: int
    """Bytes of all weights."""
    read: int
    """Bytes of weights that one step of the batch reads."""
    cache: int
    """Bytes of keys and values of the batch."""

    def fits(self, gpu: Gpu) -> bool:
        """Whether weights and cache leave a tenth of the memory."""
        return self.weights + self.cache <= 0.9 * gpu.memory

    def tokens_a_second(self, gpu: Gpu) -> float:
        """Of all answers together, at most."""
        return self.batch * gpu.bandwidth / (self.read + self.cache)


def plan_memory(config: ModelConfig, batches: Sequence[int], length: int) -> list[MemoryPlan]:
    """A plan for each number of answers at once."""
    from stages.model.size import count_parameters

    count = count_parameters(config)
    cache = cache_bytes(config, length)
    plans = []
    for batch in batches:
        unread = 0 if config.tied_embeddings else count.embedding  # A row of it is looked up.
        if config.experts is not None:
            chosen = min(config.experts.experts, batch * config.experts.chosen)
            unread += count.experts - count.experts * chosen // config.experts.experts
        plans.append(
            MemoryPlan(
                batch,
                length,
                BYTES * count.total,
                BYTES * (count.total - unread),
                batch * cache,
            )
        )
    return plans


def cache_bytes(config: ModelConfig, length: int) -> int:
    """Keys and values of a text of `length` tokens; of latent attention, what both are made of."""
    if config.latent is not None:
        width = config.latent.kv_rank + config.latent.rotary_width
    else:
        width = 2 * config.kv_heads * config.head_width
    seen = (config.window_of(layer) for layer in range(config.layers))
    return BYTES * width * sum(length if one is None else min(one, length) for one in seen)
