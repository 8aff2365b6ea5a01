"""Everything that a run starts with, checked: data, plan, objective, and the model to train.

The model is new, or that of a checkpoint. The stage trains it; a pre-flight tries it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from artifacts_schema.errors import InputError, UsageError
from stages.engine import Input
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.model.files import WEIGHTS_FILE
from stages.model.tensor_files import has_tensors, open_tensors
from stages.pairs.losses import Objective as PairObjective
from stages.parallel.ranks import CPU, Ranks
from stages.pretrain.checkpoints import starting_progress
from stages.pretrain.config import PackedPreferenceConfig, PretrainConfig, SftConfig
from stages.pretrain.objectives import Objective, build_objective
from stages.pretrain.pairs_task import PairReference, PairTask
from stages.pretrain.plan import Plan, check_tokenizer, make_plan
from stages.pretrain.plan_check import check_architecture, check_length
from stages.pretrain.task import HeldOutSet, PretrainTask, RopeByPhase
from stages.tokens.chat_template import (
    Template,
    make_trained_record,
    read_template,
    read_template_record,
)
from stages.training.adapters import attach_to_start
from stages.training.checkpointing import AVERAGES, OPTIMIZER, STATE
from stages.training.distillation import Distillation
from stages.training.embedding_noise import EmbeddingNoise
from stages.training.fit import ResumeState
from stages.training.loop import Progress
from stages.training.permanent import TRAINED
from stages.training.runtime import Runtime
from stages.training.start import StartModel, read_start
from stages.training.token_shards import TokenShards


def starting_model(
    config: PretrainConfig, shards: TokenShards, start: Input | None, tokenizer: Input
) -> StartModel:
    """A new model, or that of `start`, which then decides the architecture but for its context.

    Raises UsageError or InputError when the phases' sequences, the vocabulary, the tokenizer or the
    configured architecture do not fit it.
    """
    ranks = Ranks.from_group(CPU)
    if start is None:
        # Of several ranks each makes the part that it holds, once the model is spread over them.
        with torch.device("meta") if ranks.world > 1 else nullcontext():
            model = Decoder(
                config.model.with_vocabulary(shards.padded_vocabulary_size), seed=config.seed
            )
        result = StartModel(model)
    else:
        averaged = config.clock == "continue" and has_tensors(start, TRAINED)
        result = read_start(start, ranks, TRAINED if averaged else WEIGHTS_FILE)
        model = result.model
        _check_start(config, model, start, tokenizer)
    longest = max(phase.sequence_length or shards.sequence_length for phase in config.phases)
    check_length(longest, model.config.context)
    if shards.vocabulary_size > model.config.vocabulary_size:
        raise InputError(
            f"the token shards have a vocabulary of {shards.vocabulary_size}, "
            f"the model one of {model.config.vocabulary_size}",
            where="checkpoint",
            hint="pack with the tokenizer of the checkpoint",
        )
    if config.adapter is not None:
        return attach_to_start(result, config.adapter, config.seed)
    return result


def resume_state_from(
    config: PretrainConfig, start: Input | None, progress: Progress, ranks: Ranks
) -> ResumeState:
    """The states that the run takes over from `start`, if there is one, in addition to weights.

    The moments by `optimizer_state`; averages and the guard's memory where the run continues the
    same stream. Of tensors a rank reads those parts that it holds. UsageError if there are no
    moments to keep.
    """
    moments = averages = guard = None
    if config.optimizer_state == "keep":
        if start is None:
            raise UsageError(
                "there is no input checkpoint to keep it from", where="optimizer_state"
            )
        if not has_tensors(start, OPTIMIZER):
            raise UsageError(
                "the input checkpoint carries no optimizer state",
                where="optimizer_state",
                hint="use fresh",
            )
        moments = open_tensors(start, OPTIMIZER, ranks)
    if config.clock == "continue" and start is not None:
        averages = open_tensors(start, AVERAGES, ranks) if has_tensors(start, AVERAGES) else None
        guard = start.read_json(STATE).get("guard")
    return ResumeState(progress, moments, averages, guard)


def _check_start(config: PretrainConfig, model: Decoder, start: Input, tokenizer: Input) -> None:
    """Refuse an architecture that is not that of the checkpoint, and another tokenizer.

    The context may be greater than the checkpoint's: no weight depends on it.
    """
    wanted, own_shape = config.model, model.config
    if "context" in wanted.identity() and wanted.context > own_shape.context:
        model.set_context(wanted.context)
        own_shape = model.config
    check_architecture(own_shape, wanted)
    if not start.has("tokenizer.json"):
        raise InputError(
            "the input checkpoint carries no tokenizer",
            where="checkpoint",
            hint="give import_model the tokenizer of the model",
        )
    own, theirs = (
        hashlib.sha256(one.read_bytes("tokenizer.json")).digest() for one in (start, tokenizer)
    )
    if own != theirs:
        raise InputError(
            "the input checkpoint was trained with another tokenizer",
            where="checkpoint",
            hint="pack with the tokenizer that the checkpoint carries",
        )


def _check_pairs(config: PretrainConfig, shards: TokenShards, role: str) -> None:
    """InputError for preference pairs where answers would all be learnt, and for anything else
    where pairs are."""
    learns_pairs = isinstance(config, PackedPreferenceConfig)
    if learns_pairs and shards.unpaired_sources:
        raise InputError(
            f"{', '.join(sorted(shards.unpaired_sources))} are no preference pairs",
            where=role,
            hint="give it outputs of pack_preferences alone",
        )
    if not learns_pairs and shards.paired_sources:
        raise InputError(
            f"{', '.join(sorted(shards.paired_sources))} hold preference pairs, of which the "
            "rejected answers would be learnt too",
            where=role,
            hint="give them to packed_preference",
        )


@dataclass(frozen=True)
class RunSetup:
    """Data, plan and model of a run, before anything is placed on a device.

    The model is made at its first use, so that one too large for the memory is refused before.
    """

    config: PretrainConfig
    tokenizer: Input
    start: Input | None
    train: Sequence[Input]
    shards: TokenShards
    held_out: HeldOutSet
    plan: Plan
    objective: Objective
    begin: Progress
    teachers: Sequence[Input] = ()

    @classmethod
    def from_inputs(cls, config: PretrainConfig, inputs: Mapping[str, Sequence[Input]]) -> RunSetup:
        """From the inputs of the stage, by role.

        Raises UsageError or InputError for what is wrong about them; `model` does so for what is
        wrong about the model.
        """
        (tokenizer,) = inputs["tokenizer"]
        start = next(iter(inputs.get("checkpoint", ())), None)
        shards = TokenShards(inputs["train"])
        held_out = HeldOutSet.from_inputs(inputs.get("held_out", ()), config.max_held_out_sequences)
        check_tokenizer(tokenizer, shards, held_out.shards)
        for role, one in (("train", shards), ("held_out", held_out.shards)):
            if one is not None:
                _check_pairs(config, one, role)
        if config.distillation is not None and shards.is_weighted:
            raise UsageError(
                "a teacher's divergence has no weights, and some messages have other than 0 and 1",
                where="distillation",
                hint="leave it out, or take the weights out of the data",
            )
        plan = make_plan(config, shards, start)
        return cls(
            config=config,
            tokenizer=tokenizer,
            start=start,
            train=inputs["train"],
            shards=shards,
            held_out=held_out,
            plan=plan,
            objective=build_objective(config.objective, shards, tokenizer, config.seed),
            begin=starting_progress(config, plan, start),
            teachers=inputs.get("teacher", ()),
        )

    @property
    def model_config(self) -> ModelConfig:
        """What `model` is, or will be."""
        if self.start is None:
            return self.config.model.with_vocabulary(self.shards.padded_vocabulary_size)
        return ModelConfig.parse(self.start.read_json("model.json"), where="model.json")

    @cached_property
    def starting_model(self) -> StartModel:
        """The model that is trained: new, or that of the input checkpoint."""
        return starting_model(self.config, self.shards, self.start, self.tokenizer)

    @property
    def model(self) -> Decoder:
        """That of `starting_model`."""
        return self.starting_model.model

    @cached_property
    def rope(self) -> RopeByPhase:
        """Its rotary positions by phase."""
        return RopeByPhase(self.model, self.config.phases, self.plan.clock)

    def chat_template(self, stage: str) -> tuple[Template | None, Mapping[str, Any] | None]:
        """The template that the run's checkpoints carry, and the record of where it comes from.

        That of the conversations it learns, else what the input checkpoint has.
        """
        start, template = self.start, self.shards.chat_template
        before = read_template_record(start) if start is not None else None
        if template is not None:
            return template, make_trained_record(stage, before, template)
        return (read_template(start) if start is not None else None), before

    def task(
        self,
        runtime: Runtime,
        references: tuple[PairReference | None, PairReference | None] = (None, None),
    ) -> PretrainTask:
        """What the training loop is given.

        `references` are those of pairs to train on and of held-out ones; see `PairTask`.
        """
        clock, held_out = self.plan.clock, self.held_out
        if isinstance(self.config, PackedPreferenceConfig):
            loss = PairObjective.from_config(self.config.loss)
            return PairTask(self.shards, clock, held_out, runtime, loss, self.rope, *references)
        chosen, teacher = self.config.distillation, None
        if chosen is not None:
            teacher = Distillation.from_inputs(
                self.teachers,
                self.train,
                self.shards,
                kind=chosen.divergence,
                weight=chosen.weight,
            )
        alpha = self.config.embedding_noise if isinstance(self.config, SftConfig) else 0.0
        return PretrainTask(
            self.shards,
            clock,
            held_out,
            runtime,
            self.objective,
            self.rope,
            noise=EmbeddingNoise(alpha, self.config.seed) if alpha else None,
            teacher=teacher,
        )
