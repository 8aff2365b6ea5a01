"""Files that a library wrote: kept over kills in the work folder, copied into the artifact."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from artifacts_schema.errors import InputError
from artifacts_schema.store.refusals import explained
from stages.engine.library_files import remove, write_whole

if TYPE_CHECKING:
    from stages.engine import Context

_BLOCK = 1 << 20


def make_once(
    context: Context,
    path: Path,
    make: Callable[[Path], object],
    check: Callable[[Path], object],
) -> None:
    """Keep what a killed run of this code left at `path` if it passes `check`; else make it.

    `check` raises InputError for what is not whole; it is asked of what `make` wrote as well.
    """
    with explained(str(path)):
        if path.exists():
            try:
                check(path)
                return
            except InputError as damage:
                context.log.warning("%s is made again: %s", path.name, damage)
                remove(path)
        write_whole(path, make, check)


def copy_file(context: Context, output: str, path: Path) -> None:
    """A file of the work folder into an output, under its name."""
    with open(path, "rb") as source, context.open(output, path.name) as file:
        while block := source.read(_BLOCK):
            file.write(block)
