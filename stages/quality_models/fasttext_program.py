"""Trains a fastText classifier: a program of its own, started by `training.py`.

    python -P -m stages.quality_models.fasttext_program request.json

It prints one line if it fails.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main(path: str) -> int:
    """Train as the request says; the model is there in whole or not at all."""
    import fasttext

    request: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    unfinished = Path(request["model"] + ".unfinished")
    try:
        model = fasttext.train_supervised(
            request["lines"], **request["arguments"], thread=1, verbose=0
        )
        if request["quantize"]:
            model.quantize()
        model.save_model(str(unfinished))
    except (RuntimeError, ValueError, MemoryError) as error:
        print(error)
        return 1
    unfinished.replace(request["model"])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
