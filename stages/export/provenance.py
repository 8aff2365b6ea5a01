"""What the card may claim: which evaluations are of this checkpoint, what was done to its data.

Both are read from the manifests above the checkpoint, by kinds and configs; no stage is known by
name. A claim about data holds only if every way from the training stage to the sources has it.
The card's section on training data is written here: what was read, redacted and compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import is_
from typing import Any, Literal

from artifacts_schema.identity import short
from artifacts_schema.manifest import InputRef, Manifest
from stages.engine import Input

Name = tuple[str, str]
"""(stage, key)."""
Relation = Literal["release", "earlier", "other"]
Coverage = Literal["all", "part", "none"]

MODELS = ("checkpoint", "reward_model")
"""Kinds of what a training stage makes."""
TRAINED_ON = ("token_shards", "conversations", "preferences", "teacher_log_probabilities")
RECORDS = (*TRAINED_ON, "documents")
"""Kinds that hold the records a model is trained on, in any of their forms."""
HELD_OUT = "held_out"

PERSONAL_DATA = "personal_data"
SECRET, SECRETS = "secret", "secrets"


@dataclass(frozen=True)
class Treatment:
    """What one step did with personal data: sorts by what became of them."""

    step: Name
    redacted: tuple[str, ...]
    dropped: tuple[str, ...]
    kept: tuple[str, ...]
    covers: Coverage = "all"
    """How much of the data went through this step."""

    @classmethod
    def read(cls, manifest: Manifest) -> Treatment | None:
        """From a step with a `personal_data` policy; None for any other.

        Text is redacted only where the view that finds the sort was given and applied.
        """
        policy = manifest.config.get(PERSONAL_DATA)
        if not isinstance(policy, Mapping):
            return None
        views = set(manifest.config.get("views", ()) if _has(manifest, "views") else ())
        sorts: dict[str, list[str]] = {"redact": [], "drop": [], "keep": []}
        for sort, treatment in sorted(policy.items()):
            view = SECRETS if sort == SECRET else PERSONAL_DATA
            applied = treatment != "redact" or view in views
            sorts[treatment if applied else "keep"].append(sort)
        redacted, dropped, kept = (tuple(sorts[name]) for name in ("redact", "drop", "keep"))
        return cls((manifest.stage, manifest.key), redacted, dropped, kept)


@dataclass(frozen=True)
class Applied:
    """Benchmarks or a list of documents to forget, and to how much of the data it was applied."""

    source: InputRef
    covers: Coverage

    def plain(self) -> dict[str, str]:
        """For `ingot.json`."""
        return {**full_name(self.source), "covers": self.covers}


@dataclass(frozen=True)
class Origin:
    """A checkpoint whose weights a training stage began with, and whose own data is not known.

    It was imported, or (`recorded` is false) collected from the store since.
    """

    checkpoint: InputRef
    recorded: bool

    def plain(self) -> dict[str, Any]:
        """For `ingot.json`."""
        return {**full_name(self.checkpoint), "recorded": self.recorded}


@dataclass(frozen=True)
class TrainingData:
    """One output that a training stage read, and what was done to it on its way."""

    trained: Name
    data: InputRef
    treatments: tuple[Treatment, ...]
    personal_data: Coverage
    benchmarks: tuple[Applied, ...]
    decontaminated: Coverage
    """How much was compared with any benchmark, also with one that is no longer in the store."""
    forget_lists: tuple[Applied, ...]

    def plain(self) -> dict[str, Any]:
        """For `ingot.json`."""
        return {
            "trained_in": {"stage": self.trained[0], "key": self.trained[1]},
            "data": full_name(self.data),
            "personal_data": {
                "covers": self.personal_data,
                "by": [
                    {
                        "stage": one.step[0],
                        "key": one.step[1],
                        "covers": one.covers,
                        "redacted": list(one.redacted),
                        "dropped": list(one.dropped),
                        "kept": list(one.kept),
                    }
                    for one in self.treatments
                ],
            },
            "decontaminated": {
                "covers": self.decontaminated,
                "benchmarks": [one.plain() for one in self.benchmarks],
            },
            "forget_lists": [one.plain() for one in self.forget_lists],
        }


@dataclass(frozen=True)
class Provenance:
    """A checkpoint's digest, and the manifests of it and of everything above it."""

    digest: str
    manifests: Sequence[Manifest]

    @classmethod
    def read(cls, checkpoint: Input) -> Provenance:
        """Of the checkpoint that is released."""
        return cls(checkpoint.digest, checkpoint.lineage())

    @cached_property
    def _by_name(self) -> dict[Name, Manifest]:
        return {(manifest.stage, manifest.key): manifest for manifest in self.manifests}

    def relation(self, measured: Sequence[InputRef]) -> Relation:
        """Whether these checkpoints are the released one, on the way to it, or neither.

        By digest: a score belongs to the bytes that were measured.
        """
        if measured and all(one.digest == self.digest for one in measured):
            return "release"
        above = all((one.stage, one.key) in self._above for one in measured)
        return "earlier" if measured and above else "other"

    @cached_property
    def _above(self) -> set[Name]:
        """Artifacts above the release, with what their runs committed on their way."""
        interims = {(m.stage, one.key) for m in self.manifests for one in m.interims}
        return set(self._by_name) | interims

    def has(self, references: Sequence[InputRef]) -> bool:
        """Whether all of these, and there is one, were made by artifacts above the release."""
        return bool(references) and all((r.stage, r.key) in self._by_name for r in references)

    def training_data(self) -> list[TrainingData]:
        """What each training stage above the release read, the last stage first."""
        return [
            self.described((manifest.stage, manifest.key), reference)
            for manifest in self.manifests
            if any(output.kind in MODELS for output in manifest.outputs.values())
            for reference in _trained_on(manifest)
        ]

    def origins(self) -> list[Origin]:
        """Checkpoints that the release's weights began with and that no stage here trained."""
        by_name: dict[Name, Origin] = {}
        weights = list(self.manifests[:1])
        for manifest in weights:
            for reference in input_references(manifest, "checkpoint"):
                name = (reference.stage, reference.key)
                above = self._by_name.get(name)
                if above is None:
                    by_name[name] = Origin(reference, recorded=False)
                elif _trained_on(above) or _has(above, "checkpoint"):
                    weights.append(above)
                else:
                    by_name[name] = Origin(reference, recorded=True)
        return list(by_name.values())

    def described(self, trained: Name, data: InputRef) -> TrainingData:
        """What was done to one output on its way to the stage `trained`, which read it."""
        steps = list(self.records_above(data))
        return TrainingData(
            trained,
            data,
            tuple(self._treatments(data, steps)),
            self._coverage(data, lambda step: Treatment.read(step) is not None),
            self._applied(data, steps, self._compared_with),
            self._coverage(data, lambda step: _has(step, "contamination")),
            self._applied(data, steps, lambda step: input_references(step, "exclusions")),
        )

    def _treatments(self, data: InputRef, steps: Sequence[Manifest]) -> Iterator[Treatment]:
        for step in steps:
            treatment = Treatment.read(step)
            if treatment is not None:
                yield replace(treatment, covers=self._coverage(data, partial(is_, step)))

    def _compared_with(self, step: Manifest) -> list[InputRef]:
        """Benchmarks behind the contamination reports that are inputs of a step."""
        looked = [
            self._by_name.get((r.stage, r.key)) for r in input_references(step, "contamination")
        ]
        return [r for one in looked if one is not None for r in input_references(one, "benchmarks")]

    def _applied(
        self,
        data: InputRef,
        steps: Sequence[Manifest],
        references: Callable[[Manifest], list[InputRef]],
    ) -> tuple[Applied, ...]:
        """The `references` of the steps, each content once, with the share of data it covers."""

        def covers(digest: str) -> Coverage:
            return self._coverage(data, lambda step: digest in {r.digest for r in references(step)})

        by_digest = {
            reference.digest: reference for step in steps for reference in references(step)
        }
        return tuple(Applied(one, covers(digest)) for digest, one in by_digest.items())

    def records_above(self, data: InputRef) -> Iterator[Manifest]:
        """Every step that the records went through, nearest first, each once."""
        waiting, seen = [(data.stage, data.key)], set[Name]()
        while waiting:
            name = waiting.pop(0)
            if name in seen or name not in self._by_name:
                continue
            seen.add(name)
            yield self._by_name[name]
            waiting += [(r.stage, r.key) for r in input_references(self._by_name[name], *RECORDS)]

    def _coverage(self, data: InputRef, does: Callable[[Manifest], bool]) -> Coverage:
        """Whether all records went through a step that `does`, some of them, or none."""
        known: dict[Name, Coverage] = {}

        def coverage(name: Name) -> Coverage:
            if name not in known:
                manifest = self._by_name.get(name)
                if manifest is None:
                    known[name] = "none"
                elif does(manifest):
                    known[name] = "all"
                else:
                    above = {
                        coverage((r.stage, r.key)) for r in input_references(manifest, *RECORDS)
                    }
                    known[name] = above.pop() if len(above) == 1 else "part" if above else "none"
            return known[name]

        return coverage((data.stage, data.key))


