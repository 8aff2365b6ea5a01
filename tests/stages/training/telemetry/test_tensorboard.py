"""Event files: content by a second hand and by TensorBoard's own reader."""

from __future__ import annotations

import math
import struct

import pytest

from stages.training.dashboards import TensorBoard
from stages.training.monitor import HeldOut


def fields(message):
    """Fields of a protocol buffers message, read by a second hand: (number, value)."""
    found, at = [], 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            found.append((key >> 3, varint()))
            continue
        size = {1: 8, 5: 4}.get(key & 7) or varint()
        found.append((key >> 3, message[at : at + size]))
        at += size
    return found


def events(folder):
    """Of all files in order: (step, {tag: value}) and ("start", step)."""
    told = []
    for path in sorted(folder.glob("*.tfevents.*"), key=lambda path: path.name.split(".")[-1]):
        data = path.read_bytes()
        while data:
            (size,) = struct.unpack("<Q", data[:8])
            whole, data = data[: size + 16], data[size + 16 :]
            event = dict(fields(whole[12:-4]))
            if 5 in event:
                values = [dict(fields(value)) for _, value in fields(event[5])]
                shown = {v[1].decode(): struct.unpack("<f", v[2])[0] for v in values}
                told.append((event.get(2, 0), shown))
            elif 7 in event:
                told.append(("start", event[2]))
    return told


def test_steps_held_out_losses_and_telemetry_are_told_under_their_tags(tmp_path, step_done):
    board = TensorBoard(tmp_path, every=2)
    board.started(0, 4)
    board.measured(0, 0, [HeldOut("all", 5.0, 1.5), HeldOut("web", 6.0, None)])
    board.measured(0, 0, [HeldOut("all", 7.0, None, "de")])
    board.step_done(step_done(1, values={"loss/web": 2.5, "targets": 7, "loss/code": None}))
    board.step_done(step_done(2, loss=1.75))
    board.step_done(step_done(3))
    board.telemetry(
        {"session": 0, "time": 9.0, "training_step": 3, "mfu": 0.5, "power_watts": None}
    )
    board.ended(None)
    start, held_out, spoken, first, second, telemetry = events(tmp_path)
    assert start == ("start", 1)
    assert held_out == (
        0,
        {"held_out/loss/all": 5.0, "held_out/loss/web": 6.0, "held_out/bits_per_byte/all": 1.5},
    )
    assert spoken == (0, {"held_out/language_loss/de": 7.0})
    assert first[0] == 1
    assert first[1]["loss/web"] == 2.5
    assert first[1]["targets"] == 7.0
    assert "loss/code" not in first[1]
    assert (second[0], second[1]["train/loss"]) == (2, 1.75)
    assert telemetry == (3, {"telemetry/mfu": 0.5})


def test_what_float32_cannot_hold_is_infinite_and_what_is_not_finite_stays(tmp_path, step_done):
    board = TensorBoard(tmp_path, every=1)
    board.started(0, 4)
    board.step_done(step_done(1, loss=math.nan, grad_norm=1e300, skipped=True))
    board.ended(RuntimeError("diverged"))
    _, (_, told) = events(tmp_path)
    assert math.isnan(told["train/loss"])
    assert told["train/grad_norm"] == math.inf


def test_a_rolled_back_or_resumed_run_says_from_where_it_goes_on(tmp_path, step_done):
    board = TensorBoard(tmp_path, every=1)
    board.started(0, 9)
    for step in (1, 2, 3, 2):
        board.step_done(step_done(step))
    resumed = TensorBoard(tmp_path, every=1)
    resumed.started(1, 9)
    resumed.step_done(step_done(2))
    assert [event[0] if event[0] != "start" else event for event in events(tmp_path)] == [
        *(("start", 1), 1, 2, 3),
        *(("start", 2), 2),
        *(("start", 2), 2),
    ]


def test_tensorboard_itself_reads_each_step_once(tmp_path, step_done):
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="needs the package tensorboard",
    )
    ticks = iter(range(1_700_000_000, 1_800_000_000))
    board = TensorBoard(tmp_path, every=1, clock=lambda: float(next(ticks)))
    board.started(0, 9)
    for step, loss in ((1, 3.0), (2, 2.0), (3, math.nan), (2, 1.5), (300, 1.25)):
        board.step_done(step_done(step, loss=loss))
    board.ended(None)
    again = TensorBoard(tmp_path, every=1, clock=lambda: float(next(ticks)))
    again.started(2, 9)
    again.step_done(step_done(3, loss=1.0, values={"loss/wörter": 2.0}))
    again.ended(None)
    read = accumulator.EventAccumulator(str(tmp_path))
    read.Reload()
    assert [(one.step, one.value) for one in read.Scalars("train/loss")] == [
        (1, 3.0), (2, 1.5), (3, 1.0),
    ]  # fmt: skip
    assert [one.value for one in read.Scalars("loss/wörter")] == [2.0]
    assert read.FirstEventTimestamp() == 1_700_000_000.0
