"""What a pretraining run contributes to a report.

Bits per byte, held out and of training: by source, and by language where that says more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stages.engine.page import Artifact, Axis, CurveFigure, Figure, Series, TableFigure, make_table
from stages.pretrain import figures as own
from stages.pretrain.figures import COMPARED, NONE

if TYPE_CHECKING:
    from stages.training.figures import TrainingRun


def held_out_tables(artifact: Artifact, title: str) -> list[TableFigure]:
    """Bits per byte by source, and by language: of the unigram model, at first, and at last."""
    run = artifact.output("training_run")
    account: dict[str, Any] = run.read_json("run.json")
    rows = run.read_table("held_out.parquet").sort_by("training_step").to_pylist()
    rows = [row for row in rows if row["bits_per_byte"] is not None]
    languages = [row for row in rows if row["language"] is not None]
    sources = [row for row in rows if row["language"] is None]
    by_source = _held_out_table(title, "source", sources, account["unigram_bits_per_byte"])
    by_language = _held_out_table(
        f"{title}, by language", "language", languages, account["unigram_bits_per_byte_by_language"]
    )
    if by_source.rows:
        by_source = replace(by_source, note=measured_on(artifact, account))
    known = {row[1:] for row in by_source.rows}
    adds = any(row[1:] not in known for row in by_language.rows)
    return [by_source, by_language] if adds else [by_source]


def measured_on(artifact: Artifact, account: Mapping[str, Any]) -> str:
    """Which held-out sequences a training run measures, and why an evaluation differs.

    On the same sequences both give the same number; bfloat16 moves it in the fourth decimal.
    """
    precision = {"bf16": "bfloat16", "fp16": "float16", "fp8": "bfloat16 and float8"}.get(
        artifact.manifest.layout.get("precision", ""), "float32"
    )
    return (
        f"Measured during training on {account['held_out_sequences']:,} held-out sequences "
        "(`max_held_out_sequences`), spread over the sources by their size, in "
        f"{precision}; `all` is over these. `evaluate` measures other sequences of each source, up "
        "to its own limit, in float32, so its numbers differ."
    )


def _held_out_table(
    title: str, by: str, rows: Sequence[Mapping[str, Any]], baseline: Mapping[str, float]
) -> TableFigure:
    measured: dict[str, list[float]] = {}
    for row in rows:
        measured.setdefault(row[by], []).append(row["bits_per_byte"])
    cells = (
        (name or NONE, baseline[name], values[0], values[-1], 1 - values[-1] / baseline[name])
        for name, values in sorted(measured.items())
        if name in baseline
    )
    headings = f"{by} | unigram:.3f | first:.3f | last:.3f | below unigram:.1%"
    return make_table(title, headings, cells)


def held_out_curves(run: TrainingRun) -> list[Figure]:
    """Held-out bits per byte over tokens by source and by language, with the unigram model's."""
    account = run.account
    title = "Held-out bits per byte during training, by source"
    baseline = account["unigram_bits_per_byte"]
    sources = run.held_out("bits_per_byte")
    results = _held_out_curves(run, title, sources, baseline)
    languages = run.held_out("bits_per_byte", "language")
    known = {series.y for series in sources.values()}
    if any(series.y not in known for series in languages.values()):
        title = "Held-out bits per byte during training, by language"
        baseline = account["unigram_bits_per_byte_by_language"]
        results += _held_out_curves(run, title, languages, baseline)
    return results


def _held_out_curves(
    run: TrainingRun, title: str, measured: Mapping[str, Series], baseline: Mapping[str, float]
) -> list[Figure]:
    if not measured:
        return []
    ends = (0.0, float(run.x[-1]))
    all_of_them = ("all",) if "all" in measured else ()
    compared = measured if len(measured) <= COMPARED else all_of_them
    levels = [
        Series(f"{name or NONE}: unigram", ends, (baseline[name], baseline[name]))
        for name in compared
        if name in baseline
    ]
    return [
        CurveFigure(
            title,
            run.axis,
            Axis("bits per byte", format=".3f"),
            (*measured.values(), *levels),
            run.marks,
            "Lower is better. `unigram` is a model that knows the frequency of each token alone. "
            + measured_on(run.artifact, run.account),
        )
    ]


def training_bits(run: TrainingRun) -> list[Figure]:
    """Bits per byte of what was read, by source and by language, from the training's own losses."""
    from stages.training.figures import smoothed

    results: list[Figure] = []
    known: set[bytes] = set()
    for title, prefix in (
        ("Training bits per byte by source", "bits_per_byte/"),
        ("Training bits per byte by language", "language_bits_per_byte/"),
    ):
        values = {name or NONE: run.metric(prefix + name) for name in run.named(prefix)}
        new = {one.tobytes() for one in values.values()} - known
        if len(values) > 1 and new:
            axis = Axis("bits per byte", format=".3f")
            note = f"Mean over the {run.window:,} training steps around each point."
            curves = {name: smoothed(one, run.window) for name, one in values.items()}
            results += run.curve(title, axis, curves, note=note)
        known |= new
    return results


FIRST_AND_LAST = "Held-out bits per byte during training, first and last"


def summary(artifact: Artifact) -> list[Figure]:
    """Held-out bits per byte by source: token-unigram model, untrained model, last checkpoint."""
    tokens = artifact.manifest.counts["tokens"]
    title = f"held-out bits per byte during training, over {tokens:,} tokens"
    return [*held_out_tables(artifact, title)]


def page(artifact: Artifact) -> list[Figure]:
    """Run and model, curves over tokens, mixture and token account, planned and realised."""
    from stages.pairs.figures import held_out_pairs, reference_level, reward_curves
    from stages.training import figures as shared
    from stages.training.telemetry_figures import telemetry_figures

    run = shared.TrainingRun(artifact, "tokens")
    mixed = own.mixtures(run)
    held_out = held_out_curves(run)
    loss_note = (
        "Mean cross-entropy of a step's targets; held-out loss is over all held-out sources, "
        "whose shares are not those of the mixture."
    )
    pairs: list[Figure] = []
    levels: dict[str, float] = {}
    if artifact.manifest.stage == "packed_preference":
        levels, loss_note = reference_level(run)
        loss_note = f"Mean loss of a step's pairs ({run.account['loss']['name']}). {loss_note}"
        pairs = [*held_out_pairs(run), *reward_curves(run)]
    distillation = artifact.manifest.config.get("distillation")
    divergences: list[Figure] = []
    if distillation is not None:
        loss_note += " In a step's loss the divergence from the teacher has its share."
        divergences = run.curve(
            f"Divergence from the teacher ({distillation.get('divergence', 'forward')}), nats",
            shared.LOSS,
            run.raw_and_smoothed("divergence", "divergence"),
            note="Mean over a step's targets.",
        )
    return [
        shared.run_facts(run),
        own.model_facts(run),
        own.phases_table(run),
        *held_out,
        *(held_out_tables(artifact, FIRST_AND_LAST) if held_out else []),
        *shared.loss(run, "Training loss, nats", loss_note, **levels),
        *pairs,
        *divergences,
        *shared.loss_by_source(run),
        *training_bits(run),
        *shared.optimizer_and_speed(run),
        *telemetry_figures(run),
        *own.permanent_checkpoints_table(run),
        own.mixture_bars(mixed),
        *own.mixture_curves(run),
        own.mixture_table(mixed),
        *own.token_accounts(run),
        *own.epoch_bars(run),
    ]
