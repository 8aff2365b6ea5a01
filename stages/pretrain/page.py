"""What a pretraining run contributes to a report."""

from __future__ import annotations

from stages.engine.figures import Figure
from stages.engine.page import Artifact
from stages.pretrain.bits_per_byte import held_out_tables

FIRST_AND_LAST = "Held-out bits per byte during training, first and last"


def summary(artifact: Artifact) -> list[Figure]:
    """Held-out bits per byte by source: token-unigram model, untrained model, last checkpoint."""
    tokens = artifact.manifest.counts["tokens"]
    return [
        *held_out_tables(
            artifact, f"held-out bits per byte during training, over {tokens:,} tokens"
        )
    ]


def page(artifact: Artifact) -> list[Figure]:
    """Run and model, curves over tokens, mixture and token account, planned beside realised."""
    from stages.pretrain import bits_per_byte as bits
    from stages.pretrain import figures as own
    from stages.training import figures as shared
    from stages.training.telemetry.figures import telemetry_figures

    run = shared.TrainingRun(artifact, "tokens")
    mixed = own.mixtures(run)
    held_out = bits.held_out_curves(run)
    loss_note = (
        "Mean cross-entropy of a step's targets; held-out loss is over all held-out sources, "
        "whose shares are not those of the mixture."
    )
    return [
        shared.run_facts(run),
        own.model_facts(run),
        own.phases_table(run),
        *held_out,
        *(held_out_tables(artifact, FIRST_AND_LAST) if held_out else []),
        *shared.loss(run, "Training loss, nats", loss_note),
        *shared.loss_by_source(run),
        *bits.training_bits(run),
        *shared.learning_rate(run),
        *shared.gradient_norm(run),
        *shared.throughput(run),
        *telemetry_figures(run),
        *own.kept_checkpoints(run),
        own.mixture_bars(mixed),
        *own.mixture_curves(run),
        own.mixture_table(mixed),
        *own.token_accounts(run),
        *own.epoch_bars(run),
    ]
