"""The proof itself: one step of a recipe, run whole, and run again with kills, in stores apart."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from artifacts_schema.errors import IngotError, UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import InputRef
from artifacts_schema.store import Store, layout
from flows.proving.child import SEPARATOR
from flows.proving.compare import Difference, Run, by_step, differences, taken
from flows.proving.kills import Kill, drawn
from flows.proving.shorter import shorter
from flows.recipe.execute import execute
from flows.recipe.pipeline import Pipeline, Request
from flows.recipe.plan import PlannedStep
from stages.engine.inputs import Input
from stages.engine.interim import Milestone
from stages.engine.launch import child_environment, last_error
from stages.engine.registry import stage_named
from stages.engine.spec import StageSpec

CHILD = "flows.proving.child"
"""The module that runs a watched stage."""
STAGE = "pretrain"
SAVES_PER_RUN = 6

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """What to prove: of which step, in how many training steps, with how many kills."""

    recipe: str
    store: str
    step: str | None = None
    overrides: tuple[str, ...] = ()
    profile: str | None = None
    kills: int = 3
    training_steps: int = 24
    seed: int = 0


@dataclass(frozen=True)
class Life:
    """One process of a run: its first and last training step, and how it was killed, if it was."""

    first: int | None
    last: int | None
    killed: str | None


@dataclass
class Proof:
    """What came of it."""

    instance: str
    training_steps: int
    lives: list[Life] = field(default_factory=list)
    """Of the run that was killed."""
    compared: dict[str, int] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)

    @property
    def bit_exact(self) -> bool:
        """Whether nothing differed."""
        return not self.differences

    def verdict(self) -> str:
        """One line."""
        if self.bit_exact:
            parts = [
                f"{count:,} {what if count != 1 else what.removesuffix('s')}"
                for what, count in self.compared.items()
            ]
            kills = sum(life.killed is not None for life in self.lives)
            return f"bit-exact after {kills} kills: {', '.join(parts)}"
        first, more = self.differences[0], len(self.differences) - 1
        place = "the run" if first.step is None else f"training step {first.step}"
        rest = f" ({more:,} differences more)" if more else ""
        return f"not bit-exact, first in {place}: {first.what}{rest}"


def prove(asked: Asked, folder: Path, tell: Tell) -> Proof:
    """Run the step twice in `folder` and compare. UsageError for a step that cannot be proved."""
    spec, instance = _spec(asked, folder, tell)
    milestones = _milestones(spec, Store.open(str(folder / "whole")))
    steps, interim = milestones[-1].at, milestones[0].at if len(milestones) > 1 else None
    kills = drawn(asked.kills, steps, asked.seed, interim)
    proof = Proof(instance, steps)
    tell(f"{instance}, cut to {steps} training steps; kills drawn by seed {asked.seed}")
    whole, _ = _run(folder, "whole", spec, [], tell)
    killed, proof.lives = _run(folder, "killed", spec, kills, tell)
    proof.differences = differences(whole, killed)
    proof.compared = _compared(whole)
    return proof


# The step, cut short ------------------------------------------------------------------------------


def _spec(asked: Asked, folder: Path, tell: Tell) -> tuple[StageSpec, str]:
    """The step's spec with its inputs in both stores, and its name."""
    pipeline = Pipeline.open(Request(asked.recipe, asked.store, asked.profile, asked.overrides))
    line = _line(pipeline, asked)
    if line.spec is None:
        tell(f"{line.instance} waits for {', '.join(line.waits_for)}: made for this proof alone")
        pipeline = _made(asked, line, folder)
        line = _line(pipeline, asked)
    spec = line.spec
    assert spec is not None, "its inputs stand"
    stores = [Store.open(str(folder / name)) for name in ("whole", "killed")]
    for reference in (one for given in spec.inputs.values() for one in given):
        for store in stores:
            _carry(pipeline.store, store, reference)
    return _cut(spec, stores[0], asked), f"{pipeline.name}/{line.instance}"


def _line(pipeline: Pipeline, asked: Asked) -> PlannedStep:
    """The plan's line of the step asked for, or of the only one that pretrains."""
    plan = pipeline.plan()
    chosen = set(pipeline.graph.instances)
    if asked.step is not None:
        chosen = pipeline.graph.select(asked.step, "--step")
    found = [
        one for one in plan.steps if one.instance in chosen and (asked.step or one.stage == STAGE)
    ]
    if len(found) != 1:
        names = ", ".join(one.instance for one in found) or "none"
        raise UsageError(
            f"one step is to be proved, found {names}", where=asked.recipe, hint="name one: --step"
        )
    return found[0]


def _made(asked: Asked, line: PlannedStep, folder: Path) -> Pipeline:
    """The recipe in a store of its own, up to what the step reads."""
    request = Request(asked.recipe, str(folder / "inputs"), asked.profile, asked.overrides)
    for name in line.reads:
        pipeline = Pipeline.open(request)
        if name in pipeline.graph.instances:
            execute(Pipeline.open(replace(request, through=name)))
    return Pipeline.open(request)


