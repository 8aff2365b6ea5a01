"""`ingot disclose REF`: a draft of what laws ask a provider to say about training data."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from artifacts_schema.files import write_whole
from flows.analysis.artifacts import open_store
from flows.cli.options import json_option, store_option
from flows.cli.output import echo, print_json


@click.command("disclose")
@click.argument("ref")
@click.option(
    "--output", "file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write; by default on stdout.",
)  # fmt: skip
@click.option(
    "--form",
    "forms",
    type=click.Choice(["ai-act", "ab-2013"]),
    multiple=True,
    help="European AI Act, or California's AB 2013; by default both.",
)
@json_option
@store_option
def disclose(
    ref: str, file: Path | None, forms: tuple[str, ...], as_json: bool, store: str
) -> None:
    """Draft the summary of training data of REF that laws ask its provider for.

    REF is a model or a data set. Sources, sizes, dates, languages, domains and treatments are read
    from the store; what only the provider knows stands as "to be filled in by the provider". A
    draft, no legal advice.
    """
    from flows.interchange.disclosure import FORMS, describe_training_data, disclosure_page

    facts = describe_training_data(open_store(store), ref)
    if as_json:
        print_json({**asdict(facts), "energy_kwh": facts.energy_kwh})
        return
    page = disclosure_page(facts, forms or FORMS)
    if file is None:
        echo(page.removesuffix("\n"))
        return
    write_whole(file, lambda path: path.write_text(page))
    echo(f"wrote {file}")
