"""Memory of this process, and room in a control group, by files written by hand."""

from __future__ import annotations

import resource

import pytest
import torch

from stages.training.hardware import (
    Reading,
    Room,
    group_room,
    memory_room,
    own_groups,
    read_sensors,
)

CPU = torch.device("cpu")


def test_a_cpu_tells_the_memory_of_the_process_alone():
    reading = read_sensors(CPU)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert 10e6 < reading.process_bytes <= peak * 1.01
    assert reading == Reading(reading.process_bytes)


def test_room_is_never_more_than_there_is():
    room = memory_room(CPU)
    assert 0 < room.free <= room.total


def test_a_control_group_bounds_the_memory_and_its_cache_is_free(tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 400\nfile 300\ninactive_file 250\n")
    assert group_room(tmp_path) == Room(total=1000, free=550)


@pytest.mark.parametrize("limit", ["max", "", None])
def test_a_group_without_a_limit_says_nothing(tmp_path, limit):
    if limit is not None:
        (tmp_path / "memory.max").write_text(limit)
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("inactive_file 0\n")
    assert group_room(tmp_path) is None


def test_the_groups_of_a_job_are_its_own_and_those_above(tmp_path):
    told, root = tmp_path / "told", tmp_path / "groups"
    told.write_text("4:cpu:/old\n0::/slurm/job_7/step_0\n")
    names = ["slurm/job_7/step_0", "slurm/job_7", "slurm", "."]
    assert own_groups(told, root) == [root / name for name in names]
    told.write_text("0::/\n")
    assert own_groups(told, root) == [root]
    assert own_groups(tmp_path / "none", root) == []


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_tells_its_memory():
    device = torch.device("cuda")
    kept = torch.ones(1 << 20, device=device)
    reading = read_sensors(device)
    assert reading.device_bytes >= kept.numel() * 4
    assert reading.device_peak_bytes >= reading.device_bytes
    assert memory_room(device).total > 1e9
