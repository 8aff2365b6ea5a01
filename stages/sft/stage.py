"""The stage that teaches a pretrained model to answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stages.engine import Context, Inputs, Many, One, Stage
from stages.sft.config import SftConfig
from stages.training.config import TrainingExecution


class Sft(Stage):
    """Fine-tune a checkpoint on conversations; only what the assistant says is learnt.

    Conversations are rendered by the chat format that the release carries, packed whole into rows
    of the model's context with attention kept inside each, and seen in a seeded order. The loss of
    a step is the mean over its assistant tokens, however they fell into rows and micro-batches.
    """

    name, version, reproducible, launch = "sft", 5, "numerics", "spmd"
    inputs = {
        "checkpoint": One("checkpoint"),
        "conversations": Many("conversations", at_least=1),
    }
    outputs = {"checkpoint": "checkpoint", "training_run": "training_run"}
    libraries = ("torch", "tokenizers", "safetensors", "numpy", "pyarrow")
    Config, Execution = SftConfig, TrainingExecution

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> Sequence[str]:
        """See `check_tuning`."""
        from stages.training.run_plan import check_tuning

        return check_tuning(config, inputs)

    @classmethod
    def check_layout(cls, config: Any, execution: Any, inputs: Inputs) -> None:
        """A layout that cannot divide the model."""
        from stages.training.run_plan import check_tuning_layout

        super().check_layout(config, execution, inputs)
        check_tuning_layout(execution.layout, inputs)

    def run(self, context: Context) -> None:
        from stages.model.files import read_config, read_tokenizer
        from stages.sft.task import DROPPED, SftTask, read_conversations
        from stages.tokens.vocabulary import SpecialTokens
        from stages.training.examples import ExampleClock
        from stages.training.fit import TrainingSettings, fit, write_run, write_tuned_checkpoint
        from stages.training.runtime import runtime
        from stages.training.schedule import schedule
        from stages.training.start import read_start

        config, start = context.config, context.one("checkpoint")
        tokenizer = read_tokenizer(start)
        special = SpecialTokens.from_config(tokenizer, start.read_json("tokenizer_config.json"))
        shape = read_config(start)
        context.execution.layout.check_model(shape, [shape.context])
        data = read_conversations(context, tokenizer, special, shape.context, shape.vocabulary_size)
        clock = ExampleClock(
            len(data.train), config.conversations_per_batch, config.epochs, config.seed
        )
        with runtime(context.execution, config.precision, config.seed, steady=False) as how:
            model, weights = read_start(start, how.ranks)
            task = SftTask(data, clock, how, shape.context)
            phase = schedule([(clock.steps, config.learning_rate)], where="sft")
            settings = TrainingSettings(phase, config.optimizer, config.held_out_every)
            run = fit(context, model, task, settings, weights=weights)
        write_tuned_checkpoint(context, run, start)
        targets = sum(example.targets for (example,) in data.rows)
        account = data.account(DROPPED, targets=targets)
        write_run(context, run, {"epochs": config.epochs, "conversations": account})
