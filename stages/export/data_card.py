"""The card's section on training data: what was read, what was redacted, what was looked for."""

from __future__ import annotations

from collections.abc import Sequence

from artifacts_schema.identity import short
from artifacts_schema.manifest import InputRef
from stages.export.provenance import Coverage, TrainingData, Treatment


def data_section(data: Sequence[TrainingData], planted: str) -> str:
    """What each training stage read; `planted` is the table of defects caught, or empty."""
    parts = ["## Training data"]
    if not data:
        parts.append("Nothing above this checkpoint was trained here: its data is not known.")
    parts += [_described(one) for one in data]
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
        f"- {_benchmarks(one)}",
        f"- {_forget_lists(one.forget_lists)}",
    ]
    return "\n".join(lines)


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
    redacted, dropped, kept = (
        ", ".join(sorts) or "none"
        for sorts in (treatment.redacted, treatment.dropped, treatment.kept)
    )
    return f"by {step}: redacted: {redacted}; dropped with what holds it: {dropped}; kept: {kept}."


def _benchmarks(one: TrainingData) -> str:
    covers: dict[Coverage, str] = {
        "all": "Compared with benchmarks",
        "part": "Compared in part with benchmarks",
        "none": "Not compared with any benchmark.",
    }
    if one.decontaminated == "none":
        return covers["none"]
    names = ", ".join(_name(reference) for reference in one.benchmarks) or "that were collected"
    rule = "what overlaps beyond the thresholds of the filter was left out"
    return f"{covers[one.decontaminated]} {names}; {rule}."


def _forget_lists(count: int) -> str:
    if not count:
        return "No list of documents to forget was applied."
    return f"{count} list{'s' if count > 1 else ''} of documents to forget applied."


def _name(reference: InputRef) -> str:
    return f"`{reference.stage}/{short(reference.key)}`"
