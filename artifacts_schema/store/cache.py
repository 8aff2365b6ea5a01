"""Where this machine keeps verified copies of what lies elsewhere. Safe to remove at any time."""

from __future__ import annotations

import os
from pathlib import Path

from artifacts_schema.errors import StoreError


def cache_folder() -> Path:
    """`$INGOT_CACHE`, else `ingot` in the user's cache folder; made if it is not there."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(os.environ.get("INGOT_CACHE") or f"{base}/ingot").expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"cannot make the cache folder: {error.strerror}",
            where=str(folder),
            hint="set INGOT_CACHE to a folder that can be written",
        ) from None
    return folder
