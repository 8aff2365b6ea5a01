"""What the classifier leaves out amid what it keeps: headings and short gaps of one section.

A block by itself is judged by its own marks; a term of a definition list between two that are kept,
or the heading of a section that is, belongs to the text whatever its own marks say.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stages.ingest.extraction.blocks import Blocks
from stages.ingest.extraction.vocabulary import BLOCK

LEAST: Final = 50
"""Score, of 1000, below which a block stays out all the same."""
GAP_BLOCKS, GAP_CHARACTERS = 2, 200
_HEADINGS: Final = frozenset(BLOCK[f"h{level}"] for level in range(2, 7))
_NEAR: Final = 6
"""Containers that may lie between a section and the block that its heading stands before."""


def smoothed(main: NDArray[np.bool_], scores: NDArray[Any], blocks: Blocks) -> NDArray[np.bool_]:
    """`main` [block], with headings (h2 to h6) before main text, then gaps within one parent."""
    out = main.copy()
    tags = blocks.containers.tag
    for index in range(len(out) - 2, -1, -1):
        if out[index] or not out[index + 1] or scores[index] < LEAST:
            continue
        container = blocks.container[index]
        if container >= 0 and tags[container] in _HEADINGS and _heads(blocks, index):
            out[index] = True
    kept: list[int] = np.flatnonzero(out).tolist()
    for before, after in pairwise(kept):
        gap = range(before + 1, after)
        if 0 < len(gap) <= GAP_BLOCKS and _is_of_one(blocks, before, gap, after, scores):
            out[before + 1 : after] = True
    return out


def _heads(blocks: Blocks, index: int) -> bool:
    """Whether the block behind a heading lies within what the heading lies in."""
    section = _parent(blocks, index)
    container = blocks.container[index + 1]
    for _ in range(_NEAR):
        if container == section:
            return True
        if container < 0:
            return False
        container = blocks.containers.parent[container]
    return False


def _is_of_one(
    blocks: Blocks, before: int, gap: Sequence[int], after: int, scores: NDArray[Any]
) -> bool:
    """Whether a gap is short, not of links, and under one parent with the block on a side of it."""
    if sum(len(blocks.text[index]) for index in gap) > GAP_CHARACTERS:
        return False
    for index in gap:
        linked = 2 * blocks.link_characters[index] > len(blocks.text[index])
        if linked or scores[index] < LEAST:
            return False
    parents = {_parent(blocks, index) for index in gap}
    sides = (_parent(blocks, before), _parent(blocks, after))
    return len(parents) == 1 and not parents.isdisjoint(sides)


def _parent(blocks: Blocks, index: int) -> int:
    container = blocks.container[index]
    return blocks.containers.parent[container] if container >= 0 else -1
