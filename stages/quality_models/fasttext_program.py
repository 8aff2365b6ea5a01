"""Trains a fastText classifier: a program of its own, started by `models.py`.

    python -P -m stages.quality_models.fasttext_program request.json

It prints one line if it fails, and ends when its input does, so it does not outlive the process
that started it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any


def main(path: str) -> int:
    """Train as the request says. fastText does not report a failed write: check the model."""
    import fasttext

    request: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    try:
        model = fasttext.train_supervised(
            request["lines"], **request["arguments"], thread=1, verbose=0
        )
        if request["quantize"]:
            model.quantize()
        model.save_model(request["model"])
    except (RuntimeError, ValueError, MemoryError) as error:
        print(error)
        return 1
    return 0


def _end_with_input() -> None:
    """Wait for it in a thread; fastText lets other threads run while it learns."""
    os.read(sys.stdin.fileno(), 1)  # Not by `sys.stdin`: its lock would disturb an ordinary end.
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_input, daemon=True).start()
    sys.exit(main(sys.argv[1]))
