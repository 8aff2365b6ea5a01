"""What commands do with Prefect: run a recipe as a flow, start and stop server, worker and reports.

The terminal of a run shows one line when the server stops answering and one when it answers again.
Prefect's own messages, whole events among them, go to `~/.ingot/client.log`. The local worker takes
runs of a pool and starts each as a process of its own.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from artifacts_schema.errors import IngotError, Stopped, UsageError
from flows.orchestration import local_state, reports
from flows.orchestration.local_state import (
    fingerprint,
    log_path,
    one_at_a_time,
    private_folder,
    read_password,
    wait_until,
)
from flows.orchestration.server import (
    PORT,
    PrintLine,
    Server,
    check_password,
    ensure_server,
    find_server,
    is_answering,
    is_ready,
    server_at,
    stop_server,
    use_server,
)
from flows.orchestration.service_settings import HEARTBEAT_SECONDS, ServiceSettings
from flows.recipe.dispatch import open_pool
from flows.recipe.observers import Observer
from flows.recipe.pipeline import Pipeline, Request
from flows.recipe.plan import Plan
from flows.recipe.profile import FLOW, LOCAL, Resources, find_profile, load_profile
from flows.recipe.recipe import BUNDLED

CLIENT_LOG = "client"
LOG_BYTES = 5_000_000
LOOK_SECONDS = 5.0
ANSWER_SECONDS = 10.0
"""Longer than for other requests: a server on a busy machine is slow."""
_LOGGERS = ("prefect", "prefect._internal")
"""The second has its own handler for the terminal."""


def redirect_prefect_logs() -> None:
    """Send warnings and errors of Prefect's client to a file, for the rest of this process.

    Its threads still log after the run, so the change is permanent.
    """
    handler = RotatingFileHandler(
        log_path(CLIENT_LOG), maxBytes=LOG_BYTES, backupCount=1, delay=True
    )
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        for old in list(logger.handlers):
            logger.removeHandler(old)
            old.close()
        logger.addHandler(handler)
        logger.propagate = False
    # Otherwise Prefect prints errors about logs that it cannot send.
    logging.raiseExceptions = False


@contextmanager
def watch_server(
    server: Server,
    tell: PrintLine,
    *,
    answers: Callable[[Server, float], bool] | None = None,
    every: float = LOOK_SECONDS,
) -> Iterator[None]:
    """While active, print a line when the server stops answering and one when it is back.

    One of our own whose database is away counts as one that does not answer.
    """
    over = threading.Event()
    if answers is None:
        answers = is_answering if server.process is None else is_ready

    def look() -> None:
        misses = 0
        while not over.wait(every):
            if answers(server, ANSWER_SECONDS):
                if misses > 1:
                    tell(f"the Prefect server at {server.ui} answers again")
                misses = 0
                continue
            misses += 1
            if misses == 2 and not over.is_set():
                tell(
                    f"the Prefect server at {server.ui} does not answer: the run goes on and is "
                    f"not shown there (Prefect's messages: {log_path(CLIENT_LOG)})"
                )

    threading.Thread(target=look, name="prefect-watch", daemon=True).start()
    try:
        yield
    finally:
        over.set()


WORKER = "worker"
WORKER_START_SECONDS = 90.0
SAVE_SECONDS = 45.0
"""For running steps to save and end; Prefect itself ends a cancelled run's process after 30."""
WORKER_STOP_SECONDS = 10.0
_RUN = "PREFECT__FLOW_RUN_ID"


def check_worker(server: Server, pool: str) -> None:
    """Raise UsageError if a running worker takes its runs from another server or pool."""
    worker, facts = local_state.find_process(WORKER), _facts(server, pool)
    if worker is None or worker.facts == facts:
        return
    changed = worker.facts.get("password") != facts.get("password")
    raise UsageError(
        f"a worker for pool '{worker.facts['pool']}' at {worker.facts['api']} runs already"
        + (", with another password" if changed else ""),
        hint="`ingot down` first",
    )


def start_worker(server: Server, pool: str) -> None:
    """Start the worker and wait until the server knows it."""
    command = [
        sys.executable, "-P", "-m", __name__, "worker", "start",
        "--type", "process", "--pool", pool, "--name", _worker_name(),
    ]  # fmt: skip
    process = local_state.start_process(WORKER, command, _environment(server), _facts(server, pool))
    wait_until(lambda: _is_online(pool) or not process.lives(), WORKER_START_SECONDS)
    if process.lives() and _is_online(pool):
        return
    local_state.stop_process(WORKER, 0.0)
    raise IngotError("the worker did not start", where=str(log_path(WORKER)), hint="read the log")


