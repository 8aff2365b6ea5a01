"""Lists of addresses that nobody wants, from outside: read once, kept as sorted hashes.

A list is a file of a snapshot, one entry a line, `#` before comments, plain or compressed. Its name
tells what its entries are: `domains…`, `urls…`, `strict_words…`, `hard_words…`, `soft_words…`. Its
category is the folder it lies in, as in the UT1 lists (`adult/domains`), else its own name without
endings. An entry of a list of domains is kept as a 64-bit hash and the number of its category, 10
bytes, so millions of them are shared by all workers through one mapped file; that a name which is
not listed has the hash of one that is happens with a chance of 3e-13 for 5 million entries.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from stages.engine.library_files import write_whole
from stages.engine.reading.rows import Damage, decompressed
from stages.engine.sources import source_files

if TYPE_CHECKING:
    from stages.engine import Input

SORTS = ("domains", "urls", "strict_words", "hard_words", "soft_words")
WORDS = SORTS[2:]
LONGEST_ENTRY = 2_048
"""Bytes of the longest entry; longer lines are passed by and counted."""
MOST_CATEGORIES = 1 << 16

_ENDINGS = re.compile(r"\.[A-Za-z0-9]{1,5}\Z")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True, eq=False)
class UrlLists:
    """What the lists of a run say.

    `hashes` [entries] are sorted; `categories` [entries] are places in `names`. Entries of lists
    of domains are hashed as they are, those of addresses behind a slash.
    """

    names: tuple[str, ...]
    hashes: NDArray[np.uint64]
    categories: NDArray[np.uint16]
    words: dict[str, tuple[str, ...]]
    """Strict, hard and soft words: lower case, sorted, letters and digits alone."""


@dataclass
class _Reading:
    """Lists on their way in."""

    names: list[str] = field(default_factory=list)
    hashes: array[int] = field(default_factory=lambda: array("Q"))
    categories: array[int] = field(default_factory=lambda: array("H"))
    words: dict[str, set[str]] = field(default_factory=lambda: {sort: set() for sort in WORDS})
    passed_by: int = 0


def pack_lists(snapshots: Sequence[Input], folder: Path) -> list[str]:
    """Read the lists of all snapshots into `folder` for `load_lists`; return what was left out.

    Categories keep the order of the snapshots, then of their file names. InputError for a snapshot
    without any list, and for a file that cannot be decompressed.
    """
    reading, left_out = _Reading(), list[str]()
    for snapshot in snapshots:
        files = [(file, _sort_of(file.name)) for file in source_files(snapshot)]
        if not any(sort for _, sort in files):
            raise InputError(
                "the snapshot has no file that is a list",
                where="signals.url_lists",
                hint=f"name lists by what they hold: {', '.join(f'{sort}…' for sort in SORTS)}",
            )
        for file, sort in files:
            if sort is None:
                left_out.append(f"{file.name}: not a list (only {', '.join(SORTS)} are)")
            else:
                _read(file, sort, reading)
    if reading.passed_by:
        left_out.append(f"{reading.passed_by:,} lines that are no entries of their list")
    _write(reading, folder)
    return left_out


@lru_cache(maxsize=1)
def load_lists(folder: Path) -> UrlLists:
    """What `pack_lists` left there, once in each process; arrays are mapped, not read."""
    told = json.loads((folder / "url-lists.json").read_text(encoding="utf-8"))
    return UrlLists(
        names=tuple(told["names"]),
        hashes=np.load(folder / "url-hashes.npy", mmap_mode="r", allow_pickle=False),
        categories=np.load(folder / "url-categories.npy", mmap_mode="r", allow_pickle=False),
        words={sort: tuple(words) for sort, words in told["words"].items()},
    )


def hash_of(entry: str) -> int:
    """The 64-bit hash of a host, or of `/` and an address without scheme and `www.`."""
    return xxhash.xxh3_64_intdigest(entry.encode("utf-8", "surrogatepass"))


def bare_address(url: str) -> str:
    """An address without scheme, user, port, `www.`, fragment and last slash; its host lowered."""
    url = _SCHEME.sub("", url, count=1).partition("#")[0]
    authority, slash, rest = url.partition("/")
    authority, mark, query = authority.partition("?")
    name = authority.rpartition("@")[2].partition(":")[0].lower().removeprefix("www.")
    return f"{name}{slash}{rest}".rstrip("/") if not mark else f"{name}?{query}{slash}{rest}"


def _sort_of(name: str) -> str | None:
    """What a file lists, by its name without folders."""
    base = name.rsplit("/", 1)[-1].lower()
    return next((sort for sort in SORTS if base.startswith(sort)), None)


def _category(name: str) -> str:
    folder, _, base = name.rpartition("/")
    if folder:
        return folder.rsplit("/", 1)[-1]
    while _ENDINGS.search(base):
        base = _ENDINGS.sub("", base)
    return base


def _read(file: Any, sort: str, reading: _Reading) -> None:
    """Add the entries of one file."""
    if sort in WORDS:
        for line in _entries(file, reading):
            word = "".join(filter(str.isalnum, line.lower()))
            if word:
                reading.words[sort].add(word)
        return
    name = _category(file.name)
    if name not in reading.names:
        reading.names.append(name)
    category = reading.names.index(name)
    if category >= MOST_CATEGORIES:
        raise InputError(
            f"more than {MOST_CATEGORIES:,} categories of lists", where="signals.url_lists"
        )
    for line in _entries(file, reading):
        entry = _address_entry(line) if sort == "urls" or "/" in line else _domain_entry(line)
        if entry is None:
            reading.passed_by += 1
        else:
            reading.hashes.append(hash_of(entry))
            reading.categories.append(category)


def _domain_entry(line: str) -> str | None:
    from stages.signals.urls import host

    name = line.lower().removeprefix("*.").strip(".").removeprefix("www.")
    if name.isascii() and name.replace("-", "").replace(".", "").isalnum():
        return name
    return host(f"http://{name}")


def _address_entry(line: str) -> str | None:
    entry = bare_address(line)
    return None if not entry or any(map(str.isspace, entry)) else f"/{entry}"


def _entries(file: Any, reading: _Reading) -> Iterator[str]:
    """The lines of a file that are neither blank nor comments, without white space around."""
    rest = b""
    try:
        with file.open() as stream:
            for chunk in decompressed(stream):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from _stripped(lines, reading)
                if len(rest) > LONGEST_ENTRY:
                    rest = rest[: LONGEST_ENTRY + 1]
    except Damage as damage:
        raise InputError(
            f"cannot be read: {damage.detail}", where=f"signals.url_lists: {file.name}"
        ) from None
    yield from _stripped([rest], reading)


def _stripped(lines: Sequence[bytes], reading: _Reading) -> Iterator[str]:
    for line in lines:
        if len(line) > LONGEST_ENTRY:
            reading.passed_by += 1
            continue
        entry = line.decode("utf-8", "replace").lstrip("\ufeff").strip()
        if entry and not entry.startswith("#"):
            yield entry


def _write(reading: _Reading, folder: Path) -> None:
    """Sorted by hash, then category; equal pairs once."""
    hashes = np.frombuffer(reading.hashes, dtype=np.uint64)
    categories = np.frombuffer(reading.categories, dtype=np.uint16)
    order = np.lexsort((categories, hashes)) if len(hashes) else np.empty(0, dtype=np.int64)
    hashes, categories = hashes[order], categories[order]
    new = np.ones(len(hashes), dtype=bool)
    new[1:] = (hashes[1:] != hashes[:-1]) | (categories[1:] != categories[:-1])
    folder.mkdir(parents=True, exist_ok=True)
    _save(folder / "url-hashes.npy", hashes[new])
    _save(folder / "url-categories.npy", categories[new])
    words = {sort: sorted(found) for sort, found in reading.words.items()}
    told = json.dumps({"names": reading.names, "words": words}, ensure_ascii=False)
    (folder / "url-lists.json").write_text(told, encoding="utf-8")


def _save(path: Path, values: NDArray[Any]) -> None:
    """A new file in the place of the old one, which a process may still have mapped."""

    def write(target: Path) -> None:
        with target.open("wb") as file:
            np.save(file, values)

    write_whole(path, write)
