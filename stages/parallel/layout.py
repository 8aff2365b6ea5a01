"""The layout of a training run: how many processes there are along each dimension of a mesh."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artifacts_schema.config import Config


class Layout(Config):
    """Ranks of a run. Batches are divided over `data` times `shard` ranks.

    The model, its gradients and optimizer state are cut into `shard` parts; there are `data` copies
    of that. So `data` alone is data parallelism (DDP), `shard` alone fully sharded data parallelism
    (FSDP), and both together hybrid sharding (HSDP).
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

    @property
    def world(self) -> int:
        """Processes."""
        return self.data * self.shard


ONE_PROCESS = Layout()
