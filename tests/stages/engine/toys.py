"""Makes the toy stages known to child processes, as a package of a user's own would be."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
STAGES = {"toy_make": "Make", "toy_double": "Double", "toy_join": "Join"}


def install(folder: Path, environment: dict[str, str] | os._Environ[str]) -> None:
    """Write a distribution with entry points into `folder` and put it on the path of children."""
    info = folder / "toys-1.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1\n")
    points = "".join(f"{name} = toy:{found}\n" for name, found in STAGES.items())
    (info / "entry_points.txt").write_text(f"[ingot.stages]\n{points}")
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), str(HERE)])
    register()


def register() -> None:
    """Make them known to this process."""
    if str(HERE) not in sys.path:
        sys.path.insert(0, str(HERE))
    import toy

    from stages.engine.protocol import register as known

    for found in STAGES.values():
        known(getattr(toy, found))
