"""The layout of a training run: how many processes there are along each dimension of a mesh."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from pydantic import Field

from artifacts_schema.config import Config
from artifacts_schema.errors import UsageError


class Layout(Config):
    """Ranks of a run, by dimension of a device mesh; their product is the number of processes.

    The rows of a batch are divided over `data` times `shard` ranks. The model, its gradients and
    optimizer state are cut into `shard` parts; there are `data` copies of that. So `data` alone is
    data parallelism (DDP), `shard` alone fully sharded data parallelism (FSDP), and both together
    hybrid sharding (HSDP). `tensor` ranks share each matrix, `pipeline` ranks the layers, `context`
    ranks the tokens of a row, and `expert` of the ranks with different tokens the experts.
    """

    data: int = Field(default=1, ge=1, description="Copies of the model.")
    shard: int = Field(
        default=1, ge=1, description="Parts of each copy: parameters, gradients, optimizer state."
    )
    zero: Literal[1, 2, 3] = Field(
        default=3,
        description="What is cut where `shard` is above 1, as in ZeRO (Rajbhandari et al. 2020): "
        "1 optimizer state; 2 gradients too; 3 parameters too.",
    )
    tensor: int = Field(
        default=1,
        ge=1,
        description="Ranks that share every matrix, and the tokens between matrices.",
    )
    pipeline: int = Field(
        default=1, ge=1, description="Ranks that share the layers; micro-batches pass through them."
    )
    interleave: int = Field(
        default=1,
        ge=1,
        description="Groups of layers of each pipeline rank: above 1, less waiting, more messages.",
    )
    context: int = Field(
        default=1, ge=1, description="Ranks that share the tokens of each row, for long rows."
    )
    expert: int = Field(
        default=1,
        ge=1,
        description="Ranks that share the experts; it divides data × shard × context.",
    )

    @property
    def world(self) -> int:
        """Processes."""
        return self.pipeline * self.rows * self.context * self.tensor

    @property
    def rows(self) -> int:
        """Ranks with different rows of a batch."""
        return self.data * self.shard

    @property
    def parts(self) -> int:
        """Parts that a parameter is cut into: those of `shard` and of `context`."""
        return self.shard * self.context

    @property
    def pieces(self) -> int:
        """What the tokens of a row must divide by."""
        return self.tensor * self.context * (2 if self.context > 1 else 1)

    def writers(self) -> list[int]:
        """The ranks that have a part of the model that no rank before them has."""
        size = self.parts * self.tensor
        copies = range(self.data if self.expert > 1 else 1)
        starts = [
            (stage * self.data + copy) * size for stage in range(self.pipeline) for copy in copies
        ]
        return [first + rank for first in starts for rank in range(size)]

    def check_model(self, config: Any, lengths: Iterable[int]) -> None:
        """UsageError where a model, or sequences of these lengths, cannot be divided so.

        `config` is a `stages.model.config.ModelConfig`.
        """
        for what, size, ranks, key in self._divided(config):
            if size % ranks:
                fitting = [n for n in range(1, size + 1) if size % n == 0]
                raise UsageError(
                    f"{size} {what} cannot be divided by {ranks}",
                    where=f"execution.layout.{key}",
                    hint=f"take one of {', '.join(map(str, fitting[:12]))}",
                )
        if self.expert > 1 and config.experts is None:
            raise UsageError("the model has no experts", where="execution.layout.expert")
        for length in lengths:
            if length % self.pieces:
                raise UsageError(
                    f"sequences of {length} tokens cannot be divided by {self.pieces}",
                    where="execution.layout",
                    hint="tensor × context × 2 (by tensor alone without context) must divide it",
                )

    def _divided(self, config: Any) -> Iterator[tuple[str, int, int, str]]:
        """What is divided: its name and size, by how many ranks, and the setting."""
        stages = self.pipeline * self.interleave
        key = "pipeline × interleave" if self.interleave > 1 else "pipeline"
        yield "layers", config.layers, stages, key
        yield "ranks of different tokens", self.rows * self.context, self.expert, "expert"
        if config.experts is not None:
            yield "experts", config.experts.experts, self.expert, "expert"
            yield "channels of an expert", config.experts.width, self.tensor, "tensor"
        yield "attention heads", config.heads, self.tensor, "tensor"
        if config.latent is None:
            yield "key and value heads", config.kv_heads, self.tensor, "tensor"
        yield "channels of the feed-forward layer", config.mlp_width, self.tensor, "tensor"
        yield "entries of the vocabulary", config.vocabulary_size, self.tensor, "tensor"


ONE_PROCESS = Layout()