def stop_worker() -> bool:
    """Cancel the worker's runs, so that their steps save, then end it; whether one was running."""
    worker = local_state.find_process(WORKER)
    if worker is None:
        return False
    running, server = _running(worker.process), server_at(worker.facts["api"])
    try:
        cancelled = (
            bool(running) and is_answering(server) and _cancel(server, list(running.values()))
        )
    except IngotError:
        cancelled = False  # A busy server, or another password: signal the processes instead.
    if not cancelled:
        for process in running:
            with suppress(psutil.Error):
                process.send_signal(signal.SIGTERM)
    psutil.wait_procs(list(running), timeout=SAVE_SECONDS)
    return local_state.stop_process(WORKER, WORKER_STOP_SECONDS) is not None


def worker_pool() -> str | None:
    """The pool whose runs the local worker takes; None if no worker lives."""
    worker = local_state.find_process(WORKER)
    return worker.facts["pool"] if worker else None


def _running(worker: int) -> dict[psutil.Process, str]:
    """The processes of flow runs that the worker has started, each with its run's id."""
    runs = {}
    with suppress(psutil.Error):
        for process in psutil.Process(worker).children():
            with suppress(psutil.Error):
                runs[process] = process.environ().get(_RUN, "")
    return {process: run for process, run in runs.items() if run}


def _cancel(server: Server, runs: list[str]) -> bool:
    """Cancel runs by the API; whether the worker confirmed all in time.

    False too if a run was deleted there: its process must get a signal instead.
    """
    use_server(server)
    from uuid import UUID

    from prefect.exceptions import ObjectNotFound
    from prefect.states import Cancelling

    from flows.orchestration.deployments import prefect_client

    with prefect_client() as client:
        ids = {UUID(run) for run in runs}
        deleted = set()
        for id in ids:
            try:
                client.set_flow_run_state(id, Cancelling(message="`ingot down`"))
            except ObjectNotFound:
                deleted.add(id)

        def is_over(id: UUID) -> bool:
            try:
                state = client.read_flow_run(id).state
            except ObjectNotFound:
                deleted.add(id)
                return True
            return state is not None and state.is_final()

        return wait_until(lambda: all(map(is_over, ids - deleted)), SAVE_SECONDS) and not deleted


def _facts(server: Server, pool: str) -> dict[str, str]:
    secret = {"password": fingerprint(read_password())} if server.process is not None else {}
    return {"api": server.api, "pool": pool, **secret}


def _environment(server: Server) -> dict[str, str]:
    home = {} if server.process is None else {"PREFECT_HOME": str(local_state.home() / "prefect")}
    return {
        **home,
        "PREFECT_API_URL": server.api,
        "PREFECT_WORKER_QUERY_SECONDS": "2",
        "PREFECT_WORKER_ENABLE_CANCELLATION": "true",
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": HEARTBEAT_SECONDS,
        "PREFECT_LOGGING_TO_API_ENABLED": "true",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO",
        "INGOT_HOME": str(local_state.home()),
        "DO_NOT_TRACK": "1",
    }


def _worker_name() -> str:
    return f"ingot-{socket.gethostname()}"


def _is_online(pool: str) -> bool:
    from flows.orchestration.deployments import prefect_client

    try:
        with prefect_client() as client:
            workers = client.read_workers_for_work_pool(pool)
    except IngotError:
        return False  # Away or busy for now; retried until WORKER_START_SECONDS have passed.
    return any(worker.name == _worker_name() and worker.status == "ONLINE" for worker in workers)


REPORTS_STOP_SECONDS = 2.0
STOP_MARGIN_SECONDS = 60.0


@dataclass(frozen=True)
class ServiceStatus:
    """What runs after `ingot up`."""

    server: Server
    pool: str
    store: str
    forms: list[str]
    reports: str


def bring_up(
    store: str,
    recipes: Sequence[Path],
    pool: str,
    port: int | None,
    tell: PrintLine,
    *,
    settings: ServiceSettings | None = None,
    limit: int | None = None,
) -> ServiceStatus:
    """Start the services that do not run yet, and register every recipe and stage as it is now.

    `limit` is the number of the pool's runs at the same time; None leaves it as it is.
    """
    is_first = find_server() is None
    server = ensure_server(tell, PORT if port is None and is_first else port, settings)
    use_server(server)
    check_worker(server, pool)
    from flows.orchestration.deployments import Target, register

    forms = [name for name in register(recipes, Target(store, pool, limit=limit)) if "/" in name]
    with one_at_a_time():
        address = reports.ensure_reports(urlsplit(server.api).port or PORT)
        if worker_pool() is None:
            tell("starting a worker in the background")
            start_worker(server, pool)
    return ServiceStatus(server, pool, store, forms, address)


@dataclass(frozen=True)
class Deployed:
    """What is registered after `ingot deploy`."""

    server: Server
    pool: str
    type: str
    outcomes: Mapping[str, str]
    """Name → created, updated or unchanged."""


