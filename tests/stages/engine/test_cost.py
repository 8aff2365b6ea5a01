"""What a run cost: of all its processes, once, and of the devices that it held."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from dask_toy import BURN, Squares, burn

from stages.engine import Stage

NESTED = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}], check=True)"


class _Costly(Stage):
    name, version, reproducible = "costly", 1, "numerics"
    outputs = {"release": "release"}

    def run(self, context):
        self.works(context)
        context.write_bytes("release", "README.md", b"x")


def costly(works):
    return type("Costly", (_Costly,), {"works": lambda self, context: works(context)})


def test_processes_of_a_pool_are_counted(run_stage, tmp_path):
    config = {"happens": ("burns", "burns"), "folder": str(tmp_path)}
    made = run_stage(Squares, config, execution={"workers": 2})
    assert made.telemetry["cpu_seconds"] >= 2 * (0.4 + 0.4)


def test_what_a_child_starts_is_counted_as_with_torchrun(run_stage):
    made = run_stage(
        costly(lambda _: subprocess.run([sys.executable, "-c", NESTED], check=True)), force=True
    )
    assert made.telemetry["cpu_seconds"] >= 0.4


@pytest.mark.full
def test_a_stage_does_not_pay_for_the_one_before_it_in_the_process(run_stage):
    def nothing(context):
        pass

    first = run_stage(costly(lambda _: burn(1.0)))
    second = run_stage(type("Cheap", (costly(nothing),), {"name": "cheap"}))
    assert first.telemetry["cpu_seconds"] >= 1.0
    assert second.telemetry["cpu_seconds"] < 1.0


def test_gpu_seconds_are_those_that_devices_were_held(run_stage):
    def hold(context):
        context.devices_held = 4
        burn(0.05)

    made = run_stage(costly(hold))
    seconds = made.telemetry["seconds"]
    assert made.telemetry["gpu_seconds"] == pytest.approx(4 * seconds, abs=0.01)
