"""What a job of a Prefect worker runs: the flow of one flow run, on a node of a cluster.

`python -P -m flows.orchestration.node FOLDER`. The folder is seen by the worker and by the node:

| file | written by | holds |
|---|---|---|
| `run.json` | worker | the flow run's id, its entrypoint and parameters |
| `cancelled` | worker | nothing; a signal then means: end the steps as well |
| `node.json` | this process | why it does not report to the API, and how it ended |

Where the API cannot be reached from the node, the same steps run without Prefect, and the worker
reports from `node.json` and from the scheduler. TERM and USR2 (a time limit, preemption, a requeue)
end the process with exit code 75 and leave the flow run's state alone: the job starts again, and
finds the jobs of its steps.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import wraps
from pathlib import Path
from typing import Any

from artifacts_schema.errors import EXIT_FAILED, EXIT_OK, EXIT_RESUME, IngotError, UsageError
from artifacts_schema.store import Store
from flows.orchestration.forms import NAME_FIELD, PIPELINE, STAGES, request_from, stage_spec
from flows.recipe.dispatch import Dispatcher
from flows.recipe.execute import Handover, execute, run_step
from flows.recipe.pipeline import Pipeline
from flows.recipe.plan import PlannedStep
from flows.recipe.profile import load_profile
from flows.recipe.recipe import BUNDLED
from stages.engine.spec import StageSpec

MODULE = "flows.orchestration.node"
SPEC = "flows.orchestration.flow.spec"
SIGNALS = (signal.SIGTERM, signal.SIGUSR2)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class NodeReport:
    """What the process on the node says of itself."""

    away: str | None = None
    """Why it does not report to the API."""
    code: int | None = None
    """Its exit code; None while it runs, and after a kill."""
    message: str = ""
    """Its error."""


@dataclass(frozen=True)
class FlowJobFolder:
    """The files that pass between the worker and the job of a flow run."""

    path: Path

    def prepare(self, flow_run: str, entrypoint: str, parameters: Mapping[str, Any]) -> None:
        """Make the folder, private, with what the job is to run."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file in (self._report, self._cancelled):
            file.unlink(missing_ok=True)
        run = {"flow_run": flow_run, "entrypoint": entrypoint, "parameters": dict(parameters)}
        _write(self.path / "run.json", run)

    def read_run(self) -> dict[str, Any]:
        """What the job is to run; UsageError if nobody wrote it."""
        try:
            run: dict[str, Any] = json.loads((self.path / "run.json").read_text())
        except (OSError, ValueError) as error:
            raise UsageError(
                f"cannot read what to run: {error}",
                where=str(self.path),
                hint="the folder must be one that all nodes see",
            ) from None
        return run

    def write_report(self, report: NodeReport) -> None:
        """Say how the process is; the last one counts."""
        _write(self._report, asdict(report))

    def read_report(self) -> NodeReport:
        """What the process said last."""
        try:
            return NodeReport(**json.loads(self._report.read_text()))
        except (OSError, ValueError, TypeError):
            return NodeReport()

    def cancel(self) -> None:
        """From now on a signal ends the steps too."""
        with suppress(OSError):
            self._cancelled.touch()

    @property
    def is_cancelled(self) -> bool:
        """Whether a signal ends the steps too."""
        return self._cancelled.exists()

    @property
    def _report(self) -> Path:
        return self.path / "node.json"

    @property
    def _cancelled(self) -> Path:
        return self.path / "cancelled"


