"""Figures that pretraining alone has: held-out bits per byte, mixture, token account, model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stages.engine.figures import (
    Axis,
    BarFigure,
    Bars,
    Cell,
    Column,
    CurveFigure,
    Figure,
    Series,
    TableFigure,
    number,
)

COMPARED = 3
"""Curves that each have their baseline beside them; of more, only that of all sources does."""

if TYPE_CHECKING:
    from stages.engine.page import Artifact
    from stages.training.figures import TrainingRun


def held_out_table(artifact: Artifact, title: str) -> TableFigure:
    """Bits per byte by source: unigram model, first measurement, last measurement."""
    run = artifact.output("training_run")
    baseline: dict[str, float] = run.read_json("run.json")["unigram_bits_per_byte"]
    rows = run.read_table("held_out.parquet").sort_by("training_step").to_pylist()
    measured: dict[str, list[float]] = {}
    for row in rows:
        if row["bits_per_byte"] is not None:
            measured.setdefault(row["source"], []).append(row["bits_per_byte"])
    return TableFigure(
        title,
        (
            Column("source"),
            number("unigram", ".3f"),
            number("first", ".3f"),
            number("last", ".3f"),
            number("below unigram", ".1%"),
        ),
        tuple(
            (source, baseline[source], values[0], values[-1], 1 - values[-1] / baseline[source])
            for source, values in sorted(measured.items())
            if source in baseline
        ),
    )


def held_out_curves(run: TrainingRun) -> list[Figure]:
    """Held-out bits per byte by source over tokens, beside the unigram model's."""
    baseline: dict[str, float] = run.account["unigram_bits_per_byte"]
    measured = run.held_out("bits_per_byte")
    if not measured:
        return []
    ends = (0.0, float(run.x[-1]))
    compared = measured if len(measured) <= COMPARED else ("all",)
    levels = [
        Series(f"{source}: unigram", ends, (baseline[source], baseline[source]))
        for source in compared
        if source in baseline
    ]
    return [
        CurveFigure(
            "Held-out bits per byte by source",
            run.axis,
            Axis("bits per byte", format=".3f"),
            (*measured.values(), *levels),
            run.marks,
            "Lower is better. `unigram` is a model that knows the frequency of each token alone.",
        )
    ]


@dataclass(frozen=True)
class Mixed:
    """Tokens of a phase by source: weight and positions as planned, and what was read of them."""

    weights: Mapping[str, float]
    planned: Mapping[str, int]
    realised: Mapping[str, int]

    def shares(self, source: str) -> tuple[float, float | None]:
        """Of the plan, and of the tokens read, if any were."""
        read = sum(self.realised.values())
        return self.weights.get(source, 0.0), self.realised[source] / read if read else None


def mixtures(run: TrainingRun) -> list[Mixed]:
    """What each phase planned and what it read, skipped updates included, padding not."""
    import numpy as np

    sources: dict[str, dict[str, Any]] = run.account["sources"]
    phases: list[dict[str, Any]] = run.account["phases"]
    phase = run.metric("phase").astype(int)
    read = {name: np.bincount(phase, run.metric(f"tokens/{name}"), len(phases)) for name in sources}
    available = sum(one["available_sequences"] for one in sources.values())
    by_size = {name: one["available_sequences"] / available for name, one in sources.items()}
    return [
        Mixed(
            weights=planned["mixture"] or by_size,
            planned={
                name: one["planned_sequences_by_phase"][index] * planned["sequence_length"]
                for name, one in sources.items()
            },
            realised={name: int(read[name][index]) for name in sources},
        )
        for index, planned in enumerate(phases)
    ]


def mixture_bars(mixed: list[Mixed]) -> BarFigure:
    """Shares of the sources, phase by phase, planned and realised."""
    names = sorted({name for one in mixed for name in one.planned})
    labels = [
        f"phase {index + 1}, {what}"
        for index in range(len(mixed))
        for what in ("planned", "realised")
    ]
    series = [
        Bars(name, tuple(share for one in mixed for share in one.shares(name))) for name in names
    ]
    return BarFigure(
        "Mixture planned and realised",
        tuple(labels),
        Axis("share", format=".1%"),
        tuple(series),
        stacked=True,
        label="phase",
        note="Planned shares are of sequences, realised ones of tokens without padding: a source "
        "whose sequences are less full falls short of its plan.",
    )


