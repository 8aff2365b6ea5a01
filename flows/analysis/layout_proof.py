"""Proof that a training run may change its layout: killed under one, resumed under the next.

The step is cut short as for the proof of bit-exactness. It is run once whole under the first
layout; then each process of a second run has the next layout, is killed, and leaves its checkpoints
to the one after it. Batches must have the same rows; losses differ in their last digits, since sums
are made in another order.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import cycle
from pathlib import Path
from typing import Any

from artifacts_schema.errors import IngotError, UsageError
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from flows.analysis.resume_proof import (
    Kill,
    PrintLine,
    ProofRequest,
    draw_kills,
    live,
    milestones_of,
    prepare_spec,
)
from flows.analysis.run_comparison import read_row_hashes
from stages.engine.inputs import Input
from stages.engine.spec import StageSpec
from stages.parallel.layout import Layout

PARTS = {
    "dp": "data",
    "fsdp": "shard",
    "tp": "tensor",
    "pp": "pipeline",
    "cp": "context",
    "ep": "expert",
}
"""Abbreviation of a kind of parallelism → key of the layout."""

TOLERANCES = {"fp32": 1e-5, "bf16": 5e-3, "fp16": 5e-3, "fp8": 5e-3}
"""Nats by which losses of two layouts may differ, by precision."""
MUON_TOLERANCE = 1e-4
"""Of float32 under Muon, whose iteration is in bfloat16."""

MEASURED = ("training_step", "source", "language")
"""Columns that name a held-out loss."""

Rows = Mapping[int, set[str]]
"""Training step → checksums of the rows of its batch, of all ranks."""


def parse_layout(name: str) -> Layout:
    """The layout that a name stands for: `4` (four shards), or parts such as `tp2dp2`.

    UsageError for another text, and for a key that a layout does not have.
    """
    if name.isdecimal():
        return Layout.parse({"shard": int(name)}, where=f"layout '{name}'")
    parts = re.findall(r"([a-z]+)([0-9]+)", name)
    kinds = [kind for kind, _ in parts]
    joined = "".join(kind + number for kind, number in parts)
    if not parts or joined != name or not set(kinds) <= PARTS.keys():
        raise UsageError(
            f"'{name}' is no layout",
            where="--layouts",
            hint=f"a number of shards, or parts of {', '.join(PARTS)} with numbers, as tp2dp2",
        )
    if len(set(kinds)) < len(kinds):
        raise UsageError(f"'{name}' has a part twice", where="--layouts")
    return Layout.parse(
        {PARTS[kind]: int(number) for kind, number in parts}, where=f"layout '{name}'"
    )


def parse_layouts(text: str) -> dict[str, Layout]:
    """The layouts of a list such as `1,2,tp2dp2`, by name. UsageError for fewer than two."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    layouts = {name: parse_layout(name) for name in names}
    if len(layouts) < 2:
        raise UsageError("name two layouts or more", where="--layouts", hint="as 1,2,dp2")
    return layouts


def loss_tolerance(config: Mapping[str, Any]) -> float:
    """Nats by which losses may differ between layouts, for a pretraining step's plain config."""
    precision = str(config.get("precision", "bf16"))
    optimizer = config.get("optimizer", {})
    names = [optimizer.get("name"), *(one["optimizer"] for one in optimizer.get("groups", ()))]
    least = MUON_TOLERANCE if "muon" in names else 0.0
    return max(TOLERANCES[precision], least)


@dataclass
class LayoutLife:
    """One process of the run that changes layouts, and how its steps compare with the whole run."""

    layout: str
    ranks: int
    first: int
    """First training step; 0 if it did none."""
    last: int
    killed: str | None
    batches: int = 0
    """Training steps whose batch has the same rows."""
    loss_difference: float | None = None
    """Largest difference of a loss that the run kept of this process, in nats."""
    rows: Rows = field(default_factory=dict, repr=False)

    @property
    def steps(self) -> str:
        """The training steps that it did, for a table."""
        return f"{self.first} to {self.last}" if self.first else "none"


