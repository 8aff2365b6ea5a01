"""Log and events of a run on a remote store can be read from elsewhere while it works."""

from __future__ import annotations

import threading

import pytest

from artifacts_schema.store import Store, layout
from artifacts_schema.store.lease import local_work
from stages.engine import events as mirroring
from stages.engine.events import LogUploader
from stages.engine.protocol import register
from stages.engine.runner import run_stage as run_spec
from stages.engine.spec import StageSpec

KEY = "a" * 64


@pytest.fixture
def remote(s3_url):
    return Store.open(s3_url)


def test_what_has_grown_is_copied_and_the_rest_is_not(remote, tmp_path, monkeypatch):
    written = []
    replace = type(remote.backend).replace
    monkeypatch.setattr(
        type(remote.backend), "replace", lambda self, *a: (written.append(a[0]), replace(self, *a))
    )
    mirror = LogUploader(remote.backend, KEY, tmp_path, ("log.txt", "events.jsonl"), lambda: True)
    mirror.copy()
    assert written == []
    (tmp_path / "log.txt").write_text("one\n")
    mirror.copy()
    mirror.copy()
    assert written == [layout.work(KEY, "log.txt")]
    (tmp_path / "log.txt").write_text("one\ntwo\n")
    mirror.copy()
    assert remote.backend.read(layout.work(KEY, "log.txt")) == b"one\ntwo\n"


def test_a_run_is_seen_from_elsewhere_while_it_works_and_after_it_failed(remote, monkeypatch):
    """The stage itself waits until another reader of the store sees its event."""
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).parent))
    from toy import Make

    monkeypatch.setattr(mirroring, "UPLOAD_SECONDS", 0.05)
    seen = []

    class Watched(Make):
        name = "toy_watched"

        def run(self, context):
            context.metric(loss=1.25)
            elsewhere, pause = Store.open(remote.url).backend, threading.Event()
            for _ in range(200):
                found = elsewhere.read_many([layout.work(context.attempt.key, "events.jsonl")])
                if any(b"1.25" in data for data in found.values()):
                    seen.append(True)
                    break
                pause.wait(0.05)
            raise RuntimeError("and then it fails")

    register(Watched)
    spec = StageSpec.make(Watched, {}, {})
    with pytest.raises(RuntimeError):
        run_spec(remote, spec)
    assert seen
    assert b"and then it fails" in remote.backend.read(layout.work(spec.key, "log.txt"))
    assert local_work(remote.backend, spec.key, "log.txt").exists()
