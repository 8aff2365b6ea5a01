"""`ingot serve REF [REF]`: models of the store behind OpenAI's protocol, on loopback."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from artifacts_schema.config import format_bytes
from artifacts_schema.errors import IngotError, UsageError
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
    path = _key_path(key_file)
    key = read_key(path)
    with _listen(port) as listener:
        service = _load(store, refs, choose_device(device), places, waiting)
        if len(refs) == 2:
            service.comparison = _compare(store, refs, service, choices or "choices.jsonl", blind)
        _serve(service, listener, path, key)


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


def _serve(service: Service, listener: socket.socket, path: Path, key: str) -> None:
    import uvicorn

    from flows.serving.app import make_app

    port = listener.getsockname()[1]
    addresses = frozenset(f"{host}:{port}" for host in ("127.0.0.1", "localhost"))
    hosts = addresses | (frozenset(("127.0.0.1", "localhost")) if port == 80 else frozenset())
    config = uvicorn.Config(
        make_app(service, hosts=hosts, key=key),
        log_level="error",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    names = " and ".join(one.name for one in service.models)
    echo(f"{names}: http://127.0.0.1:{port}/v1, and a page on http://127.0.0.1:{port}/")
    echo(f"the key is in {path}; Ctrl-C ends it")
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listener])
    if service.comparison is not None:
        first, second = (one.name for one in service.comparison.candidates)
        echo(f"{service.comparison.file}: {service.comparison.summary().sentence(first, second)}")


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


def _listen(port: int) -> socket.socket:
    """A socket on loopback, before the model is loaded: a port in use is said at once."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"port {port} cannot be had: {error.strerror}",
            where="--port",
            hint="name another one; 0 takes any that is free",
        ) from None
    return listener


def _key_path(option: str | None) -> Path:
    if option is not None:
        return Path(option).absolute()
    folder = Path(os.environ.get("INGOT_HOME", "~/.ingot")).expanduser().absolute()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / "serve.key"


def read_key(path: Path) -> str:
    """The key in a file that only its owner can read; a new one where there is none.

    IngotError for a file that others can read, or that holds something else.
    """
    if not path.is_symlink() and not path.exists():
        try:
            number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with open(number, "w", encoding="ascii") as file:
                file.write(secrets.token_urlsafe(32) + "\n")
        except FileExistsError:  # Another server was faster: use its key.
            pass
        except OSError as error:
            raise IngotError(f"cannot write the key: {error.strerror}", where=str(path)) from None
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise IngotError(f"cannot read the key: {error.strerror}", where=str(path)) from None
    with open(number, encoding="utf-8", errors="replace") as file:
        about = os.fstat(number)
        if about.st_uid != os.geteuid() or about.st_mode & 0o077:
            raise IngotError(
                "others can read the key", where=str(path), hint="chmod 600, or delete the file"
            )
        key = file.read(1000).strip()
    if len(key) < 16 or not key.isascii() or not key.isprintable() or " " in key:
        raise IngotError(
            "this is no key: 16 or more letters and digits", where=str(path), hint="delete the file"
        )
    return key
