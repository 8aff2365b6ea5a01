"""The card's section on training data: what was read, what was redacted, what was looked for."""

from __future__ import annotations

from collections.abc import Sequence

from artifacts_schema.identity import short
from artifacts_schema.manifest import InputRef
from stages.export.provenance import Applied, Origin, TrainingData, Treatment


def data_section(data: Sequence[TrainingData], origins: Sequence[Origin], planted: str) -> str:
    """What each training stage read, and what is not known of the weights that it began with.

    `planted` is the table of defects caught, or empty.
    """
    parts = ["## Training data"]
    if not data:
        parts.append("Nothing above this checkpoint was trained here: its data is not known.")
    parts += [_described(one) for one in data]
    parts += [_origin(one) for one in origins]
    if planted:
        parts.append(
            "Defects were planted in the crawl. The share of each that the pipeline caught "
            "(`none`: the share of sound documents that it kept) measures the corpus, not the "
            "model."
            f"\n\n{planted}"
        )
    return "\n\n".join(parts)


def _described(one: TrainingData) -> str:
    trained = f"`{one.trained[0]}/{short(one.trained[1])}`"
    lines = [
        f"{trained} was trained on {one.data.kind.replace('_', ' ')} {_name(one.data)}:\n",
        *_personal_data(one),
        *_benchmarks(one),
        *_forget_lists(one.forget_lists),
    ]
    return "\n".join(lines)


def _origin(one: Origin) -> str:
    name = _name(one.checkpoint)
    if one.recorded:
        return (
            f"It began with the weights of {name}, trained elsewhere: that data, and what was done "
            "to it, is not known."
        )
    return (
        f"It began with the weights of {name}, which was collected from the store: what that was "
        "trained on, and what was done to it, is not known here."
    )


def _personal_data(one: TrainingData) -> list[str]:
    if one.personal_data == "none":
        return ["- Personal data and secrets: not looked for."]
    lines = [f"- Personal data and secrets, {_treated(treatment)}" for treatment in one.treatments]
    if one.personal_data == "part":
        lines.append("- Part of this data went through no step that looks for personal data.")
    return lines


def _treated(treatment: Treatment) -> str:
    """`by filter/…: redacted: email, phone. Documents dropped for: none. Kept: secret.`"""
    step = f"`{treatment.step[0]}/{short(treatment.step[1])}`"
    if treatment.covers != "all":
        step += ", which part of this data went through"
    redacted, dropped, kept = (
        ", ".join(sorts) or "none"
        for sorts in (treatment.redacted, treatment.dropped, treatment.kept)
    )
    return f"by {step}: redacted: {redacted}; dropped with what holds it: {dropped}; kept: {kept}."


def _benchmarks(one: TrainingData) -> list[str]:
    if one.decontaminated == "none":
        return ["- Not compared with any benchmark."]
    all_of_it, part = (
        ", ".join(_name(applied.given) for applied in one.benchmarks if applied.covers == covers)
        for covers in ("all", "part")
    )
    if not one.benchmarks:
        collected = "that were collected"
        all_of_it, part = (collected, "") if one.decontaminated == "all" else ("", collected)
    rule = "what overlaps beyond the thresholds of the filter was left out"
    lines = [f"- Compared with benchmarks {all_of_it}; {rule}."] if all_of_it else []
    if part:
        lines.append(f"- Part of this data was compared with benchmarks {part}; {rule}.")
    return lines


def _forget_lists(applied: Sequence[Applied]) -> list[str]:
    if not applied:
        return ["- No list of documents to forget was applied."]
    lines = []
    for covers, reach in (("all", ""), ("part", " to part of this data")):
        count = sum(one.covers == covers for one in applied)
        if count:
            lists = "list" if count == 1 else "lists"
            lines.append(f"- {count} {lists} of documents to forget applied{reach}.")
    return lines


def _name(reference: InputRef) -> str:
    return f"`{reference.stage}/{short(reference.key)}`"
