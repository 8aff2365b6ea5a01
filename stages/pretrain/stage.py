"""The stage that trains a language model from packed tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stages.engine import Context, Input, Inputs, Many, Maybe, Milestone, One, Stage
from stages.pretrain.config import PretrainConfig
from stages.training.config import TrainingExecution


class Pretrain(Stage):
    """Train a decoder in phases, each with its mixture, batch size and learning-rate segment.

    The batch of every training step is a pure function of shards, phases and seed (the sample
    clock), so a run that was killed goes on to the same weights, losses and metrics, bit by bit, at
    the same layout. Everything that can be wrong about the inputs is checked before the first step;
    held-out loss is measured before it, on the way and at the end, beside a token-unigram baseline.
    """

    name, version, reproducible = "pretrain", 5, "numerics"
    inputs = {
        "train": Many("token_shards", at_least=1),
        "held_out": Many("token_shards"),
        "tokenizer": One("tokenizer"),
        "checkpoint": Maybe("checkpoint"),
    }
    outputs = {"checkpoint": "checkpoint", "training_run": "training_run"}
    libraries = ("torch", "safetensors", "numpy", "pyarrow")
    Config, Execution = PretrainConfig, TrainingExecution

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """Phases, sources, architecture, lengths and tokenizers that do not go together."""
        from stages.pretrain.plan_check import check_plan

        check_plan(config, inputs)

    @classmethod
    def milestones(cls, config: Any, inputs: Mapping[str, Sequence[Input]]) -> Sequence[Milestone]:
        """Its permanent checkpoints; those behind the input checkpoint that it goes on from."""
        from stages.pretrain.checkpoints import planned_checkpoints

        return planned_checkpoints(config, inputs)

    def run(self, context: Context) -> None:
        from stages.pretrain.account import run_account
        from stages.pretrain.checkpoints import permanent_checkpoints, state_of
        from stages.pretrain.preflight.preflight import look_before
        from stages.pretrain.prepared import Prepared
        from stages.pretrain.start import origin_of
        from stages.text.chat_template import (
            TokenizerWithTemplate,
            carried_record,
            carried_template,
        )
        from stages.training.fit import fit, write_checkpoint, write_run
        from stages.training.runtime import runtime

        config = context.config
        ready = Prepared.of(config, {role: context.many(role) for role in self.inputs})
        plan, start = ready.plan, ready.start
        # The tokenizer's own template is that of the model it was published with, not of this one.
        template = carried_template(start) if start is not None else None
        tokenizer = TokenizerWithTemplate(ready.tokenizer, template)
        state_at = state_of(plan, carried_record(start) if start is not None else None)
        for line in plan.account.lines():
            context.log.info("%s", line)

        with runtime(context.execution, config.precision, config.seed) as how:
            look = look_before(context, ready, how)
            fitted = fit(
                context,
                model=ready.model,
                task=ready.task(how),
                schedule=plan.schedule,
                settings=config.optimizer,
                runtime=how,
                held_out_every=config.held_out_every,
                averages=config.averages,
                stability=config.stability,
                origin=origin_of(config, ready.start, ready.begin),
                permanent=permanent_checkpoints(context, plan, ready.model, tokenizer, state_at),
                listeners=look,
                lengths=[phase.sequence_length for phase in plan.clock.phases],
                prefixes=ready.prefixes,
            )
        # A run that was resumed at its very end has trained no step.
        ready.rope.at(fitted.model, fitted.progress.training_step)
        write_checkpoint(context, fitted, tokenizer, keep_optimizer=True, state_at=state_at)
        write_run(context, fitted, run_account(config, plan, ready.shards, ready.held_out, fitted))
