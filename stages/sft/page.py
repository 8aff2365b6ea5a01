"""What supervised fine-tuning contributes to a report."""

from __future__ import annotations

from stages.engine.page import Artifact, Figure


def page(artifact: Artifact) -> list[Figure]:
    """Conversations used, loss on learnt tokens, learning rate, gradient norm, speed."""
    from stages.training import figures as shared
    from stages.training.telemetry_figures import telemetry_figures

    run = shared.TrainingRun(artifact, "training_step")
    conversations = run.account["conversations"]
    note = (
        "Mean cross-entropy over what the assistant says and the token that closes it; the "
        "conversations that are held out are never learnt."
    )
    return [
        shared.run_facts(run, ("epochs", run.account["epochs"])),
        shared.examples_table(
            "Conversations",
            conversations,
            ("assistant tokens, held-out ones included", conversations["targets"]),
        ),
        *shared.loss(run, "Loss on learnt tokens, nats", note),
        *shared.loss_by_source(run),
        *shared.optimizer_and_speed(run),
        *telemetry_figures(run),
    ]
