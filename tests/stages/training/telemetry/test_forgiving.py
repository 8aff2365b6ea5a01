"""A full disk costs telemetry, not the run."""

from __future__ import annotations

import logging

import pytest

from stages.training.callbacks import TolerantCallback
from stages.training.dashboards import TensorBoard


def test_a_full_disk_is_one_warning_and_silence(tmp_path, step_done, caplog, monkeypatch):
    board = TensorBoard(tmp_path, every=1)
    forgiving = TolerantCallback(board, logging.getLogger("test"))
    forgiving.started(0, 9)
    forgiving.step_done(step_done(1))
    written = sum(path.stat().st_size for path in tmp_path.iterdir())

    def full(event):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(board._file, "write", full)
    for step in (2, 3):
        forgiving.step_done(step_done(step))
    forgiving.telemetry({"training_step": 3, "mfu": 0.5})
    forgiving.ended(None)
    assert [record.message for record in caplog.records] == [
        "TensorBoard writes nothing more: No space left on device"
    ]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == written


def test_a_bug_is_not_forgiven(tmp_path):
    class Broken(TensorBoard):
        def started(self, training_step, total):
            raise KeyError("bug")

    with pytest.raises(KeyError):
        TolerantCallback(Broken(tmp_path, every=1), logging.getLogger("test")).started(0, 1)
