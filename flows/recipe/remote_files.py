"""Snapshot files that are not on this machine: URLs and buckets, path lists, the Hugging Face Hub.

A path list holds one path a line, as Common Crawl publishes them (`warc.paths.gz`); it comes from
outside, so each line is checked before it is used. The Hub returns size and sha256 of files kept in
LFS, which are the large ones, and the git blob id of the others, which is also their ETag; URLs
name the files at one commit.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.files import open_regular
from flows.recipe.snapshot_entry import (
    CRAWLS,
    MAGIC,
    ProgressCallback,
    SnapshotFiles,
    resolve_location,
)
from stages.engine.fetch import open_copy, query_identity
from stages.engine.remote import (
    OBJECTS,
    WEB,
    AccessDenied,
    Identity,
    NoSuchFile,
    RetryPolicy,
    TransientError,
    check_url,
    is_url,
    list_objects,
    without_secrets,
)
from stages.engine.sources import KnownFiles
from stages.engine.web import endpoint, file_url, is_network_error, page_url

if TYPE_CHECKING:
    from huggingface_hub import HfApi

FEW = 64
"""Most files whose servers are queried at every plan; for more, recent answers are reused."""
THREADS = 8
PLANNING = RetryPolicy(attempts=4)
"""A person waits for a plan, so a mistyped host is reported within seconds."""


def match_urls(source: SnapshotFiles, pattern: str) -> list[tuple[str, str, Identity | None]]:
    """(name, URL, identity in a listing) of every file that matches `pattern`.

    A bucket is listed, hidden names skipped; a URL of the web is one file, its name the last part
    of its path, or what follows `root`.
    """
    url = join_url(source.root, pattern) if source.root is not None else pattern
    check_url(url)
    start = (source.root.rstrip("/") + "/") if source.root is not None else None
    if start and (not url.startswith(start) or ".." in url.removeprefix(start).split("/")):
        raise UsageError(
            f"'{without_secrets(url)}' is outside the root {source.root}", where=source.where
        )
    if not url.startswith(OBJECTS):
        path = url.partition("?")[0]
        return [(path.removeprefix(start or path.rpartition("/")[0] + "/"), url, None)]
    objects = _list_objects(url)
    start = start or _fixed_folder(url, is_file=url in objects)
    files = [(object.removeprefix(start), object, objects[object]) for object in objects]
    return [file for file in files if not any(part[:1] == "." for part in file[0].split("/"))]


def join_url(root: str, path: str) -> str:
    """`path` below the URL `root`, unless it is a URL itself."""
    return path if is_url(path) else f"{root.rstrip('/')}/{path}"


def fetch_identities(
    known: KnownFiles, urls: Sequence[str], progress: ProgressCallback | None = None
) -> dict[str, Identity]:
    """The identity of each URL by its server, queried by THREADS threads.

    Raises InputError for the first that cannot be read.
    """
    identities: dict[str, Identity] = {}
    if len(urls) > FEW:
        identities = {url: one for url in urls if (one := known.identity(url)) is not None}
    missing = [url for url in urls if url not in identities]
    pool = ThreadPoolExecutor(THREADS)
    try:
        queries = {pool.submit(query_identity, url, PLANNING): url for url in missing}
        for done, future in enumerate(as_completed(queries), 1):
            url = queries[future]
            identities[url] = future.result()
            known.note_identity(url, identities[url])
            if progress is not None and len(missing) > 1:
                progress(done, len(missing), "files")
    finally:
        pool.shutdown(cancel_futures=True)
    return identities


def _list_objects(url: str) -> dict[str, Identity]:
    """The objects that match a pattern or URL, listed again for each plan."""

    failures = 0
    while True:
        try:
            return list_objects(url, glob=bool(MAGIC & set(url)))
        except TransientError as error:
            failures += 1
            PLANNING.pause(failures, error, url)


def _fixed_folder(url: str, *, is_file: bool) -> str:
    """The folder of a bucket where names begin: a folder itself, or the fixed part of a pattern."""
    parts = url.rstrip("/").split("/")
    patterns = [i for i, part in enumerate(parts) if i > 2 and MAGIC & set(part)]
    end = min(patterns, default=len(parts) - 1 if is_file else len(parts))
    return "/".join(parts[:end]) + "/"


MAX_LIST_BYTES = 200_000_000
"""Longest list, decompressed: a million and a half paths as long as Common Crawl's."""
MAX_LINES, MAX_LINE = 2_000_000, 2_048
_GZIP = b"\x1f\x8b"
_SAFE = "/%!$&'()*+,;=:@~"


