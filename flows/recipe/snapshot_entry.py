"""An entry of a recipe's `snapshots:` section: where files from outside are, and how many to take.

    crawl-A: {root: ../data, files: ["warc/*.warc.gz"]}
    crawl-B: {files: ["s3://bucket/crawl/*.warc.gz"], first: 10}
    crawl-C: {crawl: CC-MAIN-2024-33, share: 0.001}
    crawl-D: {paths: "https://example.org/lists/warc.paths.gz", first: 2}
    math:    {dataset: org/name, files: ["data/*.parquet"], first: 4}
    qwen:    {model: org/name, files: ["tokenizer*.json"]}
    crawls:  {series: "crawl-*"}       # every snapshot of the store of such a name, by name

Common Crawl publishes the list of a crawl's files under the crawl's id
(https://commoncrawl.org/get-started):

    CC-MAIN-2024-33    crawl-data/CC-MAIN-2024-33/{warc,wet,wat}.paths.gz
    CC-NEWS-2024-08    crawl-data/CC-NEWS/2024/08/warc.paths.gz
    CC-MAIN-2012       crawl-data/CC-MAIN-2012/arc.paths.gz     (the three crawls before WARC)
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from artifacts_schema.errors import UsageError
from stages.engine.remote import WEB, check_url, is_url

SITES = {"https": "https://data.commoncrawl.org", "s3": "s3://commoncrawl"}
"""Where Common Crawl publishes; the bucket is read with credentials of AWS only."""
RECORDS = ("warc", "wet", "wat")
"""Captured pages, their extracted text, their metadata."""
CRAWLS = "https://index.commoncrawl.org lists all crawls"
FORMS = f"ids look like CC-MAIN-2024-33 (year, week) and CC-NEWS-2024-08 (year, month); {CRAWLS}"
_WEEKLY = re.compile(r"CC-MAIN-20\d\d-(?:0[1-9]|[1-4]\d|5[0-3])")
_NEWS = re.compile(r"CC-NEWS-(20\d\d)-(0[1-9]|1[0-2])")
_ARC = ("CC-MAIN-2008-2009", "CC-MAIN-2009-2010", "CC-MAIN-2012")


def is_crawl_id(text: str) -> bool:
    """Whether `text` has the form of an id; only its site knows whether the crawl exists."""
    return text in _ARC or any(form.fullmatch(text) for form in (_WEEKLY, _NEWS))


def crawl_problems(values: Mapping[str, Any]) -> Iterator[tuple[str, str, str | None]]:
    """(field, what is wrong, hint) of an entry that names a crawl."""
    crawl = values["crawl"]
    if not isinstance(crawl, str) or not is_crawl_id(crawl):
        # It may differ by case or a missing zero.
        *parts, last = str(crawl).strip().upper().replace("_", "-").split("-")
        likely = "-".join([*parts, last.zfill(2)])
        near = f", did you mean '{likely}'?" if is_crawl_id(likely) else ""
        yield "crawl", f"{crawl!r} is not a crawl id{near}", FORMS
        crawl = ""
    # News and the crawls before 2013 have no extracted text and no metadata files.
    known = ("warc",) if crawl in _ARC or _NEWS.fullmatch(crawl) else RECORDS
    records = values.get("records", "warc")
    if records not in known:
        has = ", ".join(RECORDS) if known == RECORDS else f"{known[0]}, all that {crawl} has"
        yield "records", f"expected {has}, got {records!r}", None
    via = values.get("via", "https")
    if via not in SITES:
        yield "via", f"expected {' or '.join(SITES)}, got {via!r}", None
    elif "mirror" in values and "via" in values:
        yield "mirror", "given with via; only one of them may say where the crawl is", None
    if "first" not in values and "share" not in values:
        yield (
            "",
            "a whole crawl is tens of thousands of files and up to 100 TB: say how many",
            "`first` 10 takes ten files, `share` 0.001 every thousandth, `share` 1 all",
        )


PLACES = ("files", "paths", "crawl", "dataset", "model", "series")
"""Keys that say where files are: one of them, or one of the Hub together with `files`."""
HUB = {"dataset": "data set", "model": "model"}
BELONGING = {
    "crawl": ("records", "via", "mirror"),
    "dataset": ("revision",),
    "model": ("revision",),
}
"""Keys that are valid with one place only."""
SNAPSHOT_KEYS = (
    "files", "root", "paths", "crawl", "records", "via", "mirror", "dataset", "model", "revision",
    "series", "first", "share",
)  # fmt: skip
MAGIC = frozenset("*?[")
"""Characters that make a path a pattern."""
_PLAIN_FIELDS = ("first", "share", "crawl", "dataset", "model", "revision", "series")
_SERIES = re.compile(r"[\w.*?\[\]-]+", re.ASCII)
_REPOSITORY = re.compile(r"(?:\w[\w.-]*/)?\w[\w.-]*", re.ASCII)
_REVISION = re.compile(r"\w[\w./+-]*", re.ASCII)

Problem = tuple[str, str, str | None]
"""Field or "", what is wrong, hint."""


@dataclass(frozen=True)
class SnapshotFiles:
    """Files from outside under a name.

    `files` are paths, patterns or URLs, relative to `root` where there is one, else to `base`, the
    folder of the file that names them. `paths` is instead the path or URL of a list of them, one a
    line; it was made from `crawl` where that is set. With `dataset` or `model`, one on the Hugging
    Face Hub at `revision`, `files` are patterns inside it, and none means all. Of what is found,
    `share` takes a part by the hash of each name, `first` the first ones.
    """

    name: str
    files: tuple[str, ...]
    root: str | None
    base: Path
    where: str
    paths: str | None = None
    first: int | None = None
    share: float | None = None
    crawl: str | None = None
    dataset: str | None = None
    model: str | None = None
    revision: str | None = None
    series: str | None = None
    """A pattern of names: the entry stands for the snapshots of the store that match it."""
    ref: str | None = None
    """The name in the store of a snapshot that was taken already."""
    marker: str | None = None
    """Files of this name say that a folder is complete, and are not part of the snapshot."""

    @property
    def on_hub(self) -> tuple[str, str] | None:
        """(`dataset` or `model`, its name) if the files are on the Hub."""
        if self.dataset is not None:
            return "dataset", self.dataset
        return None if self.model is None else ("model", self.model)

    @property
    def location(self) -> str:
        """Where its files are, for messages."""
        hub = self.on_hub and f"{HUB[self.on_hub[0]]} {self.on_hub[1]}"
        return self.ref or self.crawl or hub or self.paths or ", ".join(self.files)


def read_entry(
    name: str,
    values: Mapping[str, Any],
    base: Callable[[str], Path],
    place: Callable[[str], str],
) -> SnapshotFiles:
    """The entry of `values` that have no problems (`find_problems`) and none that is null.

    `base` gives the folder that a key's relative paths begin in, `place` where the key is written.
    """
    anchors = ("paths", "crawl", "dataset", "series", "root")
    anchor = next((key for key in anchors if key in values), "files")
    root, paths = values.get("root"), values.get("paths")
    if paths is not None:
        paths = resolve_location(paths, base("paths"))
    if "crawl" in values:
        site = values.get("mirror") or SITES[values.get("via", "https")]
        root = resolve_location(site, base("mirror"))
        news = _NEWS.fullmatch(values["crawl"])
        folder = f"CC-NEWS/{news[1]}/{news[2]}" if news else values["crawl"]
        records = "arc" if values["crawl"] in _ARC else values.get("records", "warc")
        paths = f"{root.rstrip('/')}/crawl-data/{folder}/{records}.paths.gz"
    return SnapshotFiles(
        name,
        tuple(_list_files(values)),
        root,
        base("root" if "root" in values else "files"),
        f"{place(anchor)}: snapshots.{name}",
        paths=paths,
        **{key: values.get(key) for key in _PLAIN_FIELDS},
    )


def _list_files(values: Mapping[str, Any]) -> list[Any]:
    """`files` of an entry, which may be one text or a list."""
    files = values.get("files", [])
    return files if isinstance(files, list) else [files]


def resolve_location(text: str, base: Path) -> str:
    """A URL as it is, a path as seen from `base`."""
    return text if is_url(text) else str(base / os.path.expanduser(text))


def _is_relative(path: str) -> bool:
    return not is_url(path) and path[:1] not in ("/", "~")


def superseded_keys(entry: Mapping[str, Any]) -> frozenset[str]:
    """Keys of a base entry that `entry` removes: where the base's files were.

    Relative files keep the root or the data set of the base.
    """
    named = [key for key in PLACES if entry.get(key) is not None]
    if not named:
        return frozenset()
    keeps = {"first", "share", *named, *(key for name in named for key in BELONGING.get(name, ()))}
    if named == ["files"] and any(_is_relative(str(item)) for item in _list_files(entry)):
        keeps |= {"root", *HUB, "revision"}
    return frozenset(SNAPSHOT_KEYS) - keeps


def find_problems(values: Mapping[str, Any]) -> list[Problem]:
    """The problems of an entry's values, given without those that are null."""
    problems = [*_check_places(values), *_check_fields(values), *_check_urls(values)]
    if "crawl" in values:
        problems += crawl_problems(values)
    for kind in HUB:
        if kind in values:
            problems += _check_repository(values, kind)
    return problems


