"""The local worker: takes runs of a pool and starts each as a process of its own."""

from __future__ import annotations

import signal
import socket
import sys
from contextlib import suppress

import psutil

from artifacts_schema.errors import IngotError, UsageError
from flows.orchestration import background
from flows.orchestration.background import log_of, wait_until
from flows.orchestration.password import fingerprint, read_password
from flows.orchestration.server import Server, answers, server_at, server_environment, use

NAME = "worker"
START_SECONDS = 90.0
SAVE_SECONDS = 45.0
"""For running steps to save and end; Prefect itself ends a cancelled run's process after 30."""
STOP_SECONDS = 10.0
_RUN = "PREFECT__FLOW_RUN_ID"


def check_worker(server: Server, pool: str) -> None:
    """Raise UsageError if the worker that lives takes its runs elsewhere."""
    standing = background.find(NAME)
    if standing is None:
        return
    facts = _facts(server, pool)
    changed = standing.facts.get("password") != facts.get("password")
    if standing.facts != facts:
        raise UsageError(
            f"a worker for pool '{standing.facts['pool']}' at {standing.facts['api']} runs already"
            + (", with another password" if changed else ""),
            hint="`ingot down` first",
        )


def start_worker(server: Server, pool: str) -> None:
    """Start the worker and wait until the server knows it."""
    command = [
        sys.executable, "-P", "-m", "prefect", "worker", "start",
        "--type", "process", "--pool", pool, "--name", _worker_name(),
    ]  # fmt: skip
    process = background.start(NAME, command, _environment(server), _facts(server, pool))
    wait_until(lambda: _is_online(pool) or not process.lives(), START_SECONDS)
    if process.lives() and _is_online(pool):
        return
    background.stop(NAME, 0.0)
    raise IngotError("the worker did not start", where=str(log_of(NAME)), hint="read the log")


def stop_worker() -> bool:
    """Cancel what the worker runs, so that steps save what they have, then end it."""
    worker = background.find(NAME)
    if worker is None:
        return False
    running, server = _running(worker.process), server_at(worker.facts["api"])
    try:
        is_asked = bool(running) and answers(server) and _cancel(server, list(running.values()))
    except IngotError:
        is_asked = False  # A busy server, or another password: the processes are asked themselves.
    if not is_asked:
        for process in running:
            with suppress(psutil.Error):
                process.send_signal(signal.SIGTERM)
    psutil.wait_procs(list(running), timeout=SAVE_SECONDS)
    return background.stop(NAME, STOP_SECONDS) is not None


def worker_pool() -> str | None:
    """The pool whose runs the local worker takes; None if no worker lives."""
    worker = background.find(NAME)
    return worker.facts["pool"] if worker else None


def _running(worker: int) -> dict[psutil.Process, str]:
    """The processes of flow runs that the worker has started, each with its run's id."""
    found = {}
    with suppress(psutil.Error):
        for process in psutil.Process(worker).children():
            with suppress(psutil.Error):
                found[process] = process.environ().get(_RUN, "")
    return {process: run for process, run in found.items() if run}


def _cancel(server: Server, runs: list[str]) -> bool:
    """Cancel runs by the API, as a person would; whether the worker has said so in time.

    False too if one was deleted there: its process must be asked itself.
    """
    use(server)
    from uuid import UUID

    from prefect.exceptions import ObjectNotFound
    from prefect.states import Cancelling

    from flows.orchestration.asking import asking

    with asking() as client:
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
    own = {"password": fingerprint(read_password())} if server.process is not None else {}
    return {"api": server.api, "pool": pool, **own}


def _environment(server: Server) -> dict[str, str]:
    own = server_environment() if server.process is not None else {}
    return {
        **{name: own[name] for name in ("PREFECT_HOME",) if name in own},
        "PREFECT_API_URL": server.api,
        "PREFECT_WORKER_QUERY_SECONDS": "2",
        "PREFECT_WORKER_ENABLE_CANCELLATION": "true",
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
        "PREFECT_LOGGING_TO_API_ENABLED": "true",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO",
        "INGOT_HOME": str(background.home()),
        "DO_NOT_TRACK": "1",
    }


def _worker_name() -> str:
    return f"ingot-{socket.gethostname()}"


def _is_online(pool: str) -> bool:
    from flows.orchestration.asking import asking

    try:
        with asking() as client:
            found = client.read_workers_for_work_pool(pool)
    except IngotError:
        return False  # Away or busy for now; it is asked again until START_SECONDS are over.
    return any(worker.name == _worker_name() and worker.status == "ONLINE" for worker in found)
