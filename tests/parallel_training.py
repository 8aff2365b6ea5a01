"""A small model that trains on any layout, for tests: batches, cases, one training step."""

from contextlib import nullcontext

import numpy as np
import torch

from stages.model.config import Experts, LatentAttention, ModelConfig
from stages.model.decoder import Decoder
from stages.model.experts import update_balance
from stages.parallel.layout import Layout
from stages.parallel.ranks import CPU, Ranks
from stages.parallel.shard_files import gather_on_first
from stages.training.averages import Averages
from stages.training.config import AveragesConfig, OptimizerConfig, TrainingExecution
from stages.training.loop import StepSums
from stages.training.optimizer import Optimizer, treatments
from stages.training.rows import Rows
from stages.training.runtime import Runtime, clip_function, place
from stages.training.sample_clock import rank_rows
from stages.training.task import MicroBatch
from stages.training.token_shards import IGNORED

STEPS, ROWS, LENGTH, VOCABULARY = 20, 10, 16, 96
"""The rows cannot be divided by 2 ranks of 2 rows, or by 4."""
EXPERTS = Experts(experts=4, chosen=2, width=16, bias_rate=0.01)
CASES = {
    "adamw": {},
    "uneven": {"model": {"vocabulary_size": 97}},
    "muon": {"optimizer": {"name": "muon"}},
    "experts": {"model": {"experts": EXPERTS}},
    "z_loss": {"z_loss": 1e-2, "optimizer": {"clip": 0.1}},
    "bf16": {"precision": "bf16"},
    "variants": {
        "model": {
            "tied_embeddings": True, "norm": "output", "qk_norm": "width", "logit_softcap": 9.0
        }
    },
    "heads": {"model": {"qk_norm": "head"}, "execution": {"activation_checkpointing": "full"}},
    "latent": {
        "model": {
            "kv_heads": 8,
            "latent": LatentAttention(
                query_rank=16, kv_rank=16, plain_width=8, rotary_width=4, value_width=8
            )
        }
    },
}  # fmt: skip


def step_rows(step: int, vocabulary: int = VOCABULARY) -> Rows:
    """The batch of a step: two documents a row; targets are left out, unevenly over rows."""
    draw = np.random.default_rng(step)
    tokens = draw.integers(0, vocabulary, (ROWS, LENGTH))
    targets = np.roll(tokens, -1, axis=1).astype(np.int64)
    targets[draw.random((ROWS, LENGTH)) < np.linspace(0, 0.9, ROWS)[:, None]] = IGNORED
    documents = np.arange(LENGTH) >= draw.integers(1, LENGTH, (ROWS, 1))
    return Rows(tokens, targets, documents.astype(np.int64))


class Training:
    """A model on this rank, that trains as `Trainer` does."""

    def __init__(self, layout: Layout, case: dict) -> None:
        self.case, self.layout = case, layout
        self.ranks = ranks = Ranks.from_group(CPU, layout)
        self.config = ModelConfig(
            **{
                "vocabulary_size": VOCABULARY, "width": 32, "layers": 4, "heads": 8, "kv_heads": 4,
                "mlp_width": 48, "context": LENGTH, **case.get("model", {}),
            }
        )  # fmt: skip
        with torch.device("meta") if ranks.world > 1 else nullcontext():
            self.model = model = Decoder(self.config, seed=3)
        settings = OptimizerConfig(**case.get("optimizer", {}))
        of_all = treatments(model, settings)
        precision = case.get("precision", "fp32")
        self.runtime = Runtime(CPU, precision, micro_batch=2, ranks=ranks, parallel=layout)
        place(model, TrainingExecution(**case.get("execution", {})), self.runtime, prefixes=False)
        clip = clip_function(model, self.runtime)
        self.optimizer = Optimizer(model, settings, of_all=of_all, clip=clip)
        self.averages = Averages(AveragesConfig(ema=0.9, output="ema"), STEPS)

    def rows(self, step: int) -> tuple[Rows, int]:
        """This rank's rows of a step, and the targets of all."""
        rows = step_rows(step, self.config.vocabulary_size)
        own = rows.take(rank_rows(ROWS, self.ranks.row, self.layout.rows))
        own = own.padded(self.runtime.rows_of_step(ROWS) - len(own))
        return own.of_context(self.ranks), rows.targets

    def step(self, step: int) -> dict[str, float]:
        """Loss, the same from losses of tokens, and gradient norm."""
        self.optimizer.zero_grad()
        sums, (own, targets) = StepSums(), self.rows(step)
        for number, trained in self.runtime.passes(
            self.model, own.split(2), targets=targets, z_loss=self.case.get("z_loss", 0.0)
        ):
            self.optimizer.backward(trained.loss)
            by_token = {} if number is None else {"by_token": trained.losses_BL.sum()}
            sums.add(MicroBatch(trained.loss, 0, by_token))
        values = sums.floats(self.optimizer.clip(), self.ranks)
        self.optimizer.set_rate(1e-3)
        self.optimizer.step()
        update_balance(self.model, self.ranks.sum_same_layers)
        self.averages.update(self.model, step + 1)
        return {name: values[name][0] for name in ("loss", "by_token", "grad_norm")}

    def measured(self, step: int) -> float:
        """The sum of losses of a step's rows under the average of the weights."""
        with torch.no_grad(), self.averages.applied(self.model):
            losses = self.runtime.losses(self.model, self.rows(step)[0]).double().sum()
        return float(self.ranks.sum(losses))


def whole_weights(model, ranks) -> dict:
    """All weights, on rank 0."""
    weights = gather_on_first(dict(model.named_parameters()), ranks)
    return {name: weight.clone().numpy() for name, weight in weights.items()}
