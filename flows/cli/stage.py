"""`ingot stage NAME`: one stage by itself, with the same key as in a recipe."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from artifacts_schema.manifest import InputRef, Manifest
from artifacts_schema.store import Store
from artifacts_schema.store.commit import name_interims
from artifacts_schema.store.verify import find_committed
from flows.cli.options import accept_code_option, by_option, input_option, json_option, store_option
from flows.cli.output import Column, echo, print_json, print_table
from flows.cli.progress import show_progress, stop_on_signals
from flows.recipe.dispatch import Dispatch, Dispatcher
from flows.recipe.execute import run_step
from flows.recipe.notation import set_step_value, sort_presets_first, stored_input
from flows.recipe.plan import PlannedStep, plan_spec
from flows.recipe.profile import Profile, load_profile
from flows.recipe.upstream import check_stored
from flows.recipe.yaml_document import read_yaml
from stages.engine.protocol import Role, Stage, all_stages, stage_named
from stages.engine.spec import StageSpec


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
@input_option
@click.option("--profile", metavar="NAME", help="Where and how it runs: name or path.")
@click.option("--as", "ref", metavar="REF", help="Name what it made.")
@click.option("--force", is_flag=True, help="Run even if the artifact exists, and compare.")
@accept_code_option
@by_option
@click.option(
    "--write-spec",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Write what would run to a file, print its key, and run nothing.",
)
@json_option
def stage(
    name: str | None,
    store: str,
    ref: str | None,
    force: bool,
    accept_code: bool,
    by: str,
    write_spec: Path | None,
    as_json: bool,
    profile: str | None,
    **parts: Any,
) -> None:
    """Run the stage NAME by itself; without NAME, list the stages.

    An input is a name in the store (as `quickstart/filter:documents`) or a key of 6 or more digits;
    the output may be omitted where only one has the kind that the role takes. It runs here, or as a
    job of the pool that the profile names.
    """  # fmt: skip
    if name is None:
        _list_stages(as_json)
        return
    opened = Store.open(store)
    loaded = load_profile(profile, Path("recipe"))
    spec = replace(make_spec(opened, name, profile=loaded, **parts), by=by)
    if write_spec is not None:
        write_spec.write_bytes(spec.to_json())
        echo(spec.key)
        return
    step = replace(plan_spec(spec, "asked for"), force=force, accept_code=accept_code)
    dispatch = Dispatcher(loaded)
    manifest, reused = _run(opened, step, dispatch)
    if ref is not None:
        while not opened.name(ref, manifest):  # Collected before it was named.
            manifest, reused = _run(opened, step, dispatch)
        name_interims(opened, ref, manifest.stage, manifest.interims)
    if as_json:
        print_json({"reused": reused, "manifest": manifest.describe()})
        return
    echo(f"{'reused' if reused else 'made'} {manifest.stage} {manifest.key}")
    for label, output in manifest.outputs.items():
        place = opened.backend.full(opened.payload(manifest, label))
        echo(f"  {label}  {output.kind}  {output.digest[:12]}  {place}")


def make_spec(
    store: Store,
    name: str,
    config: Path | None,
    overrides: tuple[str, ...],
    inputs: tuple[str, ...],
    profile: Profile,
) -> StageSpec:
    """The spec that the flags describe; UsageError says which flag is wrong."""
    stage = stage_named(name)
    values = read_yaml(config).values if config is not None else {}
    typed: dict[str, Any] = {}
    for text in sort_presets_first(overrides):
        set_step_value(values, typed, text)
    references: dict[str, list[InputRef]] = {}
    for text in inputs:
        role, reference = parse_input(store, stage, text)
        references.setdefault(role, []).append(reference)
    where = " ".join([f"stage {name}", *(f"--set {text}" for text in overrides)])
    execution = profile.execution(name, {}, typed)
    spec = StageSpec.make(stage, values, references, execution, where=where)
    check_stored(stage, spec.config, spec.inputs, store, where=where)
    return spec


def parse_input(
    store: Store, stage: type[Stage], text: str, roles: Collection[str] = ()
) -> tuple[str, InputRef]:
    """Role and artifact of `ROLE=REF[:OUTPUT]`; `roles` are those allowed, by default all."""
    flag, roles = f"--input {text}", roles or stage.inputs
    role, equals, ref = text.partition("=")
    if not equals or not ref:
        raise UsageError("expected ROLE=REF", where=flag)
    if role not in roles:
        known = did_you_mean(role, roles)
        raise UsageError(f"{stage.name} has no input '{role}'{known}", where=flag)
    return role, stored_input(store, stage, role, ref, where=flag)


def _run(store: Store, step: PlannedStep, dispatch: Dispatch) -> tuple[Manifest, bool]:
    """The manifest, and whether it existed before."""
    assert step.key is not None, "a planned spec has a key"
    outputs = stage_named(step.stage).outputs
    existing = find_committed(store, step.stage, step.key, outputs=outputs).whole
    if existing is not None and not step.force:
        return existing, True
    with show_progress() as observer, stop_on_signals() as stopping:
        manifest = run_step(store, step, dispatch=dispatch, observer=observer, stopping=stopping)
    return manifest, existing is not None and existing.attempt == manifest.attempt


def _list_stages(as_json: bool) -> None:
    stages = all_stages()
    if as_json:
        print_json(
            {
                name: {
                    "version": stage.version,
                    "reproducible": stage.reproducible,
                    "inputs": {name: asdict(role) for name, role in stage.inputs.items()},
                    "outputs": dict(stage.outputs),
                    "config": stage.Config.model_json_schema(),
                }
                for name, stage in stages.items()
            }
        )
        return
    rows = []
    for name, stage in stages.items():
        reads = ", ".join(f"{name}{_format_count(role)}" for name, role in stage.inputs.items())
        summary = (stage.__doc__ or "").strip().partition("\n")[0]
        rows.append((name, reads or "-", ", ".join(stage.outputs), summary))
    wrapped = [Column(title, wraps=True) for title in ("reads", "writes", "does")]
    print_table(["stage", *wrapped], rows)


def _format_count(role: Role) -> str:
    """Nothing for one, `?` for one or none, `*` for any number, `+` for at least one."""
    if role.most == 1:
        return "" if role.least else "?"
    return "+" if role.least else "*"
