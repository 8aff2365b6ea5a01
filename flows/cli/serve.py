"""`ingot serve REF`: a model of the store behind OpenAI's protocol, on loopback."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from artifacts_schema.config import format_bytes
from artifacts_schema.errors import UsageError
from artifacts_schema.identity import short
from flows.analysis.artifacts import open_store, refs_by_artifact
from flows.cli.options import store_option
from flows.cli.output import Column, echo, print_table

if TYPE_CHECKING:
    from flows.serving.app import Service

PORT = 8000
BATCHES = (1, 8, 32, 128)
"""Answers at once that a plan is for."""


@click.command("serve")
@click.argument("ref")
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
    "--waiting",
    type=click.IntRange(0, 10_000),
    default=128,
    show_default=True,
    metavar="N",
    help="Answers that may wait for the one that is written; more are refused (429).",
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
@store_option
def serve(
    ref: str,
    port: int,
    key_file: str | None,
    waiting: int,
    device: str | None,
    only_plan: bool,
    length: int | None,
    store: str,
) -> None:
    """Serve the model REF to programs that speak OpenAI's protocol, and to a page.

    REF is a checkpoint or release: a name in the store, or a key of 6 or more digits. It listens on
    127.0.0.1 alone; Ctrl-C ends it. Clients send the key of the key file as their API key.
    """
    if only_plan:
        _print_plan(store, ref, length)
        return
    if length is not None:
        raise UsageError("it is of a plan", where="--length", hint="add --plan")
    from flows.serving.app import make_app
    from flows.serving.loopback import host_names, key_path, listen, read_key, run_server

    path = key_path(key_file, "serve.key")
    key = read_key(path)
    with listen(port) as listener:
        service = _load(store, ref, device, waiting)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        echo(f"{service.name}: {url}/v1, and a page on {url}/")
        echo(f"the key is in {path}; Ctrl-C ends it")
        run_server(make_app(service, hosts=host_names(listener), key=key), listener)


def _load(store: str, ref: str, device: str | None, waiting: int) -> Service:
    from flows.analysis.chat import find_model, load_model
    from flows.cli.chat import choose_device
    from flows.serving.app import Service
    from flows.serving.writer import Writer

    opened = open_store(store)
    manifest, output = find_model(opened, ref)
    names = refs_by_artifact(opened).get(manifest.name)
    name = names[0] if names else f"{manifest.stage}-{short(manifest.key)}"
    model = load_model(opened, manifest, output, choose_device(device))
    return Service(name, model, Writer(model, waiting=waiting), int(time.time()))


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
        "`ingot serve` itself takes float32 (twice the memory), one answer at a time."
    )