def input_references(manifest: Manifest, *kinds: str) -> list[InputRef]:
    """The inputs of a step of these kinds."""
    inputs = manifest.inputs.values()
    return [one for references in inputs for one in references if one.kind in kinds]


def _trained_on(manifest: Manifest) -> list[InputRef]:
    """The inputs that a stage trained a model on; empty if it trained none."""
    return [
        reference
        for role, references in manifest.inputs.items()
        if role != HELD_OUT
        for reference in references
        if reference.kind in TRAINED_ON
    ]


def _has(manifest: Manifest, kind: str) -> bool:
    return bool(input_references(manifest, kind))


def full_name(reference: InputRef) -> dict[str, str]:
    """How `ingot.json` names an artifact."""
    return {"stage": reference.stage, "key": reference.key, "digest": reference.digest}


def data_section(data: Sequence[TrainingData], origins: Sequence[Origin], planted: str) -> str:
    """What each training stage read, and what is not known of the weights that it began with.

    `planted` is the table of defects caught, or empty.
    """
    parts = ["## Training data"]
    if not data:
        parts.append("Nothing above this checkpoint was trained here: its data is not known.")
    parts += [_training_stage(one) for one in data]
    parts += [_origin(one) for one in origins]
    if planted:
        parts.append(
            "Defects were planted in the crawl. The share of each that the pipeline caught "
            "(`none`: the share of sound documents that it kept) measures the corpus, not the "
            "model."
            f"\n\n{planted}"
        )
    return "\n\n".join(parts)


def _training_stage(one: TrainingData) -> str:
    trained = f"`{one.trained[0]}/{short(one.trained[1])}`"
    head = f"{trained} was trained on {one.data.kind.replace('_', ' ')} {_short_name(one.data)}:\n"
    return "\n".join([head, *treatment_lines(one)])


def treatment_lines(one: TrainingData) -> list[str]:
    """What was done to data: personal data, benchmarks, documents to forget, as a Markdown list."""
    return [*_personal_data(one), *_benchmarks(one), *_forget_lists(one.forget_lists)]


def _origin(one: Origin) -> str:
    name = _short_name(one.checkpoint)
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
    lines = [
        f"- Personal data and secrets, {_treatment(treatment)}" for treatment in one.treatments
    ]
    if one.personal_data == "part":
        lines.append("- Part of this data went through no step that looks for personal data.")
    return lines


def _treatment(treatment: Treatment) -> str:
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
        ", ".join(
            _short_name(applied.source) for applied in one.benchmarks if applied.covers == covers
        )
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


def _short_name(reference: InputRef) -> str:
    return f"`{reference.stage}/{short(reference.key)}`"
