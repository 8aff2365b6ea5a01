"""`ingot up` and `ingot down`: server, forms, worker and reports, brought up and kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from artifacts_schema.errors import IngotError
from flows.orchestration import background, reports, worker
from flows.orchestration.background import one_at_a_time
from flows.orchestration.server import (
    PORT,
    Server,
    Tell,
    answers,
    check_password,
    ensure_server,
    find_server,
    stop_server,
    use,
)

STOP_SECONDS = 2.0


@dataclass(frozen=True)
class Standing:
    """What runs after `ingot up`."""

    server: Server
    pool: str
    store: str
    forms: list[str]
    reports: str


def bring_up(
    store: str, recipes: Sequence[Path], pool: str, port: int | None, tell: Tell
) -> Standing:
    """Start what does not run yet, and tell the server of every recipe and stage as it is now."""
    is_first = find_server() is None
    server = ensure_server(tell, PORT if port is None and is_first else port)
    use(server)
    worker.check_worker(server, pool)
    from flows.orchestration.deploy import register

    forms = register(recipes, store, pool)
    with one_at_a_time():
        address = reports.ensure_reports(urlsplit(server.api).port or PORT)
        if worker.worker_pool() is None:
            tell("starting a worker in the background")
            worker.start_worker(server, pool)
    return Standing(server, pool, store, forms, address)


def bring_down() -> list[str]:
    """Stop worker, reports and server, in this order; what was stopped."""
    with one_at_a_time():
        stopped = ["worker"] if worker.stop_worker() else []
        if background.stop(reports.NAME, STOP_SECONDS) is not None:
            stopped.append("reports")
    server = stop_server()
    return [*stopped, *([f"server {server.ui}"] if server else [])]


def connect() -> Server:
    """Use the server that stands; IngotError if none answers."""
    server = find_server()
    if server is None or not answers(server):
        where = server.api if server else None
        raise IngotError("no Prefect server answers", where=where, hint="see `ingot up`")
    check_password(server)
    use(server)
    return server
