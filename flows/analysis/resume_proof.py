"""Proof that a killed training run resumes bit-exactly: one step, run whole and run with kills.

The step is cut to a few training steps, its phases in their proportions. Kills are drawn from a
seed: at random training steps and inside a save, the same for the same seed.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import IngotError, UsageError
from artifacts_schema.identity import short
from artifacts_schema.manifest import InputRef
from artifacts_schema.store import Store, layout
from flows.analysis.artifacts import load_inputs
from flows.analysis.run_comparison import (
    Difference,
    RunRecord,
    find_differences,
    group_by_step,
    read_batch_hashes,
)
from flows.analysis.training_batches import CLOCK_STAGES
from flows.analysis.watched_child import SEPARATOR
from flows.recipe.execute import execute
from flows.recipe.pipeline import Pipeline, Request
from flows.recipe.plan import PlannedStep
from stages.engine.inputs import Input
from stages.engine.protocol import stage_named
from stages.engine.spec import StageSpec, child_environment, last_error
from stages.parallel.layout import Layout
from stages.pretrain.config import format_sizes, read_sizes

if TYPE_CHECKING:
    from stages.training.sample_clock import SampleClock
    from stages.training.schedule import Phase


ROLLING_FAILPOINTS = ("checkpoint files written", "checkpoint written")
PERMANENT_FAILPOINTS = ("interim written", "interim committed")
"""Failpoints inside and right after a save (`artifacts_schema.store.failpoints`)."""


@dataclass(frozen=True)
class Kill:
    """One SIGKILL: within a training step, or at the `visit`-th pass of a failpoint."""

    step: int | None = None
    point: str = ""
    visit: int = 1

    @property
    def strike(self) -> str:
        """The argument of `watched_child`."""
        return f"step:{self.step}" if self.step else f"point:{self.point}:{self.visit}"

    def __str__(self) -> str:
        return f"in training step {self.step}" if self.step else f"in a save, at '{self.point}'"


def draw_kills(number: int, steps: int, seed: int, interim: int | None = None) -> list[Kill]:
    """`number` kills of a run of `steps` training steps, in the order of the run.

    One of them is inside a save, the others within training steps. Each process gets as far as its
    own kill: steps increase; a kill in a rolling save is last, since there is one at the end; one
    in a permanent checkpoint (`interim`: the training step of the first) comes in its place.
    ValueError if the run is too short for that many.
    """
    if number - 1 > steps - 1:
        raise ValueError(f"{number - 1} training steps to die in, but there are {steps}")
    draw = random.Random(f"ingot prove-resume {seed}")
    kills = [Kill(step=one) for one in sorted(draw.sample(range(2, steps + 1), number - 1))]
    points = ROLLING_FAILPOINTS + (() if interim is None else PERMANENT_FAILPOINTS)
    save = Kill(point=draw.choice(points))
    place = len(kills)
    if interim is not None and save.point in PERMANENT_FAILPOINTS:
        place = sum(kill.step is not None and kill.step <= interim for kill in kills)
    return [*kills[:place], save, *kills[place:]]


def shorten_config(config: Mapping[str, Any], clock: SampleClock, steps: int) -> dict[str, Any]:
    """The plain config of a run of about `steps` training steps; `clock` is that of the whole run.

    Whatever is measured in tokens or training steps shrinks by the same share.
    """
    share = min(1.0, steps / clock.steps)

    def scale(number: int | None) -> int | None:
        return None if number is None else max(1, round(number * share))

    def shorten(plain: Mapping[str, Any], phase: Phase) -> dict[str, Any]:
        """A phase of at least two training steps, its schedule of batch sizes within it."""
        kept = max(round(phase.steps * share), min(2, phase.steps))
        tokens = kept * phase.tokens / phase.steps
        rate = dict(plain["learning_rate"])
        for name in ("warmup_steps", "warmup_tokens"):
            rate[name] = scale(rate[name]) if rate.get(name) else rate.get(name)
        sizes = read_sizes(plain["sequences_per_batch"])
        if not isinstance(sizes, int):
            scaled = {max(1, round(token * share)) if token else 0: size for token, size in sizes}
            sizes = tuple((token, size) for token, size in scaled.items() if token < tokens)
        return {
            **plain,
            "learning_rate": rate,
            "sequences_per_batch": format_sizes(sizes),
            "tokens": max(1, round(tokens)),
            "epochs": None,
        }

    phases = [shorten(*pair) for pair in zip(config["phases"], clock.phases, strict=True)]
    checkpoints, averages = config["checkpoints"], config["averages"]
    return {
        **config,
        "phases": phases,
        "skip": [],
        "held_out_every": scale(config["held_out_every"]),
        "max_held_out_sequences": min(16, config["max_held_out_sequences"]),
        "checkpoints": {**checkpoints, "every": scale(checkpoints["every"])},
        "averages": {
            **averages,
            "every": scale(averages["every"]),
            "last": min(2, averages["last"]),
        },
    }


CHILD = "flows.analysis.watched_child"
"""The module that runs a watched stage."""
STAGE = "pretrain"
SAVES_PER_RUN = 6

PrintLine = Callable[[str], None]


@dataclass(frozen=True)
class ProofRequest:
    """What to prove: which step, in how many training steps, with how many kills."""

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
    """The result: how the killed run was killed, how much was compared, and what differs."""

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

    @property
    def holds(self) -> bool:
        """Whether it was proved."""
        return self.bit_exact

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "step": self.instance,
            "training_steps": self.training_steps,
            "lives": [asdict(life) for life in self.lives],
            "bit_exact": self.bit_exact,
            "compared": self.compared,
            "differences": [{"training_step": d.step, "what": d.what} for d in self.differences],
        }

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


def prove(request: ProofRequest, folder: Path, print_line: PrintLine) -> Proof:
    """Run the step twice in `folder` and compare. UsageError for a step that cannot be proved."""
    spec, instance = prepare_spec(request, folder, print_line)
    steps, interim = milestones_of(spec, folder)
    kills = draw_kills(request.kills, steps, request.seed, interim)
    proof = Proof(instance, steps)
    print_line(f"{instance}, cut to {steps} training steps; kills drawn by seed {request.seed}")
    whole, _ = _run_lives(folder, "whole", spec, [], print_line)
    killed, proof.lives = _run_lives(folder, "killed", spec, kills, print_line)
    proof.differences = find_differences(whole, killed)
    proof.compared = _count_compared(whole)
    return proof


def milestones_of(spec: StageSpec, folder: Path) -> tuple[int, int | None]:
    """Training steps of a prepared step, and that of its first permanent checkpoint if it has any.

    UsageError for a stage that does not say how long it trains.
    """
    stage, store = stage_named(spec.stage), Store.open(str(folder / "whole"))
    config = stage.Config.parse(spec.config, where="config")
    milestones = stage.milestones(config, load_inputs(store, spec.inputs))
    if not milestones:
        raise UsageError(
            f"{spec.stage} does not say how long it trains", hint="prove a pretrain step"
        )
    return milestones[-1].at, milestones[0].at if len(milestones) > 1 else None


# The step, cut short ------------------------------------------------------------------------------


def prepare_spec(
    request: ProofRequest, folder: Path, print_line: PrintLine
) -> tuple[StageSpec, str]:
    """The step's spec, cut short, with its inputs in both stores; and its name.

    UsageError for a recipe without one such step.
    """
    pipeline = Pipeline.open(
        Request(request.recipe, request.store, request.profile, request.overrides)
    )
    step = _planned_step(pipeline, request)
    if step.spec is None:
        waits = ", ".join(step.waits_for)
        print_line(f"{step.instance} waits for {waits}: made for this proof only")
        pipeline = _make_inputs(request, step, folder)
        step = _planned_step(pipeline, request)
    spec = step.spec
    assert spec is not None, "its inputs exist"
    stores = [Store.open(str(folder / name)) for name in ("whole", "killed")]
    for reference in (one for references in spec.inputs.values() for one in references):
        for store in stores:
            _copy_artifact(pipeline.store, store, reference)
    return _shorten_spec(spec, stores[0], request), f"{pipeline.name}/{step.instance}"


def _planned_step(pipeline: Pipeline, request: ProofRequest) -> PlannedStep:
    """The requested step in the plan, or the only one that pretrains."""
    plan = pipeline.plan()
    chosen = set(pipeline.graph.instances)
    if request.step is not None:
        chosen = pipeline.graph.select(request.step, "--step")
    steps = [
        one for one in plan.steps if one.instance in chosen and (request.step or one.stage == STAGE)
    ]
    if len(steps) != 1:
        names = ", ".join(one.instance for one in steps) or "none"
        raise UsageError(
            f"one step is to be proved, found {names}",
            where=request.recipe,
            hint="name one: --step",
        )
    return steps[0]


def _make_inputs(request: ProofRequest, step: PlannedStep, folder: Path) -> Pipeline:
    """The recipe in a store of its own, up to what the step reads."""
    store = str(folder / "inputs")
    inputs = Request(request.recipe, store, request.profile, request.overrides)
    for name in step.reads:
        if name in Pipeline.open(inputs).graph.instances:
            execute(Pipeline.open(replace(inputs, through=name)))
    return Pipeline.open(inputs)


def _copy_artifact(source: Store, target: Store, reference: InputRef) -> None:
    """Copy an artifact, payload first; by hard links if both are on one disk."""
    path = layout.manifest(reference.stage, reference.key)
    manifest = source.manifest(reference.stage, reference.key)
    if manifest is None or target.manifest(reference.stage, reference.key) is not None:
        return
    for name, output in manifest.outputs.items():
        files = Input.from_manifest(source, manifest, name)
        for file in output.files:
            place = target.backend.local_path(target.payload(manifest, name, file.path))
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(files.local_path(file.path), place)
            except OSError:
                shutil.copyfile(files.local_path(file.path), place)
    if manifest.file_table is not None:
        table = layout.file_table(*manifest.name, manifest.attempt)
        target.backend.replace(table, source.backend.read(table))
    target.backend.put_if_absent(path, source.backend.read(path))


def _shorten_spec(spec: StageSpec, store: Store, request: ProofRequest) -> StageSpec:
    """The same step in few training steps, saving often; other stages run as they are."""
    execution = {
        **spec.execution,
        "checkpoint_every": max(1, request.training_steps // SAVES_PER_RUN),
    }
    config = spec.config
    if spec.stage in CLOCK_STAGES:
        from stages.pretrain.plan import unchecked_plan
        from stages.training.token_shards import TokenShards

        shards = TokenShards(load_inputs(store, spec.inputs)["train"])
        parsed: Any = stage_named(spec.stage).Config.parse(config, where="config")
        plan = unchecked_plan(parsed, shards)
        config = shorten_config(config, plan.clock, request.training_steps)
    return StageSpec.make(stage_named(spec.stage), config, spec.inputs, execution)


# Lives -------------------------------------------------------------------------------------------


def _run_lives(
    folder: Path, name: str, spec: StageSpec, kills: Sequence[Kill], print_line: PrintLine
) -> tuple[RunRecord, list[Life]]:
    """Run to the end in the store `name`, through these kills; returns each process too.

    Of several ranks, a kill in a training step takes each in turn, one in a save the first.
    """
    store, record = Store.open(str(folder / name)), folder / f"{name}.batches"
    ranks = Layout.parse(spec.execution.get("layout") or {}, where="execution.layout").world
    record.touch()
    lives: list[Life] = []
    for number, kill in enumerate([*kills, None]):
        rank = number % ranks if kill is not None and kill.step else 0
        since, known = time.monotonic(), len(read_batch_hashes(record))
        ended = live(store, spec, record, kill, rank)
        steps = [step for step, _ in read_batch_hashes(record)[known:]]
        first, last = (min(steps), max(steps)) if steps else (None, None)
        span = f"training steps {first} to {last}" if steps else "no training step"
        killed = f"{kill} (rank {rank})" if ranks > 1 else str(kill)
        how = f"to its end in {time.monotonic() - since:.1f} s" if ended else f"killed {killed}"
        print_line(f"{name}: {span}, {how}")
        lives.append(Life(first, last, None if ended else killed))
        if ended:
            break
    manifest = store.manifest(spec.stage, spec.key)
    assert manifest is not None, "a run that ends well has committed"
    return RunRecord(store, manifest, group_by_step(read_batch_hashes(record))), lives


def live(store: Store, spec: StageSpec, record: Path, kill: Kill | None, rank: int = 0) -> bool:
    """Run the stage in a watched process; whether it came to its end and not to this kill.

    `rank` is the one that dies, if there are several. IngotError if the run failed by itself.
    """
    code = run_life(store, spec, record, f"{kill.strike}@{rank}" if kill else "")
    if code == 0 or (kill is not None and code == -signal.SIGKILL):
        return code == 0
    printed = record.with_suffix(".txt").read_text(encoding="utf-8", errors="replace")
    if kill is None or f"rank {rank} died (SIGKILL)" not in printed:
        what = last_error(printed).removeprefix("error: ") or f"exit code {code}"
        raise IngotError(f"the run failed: {what}", where=f"{spec.stage} {short(spec.key)}")
    return False


def run_life(store: Store, spec: StageSpec, record: Path, strike: str) -> int:
    """Run the stage in a watched process, to its end or its kill; returns the exit code."""
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


def _count_compared(run: RunRecord) -> dict[str, int]:
    """How many items were compared, by kind."""
    counts = {"batches": len(run.batches)}
    if "training_run" in run.manifest.outputs:
        output = run.output("training_run")
        counts["losses and gradient norms"] = output.read_table("metrics.parquet").num_rows
        counts["held-out losses"] = output.read_table("held_out.parquet").num_rows
    counts["files of checkpoint and run"] = run.manifest.count_files
    counts["permanent checkpoints"] = len(run.manifest.interims)
    return counts
