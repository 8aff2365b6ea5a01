"""How often a URL came before in its snapshot: the count is kept, `filter` may decide by it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

AT_ONCE = 1 << 22
"""Documents whose URLs are compared at once: some 200 MB, for a snapshot of any size."""

_SCHEME = re.compile(r"https?://", re.IGNORECASE)
_DEFAULT_PORT = re.compile(r":(?:80|443)?(?=$|[/?])")


def url_key(url: str | None) -> int:
    """A 64-bit hash of what names a page; 0 without a URL.

    Scheme, default port and fragment are left out, the host is taken in lower case, so that
    `HTTP://A.example:80/b#c` and `https://a.example/b` are one page.
    """
    from xxhash import xxh3_64_intdigest

    if not url:
        return 0
    address = url.partition("#")[0]
    if (scheme := _SCHEME.match(address)) is not None:
        host, _, path = address[scheme.end() :].partition("/")
        address = f"//{_DEFAULT_PORT.sub('', host.lower(), count=1)}/{path}"
    return xxh3_64_intdigest(address.encode("utf-8", "surrogatepass")) or 1


def url_repeats(keys: Sequence[NDArray[np.uint64]], at_once: int = AT_ONCE) -> list[dict[int, int]]:
    """For each array of keys, in order: row → earlier rows of all arrays with its key.

    Rows without a URL (key 0), and those that come first, are left out.
    """
    found: list[dict[int, int]] = [{} for _ in keys]
    if not found:
        return found
    parts = max(1, -(-sum(map(len, keys)) // at_once))
    for part in range(parts):
        chosen = [np.flatnonzero((own % parts == part) & (own != 0)) for own in keys]
        together = np.concatenate([own[rows] for own, rows in zip(keys, chosen, strict=True)])
        owners = np.repeat(np.arange(len(keys)), [len(rows) for rows in chosen])
        rows = np.concatenate(chosen)
        for place, earlier in _repeats(together):
            found[owners[place]][int(rows[place])] = earlier
    return found


def _repeats(keys: NDArray[np.uint64]) -> Iterator[tuple[int, int]]:
    """(place, earlier places with its key) where there are any."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    rank = np.arange(len(keys)) - np.repeat(begins, np.diff(np.append(begins, len(keys))))
    for place in np.flatnonzero(rank):
        yield int(order[place]), int(rank[place])
