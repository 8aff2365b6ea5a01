"""Log-probabilities of a reference model: computed once for a run, and kept in its work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor

from stages.engine import Context
from stages.parallel.ranks import Ranks
from stages.training import atomic_dir

_FILE = "reference.safetensors"


def compute_once(
    context: Context, ranks: Ranks, compute: Callable[[], dict[str, Tensor]]
) -> dict[str, Tensor]:
    """What `compute` gives, or gave an earlier process of this run.

    To be called on all ranks; rank 0 reads and keeps it.
    """
    folder = context.work / "reference"
    kept = ranks.share(_read_kept(context, folder) if ranks.first else None)
    if kept is not None:
        return kept  # type: ignore[no-any-return]
    computed = compute()
    if ranks.first:
        atomic_dir.write_atomic_dir(folder, {_FILE: lambda path: save_file(computed, path)}, {})
        context.state.publish(folder.name, folder)
    return computed


def _read_kept(context: Context, folder: Path) -> dict[str, Tensor] | None:
    """What an earlier process of this run has computed, if it is there and whole."""
    try:
        atomic_dir.read_atomic_dir(folder)
    except atomic_dir.IncompleteDir:
        if not context.state.fetch(folder.name):
            return None
    else:
        if folder.name not in context.state.published():  # It was killed before it published them.
            context.state.publish(folder.name, folder)
    return load_file(folder / _FILE)
