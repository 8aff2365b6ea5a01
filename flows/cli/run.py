"""`ingot run RECIPE`: bring a recipe up to date."""

from __future__ import annotations

from typing import Any

import click

from flows.cli.options import recipe_options, request_of


@click.command("run")
@recipe_options
@click.option("--jobs", type=click.IntRange(min=1), help="Steps that run at the same time.")
@click.option("--no-prefect", is_flag=True, help="Run without Prefect: no server, no UI.")
@click.option(
    "--verify",
    "check",
    is_flag=True,
    help="Read every byte that would be reused first; what is damaged is made again.",
)
def command(jobs: int | None, no_prefect: bool, check: bool, **flags: Any) -> None:
    """Bring RECIPE up to date: run what its plan says, reuse everything else.

    Killed at any moment, the same command continues. Exit codes: 0 done, 1 a step failed, 2 wrong
    recipe or input, 75 stopped on request.
    """
    from flows.cli.progress import hashing, shown, tell
    from flows.recipe.execute import execute
    from flows.recipe.pipeline import Pipeline
    from flows.recipe.snapshots import provisional_note

    request = request_of(**flags)
    with hashing() as progress:
        pipeline = Pipeline.open(request, progress=progress)
    plan = pipeline.plan()
    if check:
        plan = _checked(pipeline, plan)
    tell(f"{plan.recipe} in {plan.store}: {plan.summary()}")
    if note := provisional_note(pipeline.snapshots):
        tell(note)
    if plan.is_done:
        execute(pipeline)  # Starts nothing; the recipe's names may stand elsewhere still.
    else:
        with shown() as observer:
            plan = _run(pipeline, request, observer, jobs, without_prefect=no_prefect)
    show_results(pipeline.store, plan)


def _checked(pipeline: Any, plan: Any) -> Any:
    """The plan once the bytes of all that it reuses have been read."""
    from flows.cli.progress import tell
    from flows.recipe.repair import check_reused

    for step, problem in check_reused(pipeline, plan):
        tell(f"{step}: {problem.path}: {problem.what}")
    return pipeline.plan()


def show_results(store: Any, plan: Any) -> None:
    """The funnel, and the few figures that the stages' pages think worth a glance."""
    from flows.report.summary import print_figures, summarise

    made = [(step.instance, step.manifest) for step in plan.steps if step.manifest is not None]
    print_figures(summarise(store, made))


def _run(
    pipeline: Any, request: Any, observer: Any, jobs: int | None, *, without_prefect: bool
) -> Any:
    if without_prefect:
        from flows.cli.progress import stop_on_signals
        from flows.recipe.execute import execute

        with stop_on_signals() as stopping:
            return execute(pipeline, observer=observer, jobs=jobs, stopping=stopping)
    from flows.cli.progress import tell
    from flows.orchestration.run import run_pipeline

    return run_pipeline(pipeline, request, observer=observer, jobs=jobs, tell=tell)