def read_path_list(source: SnapshotFiles) -> list[tuple[str, str]]:
    """(name, path or URL) of every line of the list `source.paths`, in its order.

    A path is relative to `root`; without one, to the site, bucket or folder of the list. A URL is
    used as it is. Raises InputError with the line that is neither.
    """
    assert source.paths is not None
    if source.root is not None:
        root = resolve_location(source.root, source.base)
    elif is_url(source.paths):
        parts = urlsplit(source.paths)
        root = f"{parts.scheme}://{parts.netloc}"
    else:
        root = str(Path(source.paths).parent)
    where = f"{source.where}: {source.paths}"
    try:
        lines = read_lines(source.paths, where)
    except (NoSuchFile, AccessDenied) as error:
        if source.crawl is None:
            raise
        raise InputError(
            f"no list of {source.crawl} at {without_secrets(source.paths)}: {error.what}",
            where=source.where,
            hint=f"not every week has a crawl: {CRAWLS}",
        ) from None
    files = dict(
        _parse_line(line, root, f"{where} line {number}")
        for number, line in enumerate(lines, 1)
        if line
    )
    if not files:
        raise InputError("the list holds no paths", where=where)
    return list(files.items())


def _parse_line(line: str, root: str, where: str) -> tuple[str, str]:
    """(name, path or URL) of a line."""
    if not line.isprintable() or "\\" in line:
        raise InputError(f"not a path: {line[:80]!a}", where=where)
    prefix = root.rstrip("/") + "/"
    if is_url(line):
        try:
            check_url(line)
        except UsageError as error:
            raise InputError(error.what, where=where, hint=error.hint) from None
        if line.startswith("http:") and not root.startswith("http:"):
            raise InputError(f"leads to this machine: {line[:80]!a}", where=where)
        inside = line.startswith(prefix)
        path = line.removeprefix(prefix) if inside else line.partition("://")[2]
        name, place = path.partition("?")[0], line
    elif is_url(root):
        is_web = root.partition("://")[0] in WEB
        name, place = line, join_url(root, quote(line, safe=_SAFE) if is_web else line)
    else:
        name, place = line, os.path.join(os.path.realpath(root), line)
    if {"..", ".", ""} & set(name.split("/")):
        raise InputError(f"leads out of {root}: {line[:80]!a}", where=where)
    return name, place


def read_lines(paths: str, where: str) -> list[str]:
    """The lines of a list at a path or URL, gzip undone; InputError with what is wrong with it."""
    too_long = InputError(
        f"more than {MAX_LIST_BYTES:,} bytes or {MAX_LINES:,} lines",
        where=where,
        hint="cut the list into parts",
    )
    try:
        if is_url(paths):
            identity = query_identity(paths, PLANNING)
            if identity.bytes > MAX_LIST_BYTES:
                raise too_long
            raw: IO[bytes] = open_copy(paths, identity, policy=PLANNING)
        else:
            raw = open_regular(paths)
        with raw:
            is_packed = raw.read(len(_GZIP)) == _GZIP
            raw.seek(0)
            data = (gzip.GzipFile(fileobj=raw) if is_packed else raw).read(MAX_LIST_BYTES + 1)
        if len(data) > MAX_LIST_BYTES or data.count(b"\n") > MAX_LINES:
            raise too_long
        text = data.decode()
    except FileNotFoundError:
        raise NoSuchFile("no such list", where=where) from None
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 at byte {error.start:,}", where=where) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"damaged: {error}", where=where, hint="get the list again") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=where) from None
    lines = [line.strip() for line in text.split("\n")]
    longest = max(range(len(lines)), key=lambda number: len(lines[number]))
    if len(lines[longest]) > MAX_LINE:
        raise InputError(
            f"more than {MAX_LINE:,} characters", where=f"{where} line {longest + 1:,}"
        )
    return lines


HUB_SECONDS = 30.0
"""How long the Hub may take to resolve a revision."""
MAX_FILES = 1_000_000
_COMMIT = re.compile(r"[0-9a-f]{40}")


def list_hub_files(source: SnapshotFiles) -> list[tuple[str, str, Identity]]:
    """(name, URL, identity) of every file on the Hub that matches `source.files`, by name.

    Hidden files are skipped. Raises InputError if there is no such data set or model, revision or
    file, or if it may not be read.
    """
    from huggingface_hub import HfApi

    assert source.on_hub is not None
    kind, hub_name = source.on_hub
    api, commit = HfApi(endpoint=endpoint()), source.revision
    files: dict[str, Identity] = {}
    with _explain_errors(source):
        if commit is None or not _COMMIT.fullmatch(commit):
            commit = api.repo_info(
                hub_name, repo_type=kind, revision=commit, timeout=HUB_SECONDS
            ).sha
            if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
                raise InputError(f"the Hub names no commit of {hub_name}", where=endpoint())
        for pattern in source.files or ("",):
            matches = _match_hub_files(api, source, commit, pattern)
            if not matches:
                raise InputError(
                    f"no file of {source.location} matches '{pattern or '*'}'",
                    where=source.where,
                    hint=f"its files: {page_url(kind, hub_name)}/tree/{commit}",
                )
            files |= matches
    return [(name, file_url(kind, hub_name, commit, name), files[name]) for name in sorted(files)]


