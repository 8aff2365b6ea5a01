"""The server's own SQLite file under many writers: slow, but no errors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from uuid import uuid4

import httpx
import pytest

pytestmark = [pytest.mark.server, pytest.mark.full]
WRITERS, ROUNDS = 8, 6
STATES = ("PENDING", "RUNNING", "COMPLETED")


def write(ui, flow, number):
    """What a run writes: states, lines of log, artifacts and events; statuses of the answers."""
    statuses = []
    with httpx.Client(base_url=f"{ui.ui}/api", auth=ui.api.auth, timeout=120) as client:

        def post(path, body):
            reply = client.post(path, json=body)
            statuses.append((path, reply.status_code))
            return reply

        for turn in range(ROUNDS):
            made = post("/flow_runs/", {"flow_id": flow, "state": {"type": "SCHEDULED"}})
            if not made.is_success:
                break
            run = made.json()
            for state in STATES:
                post(f"/flow_runs/{run['id']}/set_state", {"state": {"type": state}})
                now = datetime.now(UTC).isoformat()
                line = {"name": "n", "level": 20, "message": "line", "timestamp": now}
                post("/logs/", [{**line, "flow_run_id": run["id"]}] * 50)
                key = f"load-{number}-{turn}"
                artifact = {"key": key, "data": "x" * 20_000, "flow_run_id": run["id"]}
                post("/artifacts/", artifact)
                resource = {"prefect.resource.id": f"load.{number}"}
                event = {"occurred": now, "event": "load", "resource": resource}
                post("/events", [{**event, "id": str(uuid4())} for _ in range(10)])
    return statuses


def test_eight_writers_at_once_meet_no_error(ui):
    flow = ui.post("/flows/", {"name": "load"})["id"]
    with ThreadPoolExecutor(WRITERS) as pool:
        answers = [
            status
            for statuses in pool.map(lambda number: write(ui, flow, number), range(WRITERS))
            for status in statuses
        ]
    assert len(answers) == WRITERS * ROUNDS * (1 + len(STATES) * 4)
    assert [one for one in answers if not 200 <= one[1] < 300] == []
    body = {"flows": {"name": {"any_": ["load"]}}}
    assert ui.post("/flow_runs/count", body) == WRITERS * ROUNDS
    log = (ui.folder / "home" / "prefect.log").read_text()
    assert "dropping" not in log, "no event was thrown away"
