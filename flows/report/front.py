"""The first page of a report: a verdict, the numbers a colleague asks for, and what to do next.

All of it follows from manifests, kinds and the figures of the stages; no stage is known by name.
Sentences are made by rules from numbers that the page shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from artifacts_schema.errors import IngotError
from artifacts_schema.store.runs import run_ids
from flows.recipe.recipe import BUNDLED
from flows.report.display import finite_values
from flows.report.estimates import VARIANT, Score, list_scores
from flows.report.overview import (
    MADE_OF_A_SAMPLE,
    Fact,
    brings_documents,
    count_documents,
    effort,
    kinds_in,
    kinds_out,
    manifest_of,
)
from flows.report.subject import Page, Step, Subject, sample_text
from stages.engine.page import (
    Artifact,
    BarFigure,
    CurveFigure,
    Series,
    TableFigure,
    TextFigure,
    make_bars,
    make_table,
)

SCORES, BARS, NAMES = 6, 6, 2
"""Scores in the table, steps in the funnel, and names listed in a sentence."""
SAMPLE = 420
"""Characters of the text sample."""


@dataclass(frozen=True)
class Command:
    """A command to type next, and what it does."""

    line: str
    purpose: str


@dataclass(frozen=True)
class Front:
    """What the first page shows, each part absent where the run has nothing for it."""

    verdict: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    funnel: BarFigure | None = None
    curve: CurveFigure | None = None
    scores: TableFigure | None = None
    sample: TextFigure | None = None
    commands: tuple[Command, ...] = field(default=())


def front_page(subject: Subject, pages: Sequence[Page]) -> Front:
    """The first page of one run."""
    scores = list_scores(subject, pages)
    main = main_training(subject)
    curve = loss_curve(main, pages) if main else None
    return Front(
        verdict=tuple(_verdict(subject, main, curve, scores)),
        facts=tuple(_facts(subject, main)),
        funnel=_funnel(subject),
        curve=curve,
        scores=_scores_table(scores),
        sample=_sample(subject),
        commands=tuple(_commands(subject, scores)),
    )


# Training ----------------------------------------------------------------------------------------


def main_training(subject: Subject) -> Step | None:
    """The training run that read most tokens; None if there is none."""
    trained = [s for s in subject.made if "training_run" in kinds_out(s)]
    return max(trained, key=lambda s: manifest_of(s).counts.get("tokens", 0), default=None)


def loss_curve(step: Step, pages: Sequence[Page]) -> CurveFigure | None:
    """The first curve of a loss on the page of a step, or else its first curve."""
    page = next(page for page in pages if page.step.instance == step.instance)
    curves = [f for f in page.figures if isinstance(f, CurveFigure)]
    losses = [curve for curve in curves if curve.y.label.startswith("loss")]
    curve = next(iter([*losses, *curves]), None)
    return replace(curve, title=f"{curve.title} ({step.instance})") if curve is not None else None


def count_model(subject: Subject, step: Step) -> int | None:
    """Parameters of the checkpoint that a step made; None if it says nothing about its shape."""
    from stages.model.config import ModelConfig
    from stages.model.size import count_parameters

    artifact = Artifact(subject.store, manifest_of(step))
    for name, output in manifest_of(step).outputs.items():
        if output.kind == "checkpoint":
            try:
                shape = artifact.output(name).read_json("model.json")
                return count_parameters(ModelConfig.parse(shape, where="model.json")).total
            except (IngotError, OSError):  # Collected, damaged, or written by another program.
                return None
    return None


def _main_series(curve: CurveFigure) -> Series | None:
    """The held-out curve where there is one, else the smoothest: the last that is not faint."""
    drawn = [s for s in curve.series if len(finite_values(s.y)) > 1 and not s.faint]
    held_out = [s for s in drawn if "held out" in s.name]
    return next(iter([*held_out, *drawn]), None)


# The verdict -------------------------------------------------------------------------------------


def _verdict(
    subject: Subject, main: Step | None, curve: CurveFigure | None, scores: Sequence[Score]
) -> Iterator[str]:
    """At most three sentences: on the documents, on the training, on the scores."""
    documents = _on_documents(subject)
    if documents:
        yield documents
    if main is not None:
        yield _on_training(subject, main, curve)
    if scores:
        yield _on_scores(scores)


def _on_documents(subject: Subject) -> str:
    read, kept, _ = count_documents(subject.made)
    if not read:
        return ""
    text = f"{read:,} records were read and {kept:,} documents kept ({kept / read:.1%})"
    lost = [
        (count, step.instance, reason)
        for step in _accounting(subject)
        for reason, count in _dropped(step).items()
    ]
    if not lost:
        return f"{text}; none was dropped."
    count, step, reason = max(lost)
    return f"{text}; the most frequent reason to drop one was {reason} ({step}, {count:,})."


def _on_training(subject: Subject, main: Step, curve: CurveFigure | None) -> str:
    parameters = count_model(subject, main)
    tokens = manifest_of(main).counts.get("tokens")
    model = f"a model of {parameters:,} parameters" if parameters else "a model"
    on = f" on {tokens:,} tokens" if tokens else ""
    text = f"{main.instance} trained {model}{on}"
    later = [
        s.instance
        for s in subject.made
        if "training_run" in kinds_out(s) and s.instance != main.instance
    ]
    after = f", and {_join(later)} trained further" if later else ""
    series = _main_series(curve) if curve is not None else None
    if curve is None or series is None:
        return f"{text}{after}."
    return f"{text}{after}; {_movement(curve, series)}."


def _movement(curve: CurveFigure, series: Series) -> str:
    """How a curve moved, with its lowest point where that is clearly below its end."""
    points = [(x, y) for x, y in zip(series.x, series.y, strict=True) if y is not None]
    values = [y for _, y in points]
    what = "held-out loss" if "held out" in series.name else curve.y.label.partition(",")[0]
    unit = curve.y.label.partition(", ")[2]
    first, last = (f"{value:,.4g}" for value in (values[0], values[-1]))
    lowest_at, lowest = min(points, key=lambda point: point[1])
    verb = "fell" if values[-1] < values[0] else "rose" if values[-1] > values[0] else "stayed"
    text = f"{what} {verb} from {first} to {last} {unit}".rstrip()
    if values[0] > lowest and values[-1] - lowest > 0.02 * (values[0] - lowest):
        at = f"{lowest_at:{curve.x.format}} {curve.x.label}"
        text += f", but was lowest ({lowest:,.4g}) before its end, at {at}"
    return text


def _on_scores(scores: Sequence[Score]) -> str:
    """Of variants of a metric (`docstrings · accuracy_by_bytes`) only the usual one counts."""
    usual = [s for s in scores if VARIANT not in s.estimate.name]
    by = {
        outcome: [s.name for s in usual if s.outcome == outcome]
        for outcome in ("better", "no different", "worse")
    }
    known = sum(map(len, by.values()))
    if not known:
        return f"{len(scores)} scores were measured; none has an interval and a baseline."
    phrases = {
        "better": "better than it beyond chance",
        "no different": "no different from it",
        "worse": "worse than it",
    }
    parts = [
        f"{len(names) or 'none'} {'are' if len(names) > 1 else 'is'} {phrases[outcome]}"
        + _named(names)
        for outcome, names in by.items()
        if names or outcome == "better"
    ]
    return f"Of {known} scores with a baseline, {_join(parts)}."


def _named(names: Sequence[str]) -> str:
    if not names:
        return ""
    names = list(dict.fromkeys(names))
    rest = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    return f" ({', '.join(names[:NAMES])}{rest})"


def _join(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)


# Numbers -----------------------------------------------------------------------------------------


def _facts(subject: Subject, main: Step | None) -> Iterator[Fact]:
    read, kept, entries = count_documents(subject.made)
    if read:
        yield Fact("records read", read, ",", ", ".join(entries[:3]))
        yield Fact("documents kept", kept, ",", f"{kept / read:.1%} of these")
    if main is not None:
        parameters = count_model(subject, main)
        if parameters:
            yield Fact("parameters", parameters, ",", f"model of {main.instance}")
        tokens = manifest_of(main).counts.get("tokens")
        if tokens:
            yield Fact("tokens trained on", tokens, ",", main.instance)
    yield from effort(subject.made)


def _accounting(subject: Subject) -> list[Step]:
    """Steps that account for records, without those that read a sample of them."""
    return [
        s
        for s in subject.made
        if manifest_of(s).conservation is not None and not kinds_out(s) & MADE_OF_A_SAMPLE
    ]


def _dropped(step: Step) -> dict[str, int]:
    account = manifest_of(step).conservation
    return dict(account.dropped) if account is not None else {}


def _funnel(subject: Subject) -> BarFigure | None:
    """Kept and dropped of the steps where documents enter or are dropped, at most a few."""
    steps = _accounting(subject)
    if not steps:
        return None

    def importance(step: Step) -> tuple[bool, int]:
        return not brings_documents(step), -sum(_dropped(step).values())

    chosen = sorted(steps, key=importance)[:BARS]
    chosen = [s for s in steps if s in chosen and (_dropped(s) or not importance(s)[0])]
    accounts = [account for s in chosen if (account := manifest_of(s).conservation) is not None]
    if not accounts:
        return None
    return make_bars(
        "What went in and what came out",
        [s.instance for s in chosen],
        "records:,",
        {
            "kept": [account.out for account in accounts],
            "dropped": [account.records_in - account.out for account in accounts],
        },
        stacked=True,
        label="step",
    )


def _scores_table(scores: Sequence[Score]) -> TableFigure | None:
    """The scores with a baseline first, those of the usual metric before variants of it."""
    if not scores:
        return None
    ranked = sorted(scores, key=lambda s: (s.outcome == "unknown", VARIANT in s.estimate.name))
    rows = (
        (
            s.estimate.name,
            s.checkpoint or s.step,
            s.axis.label,
            s.show(s.estimate.value),
            s.interval,
            s.show(s.estimate.baseline),
            "" if s.outcome == "unknown" else s.outcome,
        )
        for s in ranked[:SCORES]
    )
    rest = f" {len(scores) - SCORES} more are below." if len(scores) > SCORES else ""
    note = f"Baselines: chance, or a model of token frequencies.{rest}"
    headings = "score | model | measure | value: | 95 %: | baseline: | against it"
    return make_table("Scores", headings, rows, note)


def _sample(subject: Subject) -> TextFigure | None:
    """What the last evaluated checkpoint wrote, if its evaluation kept a text."""
    for step in reversed(subject.made):
        if "evaluation" in kinds_out(step):
            sample = sample_text(subject, step)
            if sample is not None:
                text = sample.text if len(sample.text) <= SAMPLE else f"{sample.text[:SAMPLE]}…"
                title = f"A text of the model ({step.instance})"
                return TextFigure(title, text, "▸ marks where the model took over." * ("▸" in text))
    return None


# What to do next ---------------------------------------------------------------------------------


def _commands(subject: Subject, scores: Sequence[Score]) -> Iterator[Command]:
    recipe = subject.run.recipe if subject.run is not None else None
    if subject.state != "done" and recipe is not None:
        file = recipe if (BUNDLED / f"{recipe}.yaml").exists() else f"{recipe}.yaml"
        yield Command(f"ingot run {file}", "continue: what is finished is kept")
        yield Command(f"ingot plan {file}", "see what is left, and why")
    filters = [s for s in subject.made if "ledger" in kinds_out(s) and "documents" in kinds_in(s)]
    if filters:
        name = _reference(subject, filters[-1])
        yield Command(f"ingot what-if {name}", "other thresholds, without running anything")
        yield Command("ingot why DOCUMENT", "the way of one document, from record to tokens")
        if _has_snapshots(subject):
            whole = recipe or subject.title
            yield Command(f"ingot report {whole} --corpus", "what the newest snapshot added")
    yield from _use_the_model(subject)
    main = main_training(subject)
    if main is not None and any(s.outcome != "better" for s in scores):
        name = _reference(subject, main)
        yield Command(f"ingot extend {name} --tokens N", "a recipe that trains it for longer")
    if recipe is not None and subject.run is not None:
        earlier = [one for one in run_ids(subject.store, recipe) if one < subject.run.id]
        if earlier:
            other = f"{recipe}@{earlier[-1]}"
            yield Command(f"ingot report {recipe} --against {other}", "what changed, beyond chance")
    name = recipe or subject.title
    yield Command(f"ingot report {name} --full", "this report with every chapter open, for print")


def _has_snapshots(subject: Subject) -> bool:
    """Whether a step that documents enter by was repeated, as for several snapshots."""
    steps = [s.instance.partition("[")[0] for s in subject.made if brings_documents(s)]
    return len(set(steps)) < len(steps)


def _use_the_model(subject: Subject) -> Iterator[Command]:
    """How to write with the released model, or with the last checkpoint."""
    models = [s for s in subject.made if kinds_out(s) & {"checkpoint", "release"}]
    if not models:
        return
    tuned = any(kinds_in(s) & {"conversations", "preferences"} for s in models)
    name = _reference(subject, models[-1])
    line = f"ingot chat {name}" if tuned else f"ingot complete {name} 'TEXT'"
    yield Command(line, "write with the model")


def _reference(subject: Subject, step: Step) -> str:
    """A name that commands take: RECIPE/STEP if that points to this artifact, else the key."""
    manifest = manifest_of(step)
    if subject.run is not None:
        name = f"{subject.run.recipe}/{step.instance}"
        ref = subject.store.ref(name)
        if ref is not None and (ref.stage, ref.key) == (manifest.stage, manifest.key):
            return name
    return manifest.key[:12]
