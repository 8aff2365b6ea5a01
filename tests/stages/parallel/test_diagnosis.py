"""A step that went not finite on one rank: all name that rank, the module, the micro-batch."""

import math

import numpy as np
import pytest
import torch
from ranks import run_ranks

from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.parallel.data_parallel import spread_model
from stages.parallel.layout import Layout
from stages.parallel.ranks import Ranks
from stages.training.diagnosis import find_fault
from stages.training.losses import Arithmetic
from stages.training.rows import Rows
from stages.training.task import MicroBatch, Task

CPU = torch.device("cpu")


class Rowwise(Task):
    """A row of tokens a micro-batch."""

    def micro_batches(self, model, batch):
        """One after another."""
        for row in batch.split(1):
            trained = Arithmetic(CPU, "fp32").train(model, row, targets=batch.targets)
            yield MicroBatch(trained.loss, row.tokens)

    def measures(self, sums):
        """None."""
        return {}

    def held_out(self, model):
        """None."""
        return []


def look(layout, bad_rank, bad_token):
    """The fault where a token of rank `bad_rank` makes a block's output not finite."""
    ranks = Ranks.from_group(CPU)
    config = ModelConfig(
        vocabulary_size=31, width=16, layers=2, heads=2, kv_heads=1, mlp_width=16, context=8
    )
    model = Decoder(config, seed=1)

    def spoil(module, arguments, result):
        return result * math.inf if ranks.rank == bad_rank and 30 in tokens_now else result

    tokens_now = []

    def note(module, arguments):
        tokens_now[:] = arguments[0].unique().tolist()

    model.register_forward_pre_hook(note)
    model.blocks[1].mlp.register_forward_hook(spoil)
    spread_model(model, layout, CPU)
    tokens = np.random.default_rng(ranks.rank).integers(0, 30, (3, 8))
    if bad_token is not None:
        tokens[bad_token, 4] = 30
    rows = Rows(tokens, np.roll(tokens, -1, axis=1).astype(np.int64), np.zeros_like(tokens))
    return find_fault(model, Rowwise(), rows, ranks)


@pytest.mark.parametrize("layout", [Layout(data=2), Layout(shard=2)], ids=["ddp", "fsdp"])
def test_rank_module_and_micro_batch_are_named_on_every_rank(layout):
    results = run_ranks(2, look, layout, 1, 2)
    assert results[0] == results[1]
    fault = results[0]
    assert (fault.where, fault.rank, fault.micro_batch) == ("forward", 1, 2)
    assert fault.module == "blocks.1.mlp"
    assert str(fault) == "the forward pass of blocks.1.mlp of micro-batch 2 on rank 1"


def test_where_all_is_finite_no_rank_says_otherwise():
    assert run_ranks(2, look, Layout(shard=2), 1, None) == [None, None]
