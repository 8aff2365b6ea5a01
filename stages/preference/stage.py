"""The stages that teach a model which of two answers is better."""

from __future__ import annotations

from typing import Any

from artifacts_schema import config as settings
from artifacts_schema.errors import UsageError
from stages.engine import Context, Inputs, Many, Maybe, One, Stage
from stages.preference.config import DpoConfig, PreferenceConfig, ReferenceConfig, RewardConfig
from stages.training.config import TrainingExecution


class Dpo(Stage):
    """Direct preference optimization (Rafailov et al. 2023) of a checkpoint on preference pairs.

    The reference is the checkpoint itself: its log-probabilities of all answers are computed once
    and kept for the run, with attention by SDPA whatever training takes; or they are an input, made
    once for many runs (`reference`). Answers are written by the checkpoint's own chat template,
    which it keeps, or in ChatML where it has none. Only the answer and the token that closes it
    count; both answers of a pair are in one micro-batch, packed with attention inside each only.
    """

    name, version, reproducible, launch = "dpo", 7, "numerics", "spmd"
    inputs = {
        "checkpoint": One("checkpoint"),
        "preferences": Many("preferences", at_least=1),
        "reference": Maybe("reference_log_probabilities"),
    }
    outputs = {"checkpoint": "checkpoint", "training_run": "training_run"}
    libraries = (
        "torch", "tokenizers", "transformers", "jinja2", "safetensors", "numpy", "pyarrow",
    )  # fmt: skip
    Config, Execution = DpoConfig, TrainingExecution

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """See `check_tuning`."""
        from stages.training.run_plan import check_tuning

        check_tuning(config, inputs)

    @classmethod
    def check_layout(cls, config: Any, execution: Any, inputs: Inputs) -> None:
        """A layout that cannot divide the model."""
        from stages.training.run_plan import check_adapter_layout, check_tuning_layout

        super().check_layout(config, execution, inputs)
        check_tuning_layout(execution.layout, inputs)
        check_adapter_layout(getattr(config, "adapter", None), execution.layout)

    @classmethod
    def ranks(cls, execution: settings.Execution) -> int:
        """See `Stage.ranks`. UsageError where a rank would not have whole answers."""
        for name in ("pipeline", "context"):
            if getattr(getattr(execution, "layout", None), name, 1) > 1:
                raise UsageError(
                    "the loss of a pair is of whole answers under all layers",
                    where=f"execution.layout.{name}",
                    hint="divide by data, shard, tensor and expert",
                )
        return super().ranks(execution)

    def run(self, context: Context) -> None:
        from dataclasses import asdict

        from stages.model.files import read_config
        from stages.pairs.encoding import DROPPED
        from stages.pairs.losses import Objective
        from stages.preference.kto import AnswerCounts, KtoTask, with_mismatches
        from stages.preference.pairs import read_pairs
        from stages.preference.task import (
            PreferenceTask,
            read_reference,
            reference_log_probabilities,
        )
        from stages.training.adapters import attach_to_start, describe_adapter
        from stages.training.examples import ExampleClock
        from stages.training.fit import TrainingSettings, fit, write_run, write_tuned_checkpoint
        from stages.training.runtime import place, runtime
        from stages.training.schedule import schedule
        from stages.training.start import StartModel, read_start

        config, start = context.config, context.one("checkpoint")
        shape = read_config(start)
        context.execution.layout.check_model(shape, [shape.context])
        objective, reference = Objective.from_config(config), None
        level, answers = objective.of_reference, None
        data = read_pairs(context, start)
        if objective.has_mismatches:
            answers = AnswerCounts.from_data(data)
            data = with_mismatches(data, shape.context)
            level = None if level is None else answers.loss_of_reference(objective.settings)
            if (advice := answers.advice(objective.settings)) is not None:
                context.log.warning("%s", advice)
        clock = ExampleClock(len(data.train), config.pairs_per_batch, config.epochs, config.seed)
        with runtime(context.execution, config.precision, config.seed, steady=False) as how:
            model, weights = read_start(start, how.ranks)
            if config.adapter is not None:
                started = StartModel(model, weights)
                model, weights = attach_to_start(started, config.adapter, config.seed)
                context.log.info("%s", describe_adapter(model))
            attention = place(model, context.execution, how, prefixes=False, weights=weights)
            made = context.maybe("reference")
            if made is not None:
                reference = read_reference(context, made, data, objective)
            elif objective.has_reference:
                # With the policy's kernels: both are rounded alike, and equal before an update.
                reference = reference_log_probabilities(context, model, data, how)
            kind = KtoTask if objective.has_mismatches else PreferenceTask
            task = kind(data, reference, clock, how, shape.context, objective)
            phase = schedule([(clock.steps, config.learning_rate)], where=self.name)
            settings = TrainingSettings(phase, config.optimizer, config.held_out_every)
            run = fit(context, model, task, settings, attention=attention)
        write_tuned_checkpoint(context, run, start, config.adapter)
        account = {
            "epochs": config.epochs,
            "loss": {**objective.account(), "of_reference": level},
            **({} if answers is None else {"answers": asdict(answers)}),
            "pairs": data.account(DROPPED),
        }
        write_run(context, run, account)


