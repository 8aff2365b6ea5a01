"""`ingot preflight RECIPE`: what a pretraining run needs and would fail of, before it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from flows.cli.options import json_option, pretraining_options, store_option
from flows.cli.output import echo

if TYPE_CHECKING:
    from flows.recipe.pipeline import Pipeline
    from flows.recipe.plan import PlannedStep


@click.command("preflight")
@click.argument("recipe")
@store_option
@pretraining_options
@json_option
def command(recipe: str, store: str, step: str | None, as_json: bool, **flags: Any) -> None:
    """Check a pretraining step of RECIPE on this machine, and train nothing.

    Memory by part, disk, device, store, token shards, held-out data and contamination, a rehearsal
    of save and resume, a dry batch; and how long the run will take. The run itself does the same
    before its first step. Exit code 1: it would fail.
    """  # fmt: skip
    from flows.cli.output import print_json
    from flows.cli.pretraining import pretraining_steps

    pipeline, steps = pretraining_steps(recipe, store, step=step, **flags)
    told = [_look(pipeline, one, as_json) for one in steps]
    if as_json:
        print_json({"preflights": told})
    if any(one.get("refused") for one in told):
        raise SystemExit(1)


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
            echo(f"{name}: its inputs are not there yet; {made_by} makes them ({through})")
        return {"name": name, "waits_for": waits}
    if not as_json:
        echo(f"{name}:")
    report = _fly(pipeline, step, (lambda finding: None) if as_json else _show)
    if not as_json:
        refused = len(report.refusals)
        verdict = f"{refused} would keep it from running" if refused else "nothing keeps it"
        echo(f"  {verdict}; looked for {report.seconds:.1f} s")
    return {"name": name, "waits_for": [], **report.to_json()}


def _fly(pipeline: Pipeline, step: PlannedStep, tell: Any) -> Any:
    import os

    from artifacts_schema.store.work import local_work
    from stages.engine.inputs import Input
    from stages.engine.launch import WAITING
    from stages.engine.registry import stage_named

    for name, value in WAITING.items():  # As the run has it, before torch is loaded.
        os.environ.setdefault(name, value)
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
    echo(f"  {finding.check:<13}  {mark}{finding.said}")
    if finding.hint and finding.level != "ok":
        echo(f"  {'':<13}  → {finding.hint}")
