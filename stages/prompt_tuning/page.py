"""What prompt tuning contributes to a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.engine.page import Artifact, Axis, CurveFigure, Figure

if TYPE_CHECKING:
    from stages.training.figures import TrainingRun


def page(artifact: Artifact) -> list[Figure]:
    """Conversations used, loss of training and held out, learning rate, gradient norm, speed."""
    from stages.training import figures as shared
    from stages.training.telemetry_figures import telemetry_figures

    run = shared.TrainingRun(artifact, "training_step")
    account = run.account
    return [
        shared.run_facts(
            run, ("epochs", account["epochs"]), ("virtual tokens", account["virtual_tokens"])
        ),
        shared.examples_table("Conversations", account["conversations"]),
        *shared.loss(run, "Loss", "Mean over the tokens that a step learns, nats."),
        *_held_out_loss(run),
        *shared.loss_by_source(run),
        *shared.optimizer_and_speed(run),
        *telemetry_figures(run),
    ]


def _held_out_loss(run: TrainingRun) -> list[Figure]:
    series = tuple(run.held_out("loss").values())
    if not series:
        return []
    return [
        CurveFigure(
            "Held-out loss during training",
            run.axis,
            Axis("nats a token", format=".3f"),
            series,
            run.marks,
            "At step 0 the virtual tokens are those that the run began with.",
        )
    ]
