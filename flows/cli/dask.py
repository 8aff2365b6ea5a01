"""`ingot dask FOLDER`: a Dask cluster for data stages, here, as jobs of Slurm, or in Kubernetes."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from time import sleep

import click

from artifacts_schema.config import parse_size
from artifacts_schema.errors import UsageError
from flows.cli.output import echo

LOOK_SECONDS = 0.2
"""How often a signal is looked for."""
CLOSE_SECONDS = 15.0
"""How long the end of a cluster is waited for."""


@click.command("dask")
@click.argument("folder")
@click.option(
    "--on",
    "where",
    type=click.Choice(["local", "slurm", "kubernetes"]),
    default="local",
    show_default=True,
    help="Processes of this machine, or jobs of Slurm: one each. For Kubernetes the objects are "
    "written, and nothing is started.",
)
@click.option(
    "--workers",
    default="1:4",
    show_default=True,
    metavar="LEAST:MOST",
    help="As many as shards wait, within these; one number: always so many.",
)
@click.option(
    "--memory", metavar="SIZE", help="Of a worker, such as 8GiB; Slurm and Kubernetes must know it."
)
@click.option("--partition", metavar="NAME", help="Of Slurm.")
@click.option("--account", metavar="NAME", help="Of Slurm.")
@click.option("--time", default="12:00:00", show_default=True, help="Longest job of a worker.")
@click.option(
    "--interface", metavar="NAME", help="Network interface of this node that the others reach."
)
@click.option("--directive", "directives", multiple=True, help="One more option of sbatch.")
@click.option("--image", metavar="NAME", help="Of Kubernetes: an image with this Ingot.")
@click.option("--name", default="ingot-dask", show_default=True, help="Of the objects.")
@click.option("--namespace", default="ingot", show_default=True, help="Of the objects.")
@click.option(
    "--claim", "claims", multiple=True, metavar="CLAIM:/PATH", help="Volume with the store."
)
@click.option(
    "--secret", "secrets", multiple=True, metavar="NAME", help="Its keys become variables."
)
def dask(
    folder: str,
    where: str,
    workers: str,
    memory: str | None,
    partition: str | None,
    account: str | None,
    time: str,
    interface: str | None,
    directives: tuple[str, ...],
    image: str | None,
    name: str,
    namespace: str,
    claims: tuple[str, ...],
    secrets: tuple[str, ...],
) -> None:
    """Start a Dask cluster for data stages; Ctrl-C ends it.

    FOLDER gets the address and the certificates, which only its owner can read; every node must
    see it. Steps with `engine: dask` and `scheduler_file: FOLDER/scheduler.json` use the cluster.
    """
    from stages.engine.dask_cluster import ClusterPlan, remove_files, start_cluster

    path = Path(folder).expanduser().absolute()
    if where == "kubernetes":
        least, most = _bounds(workers)
        _write_objects(path, image, memory, name, namespace, (least, most), claims, secrets)
        return
    plan = ClusterPlan(
        where,
        *_bounds(workers),
        memory=None if memory is None else _size(memory),
        interface=interface,
        partition=partition,
        account=account,
        time=time,
        directives=directives,
    )
    ended: list[int] = []  # An event's lock may be held where a handler would set it.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: ended.append(number))
    cluster = start_cluster(plan, path)
    try:
        echo(f"a Dask cluster listens at {cluster.scheduler_address}")
        echo(f"steps use it by execution: {{engine: dask, scheduler_file: {path}/scheduler.json}}")
        echo("Ctrl-C ends it")
        while not ended:
            sleep(LOOK_SECONDS)
    finally:
        remove_files(path)
        closing = threading.Thread(target=cluster.close, daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)
        if ended:  # Threads of Dask may wait for a worker that starts.
            os._exit(0)


def _write_objects(
    folder: Path,
    image: str | None,
    memory: str | None,
    name: str,
    namespace: str,
    bounds: tuple[int, int],
    claims: tuple[str, ...],
    secrets: tuple[str, ...],
) -> None:
    from stages.engine.dask_kubernetes import KubernetesPlan, parse_claim, write_manifests

    if image is None or memory is None:
        raise UsageError(
            "Kubernetes must know the image and how much memory a worker needs",
            hint="--image registry/ingot:0.1-cpu --memory 8GiB",
        )
    mounted = tuple(parse_claim(one) for one in claims)
    plan = KubernetesPlan(name, namespace, image, *bounds, _size(memory), mounted, secrets)
    commands = write_manifests(plan, folder)
    echo(f"wrote {folder}/cluster.yaml; with the operator of dask-kubernetes it starts by")
    for command in commands:
        echo(f"  {command}")
    echo(f"steps use it by execution: {{engine: dask, scheduler_file: {folder}/scheduler.json}}")


def _bounds(workers: str) -> tuple[int, int]:
    least, _, most = workers.partition(":")
    try:
        bounds = int(least), int(most or least)
    except ValueError:
        bounds = (-1, -1)
    if not 0 <= bounds[0] <= bounds[1] or bounds[1] == 0:
        raise UsageError(f"--workers: '{workers}' is not LEAST:MOST, such as 1:16")
    return bounds


def _size(memory: str) -> int:
    try:
        return parse_size(memory)
    except ValueError as error:
        raise UsageError(f"--memory: {error}") from None
