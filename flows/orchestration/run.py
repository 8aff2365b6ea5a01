"""From the command line into a flow run, and back with the same errors and exit codes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from artifacts_schema.errors import IngotError, Stopped
from flows.orchestration.server import ensure_server, use
from flows.orchestration.terminal import keep_out_of_terminal, watch_server
from flows.recipe.observer import Observer
from flows.recipe.pipeline import Pipeline, Request
from flows.recipe.plan import Plan


def run_pipeline(
    bound: Pipeline,
    request: Request,
    *,
    observer: Observer | None = None,
    jobs: int | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> Plan:
    """Run a recipe as a flow run on the configured Prefect API, or on a local server.

    Raises what the run raises. If the server goes away, running children go on; the error says so,
    and the same command continues, with or without Prefect.
    """
    server = ensure_server(tell)
    use(server)

    from prefect import tags

    keep_out_of_terminal()

    from flows.orchestration import flow
    from flows.orchestration.follow import AWAY

    try:
        with flow.told_also(observer, jobs), tags(flow.TAG), watch_server(server, tell):
            flow.pipeline(**absolute(request))
    except IngotError:
        raise
    except KeyboardInterrupt:
        raise Stopped("stopped", hint="the same command continues") from None
    except AWAY as error:
        plan = bound.plan()
        if not plan.is_done:
            raise IngotError(
                f"the Prefect API went away or failed ({_answer(error)})",
                where=server.api,
                hint="finished parts are kept; the same command continues, or with --no-prefect",
            ) from error
        tell(f"the Prefect API at {server.api} failed ({_answer(error)}), but every step is done")
        return plan
    return bound.plan()


def _answer(error: BaseException) -> str:
    """The HTTP status of an answer that is an error; the exception's name where there is none."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return type(error).__name__ if status is None else f"it answers {status}"


def absolute(request: Request) -> dict[str, Any]:
    """A request as parameters of the flow, which mean the same from every folder."""
    values = request.to_json()
    values["store"] = (
        os.path.abspath(request.store) if "://" not in request.store else request.store
    )
    if os.path.isfile(request.recipe):  # A folder may bear the name of a recipe of Ingot.
        values["recipe"] = os.path.abspath(request.recipe)
    return values
