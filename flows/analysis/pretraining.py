"""The pretraining steps of a recipe: token accounts, before a run and after it, and pre-flights."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from artifacts_schema.store import Store
from artifacts_schema.store.lease import local_work
from flows.analysis.artifacts import format_title, load_inputs, refs_by_artifact
from flows.analysis.training_batches import CLOCK_STAGES
from flows.recipe.pipeline import Pipeline
from flows.recipe.plan import PlannedStep
from stages.engine.inputs import Input
from stages.engine.protocol import stage_named
from stages.engine.spec import WAIT_POLICY

if TYPE_CHECKING:
    from stages.pretrain.preflight_checks import Finding

ACCOUNT_FIELDS = ("phases", "skipped_training_steps", "sources", "languages", "languages_are")


@dataclass(frozen=True)
class TokenAccount:
    """An account as in `run.json`, or the steps that must make token shards first."""

    name: str
    account: dict[str, Any] = field(default_factory=dict)
    waits_for: tuple[str, ...] = ()
    errors: tuple[UsageError, ...] = ()
    """What keeps the run from starting."""

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "name": self.name,
            "waits_for": list(self.waits_for),
            **self.account,
            "refusals": [str(error) for error in self.errors],
        }

    def raise_errors(self) -> None:
        """Raise what keeps the run from starting."""
        if self.errors:
            what = "; ".join(error.what for error in self.errors)
            hint = "; ".join(error.hint or "" for error in self.errors)
            raise UsageError(what, where=self.name, hint=hint)


def select_pretraining_steps(pipeline: Pipeline, step: str | None = None) -> list[PlannedStep]:
    """Every pretraining step in the plan, or `step` alone; launches nothing.

    UsageError for a recipe without such a step.
    """
    graph = pipeline.graph
    names = [one.name for one in graph.instances.values() if one.stage.name in CLOCK_STAGES]
    selected = names if step is None else graph.select(step, "--step")
    chosen = [name for name in names if name in selected]
    if not chosen:
        subject = f"'{step}' is not a pretraining step" if step else "it has no pretraining step"
        hint = f"it has {', '.join(names)}" if names else None
        raise UsageError(subject, where=pipeline.name, hint=hint)
    plan = pipeline.plan()
    return [plan.step(name) for name in chosen]


def plan_account(pipeline: Pipeline, step: PlannedStep) -> TokenAccount:
    """The account of a step whose inputs exist, else the steps that make them; launches nothing.

    UsageError if the step cannot be planned.
    """
    name = pipeline.ref(step.instance)
    if step.spec is None:
        roles = pipeline.graph.instances[step.instance].inputs
        read = {one.name for role in ("train", "checkpoint") for one in roles.get(role, ())}
        waits = tuple(one for one in step.waits_for if one in read)
        return TokenAccount(name, waits_for=waits or step.waits_for)
    from stages.pretrain.plan import cap_errors, caps, planned_account, unchecked_plan
    from stages.training.token_shards import TokenShards

    inputs = load_inputs(pipeline.store, step.spec.inputs)
    config: Any = stage_named(step.stage).Config.parse(
        step.spec.config, where=f"{step.instance}: config"
    )
    shards = TokenShards(inputs["train"])
    try:
        plan = unchecked_plan(config, shards, next(iter(inputs.get("checkpoint", ())), None))
    except UsageError as error:
        raise UsageError(error.what, where=f"{name}: {error.where}", hint=error.hint) from None
    errors = cap_errors(plan.clock, caps(config, shards))
    return TokenAccount(name, planned_account(config, plan), errors=tuple(errors))


def read_account(store: Store, ref: str) -> TokenAccount:
    """The account of a pretraining run in the store: planned and realised.

    UsageError if `ref` is a checkpoint of a run that has not finished.
    """
    manifest = store.resolve(ref)[0]
    if (interim := manifest.interim_of) is not None:
        finished = store.manifest(manifest.stage, interim.run)
        if finished is None:
            raise UsageError(
                f"{manifest.stage} {short(interim.run)} is not over, or was collected",
                where=ref,
                hint="try again when it has finished; ingot watch follows it",
            )
        manifest = finished
    if manifest.stage not in CLOCK_STAGES:
        raise UsageError(
            f"{manifest.stage} {short(manifest.key)} is not a pretraining run",
            where=ref,
            hint="give the ref of a pretrain step, or a recipe",
        )
    run = Input.from_manifest(store, manifest, "training_run", full_check=False).read_json(
        "run.json"
    )
    name = format_title(manifest, refs_by_artifact(store))
    return TokenAccount(name, {name: run[name] for name in ACCOUNT_FIELDS})


def preflight_step(
    pipeline: Pipeline, step: PlannedStep, on_finding: Callable[[Finding], None]
) -> Any:
    """The pre-flight `Report` of a step whose inputs exist; each finding is passed on as it comes.

    Raises what the stage would raise for wrong inputs.
    """
    for name, value in WAIT_POLICY.items():  # As in the run, before torch is imported.
        os.environ.setdefault(name, value)
    from stages.pretrain.preflight import run_preflight

    stage, spec = stage_named(step.stage), step.spec
    assert spec is not None, "its inputs exist"
    config: Any = stage.Config.parse(spec.config, where=f"{step.instance}: config")
    execution: Any = stage.Execution.parse(spec.execution, where=f"{step.instance}: execution")
    backend = pipeline.store.backend
    return run_preflight(
        config,
        execution,
        load_inputs(pipeline.store, spec.inputs),
        backend=backend,
        work=local_work(backend, spec.key, "state"),
        tell=on_finding,
    )
