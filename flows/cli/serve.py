"""`ingot serve REF [REF]`: models of the store behind OpenAI's protocol, on loopback."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from artifacts_schema.config import format_bytes
from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from flows.analysis.artifacts import open_store, refs_by_artifact
from flows.cli.chat import choose_device
from flows.cli.options import store_option
from flows.cli.output import Column, echo, print_table

if TYPE_CHECKING:
    from flows.serving.app import Service
    from flows.serving.comparison import Comparison

PORT = 8000
BATCHES = (1, 8, 32, 128)
"""Answers at once that a plan is for."""


@click.command("serve")
@click.argument("refs", metavar="REF [REF]", nargs=-1, required=True)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0: a free one."
)
@click.option(
    "--key-file",
    metavar="FILE",
    help="Holds the key that clients send, for its owner alone; made where it is missing. By "
    "default `serve.key` in $INGOT_HOME.",
)
@click.option(
    "--batch",
    "places",
    type=click.IntRange(1, 1024),
    default=16,
    show_default=True,
    metavar="N",
    help="Answers that are written together.",
)
@click.option(
    "--waiting",
    type=click.IntRange(0, 10_000),
    default=128,
    show_default=True,
    metavar="N",
    help="Answers that may wait for a place among them; more are refused (429).",
)
@click.option(
    "--device", metavar="NAME", help="cpu, cuda or cuda:N; by default a GPU if there is one."
)
@click.option(
    "--plan",
    "only_plan",
    is_flag=True,
    help="Print what serving it takes on some GPUs, and serve nothing.",
)
@click.option(
    "--length",
    type=click.IntRange(1),
    metavar="N",
    help="With --plan: tokens of a text, its answer included; by default the model's context.",
)
@click.option(
    "--blind",
    is_flag=True,
    help="With two models: the page says which one wrote which answer after the choice.",
)
@click.option(
    "--choices",
    metavar="FILE",
    help="With two models: gets a line of JSON for each choice; by default `choices.jsonl`.",
)
@store_option
def serve(
    refs: tuple[str, ...],
    port: int,
    key_file: str | None,
    places: int,
    waiting: int,
    device: str | None,
    only_plan: bool,
    length: int | None,
    blind: bool,
    choices: str | None,
    store: str,
) -> None:
    """Serve the model REF to programs that speak OpenAI's protocol, and to a page.

    REF is a checkpoint or release: a name in the store, or a key of 6 or more digits. It listens on
    127.0.0.1 alone; Ctrl-C ends it. Clients send the key of the key file as their API key.

    With two models the page shows an answer of each, side by side in random order, and appends what
    people choose to a file.
    """
    if len(refs) > 2:
        raise UsageError("at most two models are served", where=refs[2])
    if len(refs) == 1 and (blind or choices is not None):
        raise UsageError(
            "one model is not compared", where="--blind" if blind else "--choices",
            hint="name two",
        )  # fmt: skip
    if only_plan:
        if len(refs) == 2:
            raise UsageError("it is of one model", where="--plan")
        _print_plan(store, refs[0], length)
        return
    if length is not None:
        raise UsageError("it is of a plan", where="--length", hint="add --plan")
    from flows.serving.app import make_app
    from flows.serving.loopback import host_names, key_path, listen, read_key, run_server

    path = key_path(key_file, "serve.key")
    key = read_key(path)
    with listen(port) as listener:
        service = _load(store, refs, choose_device(device), places, waiting)
        if len(refs) == 2:
            service.comparison = _compare(store, refs, service, choices or "choices.jsonl", blind)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        names = " and ".join(one.name for one in service.models)
        echo(f"{names}: {url}/v1, and a page on {url}/")
        echo(f"the key is in {path}; Ctrl-C ends it")
        run_server(make_app(service, hosts=host_names(listener), key=key), listener)
    if service.comparison is not None:
        first, second = (one.name for one in service.comparison.candidates)
        echo(f"{service.comparison.file}: {service.comparison.summary().sentence(first, second)}")


def _load(store: str, refs: Sequence[str], device: str, places: int, waiting: int) -> Service:
    from flows.analysis.chat import find_model, load_model
    from flows.serving.app import ServedModel, Service
    from flows.serving.writer import Writer

    opened = open_store(store)
    outputs = [find_model(opened, ref) for ref in refs]
    if len({(manifest.name, output) for manifest, output in outputs}) < len(refs):
        raise UsageError(f"{refs[0]} and {refs[1]} are the same model", where="REF")
    names = refs_by_artifact(opened)
    models = []
    for ref, (manifest, output) in zip(refs, outputs, strict=True):
        known = names.get(manifest.name, [])
        name = ref if ref in known else next(iter(known), f"{manifest.stage}-{short(manifest.key)}")
        model = load_model(opened, manifest, output, device)
        writer = Writer(partial(model.open_batch, places), waiting=waiting)
        models.append(ServedModel(name, model, writer, int(time.time())))
    return Service(models)


def _compare(
    store: str, refs: Sequence[str], service: Service, file: str, blind: bool
) -> Comparison:
    from flows.serving.comparison import Candidate, Comparison
    from stages.engine.provenance import login_name

    opened = open_store(store)
    keys = [opened.resolve(ref)[0].key for ref in refs]
    first, second = (
        Candidate(one.name, key) for one, key in zip(service.models, keys, strict=True)
    )
    return Comparison((first, second), Path(file), blind=blind, who=login_name())


def _print_plan(store: str, ref: str, length: int | None) -> None:
    from flows.analysis.chat import find_model, read_shape
    from flows.serving.memory_plan import GPUS, plan_memory

    opened = open_store(store)
    config = read_shape(opened, *find_model(opened, ref))
    length = min(length or config.context, config.context)
    plans = plan_memory(config, BATCHES, length)
    echo(
        f"weights {format_bytes(plans[0].weights)} in 16 bits; keys and values "
        f"{format_bytes(plans[0].cache)} for {length:,} tokens; tokens a second at most, by the "
        "bandwidth of memory:\n"
    )
    titles = [Column(f"{plan.batch} at once", right=True) for plan in plans]
    rows = [
        (gpu.name, *(f"{p.tokens_a_second(gpu):,.0f}" if p.fits(gpu) else "–" for p in plans))
        for gpu in GPUS
    ]
    print_table(["GPU", *titles], rows)
    echo(
        "\n–: does not fit with a tenth of the memory left. Small models are bound otherwise; "
        "`ingot serve` itself takes float32 (twice the memory).\n"
    )
    echo("Memory and bandwidth by the maker:")
    for gpu in GPUS:
        echo(f"  {gpu.name}: {gpu.source}")