def _check_places(values: Mapping[str, Any]) -> Iterator[Problem]:
    named = [key for key in PLACES if key in values]
    if len(named) == 2 and named[0] == "files" and named[1] in HUB:
        named = named[1:]
    if not named:
        yield (
            "",
            "needs files: a list of paths, patterns or URLs (or paths: a list of them)",
            "or a crawl of Common Crawl, a dataset or model of the Hugging Face Hub, or a series",
        )
    for other in named[1:]:
        yield (
            other,
            f"given with {named[0]}; only one of them may say where the files are",
            f"remove the other: `{named[0]}: null`",
        )
    for key in sorted({key for keys in BELONGING.values() for key in keys}):
        places = [place for place, keys in BELONGING.items() if key in keys]
        if key in values and not any(place in values for place in places):
            yield key, f"goes with {' or '.join(places)} only", None
    if "series" in values:
        for key in ("root", "first", "share"):
            if key in values:
                yield key, "does not go with series: its snapshots are taken already", None
    for place, instead in (("crawl", "mirror"), *((kind, "files") for kind in HUB)):
        if place in values and "root" in values:
            yield "root", f"does not go with {place}", f"remove it, or use `{instead}`"


def _check_fields(values: Mapping[str, Any]) -> Iterator[Problem]:
    items = _list_files(values)
    if not items and "files" in values:
        yield "files", "names no files", None
    elif not all(isinstance(item, str) and item for item in items):
        yield "files", f"expected a path or a list of paths, got {values['files']!r}", None
    for key in ("root", "paths", "mirror"):
        if key in values and not (isinstance(values[key], str) and values[key]):
            yield key, "expected a path or a URL", None
    series = values.get("series", "*")
    if not isinstance(series, str) or not _SERIES.fullmatch(series):
        yield "series", f"expected a pattern of names, as 'crawl-*', got {series!r}", None
    first, share = values.get("first", 1), values.get("share", 1)
    if isinstance(first, bool) or not isinstance(first, int) or first < 1:
        yield "first", f"expected a number of files, 1 or more, got {first!r}", None
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        yield "share", f"expected a share, above 0 and up to 1, got {share!r}", None