@dataclass
class LayoutProof:
    """The result: each process of the run, and what is wrong."""

    instance: str
    training_steps: int
    tolerance: float
    lives: list[LayoutLife] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    held_out_difference: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether batches are equal, and losses within the tolerance."""
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        lives = [asdict(life) for life in self.lives]
        for life in lives:
            del life["rows"]
        return {
            "step": self.instance,
            "training_steps": self.training_steps,
            "tolerance": self.tolerance,
            "lives": lives,
            "held_out_difference": self.held_out_difference,
            "holds": self.holds,
            "problems": self.problems,
        }

    def verdict(self) -> str:
        """One line."""
        if self.problems:
            more = f" ({len(self.problems) - 1} problems more)" if len(self.problems) > 1 else ""
            return f"not the same run: {self.problems[0]}{more}"
        names = " → ".join(life.layout for life in self.lives)
        return (
            f"the same run over layouts {names}: {self.training_steps} batches equal, losses "
            f"within {self.tolerance:g}"
        )


def prove_layouts(
    request: ProofRequest,
    layouts: Mapping[str, Layout],
    folder: Path,
    print_line: PrintLine,
    tolerance: float | None = None,
) -> LayoutProof:
    """Run the step whole under the first layout, then through kills under all, and compare.

    There are as many kills as `request` says, or as every layout needs to have its turn.
    UsageError for a step that cannot be proved, IngotError where a run fails by itself.
    """
    spec, instance = prepare_spec(request, folder, print_line)
    steps, interim = milestones_of(spec, folder)
    if tolerance is None:
        tolerance = loss_tolerance(spec.config)
    number = max(request.kills, len(layouts) - 1)
    kills = draw_kills(number, steps, request.seed, interim)
    print_line(f"{instance}, cut to {steps} training steps; kills drawn by seed {request.seed}")
    runner = _LayoutRunner(folder, spec, layouts, random.Random(request.seed), print_line)
    whole = runner.run("whole", [], [next(iter(layouts))])
    names = cycle(layouts)
    lives = runner.run("killed", kills, [next(names) for _ in range(number + 1)])
    proof = LayoutProof(instance, steps, tolerance, lives)
    compare_rows(proof, whole[0].rows)
    stores = [Store.open(str(folder / name)) for name in ("whole", "killed")]
    manifests = [store.manifest(spec.stage, spec.key) for store in stores]
    tables = [
        _losses(store, manifest)
        for store, manifest in zip(stores, manifests, strict=True)
        if manifest is not None
    ]
    assert len(tables) == 2, "runs that ended well have committed"
    compare_losses(proof, *tables)
    return proof


@dataclass(frozen=True)
class _LayoutRunner:
    folder: Path
    spec: StageSpec
    layouts: Mapping[str, Layout]
    draw: random.Random
    """Draws the rank that dies."""
    print_line: PrintLine

    def run(self, name: str, kills: Sequence[Kill], names: Sequence[str]) -> list[LayoutLife]:
        """Run to the end in the store `name`; process N has the N-th layout."""
        store, lives = Store.open(str(self.folder / name)), list[LayoutLife]()
        for number, (kill, turn) in enumerate(zip([*kills, None], names, strict=True)):
            life = self._live(store, self.folder / f"{name}-{number}.batches", kill, turn)
            lives.append(life)
            ended = f"killed {life.killed}" if life.killed else "to its end"
            self.print_line(f"{name}: layout {turn}, training steps {life.steps}, {ended}")
            if life.killed is None:
                break
        return lives

    def _live(self, store: Store, record: Path, kill: Kill | None, turn: str) -> LayoutLife:
        layout = self.layouts[turn]
        execution = {**self.spec.execution, "layout": layout.plain()}
        rank = self.draw.randrange(layout.world) if kill is not None and kill.step else 0
        record.touch()
        try:
            ended = live(store, replace(self.spec, execution=execution), record, kill, rank)
        except IngotError as error:
            raise IngotError(error.what, where=f"layout {turn}, {error.where}") from None
        rows = read_row_hashes(record)
        first, last = (min(rows), max(rows)) if rows else (0, 0)
        where = f" (rank {rank})" if layout.world > 1 else ""
        killed = None if ended else f"{kill}{where}"
        return LayoutLife(turn, layout.world, first, last, killed, rows=rows)


def compare_rows(proof: LayoutProof, whole: Rows) -> None:
    """Compare the rows of each training step with those of the whole run.

    In the last step of a process that was killed, ranks may not have read theirs yet.
    """
    for life in proof.lives:
        for step, rows in life.rows.items():
            cut = life.killed is not None and step == life.last
            if rows == whole.get(step):
                life.batches += 1
            elif not (cut and rows <= whole.get(step, set())):
                proof.problems.append(f"training step {step}, layout {life.layout}: its batch")
    for step in sorted(whole):
        if not any(life.rows.get(step) == whole[step] for life in proof.lives):
            proof.problems.append(f"training step {step}: its batch was never read as a whole")


Losses = tuple[Mapping[int, float], Mapping[tuple[Any, ...], float]]
"""Loss by training step; held-out losses by training step and what was measured."""


def compare_losses(proof: LayoutProof, whole: Losses, changed: Losses) -> None:
    """Compare losses by training step, with the process that the run kept each of."""
    if whole[0].keys() != changed[0].keys():
        proof.problems.append(f"{len(whole[0])} losses, then {len(changed[0])}")
    if whole[1].keys() != changed[1].keys():
        proof.problems.append(f"{len(whole[1])} held-out losses, then {len(changed[1])}")
    for step in sorted(whole[0].keys() & changed[0].keys()):
        difference = abs(whole[0][step] - changed[0][step])
        kept = [life for life in proof.lives if life.first and life.first <= step <= life.last]
        if kept:
            kept[-1].loss_difference = max(difference, kept[-1].loss_difference or 0.0)
        if not difference <= proof.tolerance:
            proof.problems.append(
                f"training step {step}: loss {whole[0][step]!r} → {changed[0][step]!r}"
            )
    for place in sorted(whole[1].keys() & changed[1].keys(), key=repr):
        difference = abs(whole[1][place] - changed[1][place])
        proof.held_out_difference = max(difference, proof.held_out_difference)
        if not difference <= proof.tolerance:
            proof.problems.append(f"training step {place[0]}: held-out loss differs")


def _losses(store: Store, manifest: Manifest) -> Losses:
    """What a run measured."""
    run = Input.from_manifest(store, manifest, "training_run")
    metrics = run.read_table("metrics.parquet").to_pylist()
    held_out = run.read_table("held_out.parquet").to_pylist()
    return (
        {row["training_step"]: row["loss"] for row in metrics},
        {tuple(row[name] for name in MEASURED): row["loss"] for row in held_out},
    )