def _match_hub_files(
    api: HfApi, source: SnapshotFiles, commit: str, pattern: str
) -> dict[str, Identity]:
    """Identities by name. A pattern without magic is a file, or a folder and all below it."""
    from fsspec.utils import glob_translate

    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    fixed = next((i for i, part in enumerate(parts) if MAGIC & set(part)), max(len(parts) - 1, 0))
    path = "/".join(parts)
    regex = re.compile(glob_translate(path)) if MAGIC & set(path) else None
    deep = regex is None or len(parts) > fixed + 1 or "**" in parts[-1]
    files = {}
    for file in _list_tree(api, source, commit, "/".join(parts[:fixed]), deep):
        name = file.path
        # A name that is unsafe as a path.
        if not name.isprintable() or "\\" in name or {"..", ".", ""} & set(name.split("/")):
            raise InputError(f"the Hub names a file {name[:80]!a}", where=source.where)
        if regex is not None:
            matches = regex.match(name) is not None
        else:
            matches = not path or name == path or name.startswith(f"{path}/")
        if matches and (name == path or not any(part[0] == "." for part in name.split("/"))):
            files[name] = _file_identity(file, source)
    return files


def _list_tree(
    api: HfApi, source: SnapshotFiles, commit: str, folder: str, deep: bool
) -> Iterator[Any]:
    """The files in a folder, with `deep` also below it; none if it does not exist."""
    from huggingface_hub.errors import EntryNotFoundError
    from huggingface_hub.hf_api import RepoFile

    assert source.on_hub is not None
    kind, name = source.on_hub
    try:
        tree = api.list_repo_tree(
            name, folder or None, recursive=deep, revision=commit, repo_type=kind
        )
        for number, entry in enumerate(tree):
            if number >= MAX_FILES:
                raise InputError(
                    f"{source.location} has more than {MAX_FILES:,} files",
                    where=endpoint(),
                    hint="name a folder: files: [data/*.parquet]",
                )
            if isinstance(entry, RepoFile):
                yield entry
    except EntryNotFoundError:
        return


def _file_identity(file: Any, source: SnapshotFiles) -> Identity:
    size = file.lfs.size if file.lfs is not None else file.size
    sha256 = file.lfs.sha256 if file.lfs is not None else None
    good = isinstance(size, int) and size >= 0
    if sha256 is not None:
        good = good and re.fullmatch(r"[0-9a-f]{64}", str(sha256)) is not None
    else:
        good = good and _COMMIT.fullmatch(str(file.blob_id)) is not None
    if not good:
        raise InputError(
            f"the Hub gives no size or checksum of {file.path} in {source.location}",
            where=source.where,
        )
    return Identity(size, "" if sha256 else f'"{file.blob_id}"', sha256)


@contextmanager
def _explain_errors(source: SnapshotFiles) -> Iterator[None]:
    """Turn errors of the Hub's library into InputError; their texts hold no token."""
    from huggingface_hub import errors

    def problem(what: str, hint: str) -> InputError:
        return InputError(what, where=source.where, hint=hint)

    assert source.on_hub is not None
    name, page = source.location, page_url(*source.on_hub)
    try:
        yield
    except errors.GatedRepoError:
        raise problem(
            f"{name} requires consent",
            f"agree on {page}, then `hf auth login` or set HF_TOKEN",
        ) from None
    except errors.RevisionNotFoundError:
        raise problem(
            f"{name} has no revision '{source.revision}'", "a branch, a tag or a whole commit"
        ) from None
    except errors.RepositoryNotFoundError:
        raise problem(
            f"the Hub shows no {name}",
            "check the name; a private one needs `hf auth login` or HF_TOKEN",
        ) from None
    except errors.OfflineModeIsEnabled:
        raise problem(f"the Hub is not queried for {name}", "HF_HUB_OFFLINE is set") from None
    except errors.HfHubHTTPError as error:
        status = getattr(error.response, "status_code", "an error")
        raise problem(f"the Hub answered {status} for {name}", "try again later") from None
    except (KeyError, TypeError, ValueError) as error:
        raise problem(
            f"the Hub's answer for {name} cannot be read: {type(error).__name__}",
            f"is {endpoint()} a Hub?",
        ) from None
    except Exception as error:
        if not is_network_error(error):
            raise
        raise problem(
            f"the Hub cannot be queried for {name}: {str(error)[:200]}",
            f"is {endpoint()} reachable from here?",
        ) from None
