"""Figures that pretraining alone has: mixture, token account, checkpoints, phases, model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from artifacts_schema.identity import short
from stages.engine.page import Axis, BarFigure, Cell, Figure, TableFigure, make_bars, make_table

if TYPE_CHECKING:
    from stages.model.config import ModelConfig
    from stages.training.figures import Floats, TrainingRun


COMPARED = 3
"""Up to so many curves are drawn with their baseline; of more, only that of all sources is."""


NONE = "(none)"
"""The language of documents that declare none."""


@dataclass(frozen=True)
class PhaseTokens:
    """Tokens of a phase by source: positions as planned, and tokens as they were read."""

    planned: Mapping[str, int]
    realised: Mapping[str, int]

    def shares(self, source: str) -> tuple[float | None, float | None]:
        """Of the plan, and of the tokens read, if there are any."""
        planned, read = sum(self.planned.values()), sum(self.realised.values())
        return (
            self.planned[source] / planned if planned else None,
            self.realised[source] / read if read else None,
        )


def mixtures(run: TrainingRun) -> list[PhaseTokens]:
    """What each phase planned and what it read, skipped updates included, padding not."""
    import numpy as np

    sources: dict[str, dict[str, Any]] = run.account["sources"]
    phases: list[dict[str, Any]] = run.account["phases"]
    phase = run.metric("phase").astype(int)
    read = {name: np.bincount(phase, run.metric(f"tokens/{name}"), len(phases)) for name in sources}
    return [
        PhaseTokens(
            planned={
                name: one["planned_sequences_by_phase"][index] * planned["sequence_length"]
                for name, one in sources.items()
            },
            realised={name: int(read[name][index]) for name in sources},
        )
        for index, planned in enumerate(phases)
    ]


def mixture_curves(run: TrainingRun) -> list[Figure]:
    """Shares of the sources over the run, as read and (of few sources) as planned."""
    import numpy as np

    from stages.training.figures import smoothed

    names = sorted(run.account["sources"])
    if len(names) < 2:
        return []
    tokens = {name: run.metric(f"tokens/{name}") for name in names}
    total = np.sum(list(tokens.values()), axis=0)
    share = {name: read / np.maximum(total, 1) for name, read in tokens.items()}
    curves = {name: smoothed(share[name], run.window, total) for name in names}
    if len(names) <= COMPARED:
        curves |= {f"{name}: planned": one for name, one in planned_shares(run).items()}
    note = (
        f"Shares of the tokens of {run.window:,} training steps around each point, padding not "
        "counted; planned shares are of sequences."
    )
    return run.curve("Mixture over the run", Axis("share", format=".1%"), curves, note=note)


def planned_shares(run: TrainingRun) -> dict[str, Floats]:
    """[training steps] The weight of each source in the middle of each step that was run."""
    import numpy as np

    from stages.pretrain.config import read_sizes
    from stages.training.schedule import batch_stretches

    sources: dict[str, dict[str, Any]] = run.account["sources"]
    available = sum(one["available_sequences"] for one in sources.values())
    by_size = {name: one["available_sequences"] / available for name, one in sources.items()}
    of_step, begun = run.metric("phase").astype(int), 1
    results = {name: np.full(len(of_step), np.nan) for name in sources}
    for index, phase in enumerate(run.account["phases"]):
        rows = np.flatnonzero(of_step == index)
        parts = batch_stretches(read_sizes(phase["sequences_per_batch"]), phase["sequence_length"])
        positions = phase["tokens"] // phase["sequence_length"]
        steps = [*(one.steps for one in parts), phase["training_steps"]]
        reached = [*(one.positions for one in parts), positions]
        way = np.interp(run.steps[rows] - begun + 0.5, steps, reached) / positions
        begin = phase["mixture"] or by_size
        end = phase["mixture_end"] or begin
        for name in sources:
            first, last = begin.get(name, 0.0), end.get(name, 0.0)
            results[name][rows] = first + (last - first) * way
        begun += phase["training_steps"]
    return results


def mixture_bars(mixed: list[PhaseTokens]) -> BarFigure:
    """Shares of the sources, phase by phase, planned and realised."""
    names = sorted({name for one in mixed for name in one.planned})
    labels = [
        f"phase {index}, {what}"
        for index in range(1, len(mixed) + 1)
        for what in ("planned", "realised")
    ]
    return make_bars(
        "Mixture planned and realised",
        labels,
        "share:.1%",
        {name: [share for one in mixed for share in one.shares(name)] for name in names},
        stacked=True,
        label="phase",
        note="Planned shares are of sequences, realised ones of tokens without padding: a source "
        "whose sequences are less full falls short of its plan.",
    )


def mixture_table(mixed: list[PhaseTokens]) -> TableFigure:
    """The numbers behind the shares."""
    rows: list[tuple[Cell, ...]] = []
    for index, one in enumerate(mixed):
        for name in sorted(one.planned):
            planned, read = one.shares(name)
            rows.append((index + 1, name, planned, one.planned[name], one.realised[name], read))
    note = "Positions include padding; tokens do not."
    return make_table(
        "Tokens by phase and source",
        "phase:, | source | share planned:.1% | planned positions:, | tokens read:,"
        " | share read:.1%",
        rows,
        note,
    )


def token_accounts(run: TrainingRun) -> list[Figure]:
    """What there was, what was planned and read of it and how often, what is left."""
    results: list[Figure] = [
        _account(
            "Token account by source",
            "source",
            run.account["sources"],
            "Epochs: how often the plan reads a sequence of the source. Planned tokens are "
            "expected ones: of a part of an epoch, its share of the source's tokens.",
        )
    ]
    languages = {name or NONE: one for name, one in run.account["languages"].items()}
    if languages:
        note = f"By language it is {run.account['languages_are']}."
        results.append(_account("Token account by language", "language", languages, note))
    return results


def epoch_bars(run: TrainingRun) -> list[Figure]:
    """Epochs of each source against its cap."""
    sources: dict[str, dict[str, Any]] = run.account["sources"]
    names = sorted(sources)
    series = {"planned": [sources[name]["epochs"] for name in names]}
    caps = [sources[name]["max_epochs"] for name in names]
    if any(cap is not None for cap in caps):
        series["at most"] = caps
    return [make_bars("Epochs by source", names, "epochs:.2f", series, label="source")]


_ACCOUNT = {
    "available_tokens": "available tokens:,",
    "planned_tokens": "planned tokens:,",
    "realised_tokens": "tokens read:,",
    "epochs": "epochs:.2f",
    "max_epochs": "at most:.4g",
    "repeated_tokens": "repeated tokens:,",
    "left_tokens": "tokens left:,",
}


def _account(
    title: str, what: str, entries: Mapping[str, Mapping[str, Any]], note: str
) -> TableFigure:
    rows: list[tuple[Cell, ...]] = [
        (name, *(one.get(n) for n in _ACCOUNT)) for name, one in sorted(entries.items())
    ]
    if len(rows) > 1:
        totals = (
            sum(one[n] for one in entries.values()) if n.endswith("_tokens") else None
            for n in _ACCOUNT
        )
        rows.append(("all", *totals))
    return make_table(title, " | ".join([what, *_ACCOUNT.values()]), rows, note)


def permanent_checkpoints_table(run: TrainingRun) -> list[Figure]:
    """The permanent checkpoints: those that the run committed before its end."""
    kept = run.artifact.manifest.interims
    if not kept:
        return []
    rows = tuple((one.label, one.at, short(one.key)) for one in kept)
    note = "Each is an artifact of its own: STEP@TOKENS in a recipe, RECIPE/STEP@TOKENS elsewhere."
    return [
        make_table(
            "Checkpoints kept on the way", "after tokens | training step:, | key", rows, note
        )
    ]


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
    return make_table(
        "Phases",
        "phase:, | training steps:, | positions:, | sequences a batch:,"
        " | sequence length:, | peak learning rate:.3g | warmup:.0% | decay",
        rows,
    )


def model_facts(run: TrainingRun) -> TableFigure:
    """The decoder's shape and size, and the arithmetic that went into it."""
    from stages.model.config import ModelConfig
    from stages.model.size import count_parameters, training_flops_per_token

    checkpoint = run.artifact.output("checkpoint")
    model = ModelConfig.parse(checkpoint.read_json("model.json"), where="model.json")
    count, tokens = count_parameters(model), run.account["tokens"]
    flops = training_flops_per_token(model, model.context) * tokens
    rows: list[tuple[Cell, ...]] = [
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
        *_parts(model),
        ("tokens per parameter", round(tokens / count.total, 2)),
        ("training FLOPs", f"{flops:.3g}"),
    ]
    if count.active != count.total:
        rows.insert(1, ("parameters that a token meets", count.active))
    note = "FLOPs: forward and backward pass at full context (PaLM, appendix B)."
    return make_table("Model", " | value:,", rows, note)


def _parts(model: ModelConfig) -> Iterator[tuple[Cell, ...]]:
    """What the plain decoder does not have."""
    if model.latent is not None:
        yield "latent attention, key and value channels", model.latent.kv_rank
    if model.experts is not None:
        chosen = f"{model.experts.chosen} of {model.experts.experts}"
        yield "experts of a token", f"{chosen}, {model.experts.shared} shared"
    if model.window is not None:
        yield "sliding window, tokens", f"{model.window:,} in layers {model.window_pattern}"
    if model.nope_every:
        yield "layers without positions", f"every {model.nope_every}th"
    if model.rope_scaling is not None:
        yield "positions", f"{model.rope_scaling.kind}, factor {model.rope_scaling.factor:g}"