def _carry(source: Store, target: Store, reference: InputRef) -> None:
    """Copy an artifact, payload first; by links where both lie on one disk."""
    path = layout.manifest(reference.stage, reference.key)
    manifest = source.manifest(reference.stage, reference.key)
    if manifest is None or target.manifest(reference.stage, reference.key) is not None:
        return
    for name, output in manifest.outputs.items():
        given = Input.of(source, manifest, name)
        for file in output.files:
            place = target.backend.local_path(target.payload(manifest, name, file.path))
            place.parent.mkdir(parents=True, exist_ok=True)
            _link(given.local_path(file.path), place)
    target.backend.put_if_absent(path, source.backend.read(path))


def _link(source: Path, place: Path) -> None:
    import os
    import shutil

    try:
        os.link(source, place)
    except OSError:
        shutil.copyfile(source, place)


def _cut(spec: StageSpec, store: Store, asked: Asked) -> StageSpec:
    """The same step in few training steps, saving often; other stages run as they are."""
    execution = {
        **spec.execution,
        "checkpoint_every": max(1, asked.training_steps // SAVES_PER_RUN),
    }
    config = spec.config
    if spec.stage == STAGE:
        config = shorter(config, _clock(spec, store), asked.training_steps)
    return StageSpec.make(stage_named(spec.stage), config, spec.inputs, execution)


def _clock(spec: StageSpec, store: Store) -> Any:
    from stages.pretrain.plan import unchecked_plan
    from stages.training.data import TokenShards

    config: Any = stage_named(STAGE).Config.parse(spec.config, where="config")
    shards = TokenShards([Input.load(store, one, full_check=False) for one in spec.inputs["train"]])
    return unchecked_plan(config, shards).clock


def _milestones(spec: StageSpec, store: Store) -> Sequence[Milestone]:
    """Where the run commits, its end last. UsageError for a stage that does not say."""
    stage = stage_named(spec.stage)
    inputs = {
        role: [Input.load(store, one, full_check=False) for one in given]
        for role, given in spec.inputs.items()
    }
    found = stage.milestones(stage.Config.parse(spec.config, where="config"), inputs)
    if not found:
        raise UsageError(
            f"{spec.stage} does not say how long it trains", hint="prove a pretrain step"
        )
    return found


# Lives -------------------------------------------------------------------------------------------


def _run(
    folder: Path, name: str, spec: StageSpec, kills: Sequence[Kill], tell: Tell
) -> tuple[Run, list[Life]]:
    """Run to the end in the store `name`, through these kills."""
    store, record = Store.open(str(folder / name)), folder / f"{name}.batches"
    record.touch()
    lives: list[Life] = []
    for kill in [*kills, None]:
        since, known = time.monotonic(), len(taken(record))
        code = live(store, spec, record, kill.strike if kill else "")
        steps = [step for step, _ in taken(record)[known:]]
        span = f"training steps {steps[0]} to {steps[-1]}" if steps else "no training step"
        ended = code == 0
        if not ended and (kill is None or code != -signal.SIGKILL):
            raise _failure(spec, record.with_suffix(".txt"), code)
        how = f"to its end in {time.monotonic() - since:.1f} s" if ended else f"killed {kill}"
        tell(f"{name}: {span}, {how}")
        first, last = (steps[0], steps[-1]) if steps else (None, None)
        lives.append(Life(first, last, None if ended else str(kill)))
        if ended:
            break
    manifest = store.manifest(spec.stage, spec.key)
    assert manifest is not None, "a run that ends well has committed"
    return Run(store, manifest, by_step(taken(record))), lives


def live(store: Store, spec: StageSpec, record: Path, strike: str) -> int:
    """One process of the stage, watched, to its end or to where it is struck; its exit code."""
    path = record.with_suffix(".spec.json")
    path.write_bytes(spec.to_json())
    command = [
        sys.executable, "-P", "-m", CHILD, str(record), strike, SEPARATOR,
        spec.stage, "--store", store.url, "--spec", str(path), "--key", spec.key,
    ]  # fmt: skip
    with record.with_suffix(".txt").open("wb") as sink:
        return subprocess.call(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=child_environment(spec),
        )


def _failure(spec: StageSpec, said: Path, code: int) -> IngotError:
    """What a life that failed by itself printed last."""
    printed = last_error(said.read_text(encoding="utf-8", errors="replace"))
    what = printed.removeprefix("error: ") or f"exit code {code}"
    return IngotError(f"the run failed: {what}", where=f"{spec.stage} {short(spec.key)}")


def _compared(run: Run) -> dict[str, int]:
    """How much was compared, by what it is."""
    counts = {"batches": len(run.batches)}
    if "training_run" in run.manifest.outputs:
        output = run.output("training_run")
        for path, what in (
            ("metrics.parquet", "losses and gradient norms"),
            ("held_out.parquet", "held-out losses"),
        ):
            counts[what] = output.read_table(path).num_rows
    counts["files of checkpoint and run"] = sum(len(o.files) for o in run.manifest.outputs.values())
    counts["permanent checkpoints"] = len(run.manifest.interims)
    return counts
