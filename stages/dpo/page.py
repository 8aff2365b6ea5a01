"""What direct preference optimization contributes to a report."""

from __future__ import annotations

import math

from stages.engine.page import Artifact, Axis, Cell, Figure

REFERENCE_LOSS = math.log(2)
"""DPO loss of a policy that is its own reference: -log σ(0)."""


def page(artifact: Artifact) -> list[Figure]:
    """Pairs used, loss, reward margin and accuracy, learning rate, gradient norm, speed."""
    from stages.training import figures as shared
    from stages.training.telemetry_figures import telemetry_figures

    run = shared.TrainingRun(artifact, "training_step")
    beta, pairs = run.account["beta"], run.account["pairs"]
    margins = shared.smoothed(run.metric("reward_margin"), run.window)
    moved: Cell = round(float(margins[-1]) / beta, 4) if math.isfinite(margins[-1]) else None
    loss_note = "Where policy and reference agree, the loss is ln 2; lower means they part rightly."
    return [
        shared.run_facts(
            run,
            ("epochs", run.account["epochs"]),
            ("beta", beta),
            ("log-probability margin won over the reference, nats", moved),
        ),
        shared.examples_table(
            "Preference pairs", pairs, ("left out: both answers equal", pairs["equal_answers"])
        ),
        *shared.loss(run, "DPO loss, nats", loss_note, reference=REFERENCE_LOSS),
        *run.curve(
            "Reward margin of chosen over rejected answers",
            Axis("reward margin", format=".4g"),
            run.raw_and_smoothed("margin", "reward_margin"),
            levels={"reference": 0.0},
            note="Reward: beta times the log-probability of an answer over the reference's.",
        ),
        *run.curve(
            "Reward accuracy, share of pairs",
            Axis("share of pairs", format=".3f"),
            run.raw_and_smoothed("accuracy", "reward_accuracy"),
            levels={"chance": 0.5},
            note="Pairs whose chosen answer is rewarded more, of the pairs of a step. The first "
            "step has none: there the policy is the reference.",
        ),
        *shared.optimizer_and_speed(run),
        *telemetry_figures(run),
    ]
