"""Files that a model's library wrote, into the artifact."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stages.engine import Context

_BLOCK = 1 << 20


def copy_file(context: Context, output: str, path: Path) -> None:
    """A file of the work folder into an output, under its name."""
    with open(path, "rb") as source, context.open(output, path.name) as file:
        while block := source.read(_BLOCK):
            file.write(block)
