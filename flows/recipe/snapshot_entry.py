"""An entry of a recipe's `snapshots:` section: where files from outside lie, and how many to take.

crawl-A: {root: ../data, files: ["warc/*.warc.gz"]}
crawl-B: {files: ["s3://bucket/crawl/*.warc.gz"], first: 10}
crawl-C: {crawl: CC-MAIN-2024-33, share: 0.001}
crawl-D: {paths: "https://example.org/lists/warc.paths.gz", first: 2}
math:    {dataset: org/name, files: ["data/*.parquet"], first: 4}
qwen:    {model: org/name, files: ["tokenizer*.json"]}
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from artifacts_schema.errors import UsageError
from flows.recipe.crawl import crawl_list, crawl_problems, crawl_site
from stages.engine.urls import WEB, check_url, is_url

PLACES = ("files", "paths", "crawl", "dataset", "model")
"""Keys that say where files lie: one of them, and with one of the Hub also `files` inside it."""
HUB = {"dataset": "data set", "model": "model"}
BELONGING = {
    "crawl": ("records", "via", "mirror"),
    "dataset": ("revision",),
    "model": ("revision",),
}
"""Keys that mean something beside one place only."""
SNAPSHOT_KEYS = (
    "files", "root", "paths", "crawl", "records", "via", "mirror", "dataset", "model", "revision",
    "first", "share",
)  # fmt: skip
MAGIC = frozenset("*?[")
"""Characters that make a path a pattern."""
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

    @property
    def on_hub(self) -> tuple[str, str] | None:
        """(`dataset` or `model`, its name), where the files lie on the Hub."""
        for kind, name in (("dataset", self.dataset), ("model", self.model)):
            if name is not None:
                return kind, name
        return None

    @property
    def told(self) -> str:
        """Where its files lie, as a person would say it."""
        hub = self.on_hub and f"{HUB[self.on_hub[0]]} {self.on_hub[1]}"
        return self.crawl or hub or self.paths or ", ".join(self.files)


def read_entry(
    name: str,
    values: Mapping[str, Any],
    base: Callable[[str], Path],
    place: Callable[[str], str],
) -> SnapshotFiles:
    """The entry that sound `values` mean (see `problems_of`), those that are null left out.

    `base` gives the folder that a key's relative paths begin in, `place` where the key is written.
    """
    files = values.get("files", [])
    anchor = next((key for key in ("paths", "crawl", "dataset", "root") if key in values), "files")
    root, paths = values.get("root"), values.get("paths")
    if paths is not None:
        paths = located(paths, base("paths"))
    if "crawl" in values:
        root = located(crawl_site(values), base("mirror"))
        paths = f"{root.rstrip('/')}/{crawl_list(values['crawl'], values.get('records', 'warc'))}"
    return SnapshotFiles(
        name,
        tuple(files if isinstance(files, list) else [files]),
        root,
        base("root" if "root" in values else "files"),
        f"{place(anchor)}: snapshots.{name}",
        paths=paths,
        first=values.get("first"),
        share=values.get("share"),
        crawl=values.get("crawl"),
        dataset=values.get("dataset"),
        model=values.get("model"),
        revision=values.get("revision"),
    )


def located(text: str, base: Path) -> str:
    """A URL as it is, a path as seen from `base`."""
    return text if is_url(text) else str(base / os.path.expanduser(text))


def is_relative(files: Any) -> bool:
    """Whether any of `files` (a text or a list of texts) says less than where it lies."""
    items = files if isinstance(files, list) else [files]
    return any(not is_url(str(item)) and str(item)[:1] not in ("/", "~") for item in items)


def superseded(entry: Mapping[str, Any]) -> frozenset[str]:
    """Keys of an earlier entry that a later one over it takes back: where its files lay.

    Relative files stay below the root, or inside the data set, that the earlier one named.
    """
    named = [key for key in PLACES if entry.get(key) is not None]
    if not named:
        return frozenset()
    keeps = {"first", "share", *named, *(key for name in named for key in BELONGING.get(name, ()))}
    if named == ["files"] and is_relative(entry["files"]):
        keeps |= {"root", *HUB, "revision"}
    return frozenset(SNAPSHOT_KEYS) - keeps


def problems_of(values: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with an entry's values, those that are null left out."""
    found = [*_places(values), *_fields(values), *_urls(values)]
    if "crawl" in values:
        found += crawl_problems(values)
    for kind in HUB:
        if kind in values:
            found += _repository(values, kind)
    return found


