"""Disk: what checkpoints take, against what is free where they will lie."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from artifacts_schema.errors import StoreError
from artifacts_schema.store.backend import Backend
from stages.engine.sizes import amount
from stages.pretrain.preflight.report import Finding, Level
from stages.training.checkpointing import MOST_KEPT, NEWEST

ROLLING, MORE = NEWEST + 1, MOST_KEPT - NEWEST
"""Rolling checkpoints at once: those that are kept with the one that is being written, and those
that a run keeps beside them while it may roll back."""


@dataclass(frozen=True)
class CheckpointSizes:
    """Bytes of one checkpoint of the run, and how many permanent ones it makes, its output too."""

    bytes: int
    permanent: int


@dataclass(frozen=True)
class Need:
    """Bytes that a folder's disk must still have room for."""

    folder: Path
    bytes: int
    what: str


def disk_needs(work: Path, payload: Path | None, sizes: CheckpointSizes) -> list[Need]:
    """Rolling checkpoints in `work`, the fewest first; permanent ones and the output in `payload`
    (None: a bucket).

    What a resumed run has written already lies there: it is not needed again.
    """
    here = sum(path.stat().st_size for path in work.rglob("*.safetensors")) if work.exists() else 0
    least, more = ROLLING * sizes.bytes, MORE * sizes.bytes
    needs = [
        Need(work, max(0, least - here), f"{ROLLING} rolling checkpoints"),
        Need(work, max(0, more - max(0, here - least)), f"{MORE} more to roll back to"),
    ]
    if payload is not None:
        count = sizes.permanent
        kept = "1 permanent checkpoint" if count == 2 else f"{count - 1:,} permanent checkpoints"
        said = "the output" if count == 1 else f"{kept} and the output"
        needs.append(Need(payload, count * sizes.bytes, said))
    return needs


def check_disk(needs: Sequence[Need]) -> list[Finding]:
    """One finding for each disk: enough for all, for the rolling ones (a warning), or for none.

    `needs` come in the order in which they must be met.
    """
    disks: dict[int, list[Need]] = {}
    for need in needs:
        disks.setdefault(disk_of(need.folder), []).append(need)
    return [_disk(found) for found in disks.values()]


def _disk(needs: Sequence[Need]) -> Finding:
    free = shutil.disk_usage(existing(needs[0].folder)).free
    total = sum(need.bytes for need in needs)
    parts = ", ".join(f"{need.what} {amount(need.bytes)}" for need in needs)
    said = f"{amount(total)} needed ({parts}), {amount(free)} free"
    numbers = {"needed_bytes": total, "free_bytes": free, "folder": str(needs[0].folder)}
    if total <= free:
        return Finding("disk", "ok", said, numbers=numbers)
    level: Level = "refusal" if needs[0].bytes > free else "warning"
    hint = "free space, or keep fewer permanent checkpoints"
    return Finding("disk", level, said, hint, numbers)


def check_writable(backend: Backend) -> Finding:
    """Whether the store takes a small file, gives it back, and lets go of it."""
    place, data = f"work/.preflight-{secrets.token_hex(6)}", secrets.token_bytes(64)
    try:
        backend.replace(place, data)
        same = backend.read(place) == data
        backend.remove(place)
    except (OSError, StoreError) as error:
        return Finding("store", "refusal", f"cannot be written: {error}", "check its permissions")
    if not same:
        return Finding("store", "refusal", "gives back other bytes than were written")
    return Finding("store", "ok", f"{backend.url} is writable")


def disk_of(folder: Path) -> int:
    """The number of the file system that a folder lies on, or will lie on."""
    return os.stat(existing(folder)).st_dev


def existing(folder: Path) -> Path:
    """The folder itself, or the nearest above it that is there."""
    return next(path for path in (folder, *folder.absolute().parents) if path.exists())
