"""The reward model: a decoder whose output layer gives one number, the score of an answer.

A score is read at the last token of a sequence, as `transformers` does it in its classes for
sequence classification with one label.

Shapes: B batch, L length, D width.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from artifacts_schema.errors import UsageError
from stages.engine import Input
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.files import WEIGHTS_FILE, build, read_config
from stages.model.initial import initialise
from stages.model.layers import Linear
from stages.model.tensor_files import open_tensors

SCORE = "score.weight"
_HEAD = "head.weight"


class RewardModel(Decoder):
    """A decoder with a score in place of logits; its config says that embeddings are tied.

    So it has no output projection beside the embedding matrix, which it uses as input alone.
    """

    def __init__(self, config: ModelConfig, *, seed: int = 0, attention: str = "sdpa") -> None:
        if not config.tied_embeddings:
            raise UsageError("a reward model has no output projection", where="tied_embeddings")
        super().__init__(config, seed=seed, attention=attention)
        self.score = Linear(config.width, 1)
        initialise(nn.ModuleDict({"score": self.score}), seed, config.init_std, config.layers)

    def forward(self, *arguments: Any, **named: Any) -> Any:
        """Scores [batch, length] in float32, each of the sequence up to its place.

        The arguments are `Decoder`'s but `output`. Of layers that end earlier, the states.
        """
        return super().forward(*arguments, **named, output=self._scores)

    def _scores(self, x_BLD: Tensor, _: Tensor) -> Tensor:
        """In float32 in any precision: bfloat16 would round a score of 8 to 1/32."""
        with torch.autocast(x_BLD.device.type, enabled=False):
            return F.linear(x_BLD.float(), self.score.weight.float())[..., 0]


def reward_config(config: ModelConfig) -> ModelConfig:
    """The config of a reward model that begins with a language model of `config`."""
    return ModelConfig.model_validate({**config.model_dump(), "tied_embeddings": True})


def from_language_model(model: Decoder, seed: int) -> RewardModel:
    """A reward model with the weights of `model`, and a score that is drawn by `seed`."""
    config = reward_config(model.config)
    with torch.device("meta"):
        reward = RewardModel(config)
    score = nn.ModuleDict({"score": Linear(config.width, 1)})
    initialise(score, seed, config.init_std, config.layers)
    weights = {**model.state_dict(), SCORE: score.state_dict()[SCORE]}
    weights.pop(_HEAD, None)
    reward.load_state_dict(weights, assign=True)
    return reward


def read_reward_model(checkpoint: Input) -> RewardModel:
    """The model of a `reward_model`, on CPU, in float32; errors are those of `read_model`."""
    config = read_config(checkpoint)
    where = f"reward model {checkpoint.key[:12]}/{WEIGHTS_FILE}"
    with open_tensors(checkpoint, WEIGHTS_FILE) as weights:
        return cast(RewardModel, build(config, weights, where=where, model_class=RewardModel))
