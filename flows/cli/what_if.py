"""`ingot what-if CORPUS --set RULE=VALUE`: another decision about the same documents, in memory."""

from __future__ import annotations

import time

import click

from flows.cli.options import json_option, store_option
from flows.cli.output import echo

SAMPLES = 3


@click.command("what-if")
@click.argument("corpus")
@click.option(
    "--set",
    "settings",
    metavar="RULE=VALUE",
    multiple=True,
    help="Another threshold, by rule or by path in the config of `filter`; may be repeated.",
)
@click.option(
    "--sweep", metavar="RULE=A:B:N", help="A table over N values of one threshold, from A to B."
)
@click.option(
    "--samples",
    metavar="N",
    type=click.IntRange(min=0),
    default=SAMPLES,
    show_default=True,
    help="Documents shown of those gained, and of those lost.",
)
@store_option
@json_option
def command(
    corpus: str,
    settings: tuple[str, ...],
    sweep: str | None,
    samples: int,
    store: str,
    as_json: bool,
) -> None:
    """Decide again about the documents of CORPUS with other thresholds. Nothing is run or written.

    CORPUS is a name or key of what a filter step made. Without --set, its rules are listed, and how
    many documents fail each.

    \b
    ingot what-if quickstart/filter --set gopher_few_words=30
    ingot what-if quickstart/filter --set duplicates.threshold=0.7 --set 'languages=[en, de]'
    ingot what-if quickstart/filter --set 'duplicates.priority=[{by: length}]'
    ingot what-if quickstart/filter --sweep gopher_few_words=10:100:10
    """  # fmt: skip
    from flows.cli.artifacts import open_store
    from flows.cli.corpus import Corpus
    from flows.cli.output import duration, print_json
    from flows.cli.settings import changed
    from flows.cli.what_if_told import Asked, ChangeTold, RulesTold, SweepTold, Told

    started = time.perf_counter()
    opened = Corpus.open(open_store(store), corpus)
    asked = Asked(opened, corpus, changed(opened.config, settings), settings)
    told: Told
    if sweep is not None:
        told = SweepTold(asked, sweep)
    else:
        told = ChangeTold(asked, samples) if settings else RulesTold(asked)
    if as_json:
        print_json(told.to_json())
        return
    told.print()
    documents = told.decisions * len(asked.before.kept)
    seconds = duration(time.perf_counter() - started)
    echo(f"\n{documents:,} decisions in {seconds}; nothing was run or written")
