"""The flows that Prefect knows: a whole recipe, and a spec that another process wrote.

The flow of a single stage's form is made in `stage_flow`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, cast

from prefect import flow
from prefect.runtime import flow_run
from prefect.task_runners import ThreadPoolTaskRunner

from artifacts_schema.identity import short
from artifacts_schema.store import Store
from artifacts_schema.store.runs import runs
from flows.orchestration.forms import request_of
from flows.orchestration.pages import made_by
from flows.orchestration.shown import Shown
from flows.recipe.execute import execute, run_step
from flows.recipe.observer import Observer, Several
from flows.recipe.pipeline import Pipeline
from flows.recipe.plan import PlannedStep
from stages.engine.spec import StageSpec

TAG = "ingot"
"""On every flow run of ours, so that an automation can mean ours and nobody else's."""
_also_told: ContextVar[tuple[Observer, ...]] = ContextVar("also_told", default=())
_jobs: ContextVar[int | None] = ContextVar("jobs", default=None)


def run_name(name: str) -> str:
    """`name #3f2a`: the end of Prefect's own id tells runs of one name apart."""
    return f"{name} #{str(flow_run.id)[-4:]}" if flow_run.id else name


def _pipeline_name() -> str:
    given = flow_run.parameters
    name = Path(str(given.get("recipe", "recipe"))).stem
    for word, field in (("from", "start"), ("through", "through")):
        if given.get(field):
            name += f" {word} {given[field]}"
    return run_name(name)


@flow(
    name="pipeline",
    flow_run_name=_pipeline_name,
    task_runner=cast(Any, ThreadPoolTaskRunner(max_workers=64)),
    persist_result=False,
    retries=0,
)
def pipeline(
    recipe: str,
    store: str = "ingot-store",
    profile: str | None = None,
    overrides: list[str] | None = None,
    start: str | None = None,
    through: str | None = None,
    force: list[str] | None = None,
    strict_code: bool = False,
    accept_code: bool = False,
) -> dict[str, str]:
    """Bring a recipe up to date in a store; returns the key that each step came to.

    Args:
        recipe: name of a recipe that comes with Ingot, or path of a YAML file.
        store: URL or folder of the store.
        profile: where and how the steps run; never changes a key.
        overrides: changes such as `filter.duplicates.threshold=0.7`.
        start: first step to run.
        through: last step to run.
        force: steps to run although their artifact stands.
        strict_code: run steps anew whose program changed at an equal version.
        accept_code: go on from checkpoints that another program left of the same key.
    """
    asked = {
        "recipe": recipe,
        "store": store,
        "profile": profile,
        "overrides": overrides or [],
        "start": start,
        "through": through,
        "force": force or [],
        "strict_code": strict_code,
        "accept_code": accept_code,
    }
    bound = Pipeline.open(request_of(asked))
    shown = Shown(bound.name)
    told = Several((*_also_told.get(), shown))
    try:
        final = execute(bound, dispatch=shown.dispatch, observer=told, jobs=_jobs.get())
    except Exception:
        _publish(shown, bound)
        raise
    _publish(shown, bound)
    return {step.instance: short(step.key or "") for step in final.steps}


@flow(name="spec", flow_run_name=lambda: run_name(flow_run.parameters["stage"]),
      persist_result=False, retries=0)  # fmt: skip
def spec(stage: str, store: str, spec_uri: str, expected_key: str) -> dict[str, str]:
    """Run one stage from a spec; the key is computed again here and begins with `expected_key`.

    Args:
        stage: name of the stage.
        store: URL or folder of the store.
        spec_uri: path or URL of the stage spec (JSON), as `ingot stage --write-spec` makes it.
        expected_key: the key that the one who asked has computed; its first 8 digits or more.
    """
    import fsspec

    with fsspec.open(spec_uri, "rb") as file:
        found = StageSpec.from_json(file.read(), where=spec_uri)
    found.check_key(expected_key)
    return run_spec(Store.open(store, create=False), found)


def run_spec(store: Store, spec: StageSpec) -> dict[str, str]:
    """Run one stage and show it; returns the digest of each output."""
    step = PlannedStep(spec.stage, spec.stage, spec.stage, "run", "asked for", spec.key, spec)
    shown = Shown("stage")
    shown.publish_plan([step], f"{spec.stage} {short(spec.key)}")
    manifest = run_step(store, step, dispatch=shown.dispatch, observer=shown)
    shown.publish_results(store, [(spec.stage, manifest)], manifest.key)
    return {output: short(found.digest) for output, found in manifest.outputs.items()}


@contextmanager
def told_also(observer: Observer | None, jobs: int | None) -> Iterator[None]:
    """While this lasts, `observer` hears what the flow's own observer hears."""
    tokens = (_also_told.set((observer,) if observer else ()), _jobs.set(jobs))
    try:
        yield
    finally:
        _also_told.reset(tokens[0])
        _jobs.reset(tokens[1])


def _publish(shown: Shown, bound: Pipeline) -> None:
    """What stands now, as artifacts; the report is of the run that was written down last."""
    newest = next(runs(bound.store, bound.name), None)
    if newest is not None:
        shown.publish_results(bound.store, made_by(bound.plan()), newest.name)
