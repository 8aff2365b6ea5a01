"""An order in which names come after all that they read, and otherwise as they were given."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter


class Circle(Exception):
    """Names read each other; the message is the circle, each before what it reads."""


def in_order(reads: Mapping[str, Sequence[str]]) -> list[str]:
    """Every name of `reads` behind those that it reads, else in the order of `reads`.

    Raises Circle where there is none.
    """
    try:
        TopologicalSorter(reads).prepare()
    except CycleError as error:
        # graphlib lists each before what reads it; told the other way round it is "reads".
        raise Circle(" → ".join(error.args[1])) from None
    place = {name: index for index, name in enumerate(reads)}
    names = list(reads)
    missing = {name: len(reads[name]) for name in names}
    readers: dict[str, list[str]] = {name: [] for name in names}
    for name, sources in reads.items():
        for source in sources:
            readers[source].append(name)
    ready = [place[name] for name in names if not missing[name]]
    heapq.heapify(ready)
    ordered = []
    while ready:
        name = names[heapq.heappop(ready)]
        ordered.append(name)
        for reader in readers[name]:
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, place[reader])
    return ordered