def _check_urls(values: Mapping[str, Any]) -> Iterator[Problem]:
    texts = [("files", item) for item in _list_files(values)]
    texts += [(key, values[key]) for key in ("root", "paths", "mirror") if key in values]
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
        place = str(text if is_url(text) else root)
        is_web = place.partition("://")[0] in WEB
        if field == "files" and is_web and MAGIC & set(urlsplit(text).path):
            what = f"'{text}' is a pattern, but a web server does not list its files"
            yield field, what, "name each file, or give `paths`: a list of them"


def _check_repository(values: Mapping[str, Any], kind: str) -> Iterator[Problem]:
    """The Hub's own rule for names; a revision is a branch, a tag or a commit."""
    name, revision = values[kind], values.get("revision", "main")
    if not isinstance(name, str) or not _REPOSITORY.fullmatch(name) or ".." in name:
        yield (
            kind,
            f"{name!r} is not the name of a {HUB[kind]}",
            f"as on huggingface.co/{kind}s: org/name, without the address",
        )
    if not isinstance(revision, str) or not _REVISION.fullmatch(revision) or ".." in revision:
        yield "revision", f"expected a branch, a tag or a commit, got {revision!r}", None
    for item in _list_files(values):
        if isinstance(item, str) and not _is_relative(item):
            yield "files", f"'{item}' is not a path inside a {HUB[kind]}", "as data/*.parquet"
        elif isinstance(item, str) and ".." in item.split("/"):
            yield "files", f"'{item}' leads out of the {HUB[kind]}", None


class ProgressCallback(Protocol):
    """Receives the progress of pinning files, in bytes hashed or files queried."""

    def __call__(self, done: int, total: int, unit: str = "bytes", /) -> None:
        """`done` of `total`."""


def anchor_folder(source: SnapshotFiles) -> Path:
    """The folder that relative patterns begin in."""
    return source.base / os.path.expanduser(source.root) if source.root is not None else source.base