def _write(path: Path, value: Any) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(number, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
    draft.replace(path)


@contextmanager
def interruptible(folder: FlowJobFolder) -> Iterator[None]:
    """While active, the first TERM or USR2 raises `Handover`; KeyboardInterrupt once cancelled.

    The engine of Prefect would report a TERM as a crash, so its own handler is replaced meanwhile.
    """

    def interrupt(number: int, frame: Any) -> None:
        for one in SIGNALS:  # Slurm sends more than one.
            signal.signal(one, signal.SIG_IGN)
        raise KeyboardInterrupt if folder.is_cancelled else Handover

    before = {one: signal.signal(one, interrupt) for one in SIGNALS}
    try:
        yield
    finally:
        if signal.getsignal(SIGNALS[0]) is not signal.SIG_IGN:
            for one, handler in before.items():
                signal.signal(one, handler)


def run_here(entrypoint: str, parameters: Mapping[str, Any]) -> None:
    """The work of a flow, without Prefect; raises its error."""
    values = dict(parameters)
    if entrypoint == PIPELINE:
        bound = Pipeline.open(request_from(values))
        execute(bound, dispatch=Dispatcher(bound.profile))
        return
    if entrypoint == SPEC:
        store = Store.open(values["store"], create=False)
        uri = values["spec_uri"]
        import fsspec

        with fsspec.open(uri, "rb") as file:
            spec = StageSpec.from_json(file.read(), where=uri)
        spec.check_key(values["expected_key"])
        run_step(store, requested_step(spec))
        return
    if not entrypoint.startswith(STAGES):
        raise IngotError("no flow of Ingot, so it needs the Prefect API", where=entrypoint)
    store, name = Store.open(values.pop("store")), entrypoint.removeprefix(STAGES)
    ref = values.pop(NAME_FIELD, None)
    spec = stage_spec(store, name, values)
    dispatch = stage_dispatcher(values)
    while True:
        manifest = run_step(store, requested_step(spec), dispatch=dispatch)
        if not ref or store.name(ref, manifest):  # Else collected before it was named.
            return


def requested_step(spec: StageSpec) -> PlannedStep:
    """The step of a single stage that a person asked for."""
    return PlannedStep(spec.stage, spec.stage, spec.stage, "run", "requested", spec.key, spec)


def stage_dispatcher(values: Mapping[str, Any]) -> Dispatcher:
    """Where the stage of a form runs: as its profile says."""
    return Dispatcher(load_profile(values.get("profile") or None, BUNDLED))


class _Node:
    """One execution of a flow run by this process."""

    def __init__(self, folder: FlowJobFolder) -> None:
        self.folder = folder
        self.run = folder.read_run()
        self.away: str | None = None

    def execute(self) -> int:
        """Run the flow, or its work alone; the exit code."""
        from prefect.exceptions import Abort, ObjectNotFound

        self.folder.write_report(NodeReport())
        try:
            flow_run = self._read_flow_run()
        except ObjectNotFound:
            return self._end(EXIT_OK, "the flow run was deleted")
        except Exception as error:
            return self._run_alone(_describe(error))
        try:
            self._run_flow(flow_run)
        except Abort as error:  # Cancelled meanwhile, or another process runs it.
            return self._end(EXIT_OK, f"the server lets it not run: {error}")
        except (Handover, KeyboardInterrupt) as error:
            return self._interrupted(error)
        except Exception as error:
            if self._is_reported():
                return self._failed(error)
            return self._run_alone(_describe(error))
        return self._end(EXIT_OK)

    def _read_flow_run(self) -> Any:
        from prefect.client.orchestration import get_client

        with get_client(sync_client=True) as client:
            return client.read_flow_run(self.run["flow_run"])

    def _is_reported(self) -> bool:
        """Whether the server knows the end of the flow run."""
        try:
            state = self._read_flow_run().state
        except Exception:
            return False
        return state is not None and state.is_final()

    def _run_flow(self, flow_run: Any) -> None:
        from prefect.exceptions import Pause
        from prefect.flow_engine import load_flow, run_flow

        loaded, interruption = load_flow(flow_run), None

        def guard(run: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(run)
            def guarded(*args: Any, **values: Any) -> Any:
                nonlocal interruption
                try:
                    with interruptible(self.folder):
                        return run(*args, **values)
                except (Handover, KeyboardInterrupt) as error:
                    interruption = error
                    raise Pause from None  # The one signal after which no state is proposed.

            return guarded

        loaded.fn = guard(loaded.fn)
        try:
            run_flow(loaded, flow_run=flow_run)
        except Pause:
            raise (interruption or Handover()) from None

    def _run_alone(self, reason: str) -> int:
        self.away = reason
        self.folder.write_report(NodeReport(reason))
        print(f"the Prefect API does not answer here ({reason}): running without it", flush=True)
        try:
            with interruptible(self.folder):
                run_here(self.run["entrypoint"], self.run["parameters"])
        except (Handover, KeyboardInterrupt) as error:
            return self._interrupted(error)
        except Exception as error:
            return self._failed(error)
        return self._end(EXIT_OK)

    def _failed(self, error: Exception) -> int:
        if not isinstance(error, IngotError):
            log.error("the flow failed", exc_info=error)
        code = error.exit_code if isinstance(error, IngotError) else EXIT_FAILED
        return self._end(code, str(error) or type(error).__name__)

    def _interrupted(self, error: BaseException) -> int:
        is_handover = isinstance(error, Handover)
        print("stopped; another start continues" if is_handover else "cancelled", flush=True)
        return EXIT_RESUME  # Without an end in the report: the run is not over.

    def _end(self, code: int, message: str = "") -> int:
        self.folder.write_report(NodeReport(self.away, code, message))
        if message:
            print(f"error: {message}" if code else message, file=sys.stderr, flush=True)
        return code


def _describe(error: Exception) -> str:
    """Without the address: a URL may hold anything."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in (401, 403):
        return f"HTTP {status}: environment_file must set PREFECT_API_AUTH_STRING or _KEY"
    return f"HTTP {status}" if status else type(error).__name__


def main(folder: str) -> int:
    """Run what the folder says; the exit code."""
    for one in SIGNALS:  # Until the flow has handlers of its own.
        signal.signal(one, lambda number, frame: sys.exit(EXIT_RESUME))
    try:
        return _Node(FlowJobFolder(Path(folder))).execute()
    except IngotError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
