"""`ingot preflight RECIPE`: what a pretraining run needs and would fail of, before it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from flows.cli.options import json_option, store_option

if TYPE_CHECKING:
    from flows.recipe.pipeline import Pipeline
    from flows.recipe.plan import PlannedStep

STAGE = "pretrain"


@click.command("preflight")
@click.argument("recipe")
@store_option
@click.option("--step", metavar="STEP", help="A pretraining step of the recipe; by default all.")
@click.option("--profile", metavar="NAME", help="Where and how steps run.")
@click.option(
    "--set",
    "overrides",
    metavar="STEP.PATH=VALUE",
    multiple=True,
    help="Change one value of the recipe; may be repeated.",
)
@json_option
def command(recipe: str, store: str, step: str | None, as_json: bool, **flags: Any) -> None:
    """Check a pretraining step of RECIPE on this machine, and train nothing.

    Memory by part, disk, device, store, token shards, held-out data and contamination, a rehearsal
    of save and resume, a dry batch; and how long the run will take. The run itself does the same
    before its first step. Exit code 1: it would fail.
    """  # fmt: skip
    from flows.cli.output import print_json

    pipeline, steps = _steps(recipe, store, step, **flags)
    told = [_look(pipeline, one, as_json) for one in steps]
    if as_json:
        print_json({"preflights": told})
    if any(one.get("refused") for one in told):
        raise SystemExit(1)


def _steps(
    recipe: str, store: str, step: str | None, *, profile: str | None, overrides: tuple[str, ...]
) -> tuple[Pipeline, list[PlannedStep]]:
    """The lines of the plan that pretrain; UsageError where there is none."""
    from artifacts_schema.errors import UsageError
    from flows.cli.progress import hashing
    from flows.recipe.pipeline import Pipeline, Request

    with hashing() as progress:
        pipeline = Pipeline.open(Request(recipe, store, profile, overrides), progress=progress)
    known = [one.name for one in pipeline.graph.instances.values() if one.stage.name == STAGE]
    chosen = (
        known if step is None else [n for n in pipeline.graph.select(step, "--step") if n in known]
    )
    if not chosen:
        what = f"'{step}' is no pretraining step" if step else "the recipe has no pretraining step"
        raise UsageError(what, where=recipe, hint=f"it has {', '.join(known)}" if known else None)
    plan = pipeline.plan()
    return pipeline, [plan.step(name) for name in chosen]


def _look(pipeline: Pipeline, step: PlannedStep, as_json: bool) -> dict[str, Any]:
    """One pre-flight, shown line by line as it goes on."""
    name = pipeline.ref(step.instance)
    if step.spec is None or step.key is None:
        waits = list(step.waits_for)
        if not as_json:
            made_by = " and ".join(waits)
            through = (
                f"`ingot run {pipeline.name} --through {waits[0]}`" if waits else "see the plan"
            )
            click.echo(f"{name}: its inputs are not there yet; {made_by} makes them ({through})")
        return {"name": name, "waits_for": waits}
    if not as_json:
        click.echo(f"{name}:")
    report = _fly(pipeline, step, (lambda finding: None) if as_json else _show)
    if not as_json:
        refused = len(report.refusals)
        verdict = f"{refused} would keep it from running" if refused else "nothing keeps it"
        click.echo(f"  {verdict}; looked for {report.seconds:.1f} s")
    return {"name": name, "waits_for": [], **report.to_json()}


def _fly(pipeline: Pipeline, step: PlannedStep, tell: Any) -> Any:
    from artifacts_schema.store.work import local_work
    from stages.engine.inputs import Input
    from stages.engine.registry import stage_named
    from stages.pretrain.preflight.alone import preflight

    stage, spec = stage_named(step.stage), step.spec
    assert spec is not None, "asked before"
    inputs = {
        role: [Input.load(pipeline.store, one, full_check=False) for one in given]
        for role, given in spec.inputs.items()
    }
    config: Any = stage.Config.parse(spec.config, where=f"{step.instance}: config")
    execution: Any = stage.Execution.parse(spec.execution, where=f"{step.instance}: execution")
    backend = pipeline.store.backend
    return preflight(
        config,
        execution,
        inputs,
        backend=backend,
        work=local_work(backend, spec.key, "state"),
        tell=tell,
    )


def _show(finding: Any) -> None:
    """A line, and below it what to do."""
    mark = {"ok": "", "warning": "warning: ", "refusal": "REFUSED: "}[finding.level]
    click.echo(f"  {finding.check:<13}  {mark}{finding.said}")
    if finding.hint and finding.level != "ok":
        click.echo(f"  {'':<13}  → {finding.hint}")
