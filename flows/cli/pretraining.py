"""The pretraining steps of a recipe, as the plan has them: what commands about training look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from artifacts_schema.errors import UsageError

if TYPE_CHECKING:
    from flows.recipe.pipeline import Pipeline
    from flows.recipe.plan import PlannedStep

STAGE = "pretrain"


def pretraining_steps(
    recipe: str,
    store: str,
    *,
    step: str | None = None,
    profile: str | None = None,
    overrides: Sequence[str] = (),
) -> tuple[Pipeline, list[PlannedStep]]:
    """The plan's line of each pretraining step, or of `step` alone; launches nothing.

    UsageError for a recipe without such a step.
    """
    from flows.cli.progress import hashing
    from flows.recipe.pipeline import Pipeline, Request

    with hashing() as progress:
        request = Request(recipe, store, profile, tuple(overrides))
        pipeline = Pipeline.open(request, progress=progress, create=False)
    graph = pipeline.graph
    known = [one.name for one in graph.instances.values() if one.stage.name == STAGE]
    asked = None if step is None else graph.select(step, "--step")
    chosen = [name for name in known if asked is None or name in asked]
    if not chosen:
        what = f"'{step}' is no pretraining step" if step else "the recipe has no pretraining step"
        raise UsageError(what, where=recipe, hint=f"it has {', '.join(known)}" if known else None)
    plan = pipeline.plan()
    return pipeline, [plan.step(name) for name in chosen]