def mixture_table(mixed: list[Mixed]) -> TableFigure:
    """The numbers behind the shares."""
    rows: list[tuple[Cell, ...]] = []
    for index, one in enumerate(mixed):
        for name in sorted(one.planned):
            planned, read = one.shares(name)
            rows.append((index + 1, name, planned, one.planned[name], one.realised[name], read))
    columns = (
        number("phase"),
        Column("source"),
        number("share planned", ".1%"),
        number("planned positions"),
        number("tokens read"),
        number("share read", ".1%"),
    )
    note = "Positions include padding; tokens do not."
    return TableFigure("Tokens by phase and source", columns, tuple(rows), note)


def token_account(run: TrainingRun) -> TableFigure:
    """What there was of each source, what was read of it and how often, what is left."""
    sources: dict[str, dict[str, Any]] = run.account["sources"]
    columns = (
        Column("source"),
        number("available tokens"),
        number("planned positions"),
        number("tokens read"),
        number("epochs", ".2f"),
        number("sequences"),
        number("never read"),
    )
    names = (
        "available_tokens",
        "planned_tokens",
        "realised_tokens",
        "epochs",
        "available_sequences",
        "unseen_sequences",
    )
    rows: list[tuple[Cell, ...]] = [
        (name, *(one[n] for n in names)) for name, one in sorted(sources.items())
    ]
    if len(rows) > 1:
        total = {n: sum(one[n] for one in sources.values()) for n in names if n != "epochs"}
        rows.append(("all", *(total.get(n) for n in names)))
    note = (
        "Epochs: how often the plan reads a sequence of the source. `never read` are sequences "
        "that are left for a longer run."
    )
    return TableFigure("Token account by source", columns, tuple(rows), note)


def phases_table(run: TrainingRun) -> TableFigure:
    """The phases as they were planned."""
    rows: list[tuple[Cell, ...]] = []
    peak: float | None = None
    for index, phase in enumerate(run.account["phases"]):
        rate = phase["learning_rate"]
        peak = rate["peak"] or peak
        rows.append(
            (
                index + 1,
                phase["training_steps"],
                phase["tokens"],
                phase["sequences_per_batch"],
                phase["sequence_length"],
                peak,
                rate["warmup_share"],
                rate["decay"],
            )
        )
    columns = (
        number("phase"),
        number("training steps"),
        number("positions"),
        number("sequences a batch"),
        number("sequence length"),
        number("peak learning rate", ".3g"),
        number("warmup", ".0%"),
        Column("decay"),
    )
    return TableFigure("Phases", columns, tuple(rows))


def model_facts(run: TrainingRun) -> TableFigure:
    """The decoder's shape and size, and the arithmetic that went into it."""
    from stages.model.config import ModelConfig
    from stages.model.count import count_parameters, training_flops_per_token

    checkpoint = run.artifact.output("checkpoint")
    model = ModelConfig.parse(checkpoint.read_json("model.json"), where="model.json")
    count, tokens = count_parameters(model), run.account["tokens"]
    flops = training_flops_per_token(model, model.context) * tokens
    rows: tuple[tuple[Cell, ...], ...] = (
        ("parameters", count.total),
        ("parameters without embeddings", count.without_embeddings),
        ("layers", model.layers),
        ("width", model.width),
        ("query heads", model.heads),
        ("key and value heads", model.kv_heads),
        ("SwiGLU width", model.mlp_width),
        ("context, tokens", model.context),
        ("vocabulary", model.vocabulary_size),
        ("embeddings", "tied" if model.tied_embeddings else "not tied"),
        ("tokens per parameter", round(tokens / count.total, 2)),
        ("training FLOPs", f"{flops:.3g}"),
    )
    note = "FLOPs: forward and backward pass at full context (PaLM, appendix B)."
    return TableFigure("Model", (Column(""), number("value")), rows, note)