class Preference(Dpo):
    """Learn from preference pairs by a loss of one's choice; `dpo` is this with `loss: sigmoid`.

    Losses that compare with a reference take the checkpoint itself, as `dpo` does; simpo, orpo and
    cpo have none, and spend no pass on it. kto learns from single answers with a label too.
    """

    name, version = "preference", 3
    Config = PreferenceConfig


class Reference(Dpo):
    """Log-probabilities of the answers of preference pairs under a checkpoint, for many runs.

    They are those that `dpo` and `preference` compute at their start, by the same kernels; given to
    such a step as its input `reference`, they are used there instead.
    """

    name, version = "reference", 2
    inputs = {
        "checkpoint": One("checkpoint"),
        "preferences": Many("preferences", at_least=1),
    }
    outputs = {"reference": "reference_log_probabilities"}
    Config = ReferenceConfig  # type: ignore[assignment]

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """InputError for a checkpoint without a tokenizer."""
        from stages.training.run_plan import tokenizer_checksum

        tokenizer_checksum(inputs["checkpoint"][0])

    def run(self, context: Context) -> None:
        from stages.model.files import read_config
        from stages.preference.pairs import read_pairs
        from stages.preference.task import reference_log_probabilities, write_reference
        from stages.training.runtime import place, runtime
        from stages.training.start import read_start

        config, start = context.config, context.one("checkpoint")
        shape = read_config(start)
        context.execution.layout.check_model(shape, [shape.context])
        data = read_pairs(context, start)
        with runtime(context.execution, config.precision, config.seed, steady=False) as how:
            model, weights = read_start(start, how.ranks)
            place(model, context.execution, how, prefixes=False, weights=weights)
            reference = reference_log_probabilities(context, model, data, how)
            if how.ranks.first:
                write_reference(context, reference, data)


class Reward(Stage):
    """Train a reward model on preference pairs: a score in place of the checkpoint's logits.

    The loss is Bradley-Terry's, with optional margins and centring. An answer is scored at the last
    token of the conversation, as the checkpoint's own chat template writes it, or ChatML where it
    has none: what `apply_chat_template` gives is what the score was learnt from. What comes out is
    no language model, and of a kind of its own: `export` releases it for
    `AutoModelForSequenceClassification`, and stages that read a checkpoint refuse it.
    """

    name, version, reproducible = "reward", 1, "numerics"
    inputs = {
        "checkpoint": One("checkpoint"),
        "preferences": Many("preferences", at_least=1),
    }
    outputs = {"checkpoint": "reward_model", "training_run": "training_run"}
    libraries = Dpo.libraries
    Config, Execution = RewardConfig, TrainingExecution

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """See `check_tuning`."""
        from stages.training.run_plan import check_tuning

        check_tuning(config, inputs)

    def run(self, context: Context) -> None:
        from stages.model.files import read_config, read_tokenizer
        from stages.model.reward import from_language_model
        from stages.pairs.encoding import DROPPED
        from stages.preference.pairs import read_margins, read_pairs
        from stages.preference.reward_task import RewardTask, scored_answers
        from stages.tokens.vocabulary import SpecialTokens
        from stages.training.examples import ExampleClock
        from stages.training.fit import TrainingSettings, fit, write_run, write_tuned_checkpoint
        from stages.training.runtime import runtime
        from stages.training.schedule import schedule
        from stages.training.start import read_start

        config, start = context.config, context.one("checkpoint")
        shape = read_config(start)
        described = start.read_json("tokenizer_config.json")
        special = SpecialTokens.from_config(read_tokenizer(start), described)
        data = read_pairs(context, start)
        data = scored_answers(data, special.padding)
        margins_N = None
        if config.margin is not None:
            margins_N = read_margins(context, data.ids, config.margin)
        clock = ExampleClock(len(data.train), config.pairs_per_batch, config.epochs, config.seed)
        with runtime(context.execution, config.precision, config.seed, steady=False) as how:
            language_model, _ = read_start(start, how.ranks)
            model = from_language_model(language_model, config.seed)
            task = RewardTask(
                data, clock, how, shape.context, margins_N=margins_N, centring=config.centring
            )
            phase = schedule([(clock.steps, config.learning_rate)], where=self.name)
            settings = TrainingSettings(phase, config.optimizer, config.held_out_every)
            run = fit(context, model, task, settings)
        write_tuned_checkpoint(context, run, start)
        account = {
            "epochs": config.epochs,
            "reward": {"margin": config.margin, "centring": config.centring},
            "pairs": data.account(DROPPED),
        }
        write_run(context, run, account)
