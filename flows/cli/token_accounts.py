"""The token account of a pretraining step before it runs, and of a run that is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from flows.cli.pretraining import STAGE, pretraining_steps

if TYPE_CHECKING:
    from flows.recipe.pipeline import Pipeline
    from flows.recipe.plan import PlannedStep


@dataclass(frozen=True)
class Told:
    """An account as `run.json` holds it, or the steps that must make token shards first."""

    name: str
    recipe: str | None = None
    account: dict[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    refusals: tuple[UsageError, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "name": self.name,
            "waits_for": list(self.missing),
            **self.account,
            "refusals": [str(error) for error in self.refusals],
        }

    def raise_refusals(self) -> None:
        """Raise what keeps the run from starting."""
        if self.refusals:
            what = "; ".join(error.what for error in self.refusals)
            hint = "; ".join(error.hint or "" for error in self.refusals)
            raise UsageError(what, where=self.name, hint=hint)


def of_recipe(
    recipe: str,
    store: str,
    *,
    step: str | None = None,
    profile: str | None = None,
    overrides: Sequence[str] = (),
) -> list[Told]:
    """Of each pretraining step of a recipe (or of `step` alone), as planned; launches nothing.

    UsageError for a recipe without such a step, and for what cannot be planned.
    """
    pipeline, steps = pretraining_steps(
        recipe, store, step=step, profile=profile, overrides=overrides
    )
    return [_planned(recipe, pipeline, one) for one in steps]


def of_run(ref: str, store: str) -> Told:
    """Of a pretraining run in the store: planned and realised."""
    from flows.cli.artifacts import names_of, open_store, title, whole_run
    from stages.engine.inputs import Input

    opened = open_store(store)
    manifest = whole_run(opened, opened.resolve(ref)[0], where=ref)
    if manifest.stage != STAGE:
        raise UsageError(
            f"{manifest.stage} {short(manifest.key)} is not a pretraining run",
            where=ref,
            hint="give the ref of a pretrain step, or a recipe",
        )
    run = Input.of(opened, manifest, "training_run", full_check=False).read_json("run.json")
    parts = ("phases", "skipped_training_steps", "sources", "languages", "languages_are")
    return Told(title(manifest, names_of(opened)), account={name: run[name] for name in parts})


def _planned(recipe: str, pipeline: Pipeline, step: PlannedStep) -> Told:
    """The account of a step whose inputs stand; else which steps make them."""
    name = pipeline.ref(step.instance)
    if step.spec is None:
        roles = pipeline.graph.instances[step.instance].inputs
        read = {one.name for role in ("train", "checkpoint") for one in roles.get(role, ())}
        waits = tuple(one for one in step.waits_for if one in read)
        return Told(name, recipe, missing=waits or step.waits_for)
    from stages.engine.inputs import Input
    from stages.engine.registry import stage_named
    from stages.pretrain.account import planned_account
    from stages.pretrain.plan import caps, unchecked_plan
    from stages.training.account import refusals
    from stages.training.data import TokenShards

    train, start = (
        [
            Input.load(pipeline.store, one, full_check=False)
            for one in step.spec.inputs.get(role, ())
        ]
        for role in ("train", "checkpoint")
    )
    stage = stage_named(step.stage)
    config: Any = stage.Config.parse(step.spec.config, where=f"{step.instance}: config")
    shards = TokenShards(train)
    try:
        plan = unchecked_plan(config, shards, next(iter(start), None))
    except UsageError as error:
        raise UsageError(error.what, where=f"{name}: {error.where}", hint=error.hint) from None
    errors = refusals(plan.clock, caps(config, shards))
    return Told(name, recipe, planned_account(config, plan), refusals=tuple(errors))
