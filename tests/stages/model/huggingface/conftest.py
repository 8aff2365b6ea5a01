"""A decoder whose every weight is drawn, so that no part of it is without effect."""

from __future__ import annotations

import pytest
import torch

from stages.model.config import ModelConfig
from stages.model.decoder import Decoder


@pytest.fixture
def drawn():
    """`drawn(config)` → a decoder with norms around 1 and biases of routers around 0."""

    def make(config: ModelConfig, seed: int = 3) -> Decoder:
        model = Decoder(config, seed=seed).eval()
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, weight in sorted(model.state_dict().items()):
                if weight.dim() == 1:
                    start = 0.0 if name.endswith("router.bias") else 1.0
                    noise = torch.empty(weight.shape).normal_(0.0, 0.2, generator=generator)
                    weight.copy_(start + noise)
        return model

    return make