def _places(values: Mapping[str, Any]) -> Iterator[Problem]:
    named = [key for key in PLACES if key in values]
    if len(named) == 2 and named[0] == "files" and named[1] in HUB:
        named = named[1:]
    if not named:
        yield (
            "",
            "needs files: a list of paths, patterns or URLs (or paths: a list of them)",
            "or a crawl of Common Crawl, or a dataset or model of the Hugging Face Hub",
        )
    for other in named[1:]:
        yield (
            other,
            f"stands beside {named[0]}, and one of them says where the files lie",
            f"take the other back: `{named[0]}: null`",
        )
    for key in sorted({key for keys in BELONGING.values() for key in keys}):
        places = [place for place, keys in BELONGING.items() if key in keys]
        if key in values and not any(place in values for place in places):
            yield key, f"goes with {' or '.join(places)} only", None
    for place, instead in (("crawl", "mirror"), *((kind, "files") for kind in HUB)):
        if place in values and "root" in values:
            yield "root", f"does not go with {place}", f"take it back, or say `{instead}`"


def _fields(values: Mapping[str, Any]) -> Iterator[Problem]:
    files = values.get("files", ["…"])
    items = files if isinstance(files, list) else [files]
    if not items:
        yield "files", "names no files", None
    elif not all(isinstance(item, str) and item for item in items):
        yield "files", f"expected a path or a list of paths, got {files!r}", None
    for key in ("root", "paths", "mirror"):
        if key in values and not (isinstance(values[key], str) and values[key]):
            yield key, "expected a path or a URL", None
    first, share = values.get("first", 1), values.get("share", 1)
    if isinstance(first, bool) or not isinstance(first, int) or first < 1:
        yield "first", f"expected a number of files, 1 or more, got {first!r}", None
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        yield "share", f"expected a share, above 0 and up to 1, got {share!r}", None


def _urls(values: Mapping[str, Any]) -> Iterator[Problem]:
    files = values.get("files", [])
    texts = [("files", item) for item in (files if isinstance(files, list) else [files])]
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
        web = _is_web(text if is_url(text) else root)
        if field == "files" and web and MAGIC & set(urlsplit(text).path):
            yield (
                field,
                f"'{text}' is a pattern, and a web server lists no files",
                ("name each file, or give `paths`: a list of them"),
            )


def _repository(values: Mapping[str, Any], kind: str) -> Iterator[Problem]:
    """The Hub's own rule for names; a revision is a branch, a tag or a commit."""
    name, revision = values[kind], values.get("revision", "main")
    if not isinstance(name, str) or not _REPOSITORY.fullmatch(name) or ".." in name:
        yield (
            kind,
            f"{name!r} is no {HUB[kind]}'s name",
            f"as on huggingface.co/{kind}s: org/name, without the address",
        )
    if not isinstance(revision, str) or not _REVISION.fullmatch(revision) or ".." in revision:
        yield "revision", f"expected a branch, a tag or a commit, got {revision!r}", None
    files = values.get("files", [])
    for item in files if isinstance(files, list) else [files]:
        if isinstance(item, str) and (is_url(item) or not is_relative(item)):
            yield "files", f"'{item}' does not lie in a {HUB[kind]}", "as data/*.parquet"
        elif isinstance(item, str) and ".." in item.split("/"):
            yield "files", f"'{item}' leads out of the {HUB[kind]}", None


def _is_web(text: Any) -> bool:
    return isinstance(text, str) and text.partition("://")[0] in WEB
