"""`ingot account`, `ingot preflight` and `ingot prove-resume`: checks of a training run."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from flows.analysis.artifacts import open_store
from flows.analysis.layout_proof import LayoutProof, parse_layouts, prove_layouts
from flows.analysis.pretraining import (
    TokenAccount,
    plan_account,
    preflight_step,
    read_account,
    select_pretraining_steps,
)
from flows.analysis.resume_proof import Proof, ProofRequest, prove
from flows.cli.options import (
    json_option,
    pretraining_options,
    profile_option,
    set_option,
    store_option,
)
from flows.cli.output import Column, echo, print_json, print_table
from flows.cli.progress import print_line, show_hashing
from flows.recipe.pipeline import Pipeline, Request
from flows.recipe.plan import PlannedStep
from flows.recipe.recipe import BUNDLED

DIFFERENCES_SHOWN = 10


def _open_steps(
    recipe: str, store: str, step: str | None, profile: str | None, overrides: tuple[str, ...]
) -> tuple[Pipeline, list[PlannedStep]]:
    """A recipe in an existing store, and its pretraining steps."""
    request = Request(recipe, store, profile, overrides)
    with show_hashing() as progress:
        pipeline = Pipeline.open(request, progress=progress, create=False)
    return pipeline, select_pretraining_steps(pipeline, step)


# Account ------------------------------------------------------------------------------------------


@click.command("account")
@click.argument("target", metavar="RECIPE|REF")
@store_option
@pretraining_options
@json_option
def account(target: str, store: str, as_json: bool, **selection: Any) -> None:
    """Show the tokens that pretraining plans to read, how often, and what is left.

    RECIPE is a path, or the name of a recipe that comes with Ingot: what its pretraining steps plan
    to read of the token shards in the store, before anything is launched. REF is a pretraining run
    in the store, by name or key: what it planned and what it read.
    """  # fmt: skip

    path = Path(target)
    is_file = path.suffix in (".yaml", ".yml") or path.is_file()
    if is_file or (BUNDLED / f"{target}.yaml").exists():
        pipeline, steps = _open_steps(target, store, **selection)
        accounts = [plan_account(pipeline, one) for one in steps]
    else:
        accounts = [read_account(open_store(store), target)]
    if as_json:
        print_json({"accounts": [one.to_json() for one in accounts]})
    else:
        for one in accounts:
            _print_account(one, target)
    for one in accounts:
        one.raise_errors()


def _print_account(one: TokenAccount, recipe: str) -> None:
    if one.waits_for:
        echo(
            f"{one.name}: the token shards are not there yet; {_makers(one.waits_for)} them "
            f"({_runs(recipe, one.waits_for)})"
        )
        return
    phases = one.account["phases"]
    steps, tokens = (sum(phase[n] for phase in phases) for n in ("training_steps", "tokens"))
    plural = "s" if len(phases) > 1 else ""
    echo(
        f"{one.name}: {steps:,} training steps in {len(phases)} phase{plural}, {tokens:,} token "
        f"positions in sequences of {phases[0]['sequence_length']:,}\n"
    )
    _print_entries("source", one.account["sources"])
    _print_entries("language", one.account["languages"])
    if len(phases) > 1:
        _print_phases(one.account["sources"])
    for first, last in one.account["skipped_training_steps"]:
        echo(f"skipped: training steps {first:,} to {last:,}")


def _makers(steps: Sequence[str]) -> str:
    """`pack makes`, or `pack and pack_chat make`."""
    return f"{' and '.join(steps)} {'makes' if len(steps) == 1 else 'make'}"


def _runs(recipe: str, steps: Sequence[str]) -> str:
    """The commands that make what is waited for."""
    return ", ".join(f"`ingot run {recipe} --through {step}`" for step in steps)


def _print_entries(label: str, entries: dict[str, dict[str, Any]]) -> None:
    """One row for each source or language, and one for all."""
    columns = {
        "available_tokens": "available",
        "planned_tokens": "planned",
        "repeated_tokens": "repeated",
        "left_tokens": "left",
    }
    if any(entry["realised_tokens"] is not None for entry in entries.values()):
        columns["realised_tokens"] = "read"
    rows = []
    for name, entry in sorted(entries.items()):
        cap = entry.get("max_epochs")
        epochs = f"{entry['epochs']:.2f}" + (f" of {cap:g}" if cap is not None else "")
        rows.append((name or "(none)", epochs, *(f"{entry[column]:,}" for column in columns)))
    if len(rows) > 1:
        sums = (sum(entry[column] for entry in entries.values()) for column in columns)
        rows.append(("all", "", *(f"{value:,}" for value in sums)))
    headings = ["epochs", *columns.values()]
    print_table([label, *(Column(heading, right=True) for heading in headings)], rows)
    echo()


def _print_phases(sources: dict[str, dict[str, Any]]) -> None:
    """Planned tokens and their share, a column for each phase."""
    planned = {name: one["planned_tokens_by_phase"] for name, one in sorted(sources.items())}
    totals = [sum(column) for column in zip(*planned.values(), strict=True)]
    rows = []
    for name, values in planned.items():
        pairs = zip(values, totals, strict=True)
        rows.append((name, *(f"{n:,} ({n / all:.1%})" if all else "0" for n, all in pairs)))
    headings = [Column(f"phase {number}", right=True) for number in range(1, len(totals) + 1)]
    print_table(["planned in", *headings], rows)
    echo()


# Pre-flight ---------------------------------------------------------------------------------------


@click.command("preflight")
@click.argument("recipe")
@store_option
@pretraining_options
@json_option
def preflight(recipe: str, store: str, as_json: bool, **selection: Any) -> None:
    """Check a pretraining step of RECIPE on this machine, and train nothing.

    Memory by part, disk, device, store, token shards, held-out data and contamination, a rehearsal
    of save and resume, a dry batch; and how long the run will take. The run itself does the same
    before its first step. Exit code 1: it would fail.
    """  # fmt: skip
    pipeline, steps = _open_steps(recipe, store, **selection)
    reports = [_preflight(pipeline, one, as_json) for one in steps]
    if as_json:
        print_json({"preflights": reports})
    if any(report.get("refused") for report in reports):
        raise SystemExit(1)


def _preflight(pipeline: Pipeline, step: PlannedStep, as_json: bool) -> dict[str, Any]:
    """One pre-flight, printed line by line while it runs."""
    say = (lambda line: None) if as_json else echo
    name, waits = pipeline.ref(step.instance), list(step.waits_for)
    if step.spec is None or step.key is None:
        through = _runs(pipeline.name, waits) or "see the plan"
        say(f"{name}: its inputs are not there yet; {_makers(waits)} them ({through})")
        return {"name": name, "waits_for": waits}
    say(f"{name}:")
    report = preflight_step(pipeline, step, (lambda finding: None) if as_json else _print_finding)
    refused = len(report.rejections)
    verdict = f"{refused} would keep it from running" if refused else "nothing keeps it"
    say(f"  {verdict}; looked for {report.seconds:.1f} s")
    return {"name": name, "waits_for": [], **report.to_json()}


def _print_finding(finding: Any) -> None:
    """A line, and below it what to do."""
    mark = {"ok": "", "warning": "warning: ", "refusal": "REFUSED: "}[finding.level]
    echo(f"  {finding.check:<13}  {mark}{finding.message}")
    if finding.hint and finding.level != "ok":
        echo(f"  {'':<13}  → {finding.hint}")


# Proof of resume ----------------------------------------------------------------------------------


@click.command("prove-resume")
@click.argument("recipe")
@store_option
@click.option(
    "--step", metavar="STEP", help="The step to prove; by default the one that pretrains."
)
@profile_option
@set_option
@click.option(
    "--kills",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    metavar="N",
    help="How often it is killed: in random training steps, and once inside a save.",
)
@click.option(
    "--training-steps",
    type=click.IntRange(min=4),
    default=24,
    show_default=True,
    metavar="N",
    help="Length of the run; its phases keep their proportions.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Decides where it is killed.")
@click.option(
    "--keep",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where both runs are kept; by default nowhere.",
)
@click.option(
    "--layouts",
    metavar="LIST",
    help="Resume under another layout after each kill, such as 1,2,dp2,fsdp2tp2: a number of "
    "shards, or parts dp, fsdp, tp, pp, cp, ep. Batches must be equal, losses within a tolerance.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    metavar="NATS",
    help="Of losses under several layouts; by default 1e-5 in float32, 1e-4 with Muon, else 5e-3.",
)
@json_option
def prove_resume(
    keep: Path | None, layouts: str | None, tolerance: float | None, as_json: bool, **request: Any
) -> None:
    """Train twice, once with SIGKILLs, and compare everything bit by bit.

    The step of RECIPE is cut short and run in temporary stores: undisturbed, then killed at random
    training steps and inside a save and resumed each time. Batches, losses, gradient norms,
    held-out losses, weights, optimizer and permanent checkpoints are compared. Exit codes: 0
    bit-exact, 1 not. With --layouts, batches and losses are compared, and a table shows each
    process.
    """  # fmt: skip
    several = parse_layouts(layouts) if layouts is not None else None
    proof: Proof | LayoutProof
    with tempfile.TemporaryDirectory(prefix="ingot-proof-") as temporary:
        folder = keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if several is not None:
            proof = prove_layouts(ProofRequest(**request), several, folder, print_line, tolerance)
        else:
            proof = prove(ProofRequest(**request), folder, print_line)
    if as_json:
        print_json(proof.to_json())
    elif isinstance(proof, LayoutProof):
        _print_layouts(proof)
    else:
        echo(proof.verdict())
        for one in proof.differences[:DIFFERENCES_SHOWN]:
            place = "run" if one.step is None else f"training step {one.step}"
            echo(f"  {place}: {one.what}")
    if not proof.holds:
        raise click.exceptions.Exit(1)


def _print_layouts(proof: LayoutProof) -> None:
    """A row for each process, the verdict, and what is wrong."""
    rows = [
        (
            life.layout,
            life.ranks,
            life.steps,
            life.killed or "to its end",
            life.batches,
            "" if life.loss_difference is None else f"{life.loss_difference:.1e}",
        )
        for life in proof.lives
    ]
    columns = [
        Column("layout"),
        Column("ranks", right=True),
        Column("training steps"),
        Column("killed", wraps=True),
        Column("equal batches", right=True),
        Column("largest Δ loss", right=True),
    ]
    print_table(columns, rows)
    echo(proof.verdict())
    for problem in proof.problems[:DIFFERENCES_SHOWN]:
        echo(f"  {problem}")
