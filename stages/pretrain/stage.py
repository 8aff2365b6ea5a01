"""The stage that trains a language model from packed tokens."""

from __future__ import annotations

from stages.engine import Context, Many, Maybe, One, Stage
from stages.pretrain.config import PretrainConfig
from stages.training.config import TrainingExecution


class Pretrain(Stage):
    """Train a decoder in phases, each with its mixture, batch size and learning-rate segment.

    The batch of every training step is a pure function of shards, phases and seed (the sample
    clock), so a run that was killed goes on to the same weights, losses and metrics, bit by bit, at
    the same layout. Everything that can be wrong about the inputs is checked before the first step;
    held-out loss is measured before it, on the way and at the end, beside a token-unigram baseline.
    """

    name, version, reproducible = "pretrain", 2, "numerics"
    inputs = {
        "train": Many("token_shards", at_least=1),
        "held_out": Many("token_shards"),
        "tokenizer": One("tokenizer"),
        "checkpoint": Maybe("checkpoint"),
    }
    outputs = {"checkpoint": "checkpoint", "training_run": "training_run"}
    libraries = ("torch", "safetensors", "numpy", "pyarrow")
    Config, Execution = PretrainConfig, TrainingExecution

    def run(self, context: Context) -> None:
        from stages.pretrain.account import run_account
        from stages.pretrain.held_out import HeldOutSet
        from stages.pretrain.plan import check_tokenizer, make_plan
        from stages.pretrain.start import starting_model, starting_optimizer
        from stages.pretrain.task import PretrainTask
        from stages.training.data import TokenShards
        from stages.training.fit import fit, write_checkpoint, write_run
        from stages.training.runtime import runtime

        config, tokenizer = context.config, context.one("tokenizer")
        shards = TokenShards(context.many("train"))
        held_out = HeldOutSet.of(context.many("held_out"), config.max_held_out_sequences)
        check_tokenizer(tokenizer, shards, held_out.shards)
        plan = make_plan(config, shards)
        for line in plan.account.lines():
            context.log.info("%s", line)
        start = context.maybe("checkpoint")
        model = starting_model(config, shards, start, tokenizer)

        with runtime(context.execution, config.precision, config.seed) as how:
            fitted = fit(
                context,
                model=model,
                task=PretrainTask(shards, plan.clock, held_out, how),
                schedule=plan.schedule,
                settings=config.optimizer,
                runtime=how,
                held_out_every=config.held_out_every,
                optimizer_state=starting_optimizer(config, start),
            )
        write_checkpoint(context, fitted, tokenizer, keep_optimizer=True)
        write_run(context, fitted, run_account(config, plan, shards, held_out, fitted))
