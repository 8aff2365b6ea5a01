"""`ingot init`: a recipe for a folder, bucket or data set, and what it was decided by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from artifacts_schema.errors import InputError, UsageError
from flows.cli.options import debug_option, json_option
from flows.cli.output import Column, echo, print_json, print_table, size

if TYPE_CHECKING:
    from flows.recipe.starter import Plan
    from flows.recipe.survey import FileGroup


@click.command("init")
@click.argument("place", metavar="[FOLDER|s3://BUCKET/PREFIX]", required=False)
@click.option("--dataset", metavar="ORG/NAME", help="A data set of the Hugging Face Hub instead.")
@click.option("--revision", metavar="REV", help="Of the data set: a branch, tag or commit.")
@click.option(
    "--minutes",
    type=click.FloatRange(min=1),
    default=30.0,
    show_default=True,
    help="Time that a run may take on this machine; decides size and tokens of the model.",
)
@click.option("--name", metavar="NAME", help="Of the recipe; by default that of the data.")
@click.option(
    "--text-field", metavar="NAME", help="Field of rows that holds the text, if it is not clear."
)
@click.option(
    "--chat",
    type=click.Choice(["auto", "own", "sample", "none"]),
    default="auto",
    show_default=True,
    help="Tune on the data's conversations, on the sample's, or not. auto: own, else none.",
)
@click.option(
    "--write",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Where to; by default NAME.yaml in the current folder. `-` prints it.",
)
@debug_option
@json_option
def init(
    place: str | None,
    dataset: str | None,
    revision: str | None,
    minutes: float,
    name: str | None,
    text_field: str | None,
    chat: str,
    write: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Look at the files of a folder, bucket or data set, and write a recipe for them.

    It reads a few rows of a few files: formats, fields, conversations, sizes. What it could not
    decide is printed. An existing file is never replaced.

    \b
    ingot init data/notes
    ingot init s3://bucket/crawl --minutes 600
    ingot init --dataset org/name
    """
    from flows.recipe.starter import choose_plan, measure_speed, recipe_name, write_recipe
    from flows.recipe.survey import survey_source
    from flows.recipe.survey_source import find_source
    from stages.engine.allotment import available_memory

    source = find_source(place, dataset, revision)
    groups = choose_groups(survey_source(source), source.where, text_field)
    has_chats = any(group.use == "chat" for group in groups)
    if chat == "own" and not has_chats:
        raise UsageError("--chat own: no rows of conversations", where=source.where)
    chat = ("own" if has_chats else "none") if chat == "auto" else chat
    plan = choose_plan(
        sum(group.text_bytes for group in groups if group.use in ("text", "code")),
        minutes, measure_speed(), available_memory(), where=source.where,
    )  # fmt: skip
    name = name or recipe_name(source)
    path = write or Path(f"{name}.yaml")
    text = write_recipe(
        name, source, groups, plan, chat=chat, minutes=minutes, recipe_folder=path.parent
    )
    if str(path) != "-":
        write_new(path, text)
    if as_json:
        print_json({"recipe": text, "groups": [asdict(g) for g in groups], "plan": asdict(plan)})
    elif str(path) == "-":
        echo(text, nl=False)
    else:
        _print_survey(groups)
        _print_plan(plan, path, chat, has_chats)


def write_new(path: Path, text: str) -> None:
    """Write a recipe that can be loaded, as a new file, whole or not at all."""
    from artifacts_schema.files import write_whole
    from flows.recipe.recipe import find_recipe, load_recipe

    if path.exists():
        hint = "--write another file, or remove it"
        raise UsageError("exists already", where=str(path), hint=hint)
    write_whole(path, lambda place: place.write_text(text, encoding="utf-8"))
    load_recipe(find_recipe(str(path)))


def choose_groups(
    groups: Sequence[FileGroup], where: str, text_field: str | None
) -> list[FileGroup]:
    """The groups as the recipe uses them: rows with another text field are left out.

    One `text_field` is set for all rows: the given one, or that of most text. InputError if nothing
    can be trained on.
    """
    from dataclasses import replace

    rows = [group for group in groups if group.use == "text" and group.form == "rows"]
    if text_field is None and rows:
        text_field = max(rows, key=lambda group: group.text_bytes).text_field
    chosen = []
    for group in groups:
        if group in rows and group.text_field != text_field:
            if text_field in group.others:
                group = replace(group, text_field=text_field)
            else:
                problem = f"its text is '{group.text_field}', not '{text_field}'"
                group = replace(group, use="unknown", problem=problem)
        chosen.append(group)
    if not any(group.use in ("text", "code") for group in chosen):
        reasons = "; ".join(f"{g.pattern}: {g.problem or g.use}" for g in chosen[:5])
        raise InputError(
            f"has no texts to train on ({reasons})", where=where,
            hint="--text-field names the field of rows that holds them",
        )  # fmt: skip
    return chosen


def _print_survey(groups: Sequence[FileGroup]) -> None:
    heads = (
        Column("files", wraps=True),
        Column("count", right=True),
        Column("size", right=True),
        "used as",
    )
    rows = []
    for group in groups:
        notes = [group.problem or ""]
        if group.text_field and group.others:
            other, why = group.others[0], "by its name" if group.text_field == "text" else "longer"
            notes.append(f"text in '{group.text_field}', not '{other}' ({why}; --text-field)")
        elif group.text_field:
            notes.append(f"text in '{group.text_field}'")
        if group.script:
            notes.append(f"{group.script} script")
        use = {"chat": "conversations", "unknown": "-", "pairs": "-"}.get(group.use, group.use)
        if group.use == "pairs":
            notes.append("preference pairs: add `preferences` and `dpo` as in quickstart")
        note = ", ".join(note for note in notes if note)
        rows.append((group.pattern, f"{group.files:,}", size(group.bytes), use, note))
    print_table([*heads, Column("", wraps=True)], rows)


def _print_plan(plan: Plan, path: Path, chat: str, has_chats: bool) -> None:
    echo(
        f"\nmodel: {plan.parameters / 1e6:.1f} M parameters, {plan.tokens:,} tokens "
        f"({plan.epochs:.2g} epochs; {plan.limit} is the limit)"
    )
    if plan.share < 1:
        echo(f"that needs a part of this much text: about {plan.share:.0%} of the files are taken")
    if chat == "none":
        why = "" if has_chats else " (the data has no conversations; --chat sample takes Python's)"
        echo(f"it will continue texts, not answer{why}")
    echo(f"wrote {path}; next:\n")
    for command in (f"ingot plan {path}", f"ingot run {path}"):
        echo(f"  {command}")
    last = "chat" if chat != "none" else "complete"
    rest = "" if last == "chat" else ' "The "'
    echo(f"  ingot {last} {path.stem}/export{rest}")
