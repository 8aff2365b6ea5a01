"""All defects, by name."""

from __future__ import annotations

import itertools
from dataclasses import replace

from archives import bodies, charsets, contents, envelopes, hostile, messages
from archives.defect import Defect
from archives.records import Packing

PACKINGS: tuple[Packing, ...] = ("gzip", "plain", "shared", "zstd")


def _table() -> dict[str, Defect]:
    """The defects of all modules; those that any packing may carry take the packings in turn."""
    turns = itertools.cycle(PACKINGS)
    table: dict[str, Defect] = {}
    for module in (messages, bodies, charsets, contents, envelopes, hostile):
        for defect in module.DEFECTS:
            assert defect.name not in table, defect.name
            alone = defect.alone or defect.packing is not None
            table[defect.name] = defect if alone else replace(defect, packing=next(turns))
    return table


DEFECTS = _table()
