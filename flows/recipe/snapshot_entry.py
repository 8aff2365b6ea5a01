"""An entry of a recipe's `snapshots:` section: where files from outside lie, and how many to take.

crawl-A: {root: ../data, files: ["warc/*.warc.gz"]}
crawl-B: {files: ["s3://bucket/crawl/*.warc.gz"], first: 10}
crawl-C: {paths: "https://data.commoncrawl.org/crawl-data/CC-MAIN-2024-33/warc.paths.gz", share: 0.001}
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from artifacts_schema.errors import UsageError
from stages.engine.urls import WEB, check_url, is_url

SNAPSHOT_KEYS = ("files", "root", "paths", "first", "share")
MAGIC = frozenset("*?[")
"""Characters that make a path a pattern."""


@dataclass(frozen=True)
class SnapshotFiles:
    """Files from outside under a name.

    `files` are paths, patterns or URLs, relative to `root` where there is one, else to `base`, the
    folder of the file that names them. `paths` is instead the path or URL of a list of them, one a
    line. Of what is found, `share` takes a part by the hash of each name, `first` the first ones.
    """

    name: str
    files: tuple[str, ...]
    root: str | None
    base: Path
    where: str
    paths: str | None = None
    first: int | None = None
    share: float | None = None


def located(text: str, base: Path) -> str:
    """A URL as it is, a path as seen from `base`."""
    return text if is_url(text) else str(base / Path(text).expanduser())


def is_relative(files: Any) -> bool:
    """Whether any of `files` (a text or a list of texts) says less than where it lies."""
    items = files if isinstance(files, list) else [files]
    return any(not is_url(str(item)) and str(item)[:1] not in ("/", "~") for item in items)


def problems_of(values: Mapping[str, Any]) -> list[tuple[str, str, str | None]]:
    """(field or "", what is wrong, hint) of an entry's values, those that are null left out."""
    return [*_fields(values), *_urls(values)]


def _fields(values: Mapping[str, Any]) -> Iterator[tuple[str, str, str | None]]:
    if "files" in values and "paths" in values:
        yield (
            "paths",
            "stands beside files, and one of them says where the files lie",
            ("take the other back: `files: null`"),
        )
    elif "files" not in values and "paths" not in values:
        yield "", "needs files: a list of paths, patterns or URLs (or paths: a list of them)", None
    files = values.get("files", ["…"])
    items = files if isinstance(files, list) else [files]
    if not items:
        yield "files", "names no files", None
    elif not all(isinstance(item, str) and item for item in items):
        yield "files", f"expected a path or a list of paths, got {files!r}", None
    for key in ("root", "paths"):
        if key in values and not (isinstance(values[key], str) and values[key]):
            yield key, "expected a path or a URL", None
    first, share = values.get("first", 1), values.get("share", 1)
    if isinstance(first, bool) or not isinstance(first, int) or first < 1:
        yield "first", f"expected a number of files, 1 or more, got {first!r}", None
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        yield "share", f"expected a share, above 0 and up to 1, got {share!r}", None


def _urls(values: Mapping[str, Any]) -> Iterator[tuple[str, str, str | None]]:
    files = values.get("files", [])
    texts = [("files", item) for item in (files if isinstance(files, list) else [files])]
    texts += [(key, values[key]) for key in ("root", "paths") if key in values]
    root = values.get("root")
    for field, text in texts:
        if not isinstance(text, str):
            continue
        try:
            if is_url(text):
                check_url(text)
        except UsageError as error:
            yield field, error.what, error.hint
            continue
        web = _is_web(text if is_url(text) else root)
        if field == "files" and web and MAGIC & set(urlsplit(text).path):
            yield (
                field,
                f"'{text}' is a pattern, and a web server lists no files",
                ("name each file, or give `paths`: a list of them"),
            )


def _is_web(text: Any) -> bool:
    return isinstance(text, str) and text.partition("://")[0] in WEB
