"""How long the rest of a run takes: by what its steps took before, on the workers that it has.

A step's own progress counts first. What has not begun is estimated by the last artifact of the same
step in the store, and a training run by its budget of tokens at the speed of that artifact's run. A
step of which nothing is known is left out, and the result is marked as incomplete.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from artifacts_schema.errors import CorruptArtifact
from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store
from flows.recipe.graph import Graph
from flows.recipe.observers import StepView
from flows.recipe.plan import Plan, PlannedStep

TRAINING_UNIT = "training steps"
"""Unit of the progress of a training run, which is that of the whole step."""
SPEED_FIELDS = ("model", "objective", "optimizer", "precision")
"""Fields of a training config on which tokens a second depend."""

OVERDUE = 2.0
"""Multiple of its expected time (or 10 s) up to which a step counts as about to end."""


@dataclass(frozen=True)
class TimeLeft:
    """Seconds until a run ends; `is_complete`: whether every step that may run is in them."""

    seconds: float
    is_complete: bool


class StepTimes:
    """What the steps of a recipe probably take, by artifacts in the store; each is read once."""

    def __init__(self, graph: Graph, store: Store) -> None:
        self.graph, self.store = graph, store
        self._earlier: dict[str, Manifest | None] = {}
        self._artifacts: dict[str, list[Manifest]] = {}
        self._bytes: dict[tuple[str, str, str], float | None] = {}

    def add_to(self, plan: Plan, jobs: int) -> Plan:
        """The plan with the seconds that each step probably takes; `jobs` run at once."""
        made = {step.step: step.manifest for step in plan.steps if step.action == "reuse"}
        steps = tuple(
            step
            if step.action == "reuse"
            else replace(step, expected_seconds=self.expect(step, made.get(step.step)))
            for step in plan.steps
        )
        return replace(plan, steps=steps, jobs=jobs)

    def expect(self, step: PlannedStep, sibling: Manifest | None = None) -> float | None:
        """Seconds that a step takes, in proportion to the bytes that it reads; None if unknown.

        `sibling` is an artifact of another repetition of the step. The inputs of a step that waits
        for others are not known: it counts as it was. `seconds` of an artifact are those of the
        last attempt at it.
        """
        before = self._find_own(step) or sibling or self._find_equal(step)
        if before is None or "seconds" not in before.telemetry:
            return None
        speed = before.telemetry.get("tokens_per_second")
        if speed:
            config = self._load_config(step)
            if (tokens := planned_tokens(config)) is not None:
                same = all(config.get(n) == before.config.get(n) for n in SPEED_FIELDS)
                return tokens / speed if same else None
            if config != before.config:
                return None
        return float(before.telemetry["seconds"]) * self._growth(step, before)

    def _find_own(self, step: PlannedStep) -> Manifest | None:
        """The artifact that this instance had before the run."""
        if step.instance not in self._earlier:
            ref = self.store.ref(f"{self.graph.recipe.name}/{step.instance}")
            known = ref is not None and ref.stage == step.stage
            self._earlier[step.instance] = self._load(ref.stage, ref.key) if ref and known else None
        return self._earlier[step.instance]

    def _find_equal(self, step: PlannedStep) -> Manifest | None:
        """An artifact of this stage and config, of any recipe."""
        if step.stage not in self._artifacts:
            damaged: list[CorruptArtifact] = []
            manifests = self.store.manifests(step.stage, on_damage=damaged.append)
            self._artifacts[step.stage] = [one for one in manifests if one.interim_of is None]
        artifacts = self._artifacts[step.stage]
        config = self._load_config(step) if artifacts else {}
        return next((one for one in artifacts if one.config == config), None)

    def _load(self, stage: str, key: str) -> Manifest | None:
        try:
            return self.store.manifest(stage, key)
        except CorruptArtifact:
            return None

    def _load_config(self, step: PlannedStep) -> dict[str, Any]:
        if step.spec is not None:
            return step.spec.config
        name = step.instance if step.instance in self.graph.instances else step.step
        names = [name] if name in self.graph.instances else self.graph.steps[name]
        config: dict[str, Any] = self.graph.instances[names[0]].parsed_config.plain()
        return config

    def _growth(self, step: PlannedStep, before: Manifest) -> float:
        """Bytes that it reads now, as a multiple of those it read before; 1 where unknown."""
        now = self._input_bytes(step.spec.inputs) if step.spec is not None else None
        then = self._input_bytes(before.inputs)
        return now / then if now and then else 1.0

    def _input_bytes(self, inputs: Mapping[str, Sequence[InputRef]]) -> float | None:
        sizes = [self._size(one) for references in inputs.values() for one in references]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    def _size(self, reference: InputRef) -> float | None:
        """Bytes of an input; of a snapshot, those of the files that it lists."""
        name = (*reference.name, reference.output)
        if name not in self._bytes:
            manifest = self._load(*reference.name)
            output = manifest.outputs.get(reference.output) if manifest is not None else None
            size: float | None = output.bytes if output is not None else None
            if manifest is not None and reference.kind == "snapshot":
                size = manifest.counts.get("bytes")
            self._bytes[name] = size
        return self._bytes[name]


def planned_tokens(config: Mapping[str, Any]) -> int | None:
    """Tokens that a training run will read; None of other stages, and where they are not known.

    So it is of a run that continues another, and of phases in epochs.
    """
    phases = config.get("phases")
    if not phases or config.get("clock") == "continue":
        return None
    tokens = [phase["tokens"] for phase in phases]
    return None if None in tokens else sum(tokens)


def estimate_left(steps: Sequence[StepView], jobs: int, now: float) -> TimeLeft | None:
    """Time until the last of `steps` ends; `now` in seconds since 1970; None if nothing is known.

    Once a step has failed no other is started. Of an incomplete estimate, steps are left out that
    are perhaps reused.
    """
    has_failed = any(one.step.state == "failed" for one in steps)
    seconds: dict[str, float] = {}
    reads: dict[str, tuple[str, ...]] = {}
    running, perhaps, is_complete = set[str](), set[str](), True
    for one in steps:
        step, known = one.step, one.step.expected_seconds
        if step.state == "running":
            left, is_known = _running_left(one, now)
            running.add(step.instance)
        elif step.state == "waiting" and not has_failed:
            left, is_known = known or 0.0, known is not None
            if step.action == "depends":
                perhaps.add(step.instance)
        else:
            continue
        seconds[step.instance] = left
        reads[step.instance] = () if step.key else step.waits_for
        is_complete = is_complete and is_known
    if not is_complete:
        seconds.update(dict.fromkeys(perhaps, 0.0))
    end = schedule_end(seconds, reads, running, jobs)
    return TimeLeft(end, is_complete) if end > 0.0 else None


def _running_left(one: StepView, now: float) -> tuple[float, bool]:
    """Seconds left of a running step, and whether they are those of all its work.

    A stage may go over its data more than once, so its progress alone is a lower limit.
    """
    progress = (one.live.progress if one.live is not None else None) or {}
    series = one.live.seconds_left if one.live is not None else None
    if one.live is not None and one.live.silent_seconds:
        return 0.0, False
    if series is not None and progress.get("unit") == TRAINING_UNIT:
        return series, True
    if one.step.expected_seconds is None:
        return series or 0.0, False
    expected = one.step.expected_seconds
    spent = now - one.step.began if one.step.began is not None else 0.0
    left = max(expected - max(0.0, spent), series or 0.0)
    return left, left > 0.0 or spent <= OVERDUE * max(expected, 10.0)


def schedule_end(
    seconds: Mapping[str, float],
    reads: Mapping[str, Iterable[str]],
    running: Iterable[str],
    jobs: int,
) -> float:
    """When the last step ends, if each starts once what it reads is made and a worker is free.

    As in a run, the first of the ready ones in the order of `seconds` starts first. What is read
    and has no seconds is made already.
    """
    order = {name: position for position, name in enumerate(seconds)}
    missing = {name: {read for read in reads[name] if read in seconds} for name in seconds}
    readers: dict[str, list[str]] = {name: [] for name in seconds}
    for name, names in missing.items():
        for read in names:
            readers[read].append(name)
    ends = [(seconds[name], order[name], name) for name in running]
    started = {name for _, _, name in ends}
    ready = [(order[n], n) for n in seconds if n not in started and not missing[n]]
    heapq.heapify(ends)
    heapq.heapify(ready)
    now = 0.0
    while ends or ready:
        while ready and (len(ends) < jobs or not ends):
            position, name = heapq.heappop(ready)
            heapq.heappush(ends, (now + seconds[name], position, name))
        now, _, made = heapq.heappop(ends)
        for name in readers[made]:
            missing[name].discard(made)
            if not missing[name] and name not in started:
                heapq.heappush(ready, (order[name], name))
    return now
