"""A wall clock that jumps in the middle of a run: a day back, a week on, and back again."""

import itertools
import json
import time

import pytest

from artifacts_schema.store import layout
from stages.engine.events import EVENTS_FILE
from stages.training.telemetry import TABLE, read_table

DAY = 86_400.0


@pytest.fixture
def jumping(monkeypatch):
    """From now on each look at the wall clock finds it elsewhere."""

    def start():
        jumps = itertools.cycle((0.0, -DAY, 7 * DAY, -400 * DAY, 3600.0))
        monkeypatch.setattr(time, "time", lambda now=time.time: now() + next(jumps))

    return start


def telemetry(store, manifest, name):
    folder = layout.payload(manifest.stage, manifest.key, manifest.attempt, "telemetry")
    return store.backend.read(f"{folder}/{name}")


def digests(manifest):
    return {name: output.digest for name, output in manifest.outputs.items()}


def test_nothing_goes_by_the_wall_clock(packed, pretrain, store, jumping, read_input):
    inputs, how = packed(), {"telemetry_every": 1, "watchdog": 60}
    whole = pretrain(inputs, how)
    store.backend.remove(f"artifacts/pretrain/{whole.key}.json")
    jumping()
    manifest = pretrain(inputs, how)
    assert digests(manifest) == digests(whole)

    rows = read_table(telemetry(store, manifest, TABLE)).to_pylist()
    spent = [name for name in rows[0] if name.endswith("seconds")]
    assert all(0 <= row[name] < 60 for row in rows for name in spent)
    assert all(row["tokens_per_second"] > 0 for row in rows)

    events = [json.loads(one) for one in telemetry(store, manifest, EVENTS_FILE).splitlines()]
    assert not [one for one in events if one["type"] == "alert"]
    times = [one["time"] for one in events]
    assert times == sorted(times)
    assert times[-1] - times[0] < 60
    assert manifest.telemetry["seconds"] < 60