def deploy(
    profile: str, store: str, recipes: Sequence[Path], pool: str | None, limit: int | None
) -> Deployed:
    """Register forms whose runs have this profile, and the work pool that its `flow` names."""
    path = find_profile(profile, BUNDLED / "any.yaml")
    loaded = load_profile(str(path), BUNDLED)
    resources, kind, defaults = loaded.flow, "process", {}
    if resources.nodes > 1:
        raise UsageError("a run needs one node", where=f"{path}: resources.{FLOW}.nodes")
    if resources.pool != LOCAL:
        entry = loaded.pools[resources.pool]
        opened = open_pool(entry)
        opened.check(resources, f"{path}: resources.{FLOW}")
        kind, defaults = entry.type, _job_variables(opened.settings.plain(), resources)
    server = connect_server()
    from flows.orchestration.deployments import Target, register

    is_bundled = path.parent == BUNDLED / "profiles"
    name = pool or ("ingot" if resources.pool == LOCAL else f"ingot-{loaded.name}")
    target = Target(
        store,
        name,
        kind,
        path.stem if is_bundled else str(path.absolute()),
        f"@{loaded.name}",
        defaults,
        limit,
    )
    return Deployed(server, name, kind, register(recipes, target))


def _job_variables(settings: Mapping[str, Any], resources: Resources) -> dict[str, Any]:
    """Defaults of a pool's form: the pool's settings, and the resources of a run."""
    requested = {
        "cpus": resources.cpus,
        "gpus": resources.gpus,
        "memory": resources.memory[0] if resources.memory else None,
        "time": resources.time,
        "env": settings.get("environment"),
    }
    values = {**settings, **requested}
    if "stop_seconds" in settings:  # The run waits for its steps, which have as long.
        values["stop_seconds"] = settings["stop_seconds"] + STOP_MARGIN_SECONDS
    return {name: value for name, value in values.items() if value not in (None, [], {}, ())}


def bring_down() -> list[str]:
    """Stop worker, reports and server, in this order; returns the names of those that ran."""
    with one_at_a_time():
        stopped = ["worker"] if stop_worker() else []
        if local_state.stop_process(reports.REPORT_SERVER, REPORTS_STOP_SECONDS) is not None:
            stopped.append("reports")
    server = stop_server()
    return [*stopped, *([f"server {server.ui}"] if server else [])]


def connect_server() -> Server:
    """Use the running server; IngotError if none answers."""
    server = find_server()
    if server is None or not is_answering(server):
        where = server.api if server else None
        raise IngotError("no Prefect server answers", where=where, hint="see `ingot up`")
    check_password(server)
    use_server(server)
    return server


def run_pipeline(
    bound: Pipeline,
    request: Request,
    *,
    observer: Observer | None = None,
    jobs: int | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> Plan:
    """Run a recipe as a flow run on the configured Prefect API, or on a local server.

    Raises the errors of the run. If the server goes away, running children continue; the error says
    so, and the same command continues, with or without Prefect.
    """
    server = ensure_server(tell)
    use_server(server)

    from prefect import tags

    redirect_prefect_logs()

    from flows.orchestration import flow
    from flows.orchestration.forms import TAG
    from flows.orchestration.ui import AWAY

    try:
        with flow.extra_observer(observer, jobs), tags(TAG), watch_server(server, tell):
            flow.pipeline(**absolute_parameters(request))
    except IngotError:
        raise
    except KeyboardInterrupt:
        raise Stopped("stopped", hint="the same command continues") from None
    except AWAY as error:
        plan = bound.plan()
        if not plan.is_done:
            raise IngotError(
                f"the Prefect API went away or failed ({_describe_answer(error)})",
                where=server.api,
                hint="finished parts are kept; the same command continues, or with --no-prefect",
            ) from error
        tell(
            f"the Prefect API at {server.api} failed ({_describe_answer(error)}), "
            "but every step is done"
        )
        return plan
    return bound.plan()


def _describe_answer(error: BaseException) -> str:
    """The HTTP status of an error response; the exception's name if there was no response."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return type(error).__name__ if status is None else f"it answers {status}"


def absolute_parameters(request: Request) -> dict[str, Any]:
    """A request as parameters of the flow, with paths that are valid in every folder."""
    values = request.to_json()
    if "://" not in request.store:
        values["store"] = os.path.abspath(request.store)
    if os.path.isfile(request.recipe):  # A folder may have the name of a recipe of Ingot.
        values["recipe"] = os.path.abspath(request.recipe)
    return values


def main() -> None:
    """Prefect's command line, in a process whose temporary folder is its user's own.

    The worker makes `runner_storage` in the machine's, where it belongs to the first user who runs
    one, and no setting of Prefect's moves it. What the process starts has the usual folder.
    """
    tempfile.tempdir = str(private_folder(local_state.home() / "prefect" / "tmp"))
    from prefect.cli import app

    app()


if __name__ == "__main__":
    main()
