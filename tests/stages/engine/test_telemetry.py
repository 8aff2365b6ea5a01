"""What a stage leaves for people: kept beside the payload, and nothing to resume from."""

from __future__ import annotations

import json

import pytest

from artifacts_schema.store import layout
from stages.engine import Stage


def stage_that(does):
    def run(self, context):
        does(context)
        context.write_bytes("release", "README.md", b"x")

    members = {
        "name": "telling",
        "version": 1,
        "reproducible": "bytes",
        "outputs": {"release": "release"},
        "run": run,
    }
    return type("Telling", (Stage,), members)


def leave(context):
    place = context.telemetry_folder / "board"
    place.mkdir(parents=True)
    (place / "events.bin").write_bytes(b"\0\1")
    (place / "latest").symlink_to(place / "events.bin")


def test_files_lie_beside_the_payload_and_are_not_hashed(store, run_stage):
    manifest = run_stage(stage_that(leave))
    folder = layout.payload(manifest.stage, manifest.key, manifest.attempt, "telemetry")
    assert store.backend.files(folder) == ["board/events.bin", "events.jsonl", "log.txt"]
    assert [file.path for file in manifest.output("release").files] == ["README.md"]


def test_they_are_nothing_to_go_on_from(store, run_stage):
    def die(context):
        leave(context)
        states.append(store.work_state(context.attempt.key))
        raise RuntimeError("gone")

    states = []
    with pytest.raises(RuntimeError):
        run_stage(stage_that(die))
    assert [state.exists for state in states] == [False]


def test_an_alert_is_a_warning_and_an_event(store, run_stage):
    manifest = run_stage(
        stage_that(lambda context: context.alert("plateau", "it stays", training_step=3))
    )
    folder = layout.payload(manifest.stage, manifest.key, manifest.attempt, "telemetry")
    events = [
        json.loads(line) for line in store.backend.read(f"{folder}/events.jsonl").splitlines()
    ]
    (alert,) = [event for event in events if event["type"] == "alert"]
    assert (alert["kind"], alert["text"], alert["training_step"]) == ("plateau", "it stays", 3)
    assert b"WARNING it stays" in store.backend.read(f"{folder}/log.txt")
