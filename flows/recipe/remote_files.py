"""Files behind URLs: what an entry means, and what their servers say that each one is."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from artifacts_schema.errors import UsageError
from flows.recipe.local_files import Progress
from flows.recipe.snapshot_entry import MAGIC, SnapshotFiles
from stages.engine.known_files import KnownFiles
from stages.engine.remote import Identity, Patience, look
from stages.engine.urls import OBJECTS, check_url, is_url, without_secrets

FEW = 64
"""Up to so many files are asked for at every plan; of more, answers of the last minutes stand."""
THREADS = 8
PLANNING = Patience(attempts=4)
"""A person waits for a plan, so a mistyped host is told after seconds."""


def match_urls(source: SnapshotFiles, pattern: str) -> dict[str, tuple[str, Identity | None]]:
    """URL → (name, what a listing tells of it) of every file that `pattern` means.

    A bucket is listed, hidden names left out; a URL of the web is one file, its name the last part
    of its path, or what follows `root`.
    """
    url = joined(source.root, pattern) if source.root is not None else pattern
    check_url(url)
    start = (source.root.rstrip("/") + "/") if source.root is not None else None
    if start and (not url.startswith(start) or ".." in url.removeprefix(start).split("/")):
        raise UsageError(
            f"'{without_secrets(url)}' lies outside the root {source.root}", where=source.where
        )
    if not url.startswith(OBJECTS):
        path = url.partition("?")[0]
        return {url: (path.removeprefix(start or path.rpartition("/")[0] + "/"), None)}
    listed = _listed(url)
    start = start or _start(url, is_file=url in listed)
    named = {found: found.removeprefix(start) for found in listed}
    return {
        found: (name, listed[found])
        for found, name in named.items()
        if not any(part.startswith(".") for part in name.split("/"))
    }


def joined(root: str, path: str) -> str:
    """`path` below the URL `root`, unless it is a URL itself."""
    return path if is_url(path) else f"{root.rstrip('/')}/{path}"


def identities(
    known: KnownFiles, urls: Sequence[str], progress: Progress | None = None
) -> dict[str, Identity]:
    """What its server says of each URL, asked for at the same time by THREADS threads.

    Raises InputError for the first that cannot be had.
    """
    found: dict[str, Identity] = {}
    if len(urls) > FEW:
        found = {url: seen for url in urls if (seen := known.identity(url)) is not None}
    waiting = [url for url in urls if url not in found]
    pool = ThreadPoolExecutor(THREADS)
    try:
        asked = {pool.submit(look, url, PLANNING): url for url in waiting}
        for done, future in enumerate(as_completed(asked), 1):
            found[asked[future]] = future.result()
            known.note_identity(asked[future], found[asked[future]])
            if progress is not None and len(waiting) > 1:
                progress(done, len(waiting), "files")
    finally:
        pool.shutdown(cancel_futures=True)
    return found


def _listed(url: str) -> dict[str, Identity]:
    """The objects that a pattern or URL means, asked anew with each plan."""
    from stages.engine import objects
    from stages.engine.remote import Interrupted

    failures = 0
    while True:
        try:
            return objects.matches(url, glob=bool(MAGIC & set(url)))
        except Interrupted as error:
            failures += 1
            PLANNING.pause(failures, error, url)


def _start(url: str, *, is_file: bool) -> str:
    """The folder of a bucket below which names begin: a folder itself, or a pattern's fixed one."""
    parts = url.rstrip("/").split("/")
    patterns = [i for i, part in enumerate(parts) if i > 2 and MAGIC & set(part)]
    end = min(patterns, default=len(parts) - 1 if is_file else len(parts))
    return "/".join(parts[:end]) + "/"
