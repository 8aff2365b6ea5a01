"""What a user of `users.py` runs: a step of the tiny recipe, killed or held up at a failpoint.

`python -m user_program STORE INSTANCE [POINT [FILE]]`: dies at POINT, or waits there for FILE.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from artifacts_schema.store import Store, failpoints
from flows.recipe.pipeline import Pipeline, Request
from stages.engine.runner import run_stage

TINY = Path(__file__).parent / "pipeline" / "tiny.yaml"


def main(store: str, instance: str, point: str = "", awaited: str = "") -> None:
    """Run the step in this process; prints whether it was made or reused, and its digests."""

    def strike(passed: str) -> None:
        if passed != point:
            return
        print(f"at {point}", flush=True)
        if not awaited:
            os.kill(os.getpid(), signal.SIGKILL)
        while not os.path.exists(awaited):
            time.sleep(0.05)

    spec = Pipeline.open(Request(str(TINY), store)).plan().step(instance).spec
    assert spec is not None
    spec = replace(spec, execution={**spec.execution, "workers": 1})
    if instance == "pretrain":
        from stages.training import monitor

        monitor.PART_BYTES = 500  # So that one user closes a part that another began.
    failpoints.on_failpoint = strike
    outcome = run_stage(Store.open(store, create=False), spec)
    digests = {name: output.digest for name, output in outcome.manifest.outputs.items()}
    print("reused" if outcome.reused else "made", digests)


if __name__ == "__main__":
    main(*sys.argv[1:])
