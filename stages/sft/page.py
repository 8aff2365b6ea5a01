"""What supervised fine-tuning contributes to a report."""

from __future__ import annotations

from typing import Any

from stages.engine.page import Artifact, Column, Figure, TableFigure, number


def page(artifact: Artifact) -> list[Figure]:
    """Conversations used, loss on learnt tokens, learning rate, gradient norm, speed."""
    from stages.training import figures as shared
    from stages.training.telemetry_figures import telemetry_figures

    run = shared.TrainingRun(artifact, "training_step")
    note = (
        "Mean cross-entropy over what the assistant says and the token that closes it; the "
        "conversations that are held out are never learnt."
    )
    return [
        shared.run_facts(run, ("epochs", run.account["epochs"])),
        conversations_table(run.account["conversations"]),
        *shared.loss(run, "Loss on learnt tokens, nats", note),
        *shared.loss_by_source(run),
        *shared.learning_rate(run),
        *shared.gradient_norm(run),
        *shared.throughput(run),
        *telemetry_figures(run),
    ]


def conversations_table(account: dict[str, Any]) -> TableFigure:
    """How many conversations were learnt, held out, cut and left out; what was not used."""
    from stages.training.examples import unused_rows

    rows = (
        ("learnt", account["train"]),
        ("held out", account["held_out"]),
        ("of these cut to the context", account["truncated"]),
        ("left out: longer than the context", account["too_long"]),
        ("left out: nothing to learn", account["nothing_to_learn"]),
        ("assistant tokens, held-out ones included", account["targets"]),
        *unused_rows(account),
    )
    return TableFigure("Conversations", (Column(""), number("count")), rows)
