"""What learning from preferences contributes to a report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import InputError
from stages.engine.page import (
    Artifact,
    Axis,
    Cell,
    Figure,
    Pair,
    PairsFigure,
    Part,
    TableFigure,
    make_facts,
    make_table,
)
from stages.pairs.figures import held_out_pairs, reference_level, reward_curves

if TYPE_CHECKING:
    from stages.training.figures import TrainingRun
    from stages.training.masks import MaskedPair, Piece

SHOWN_PAIRS, PROMPT, HEADING = 3, 600, 200
"""Pairs whose text is shown; characters of the end of their prompt, and of the heading."""
UNWRITTEN = {
    "not_rendered": "the chat template does not render them",
    "content_dropped": "the chat template drops something that is said",
    "several_rows": "an answer of several turns, which the chat template writes as several",
}


def page(artifact: Artifact) -> list[Figure]:
    """Pairs used, loss, reward margin and accuracy, learning rate, gradient norm, speed."""
    if artifact.manifest.stage == "reference":
        return [reference_facts(artifact)]
    if artifact.manifest.stage == "reward":
        return reward_figures(artifact)
    from stages.training import figures as shared
    from stages.training.telemetry_figures import telemetry_figures

    run = shared.TrainingRun(artifact, "training_step")
    loss = run.account["loss"]
    name, beta = loss["name"], loss["beta"]
    answers = run.account.get("answers")
    margins = shared.smoothed(run.metric("reward_margin"), run.window)
    moved: Cell = round(float(margins[-1]) / beta, 4) if math.isfinite(margins[-1]) else None
    levels, loss_note = reference_level(run)
    return [
        shared.run_facts(
            run,
            ("epochs", run.account["epochs"]),
            ("loss", name),
            ("beta", beta),
            ("gamma", loss["gamma"] or None),
            ("label smoothing", loss["label_smoothing"] or None),
            ("weight of chosen answers' cross-entropy", loss["sft_weight"] or None),
            (
                "weight of undesirable answers",
                loss["undesirable_weight"] if name == "kto" else None,
            ),
            *((f"{one} answers to learn from", n) for one, n in (answers or {}).items()),
            ("log-probability margin won, nats", moved),
        ),
        used_pairs(run),
        *shared.loss(run, f"Loss ({name})", loss_note, **levels),
        *reward_curves(run),
        *held_out_pairs(run),
        *masks(artifact),
        *shared.optimizer_and_speed(run),
        *telemetry_figures(run),
    ]


def reward_figures(artifact: Artifact) -> list[Figure]:
    """Of a reward model: pairs used, loss, scores, accuracy, held-out pairs, speed."""
    from stages.training import figures as shared
    from stages.training.telemetry_figures import telemetry_figures

    run = shared.TrainingRun(artifact, "training_step")
    reward = run.account["reward"]
    levels = {} if reward["margin"] or reward["centring"] else {"equal scores": math.log(2)}
    return [
        shared.run_facts(
            run,
            ("epochs", run.account["epochs"]),
            ("margins, a field of the metadata", reward["margin"]),
            ("centring", reward["centring"] or None),
        ),
        used_pairs(run),
        *held_out_pairs(run),
        *shared.loss(run, "Loss (Bradley-Terry)", "", **levels),
        *run.curve(
            "Mean scores of a step",
            Axis("score", format=".3g"),
            {name: run.metric(f"{name}_reward") for name in ("chosen", "rejected")},
            note="Scores have no zero of their own; centring holds their mean near 0.",
        ),
        *run.curve(
            "Accuracy, share of pairs",
            Axis("share of pairs", format=".3f"),
            run.raw_and_smoothed("accuracy", "reward_accuracy"),
            levels={"chance": 0.5},
            note="Pairs whose chosen answer has the higher score, of the pairs of a step.",
        ),
        *masks(artifact),
        *shared.optimizer_and_speed(run),
        *telemetry_figures(run),
    ]


def used_pairs(run: TrainingRun) -> TableFigure:
    """How many pairs were learnt, held out, and left out for each reason."""
    from stages.training.figures import examples_table

    pairs = run.account["pairs"]
    unwritten = [
        (f"left out: {reason}", pairs[name])
        for name, reason in UNWRITTEN.items()
        if pairs.get(name)
    ]
    equal = ("left out: both answers equal", pairs["equal_answers"])
    return examples_table("Preference pairs", pairs, equal, *unwritten)


def masks(artifact: Artifact) -> list[Figure]:
    """Tokens by speaker, and some pairs with what is learnt of them marked.

    Empty where an input was collected since, or the artifact has none.
    """
    from stages.engine.protocol import stage_named
    from stages.preference.masks import first_pairs
    from stages.preference.pairs import PairReader

    manifest = artifact.manifest
    try:
        starts, preferences = artifact.input("checkpoint"), artifact.input("preferences")
    except InputError:
        return []
    if not starts:
        return []
    config: Any = stage_named(manifest.stage).Config.parse(manifest.config, where="its config")
    read = first_pairs(preferences, PairReader.from_config(config, starts[0]), SHOWN_PAIRS)
    rows = [(one.speaker, one.tokens, one.learnt, one.learnt / one.tokens) for one in read.shares]
    note = "Of both answers of the first pairs, with their prompts. `ingot show-masks` shows more."
    headings = "speaker | tokens:, | learnt:, | share learnt:.1%"
    tokens = make_table("Tokens by speaker", headings, rows, note)
    pairs = tuple(map(_masked_pair, read.pairs))
    marked = "Marked, between ⟦ and ⟧: what the loss is of."
    return [tokens, PairsFigure("What is learnt of pairs", pairs, marked)] if pairs else [tokens]


def _masked_pair(pair: MaskedPair) -> Pair:
    from stages.engine.tally import excerpt

    prompt = "".join(one.text for one in pair.prompt)
    cut = f"… {prompt[-PROMPT:]}" if len(prompt) > PROMPT else prompt
    left, right = (_parts(cut, side[len(pair.prompt) :]) if side else () for side in pair.sides)
    requests = [one.text for one in pair.prompt if one.speaker in ("user", "tool")]
    heading = excerpt(requests[-1] if requests else prompt, HEADING)
    return Pair(heading, "chosen", "rejected", left, right, (("source", pair.source),))


def _parts(prompt: str, answer: Sequence[Piece]) -> tuple[Part, ...]:
    marked = (
        Part(f"⟦{one.text}⟧" if one.learnt else one.text, differs=one.learnt) for one in answer
    )
    return Part(prompt), *marked


def reference_facts(artifact: Artifact) -> TableFigure:
    """Of log-probabilities that many runs share: how many, and what they belong to."""
    made = artifact.output("reference")
    belongs = made.read_json("reference.json")
    table = made.read_table("pairs.parquet")
    chosen, rejected = (table[name].to_numpy() for name in ("chosen", "rejected"))
    return make_facts(
        "Reference log-probabilities",
        (
            ("pairs", len(chosen)),
            ("mean of chosen answers, nats", round(float(chosen.mean()), 3)),
            ("mean of rejected answers, nats", round(float(rejected.mean()), 3)),
            (
                "share of pairs whose chosen answer is likelier",
                round(float((chosen > rejected).mean()), 3),
            ),
            ("too long", belongs["too_long"]),
            ("precision", belongs["precision"]),
        ),
    )
