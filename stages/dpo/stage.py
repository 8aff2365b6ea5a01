"""The stage that teaches a model which of two answers is better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stages.dpo.config import DpoConfig
from stages.engine import Context, Inputs, Many, One, Stage
from stages.training.config import TrainingExecution


class Dpo(Stage):
    """Direct preference optimization (Rafailov et al. 2023) of a checkpoint on preference pairs.

    The reference is the checkpoint itself: its log-probabilities of all answers are computed once
    and kept for the run. Only the answer and the token that closes it count; both answers of a pair
    are in one micro-batch, packed with attention inside each only.
    """

    name, version, reproducible = "dpo", 5, "numerics"
    inputs = {
        "checkpoint": One("checkpoint"),
        "preferences": Many("preferences", at_least=1),
    }
    outputs = {"checkpoint": "checkpoint", "training_run": "training_run"}
    libraries = ("torch", "tokenizers", "safetensors", "numpy", "pyarrow")
    Config, Execution = DpoConfig, TrainingExecution

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> Sequence[str]:
        """See `check_tuning`."""
        from stages.training.run_plan import check_tuning

        return check_tuning(config, inputs)

    def run(self, context: Context) -> None:
        from stages.dpo.task import DROPPED, DpoTask, read_pairs, reference_log_probabilities
        from stages.model.files import read_model, read_tokenizer
        from stages.tokens.vocabulary import SpecialTokens
        from stages.training.examples import ExampleClock
        from stages.training.fit import TrainingSettings, fit, write_run, write_tuned_checkpoint
        from stages.training.runtime import resolve_attention, runtime
        from stages.training.schedule import schedule

        config, start = context.config, context.one("checkpoint")
        model, tokenizer = read_model(start), read_tokenizer(start)
        special = SpecialTokens.from_config(tokenizer, start.read_json("tokenizer_config.json"))
        shape = model.config
        data = read_pairs(context, tokenizer, special, shape.context, shape.vocabulary_size)
        clock = ExampleClock(len(data.train), config.pairs_per_batch, config.epochs, config.seed)
        with runtime(context.execution, config.precision, config.seed, steady=False) as how:
            # The policy's kernels: both are then rounded alike, and equal before the first update.
            model.set_attention(
                resolve_attention(shape, context.execution, how, prefixes=DpoTask.prefixes)
            )
            reference = reference_log_probabilities(context, model.to(how.device), data, how)
            task = DpoTask(data, reference, clock, how, model.config.context, config.beta)
            phase = schedule([(clock.steps, config.learning_rate)], where="dpo")
            settings = TrainingSettings(phase, config.optimizer, config.held_out_every)
            run = fit(context, model, task, settings)
        write_tuned_checkpoint(context, run, start)
        account = {"epochs": config.epochs, "beta": config.beta, "pairs": data.account(DROPPED)}
        write_run(context, run, account)
