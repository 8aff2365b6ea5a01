"""What the card may claim: which evaluations are of this checkpoint, what was done to its data.

Both are read from the manifests above the checkpoint, by kinds and configs; no stage is known by
name. A claim about data holds only if every way from the training stage to the sources has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from artifacts_schema.manifest import InputRef, Manifest

if TYPE_CHECKING:
    from stages.engine import Input

Name = tuple[str, str]
"""(stage, key)."""
Relation = Literal["release", "earlier", "other"]
Coverage = Literal["all", "part", "none"]

TRAINED_ON = ("token_shards", "conversations", "preferences")
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

    @classmethod
    def of(cls, manifest: Manifest) -> Treatment | None:
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
class TrainingData:
    """One output that a training stage read, and what was done to it on its way."""

    trained: Name
    data: InputRef
    treatments: tuple[Treatment, ...]
    personal_data: Coverage
    benchmarks: tuple[InputRef, ...]
    decontaminated: Coverage
    forget_lists: int

    def plain(self) -> dict[str, Any]:
        """For `ingot.json`."""
        return {
            "trained_in": {"stage": self.trained[0], "key": self.trained[1]},
            "data": _plain(self.data),
            "personal_data": {
                "covers": self.personal_data,
                "by": [
                    {
                        "stage": one.step[0],
                        "key": one.step[1],
                        "redacted": list(one.redacted),
                        "dropped": list(one.dropped),
                        "kept": list(one.kept),
                    }
                    for one in self.treatments
                ],
            },
            "decontaminated": {
                "covers": self.decontaminated,
                "benchmarks": [_plain(one) for one in self.benchmarks],
            },
            "forget_lists": self.forget_lists,
        }


@dataclass(frozen=True)
class Provenance:
    """A checkpoint's digest, and the manifests of it and of everything above it."""

    digest: str
    manifests: Sequence[Manifest]

    @classmethod
    def of(cls, checkpoint: Input) -> Provenance:
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
            self._described((manifest.stage, manifest.key), reference)
            for manifest in self.manifests
            if any(output.kind == "checkpoint" for output in manifest.outputs.values())
            for role, references in manifest.inputs.items()
            if role != HELD_OUT
            for reference in references
            if reference.kind in TRAINED_ON
        ]

    def _described(self, trained: Name, data: InputRef) -> TrainingData:
        steps = list(self._records_above(data))
        treatments = [found for step in steps if (found := Treatment.of(step)) is not None]
        contamination = [r for step in steps for r in references_of(step, "contamination")]
        looked = [self._by_name.get((r.stage, r.key)) for r in contamination]
        benchmarks = [
            r for one in looked if one is not None for r in references_of(one, "benchmarks")
        ]
        return TrainingData(
            trained,
            data,
            tuple(treatments),
            self._coverage(data, lambda step: Treatment.of(step) is not None),
            tuple({reference.digest: reference for reference in benchmarks}.values()),
            self._coverage(data, lambda step: _has(step, "contamination")),
            len({r.digest for step in steps for r in references_of(step, "exclusions")}),
        )

    def _records_above(self, data: InputRef) -> Iterator[Manifest]:
        """Every step that the records went through, nearest first, each once."""
        waiting, seen = [(data.stage, data.key)], set[Name]()
        while waiting:
            name = waiting.pop(0)
            if name in seen or name not in self._by_name:
                continue
            seen.add(name)
            yield self._by_name[name]
            waiting += [(r.stage, r.key) for r in references_of(self._by_name[name], *RECORDS)]

    def _coverage(self, data: InputRef, does: Callable[[Manifest], bool]) -> Coverage:
        """Whether all records went through a step that `does`, some of them, or none."""
        known: dict[Name, Coverage] = {}

        def of(name: Name) -> Coverage:
            if name not in known:
                manifest = self._by_name.get(name)
                if manifest is None:
                    known[name] = "none"
                elif does(manifest):
                    known[name] = "all"
                else:
                    above = {of((r.stage, r.key)) for r in references_of(manifest, *RECORDS)}
                    known[name] = above.pop() if len(above) == 1 else "part" if above else "none"
            return known[name]

        return of((data.stage, data.key))


def references_of(manifest: Manifest, *kinds: str) -> list[InputRef]:
    """What a step was given of these kinds."""
    given = manifest.inputs.values()
    return [one for references in given for one in references if one.kind in kinds]


def _has(manifest: Manifest, kind: str) -> bool:
    return bool(references_of(manifest, kind))


def _plain(reference: InputRef) -> dict[str, str]:
    return {"stage": reference.stage, "key": reference.key, "digest": reference.digest}
