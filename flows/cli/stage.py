"""`ingot stage NAME`: one stage by itself, with the same key as in a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from flows.cli.options import json_option, store_option
from flows.cli.output import echo


@click.command("stage")
@click.argument("name", required=False)
@store_option
@click.option("--config", metavar="C.yaml", type=click.Path(path_type=Path), help="The config.")
@click.option(
    "--set",
    "overrides",
    metavar="PATH=VALUE",
    multiple=True,
    help="Change one value of the config, or by execution.PATH=VALUE of its execution; may be "
    "repeated.",
)
@click.option(
    "--input",
    "inputs",
    metavar="ROLE=REF[:OUTPUT]",
    multiple=True,
    help="Give an artifact to a role; may be repeated, in order.",
)
@click.option("--profile", metavar="NAME", help="Where and how it runs: name or path.")
@click.option("--as", "ref", metavar="REF", help="Name what it made.")
@click.option("--force", is_flag=True, help="Run although the artifact stands, and compare.")
@click.option(
    "--accept-code",
    is_flag=True,
    help="Go on from checkpoints that another program left of the same key.",
)
@click.option(
    "--write-spec",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Write what would run to a file, print its key, and run nothing.",
)
@json_option
def command(
    name: str | None,
    store: str,
    config: Path | None,
    overrides: tuple[str, ...],
    inputs: tuple[str, ...],
    profile: str | None,
    ref: str | None,
    force: bool,
    accept_code: bool,
    write_spec: Path | None,
    as_json: bool,
) -> None:
    """Run the stage NAME by itself; without NAME, list the stages.

    An input is a name in the store (as `quickstart/filter:documents`) or a key of 6 or more digits;
    the output may be left out where only one has the kind that the role takes.
    """  # fmt: skip
    if name is None:
        _list_stages(as_json)
        return
    from artifacts_schema.store import Store
    from artifacts_schema.store.interim import name_interims
    from flows.cli.output import print_json

    opened = Store.open(store)
    spec = make_spec(opened, name, config, overrides, inputs, profile)
    if write_spec is not None:
        write_spec.write_bytes(spec.to_json())
        echo(spec.key)
        return
    manifest, reused = _run(opened, spec, force, accept_code)
    if ref is not None:
        while not opened.name(ref, manifest):  # Collected before it was named.
            manifest, reused = _run(opened, spec, force, accept_code)
        name_interims(opened, ref, manifest.stage, manifest.interims)
    if as_json:
        print_json({"reused": reused, "manifest": manifest.model_dump(mode="json")})
        return
    echo(f"{'reused' if reused else 'made'} {manifest.stage} {manifest.key}")
    for output, found in manifest.outputs.items():
        place = opened.backend.full(opened.payload(manifest, output))
        echo(f"  {output}  {found.kind}  {found.digest[:12]}  {place}")


def make_spec(
    store: Any,
    name: str,
    config: Path | None,
    overrides: tuple[str, ...],
    inputs: tuple[str, ...],
    profile: str | None,
) -> Any:
    """The `StageSpec` that the flags describe; UsageError says which flag is wrong."""
    from flows.recipe.checks import check_stored
    from flows.recipe.overrides import presets_first, set_of_step
    from flows.recipe.profile import load_profile
    from flows.recipe.reading import read_yaml
    from stages.engine.registry import stage_named
    from stages.engine.spec import StageSpec

    stage = stage_named(name)
    values = read_yaml(config).values if config is not None else {}
    typed: dict[str, Any] = {}
    for text in presets_first(overrides):
        set_of_step(values, typed, text)
    references: dict[str, list[Any]] = {}
    for text in inputs:
        role, reference = _input(store, stage, text)
        references.setdefault(role, []).append(reference)
    execution = {**load_profile(profile, Path("recipe")).execution(name, {}), **typed}
    where = " ".join([f"stage {name}", *(f"--set {text}" for text in overrides)])
    spec = StageSpec.make(stage, values, references, execution, where=where)
    check_stored(stage, spec.config, spec.inputs, store, where=where)
    return spec


def _input(store: Any, stage: Any, text: str) -> tuple[str, Any]:
    from artifacts_schema.config import did_you_mean
    from artifacts_schema.errors import UsageError
    from flows.recipe.reference import stored_input

    flag = f"--input {text}"
    role, equals, named = text.partition("=")
    if not equals or not named:
        raise UsageError("expected ROLE=REF", where=flag)
    if role not in stage.inputs:
        known = did_you_mean(role, stage.inputs)
        raise UsageError(f"{stage.name} has no input '{role}'{known}", where=flag)
    return role, stored_input(store, stage, role, named, where=flag)


def _run(store: Any, spec: Any, force: bool, accept_code: bool) -> tuple[Any, bool]:
    """The manifest, and whether it stood before."""
    from artifacts_schema.store.damage import find_committed
    from flows.cli.progress import shown, stop_on_signals
    from flows.recipe.execute import run_step
    from flows.recipe.plan import PlannedStep
    from stages.engine.registry import stage_named

    outputs = stage_named(spec.stage).outputs
    standing = find_committed(store, spec.stage, spec.key, outputs=outputs).whole
    if standing is not None and not force:
        return standing, True
    step = PlannedStep(
        spec.stage,
        spec.stage,
        spec.stage,
        "run",
        "asked for",
        spec.key,
        spec,
        force=force,
        accept_code=accept_code,
    )
    with shown() as observer, stop_on_signals() as stopping:
        manifest = run_step(store, step, observer=observer, stopping=stopping)
    return manifest, standing is not None and standing.attempt == manifest.attempt


def _list_stages(as_json: bool) -> None:
    from flows.cli.output import Column, print_json, print_table
    from stages.engine.registry import stages

    known = stages()
    if as_json:
        print_json({name: _stage_json(stage) for name, stage in known.items()})
        return
    rows = []
    for name, stage in known.items():
        reads = ", ".join(f"{role}{_number(wanted)}" for role, wanted in stage.inputs.items())
        story = (stage.__doc__ or "").strip().splitlines()
        rows.append((name, reads or "-", ", ".join(stage.outputs), story[0] if story else ""))
    columns = [
        Column(title, wraps=title != "stage") for title in ("stage", "reads", "writes", "does")
    ]
    print_table(columns, rows)


def _stage_json(stage: Any) -> dict[str, Any]:
    return {
        "version": stage.version,
        "reproducible": stage.reproducible,
        "inputs": {
            role: {"kind": wanted.kind, "least": wanted.least, "most": wanted.most}
            for role, wanted in stage.inputs.items()
        },
        "outputs": dict(stage.outputs),
        "config": stage.Config.model_json_schema(),
    }


def _number(wanted: Any) -> str:
    """`` for one, `?` for one or none, `*` for any number, `+` for at least one."""
    if wanted.most == 1:
        return "" if wanted.least else "?"
    return "+" if wanted.least else "*"
