"""Everything that a run starts with, checked: what the stage trains, and a pre-flight tries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from stages.engine import Input
from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.pretrain.checkpoints import begin
from stages.pretrain.config import PretrainConfig
from stages.pretrain.held_out import HeldOutSet
from stages.pretrain.plan import Plan, check_tokenizer, make_plan
from stages.pretrain.rope import RopeByPhase
from stages.pretrain.start import starting_model
from stages.pretrain.task import PretrainTask
from stages.training.data import TokenShards
from stages.training.objectives import Objective, objective_of
from stages.training.runtime import Runtime

if TYPE_CHECKING:
    from stages.training.loop import Progress


@dataclass(frozen=True)
class Prepared:
    """Data, plan and model of a run, before anything is placed on a device.

    The model is made when it is first asked for: one that no memory holds can be told before.
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

    @classmethod
    def of(cls, config: PretrainConfig, inputs: Mapping[str, Sequence[Input]]) -> Prepared:
        """From the inputs of the stage, by role.

        Raises UsageError or InputError for what is wrong about them; `model` does so for what is
        wrong about the model.
        """
        (tokenizer,) = inputs["tokenizer"]
        start = next(iter(inputs.get("checkpoint", ())), None)
        shards = TokenShards(inputs["train"])
        held_out = HeldOutSet.of(inputs.get("held_out", ()), config.max_held_out_sequences)
        check_tokenizer(tokenizer, shards, held_out.shards)
        plan = make_plan(config, shards, start)
        return cls(
            config=config,
            tokenizer=tokenizer,
            start=start,
            train=inputs["train"],
            shards=shards,
            held_out=held_out,
            plan=plan,
            objective=objective_of(config.objective, shards, tokenizer, config.seed),
            begin=begin(config, plan, start),
        )

    @property
    def model_config(self) -> ModelConfig:
        """What `model` is, or will be."""
        if self.start is None:
            return self.config.model.with_vocabulary(self.shards.padded_vocabulary_size)
        return ModelConfig.parse(self.start.read_json("model.json"), where="model.json")

    @cached_property
    def model(self) -> Decoder:
        """The model that is trained: new, or that of the input checkpoint."""
        return starting_model(self.config, self.shards, self.start, self.tokenizer)

    @property
    def prefixes(self) -> bool:
        """Whether some tokens see later ones."""
        return any(part.name != "causal" for part in self.config.objective.parts)

    @cached_property
    def rope(self) -> RopeByPhase:
        """Its rotary positions by phase."""
        return RopeByPhase(self.model, self.config.phases, self.plan.clock)

    def task(self, runtime: Runtime) -> PretrainTask:
        """What the training loop is given."""
        clock, held_out = self.plan.clock, self.held_out
        return PretrainTask(self.shards, clock, held_out, runtime, self.objective, self.rope)
