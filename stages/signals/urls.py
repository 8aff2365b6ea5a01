"""Addresses: host, registered domain, and the lists of categories and words that name them.

The registered domain is the name below the longest public suffix of ICANN's part of Mozilla's list
(publicsuffix.org), as `tld` carries it: `news.bbc.co.uk` → `bbc.co.uk`. A path within a code tree
has neither.

A list is a file of a snapshot, one entry a line, `#` before comments, plain or compressed. Its name
tells what its entries are: `domains…`, `urls…`, `strict_words…`, `hard_words…`, `soft_words…`. Its
category is its folder, as in the UT1 lists (`adult/domains`), else its own name without endings. An
entry of a list of domains is kept as a 64-bit hash and the number of its category, 10 bytes, so
millions of them are shared by all workers through one mapped file; the chance that a name which is
not listed has the hash of one that is, is 3e-13 for 5 million entries.

Addresses are compared with lists as RefinedWeb does (Penedo et al. 2023, arXiv 2306.01116, appendix
G.1): a domain counts with all its subdomains, never as a part of a longer name; strict words count
anywhere, with `-` and `.` left out; hard and soft words only as whole words. Words are compared in
lower case, percent codes decoded.
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
from urllib.parse import SplitResult, unquote

import numpy as np
import xxhash
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from artifacts_schema.files import write_whole
from stages.engine.reading.row import Damage
from stages.engine.reading.rows import decompress_stream
from stages.engine.sources import source_files
from stages.signals.outputs import Signal, count

if TYPE_CHECKING:
    from stages.engine import Input


_ADDRESS = re.compile(
    r"([A-Za-z][A-Za-z0-9+.-]*)://(?:[^/?#\\]*@)?(\[[0-9A-Fa-f:.]+\]|[^/?#\\:\[\]]*)"
)
_LONGEST_HOST = 253
_NUMERIC = re.compile(r"[0-9.]+\Z|\[")
_FORBIDDEN = re.compile(r"[\s\x00-\x20\x7f\ud800-\udfff<>\"%^`{|}]")


def parse_host(url: str | None) -> str | None:
    """The host of an address, lower case, in ASCII (IDNA) where it can be; None without one."""
    match = _ADDRESS.match(url) if url else None
    name = match[2].lower().rstrip(".") if match else ""
    if not name or len(name) > _LONGEST_HOST or _FORBIDDEN.search(name):
        return None
    return name if name.isascii() else _ascii(name)


@lru_cache(maxsize=1 << 16)
def find_registered_domain(host: str) -> str | None:
    """The name below the public suffix of a host; None for an address, a suffix, an unknown one."""
    from tld.utils import MozillaPublicOnlyTLDSourceParser, process_url

    if _NUMERIC.match(host):
        return None
    labels, suffix, _ = process_url(
        SplitResult("https", host, "", "", ""),
        fail_silently=True,
        search_private=False,
        parser_class=MozillaPublicOnlyTLDSourceParser,
    )
    if not labels or suffix is None or suffix < 1 or not labels[suffix - 1]:
        return None
    return ".".join(labels[suffix - 1 :])


URL_SIGNALS: tuple[Signal, ...] = (
    Signal("host", "string?", "name", "Ingot", "Host of the address; null for a path."),
    Signal(
        "registered_domain",
        "string?",
        "name",
        "publicsuffix.org, as tld carries it",
        "Domain below the public suffix of the host.",
    ),
)


def measure_urls(urls: Sequence[str | None]) -> dict[str, list[str | None]]:
    """`host` and `registered_domain` of each address."""
    hosts = [parse_host(url) for url in urls]
    domains = [name if name is None else find_registered_domain(name) for name in hosts]
    return {"host": hosts, "registered_domain": domains}


def _ascii(name: str) -> str:
    try:
        return name.encode("idna").decode()
    except UnicodeError:
        return name


LIST_KINDS = ("domains", "urls", "strict_words", "hard_words", "soft_words")
WORD_KINDS = LIST_KINDS[2:]
LONGEST_ENTRY = 2_048
"""Bytes of the longest entry; longer lines are skipped and counted."""
MOST_CATEGORIES = 1 << 16

_ENDINGS = re.compile(r"\.[A-Za-z0-9]{1,5}\Z")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True, eq=False)
class UrlLists:
    """What the lists of a run say.

    `hashes` [entries] are sorted; `categories` [entries] are places in `names`. Entries of lists
    of domains are hashed as they are, those of addresses after a slash.
    """

    names: tuple[str, ...]
    hashes: NDArray[np.uint64]
    categories: NDArray[np.uint16]
    words: dict[str, tuple[str, ...]]
    """Strict, hard and soft words: lower case, sorted, letters and digits alone."""


@dataclass
class _Reading:
    """The entries of the lists that were read so far."""

    names: list[str] = field(default_factory=list)
    hashes: array[int] = field(default_factory=lambda: array("Q"))
    categories: array[int] = field(default_factory=lambda: array("H"))
    words: dict[str, set[str]] = field(default_factory=lambda: {sort: set() for sort in WORD_KINDS})
    skipped: int = 0


def pack_lists(snapshots: Sequence[Input], folder: Path) -> list[str]:
    """Read the lists of all snapshots into `folder` for `load_lists`.

    Returns messages about files and lines that were skipped.
    Categories keep the order of the snapshots, then of their file names. InputError for a snapshot
    without any list, and for a file that cannot be decompressed.
    """
    reading, messages = _Reading(), list[str]()
    for snapshot in snapshots:
        files = [(file, _list_kind(file.name)) for file in source_files(snapshot)]
        if not any(sort for _, sort in files):
            raise InputError(
                "the snapshot has no file that is a list",
                where="signals.url_lists",
                hint="name lists by what they hold: "
                + ", ".join(f"{kind}…" for kind in LIST_KINDS),
            )
        for file, sort in files:
            if sort is None:
                messages.append(f"{file.name}: not a list (only {', '.join(LIST_KINDS)} are)")
            else:
                _read_list(file, sort, reading)
    if reading.skipped:
        messages.append(f"{reading.skipped:,} lines that are no entries of their list")
    _write_lists(reading, folder)
    return messages


@lru_cache(maxsize=1)
def load_lists(folder: Path) -> UrlLists:
    """What `pack_lists` left there, once in each process; arrays are mapped, not read."""
    content = json.loads((folder / "url-lists.json").read_text(encoding="utf-8"))
    return UrlLists(
        names=tuple(content["names"]),
        hashes=np.load(folder / "url-hashes.npy", mmap_mode="r", allow_pickle=False),
        categories=np.load(folder / "url-categories.npy", mmap_mode="r", allow_pickle=False),
        words={sort: tuple(words) for sort, words in content["words"].items()},
    )


def hash_entry(entry: str) -> int:
    """The 64-bit hash of a host, or of `/` and an address without scheme and `www.`."""
    return xxhash.xxh3_64_intdigest(entry.encode("utf-8", "surrogatepass"))


def strip_address(url: str) -> str:
    """An address without scheme, user, port, `www.`, fragment and last slash; its host lowered."""
    url = _SCHEME.sub("", url, count=1).partition("#")[0]
    authority, slash, rest = url.partition("/")
    authority, mark, query = authority.partition("?")
    name = authority.rpartition("@")[2].partition(":")[0].lower().removeprefix("www.")
    return f"{name}{slash}{rest}".rstrip("/") if not mark else f"{name}?{query}{slash}{rest}"


def _list_kind(name: str) -> str | None:
    """What a file lists, by its name without folders."""
    base = name.rsplit("/", 1)[-1].lower()
    return next((sort for sort in LIST_KINDS if base.startswith(sort)), None)


def _list_category(name: str) -> str:
    folder, _, base = name.rpartition("/")
    if folder:
        return folder.rsplit("/", 1)[-1]
    while _ENDINGS.search(base):
        base = _ENDINGS.sub("", base)
    return base


def _read_list(file: Any, sort: str, reading: _Reading) -> None:
    """Add the entries of one file."""
    if sort in WORD_KINDS:
        for line in _entries(file, reading):
            word = "".join(filter(str.isalnum, line.lower()))
            if word:
                reading.words[sort].add(word)
        return
    name = _list_category(file.name)
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
            reading.skipped += 1
        else:
            reading.hashes.append(hash_entry(entry))
            reading.categories.append(category)


def _domain_entry(line: str) -> str | None:
    name = line.lower().removeprefix("*.").strip(".").removeprefix("www.")
    if name.isascii() and name.replace("-", "").replace(".", "").isalnum():
        return name
    return parse_host(f"http://{name}")


def _address_entry(line: str) -> str | None:
    entry = strip_address(line)
    return None if not entry or any(map(str.isspace, entry)) else f"/{entry}"


def _entries(file: Any, reading: _Reading) -> Iterator[str]:
    """The lines of a file that are neither blank nor comments, without white space around."""
    rest = b""
    try:
        with file.open() as stream:
            for chunk in decompress_stream(stream):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from _decode_entries(lines, reading)
                if len(rest) > LONGEST_ENTRY:
                    rest = rest[: LONGEST_ENTRY + 1]
    except Damage as damage:
        raise InputError(
            f"cannot be read: {damage.detail}", where=f"signals.url_lists: {file.name}"
        ) from None
    yield from _decode_entries([rest], reading)


def _decode_entries(lines: Sequence[bytes], reading: _Reading) -> Iterator[str]:
    for line in lines:
        if len(line) > LONGEST_ENTRY:
            reading.skipped += 1
            continue
        entry = line.decode("utf-8", "replace").lstrip("\ufeff").strip()
        if entry and not entry.startswith("#"):
            yield entry


def _write_lists(reading: _Reading, folder: Path) -> None:
    """Sorted by hash, then category; equal pairs once."""
    hashes = np.frombuffer(reading.hashes, dtype=np.uint64)
    categories = np.frombuffer(reading.categories, dtype=np.uint16)
    order = np.lexsort((categories, hashes)) if len(hashes) else np.empty(0, dtype=np.int64)
    hashes, categories = hashes[order], categories[order]
    new = np.ones(len(hashes), dtype=bool)
    new[1:] = (hashes[1:] != hashes[:-1]) | (categories[1:] != categories[:-1])
    folder.mkdir(parents=True, exist_ok=True)
    _save_array(folder / "url-hashes.npy", hashes[new])
    _save_array(folder / "url-categories.npy", categories[new])
    words = {sort: sorted(words) for sort, words in reading.words.items()}
    content = json.dumps({"names": reading.names, "words": words}, ensure_ascii=False)
    (folder / "url-lists.json").write_text(content, encoding="utf-8")


def _save_array(path: Path, values: NDArray[Any]) -> None:
    """A new file in the place of the old one, which a process may still have mapped."""

    def write(target: Path) -> None:
        with target.open("wb") as file:
            np.save(file, values)

    write_whole(path, write)


STRICT, HARD, SOFT = 2, 2, 1
"""Points of a word. RefinedWeb drops on one strict or hard word or two soft ones: on 2 points."""

MOST_NAMES = 32
"""Suffixes of a host, and beginnings of a path, that are looked up."""

_NOT_WORD = re.compile(r"[\W_]+")


_REFINEDWEB = "Penedo et al. 2023 (RefinedWeb, arXiv 2306.01116), appendix G.1"
URL_LIST_SIGNALS: tuple[Signal, ...] = (
    Signal("url_blocked", "string?", "category", _REFINEDWEB, "First list that names the address."),
    count("url_block_lists", "lists", _REFINEDWEB, "Lists that name the address.", null=True),
    count(
        "url_strict_words",
        "words",
        _REFINEDWEB,
        "Different words of the strict lists, anywhere in the address without `-` and `.`.",
        null=True,
    ),
    count(
        "url_hard_words",
        "words",
        _REFINEDWEB,
        "Different words of the hard lists that stand alone in the address.",
        null=True,
    ),
    count("url_soft_words", "words", _REFINEDWEB, "The same of the soft lists.", null=True),
    count(
        "url_score",
        "points",
        _REFINEDWEB,
        "2 for each strict or hard word, 1 for each soft one.",
        null=True,
    ),
)
"""Signals of runs with lists of addresses and words."""


def measure_url_lists(
    urls: Sequence[str | None], hosts: Sequence[str | None], lists: UrlLists
) -> dict[str, list[Any]]:
    """`url_blocked`, `url_block_lists`, the counts of words and `url_score`; None without host."""
    rows = [
        _measure_url(url, categories, lists) if url and host else (None,) * len(URL_LIST_SIGNALS)
        for url, host, categories in zip(
            urls, hosts, _find_categories(urls, hosts, lists), strict=True
        )
    ]
    return {one.name: [row[place] for row in rows] for place, one in enumerate(URL_LIST_SIGNALS)}


def _measure_url(url: str, categories: Sequence[int], lists: UrlLists) -> tuple[Any, ...]:
    strict, hard, soft = count_words(url, lists.words)
    blocked = lists.names[min(categories)] if categories else None
    score = STRICT * strict + HARD * hard + SOFT * soft
    return blocked, len(categories), strict, hard, soft, score


def count_words(url: str, words: dict[str, tuple[str, ...]]) -> tuple[int, int, int]:
    """Different strict, hard and soft words in an address."""
    text = unquote(url).lower()
    alone = set(_NOT_WORD.split(text))
    squeezed = text.replace("-", "").replace(".", "") if words["strict_words"] else ""
    strict = sum(word in squeezed for word in words["strict_words"])
    return (
        strict,
        sum(word in alone for word in words["hard_words"]),
        sum(word in alone for word in words["soft_words"]),
    )


def list_names(url: str, host: str) -> list[str]:
    """What a list may have to name an address: its host, what that is below, its path's folders."""
    labels = host.split(".")
    suffixes = [".".join(labels[start:]) for start in range(len(labels))][-MOST_NAMES:]
    address = strip_address(url)
    path, mark, _ = address.partition("?")
    parts = path.split("/")
    folders = ["/" + "/".join(parts[:end]) for end in range(1, min(len(parts), MOST_NAMES) + 1)]
    return [*suffixes, *folders, *([f"/{address}"] if mark else [])]


def _find_categories(
    urls: Sequence[str | None], hosts: Sequence[str | None], lists: UrlLists
) -> list[list[int]]:
    """The categories that name each address, by one lookup for all of them."""
    categories_by_row: list[set[int]] = [set() for _ in urls]
    hashes: list[int] = []
    rows: list[int] = []
    for row, (url, host) in enumerate(zip(urls, hosts, strict=True)):
        if url and host:
            names = list_names(url, host)
            hashes += map(hash_entry, names)
            rows += [row] * len(names)
    wanted = np.array(hashes, dtype=np.uint64)
    begin = np.searchsorted(lists.hashes, wanted, side="left")
    end = np.searchsorted(lists.hashes, wanted, side="right")
    for place in np.flatnonzero(begin < end).tolist():
        categories_by_row[rows[place]].update(lists.categories[begin[place] : end[place]].tolist())
    return [sorted(categories) for categories in categories_by_row]
