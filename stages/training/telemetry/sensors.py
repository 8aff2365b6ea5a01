"""What the machine says of itself: memory of process and device, temperature, clock and power.

A sensor that is not there gives None: no driver, no `nvidia-ml-py`, a virtual GPU that hides it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

CGROUP, OWN_GROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


@dataclass(frozen=True)
class Reading:
    """One look at the sensors; bytes, degrees Celsius, MHz of the multiprocessors, watts."""

    process_bytes: int
    device_bytes: int | None = None
    device_peak_bytes: int | None = None
    temperature: float | None = None
    clock_mhz: float | None = None
    power_watts: float | None = None


def read_sensors(device: torch.device) -> Reading:
    """What stands now; `device_peak_bytes` is the most since the reading before."""
    import psutil

    process_bytes = int(psutil.Process().memory_info().rss)
    if device.type != "cuda":
        return Reading(process_bytes)
    import torch

    peak = torch.cuda.max_memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    power = _sensed(lambda: torch.cuda.power_draw(device))
    return Reading(
        process_bytes,
        device_bytes=torch.cuda.memory_allocated(device),
        device_peak_bytes=peak,
        temperature=_sensed(lambda: torch.cuda.temperature(device)),
        clock_mhz=_sensed(lambda: torch.cuda.clock_rate(device)),
        power_watts=None if power is None else power / 1000,
    )


@dataclass(frozen=True)
class Room:
    """Bytes of memory: how many there are, and how many of them are free."""

    total: int
    free: int


def memory_room(device: torch.device) -> Room:
    """Of a GPU its own memory; of a CPU the machine's, or what its control group leaves of it."""
    if device.type == "cuda":
        import torch

        free, total = torch.cuda.mem_get_info(device)
        return Room(int(total), int(free))
    import psutil

    memory = psutil.virtual_memory()
    rooms = [Room(int(memory.total), int(memory.available))]
    rooms += [room for folder in own_groups() if (room := group_room(folder)) is not None]
    return Room(min(room.total for room in rooms), min(room.free for room in rooms))


def own_groups(told: Path = OWN_GROUP, root: Path = CGROUP) -> list[Path]:
    """The control group (version 2) of this process and those above it, as a job of Slurm has."""
    try:
        lines = told.read_text().splitlines()
    except OSError:
        return []
    own = next((line[3:].strip("/") for line in lines if line.startswith("0::")), "")
    folder = root / own
    return [folder, *(one for one in folder.parents if one.is_relative_to(root))]


def group_room(folder: Path) -> Room | None:
    """What the control group (version 2) at `folder` allows; None where it sets no limit.

    Its file cache counts as free: the kernel gives it back.
    """
    try:
        limit, used = (
            (folder / name).read_text().strip() for name in ("memory.max", "memory.current")
        )
        cached = (folder / "memory.stat").read_text().split("inactive_file ")[1].split()[0]
        total = int(limit)
        return Room(total, max(0, min(total, total - int(used) + int(cached))))
    except (OSError, ValueError, IndexError):
        return None


def _sensed(read: Callable[[], float]) -> float | None:
    """A sensor's value. NVML's errors have no common base with those of a missing module."""
    try:
        return float(read())
    except Exception:
        return None
