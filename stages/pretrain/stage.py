"""The stages that train a language model from packed tokens: from text, and on conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError, UsageError
from stages.engine import Context, Input, Inputs, Many, Maybe, Milestone, One, Stage
from stages.pretrain.config import PackedPreferenceConfig, PretrainConfig, SftConfig
from stages.training.config import TrainingExecution

if TYPE_CHECKING:
    from stages.pretrain.run_setup import RunSetup
    from stages.pretrain.task import PretrainTask
    from stages.training.runtime import Runtime


class Pretrain(Stage):
    """Train a decoder in phases, each with its mixture, batch size and learning-rate segment.

    The batch of every training step is a pure function of shards, phases and seed (the sample
    clock), so a run that was killed goes on to the same weights, losses and metrics, bit by bit, at
    the same layout. Everything that can be wrong about the inputs is checked before the first step;
    held-out loss is measured before it, on the way and at the end, with a token-unigram baseline.
    Of conversations (`pack_chat`) it learns what the assistant says, beside text or alone.
    """

    name, version, reproducible, launch = "pretrain", 6, "numerics", "spmd"
    inputs = {
        "train": Many("token_shards", at_least=1),
        "held_out": Many("token_shards"),
        "tokenizer": One("tokenizer"),
        "checkpoint": Maybe("checkpoint"),
        "teacher": Many("teacher_log_probabilities"),
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
    def check_layout(cls, config: Any, execution: Any, inputs: Inputs) -> None:
        """A model or sequences that the layout cannot divide."""
        from stages.pretrain.plan_check import check_layout

        check_layout(config, execution.layout, inputs)

    @classmethod
    def milestones(cls, config: Any, inputs: Mapping[str, Sequence[Input]]) -> Sequence[Milestone]:
        """Its permanent checkpoints; only those after the input checkpoint that it continues."""
        from stages.pretrain.checkpoints import planned_checkpoints

        return planned_checkpoints(config, inputs)

    @classmethod
    def check_setup(cls, setup: RunSetup) -> None:
        """What else a stage asks of its inputs; InputError or UsageError."""

    @classmethod
    def prepare_task(
        cls, context: Context, setup: RunSetup, runtime: Runtime
    ) -> tuple[PretrainTask, str | None]:
        """The task of the run; and the attention backend, where the model is placed for it."""
        return setup.task(runtime), None

    @classmethod
    def account_more(cls, config: Any) -> Mapping[str, Any]:
        """What else `run.json` says."""
        return {}

    def run(self, context: Context) -> None:
        from stages.pretrain.checkpoints import checkpoint_state, plan_milestones
        from stages.pretrain.plan import run_account
        from stages.pretrain.preflight import start_preflight
        from stages.pretrain.run_setup import RunSetup, resume_state_from
        from stages.tokens.chat_template import TokenizerWithTemplate, read_template_record
        from stages.training.adapters import describe_adapter
        from stages.training.fit import TrainingSettings, fit, write_checkpoint, write_run
        from stages.training.permanent import PermanentCheckpoints
        from stages.training.runtime import runtime

        config = context.config
        setup = RunSetup.from_inputs(config, {role: context.many(role) for role in self.inputs})
        self.check_setup(setup)
        plan, start = setup.plan, setup.start
        # The tokenizer's own template is that of the model it was published with, not of this one.
        template, record = setup.chat_template(self.name)
        tokenizer = TokenizerWithTemplate(setup.tokenizer, template)
        before = read_template_record(start) if start is not None else None
        if before is not None and record is not None and before["sha256"] != record["sha256"]:
            context.log.warning(
                "the chat template of %s is replaced by %s, which this stage trains with",
                before["source"],
                record["format"],
            )
        state_at = checkpoint_state(plan, record)
        permanent = PermanentCheckpoints(
            context,
            plan_milestones(config, plan),
            model=setup.model,
            tokenizer=tokenizer,
            state_at=state_at,
            optimizer=config.checkpoints.optimizer,
            output=config.averages.output,
            guarded=config.stability.enabled,
            adapter=config.adapter,
        )
        for line in plan.account.lines():
            context.log.info("%s", line)
        if config.adapter is not None:
            context.log.info("%s", describe_adapter(setup.model))

        with runtime(context.execution, config.precision, config.seed) as how:
            preflight = start_preflight(context, setup, how)
            task, attention = self.prepare_task(context, setup, how)
            run = fit(
                context,
                setup.model,
                task,
                TrainingSettings(
                    plan.schedule,
                    config.optimizer,
                    config.held_out_every,
                    config.averages,
                    config.stability,
                ),
                weights=setup.starting_model.weights,
                attention=attention,
                start=resume_state_from(config, start, setup.begin, how.ranks),
                permanent=permanent,
                callbacks=preflight,
            )
        # A run that was resumed at its very end has trained no step and set no positions.
        setup.rope.at(run.model, run.progress.training_step)
        write_checkpoint(
            context,
            run,
            tokenizer,
            keep_optimizer=True,
            state_at=state_at,
            adapter=config.adapter,
        )
        account = run_account(config, plan, setup.shards, setup.held_out, run)
        write_run(context, run, {**account, **self.account_more(config)})


class Sft(Pretrain):
    """Fine-tune a checkpoint on packed conversations; only what they mark as learnt is.

    It is `pretrain` with other defaults: the same clock, mixtures (text may be replayed beside the
    conversations), permanent checkpoints, guard and pre-flight. The loss of a step is the mean over
    its learnt tokens. The checkpoint carries the chat template that the conversations were written
    by.
    """

    name, version = "sft", 6
    inputs = {
        "train": Many("token_shards", at_least=1),
        "held_out": Many("token_shards"),
        "tokenizer": One("tokenizer"),
        "checkpoint": One("checkpoint"),
        "teacher": Many("teacher_log_probabilities"),
    }
    Config = SftConfig

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """As `pretrain`; and conversations are causal."""
        super().check_plan(config, inputs)
        if any(part.name != "causal" for part in config.objective.parts):
            raise UsageError("conversations are learnt token by token", where="objective")

    @classmethod
    def check_layout(cls, config: Any, execution: Any, inputs: Inputs) -> None:
        """As `pretrain`; and noise is of whole rows under the first layer."""
        super().check_layout(config, execution, inputs)
        for name in ("tensor", "pipeline", "context"):
            if config.embedding_noise and getattr(execution.layout, name) > 1:
                raise UsageError(
                    "embedding_noise is drawn for whole rows",
                    where=f"execution.layout.{name}",
                    hint="divide by data, shard and expert, or leave the noise out",
                )

    @classmethod
    def check_setup(cls, setup: RunSetup) -> None:
        """InputError unless some input holds conversations."""
        if not setup.shards.marked_sources:
            raise InputError(
                "none of the token shards holds conversations",
                where="train",
                hint="give it the output of a pack_chat step, or go on with pretrain",
            )


class PackedPreference(Pretrain):
    """Learn from packed preference pairs, by a loss of one's choice: DPO where none is named.

    It is `pretrain` on pairs: the same clock, mixtures of sources, permanent checkpoints, guard and
    pre-flight. The loss of a step is the mean over its pairs. The reference, for losses that have
    one, is the input checkpoint: its log-probabilities of all pairs are computed once for the run.
    """

    name, version = "packed_preference", 1
    inputs = {
        "train": Many("token_shards", at_least=1),
        "held_out": Many("token_shards"),
        "tokenizer": One("tokenizer"),
        "checkpoint": One("checkpoint"),
    }
    Config = PackedPreferenceConfig

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> None:
        """As `pretrain`; and what a loss of whole answers has no use for."""
        super().check_plan(config, inputs)
        if config.objective.z_loss or any(one.name != "causal" for one in config.objective.parts):
            raise UsageError("the loss is that of pairs, see `loss`", where="objective")
        if config.clock == "continue" and config.loss.has_reference:
            raise UsageError(
                f"the reference of {config.loss.name} is the input checkpoint, which would be "
                "another one than before",
                where="clock",
                hint="use restart, or a loss without a reference",
            )

    @classmethod
    def check_layout(cls, config: Any, execution: Any, inputs: Inputs) -> None:
        """As `pretrain`; and a rank has whole answers."""
        super().check_layout(config, execution, inputs)
        for name in ("pipeline", "context"):
            if getattr(execution.layout, name) > 1:
                raise UsageError(
                    "the loss of a pair is of whole answers under all layers",
                    where=f"execution.layout.{name}",
                    hint="divide by data, shard, tensor and expert",
                )

    @classmethod
    def prepare_task(
        cls, context: Context, setup: RunSetup, runtime: Runtime
    ) -> tuple[PretrainTask, str | None]:
        """The task, with the reference that the weights are before they are trained."""
        if not context.config.loss.has_reference:
            return setup.task(runtime), None
        from stages.pretrain.pairs_reference import start_references
        from stages.training.runtime import place

        attention = place(
            setup.model,
            context.execution,
            runtime,
            prefixes=False,
            weights=setup.starting_model.weights,
        )
        references = start_references(context, setup.model, setup.shards, setup.held_out, runtime)
        return setup.task(runtime, references), attention

    @classmethod
    def account_more(cls, config: Any) -> Mapping[str, Any]:
        """The loss."""
        from stages.pairs.losses import Objective

        return {"loss": Objective.from_config(config.loss).account()}
