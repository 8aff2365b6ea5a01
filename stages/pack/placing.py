"""Into which sequence each document goes: the compiled loops behind `layout`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stages.pack.bits import Words, add, greatest_to, least_from, remove
from stages.text.native import compiled

Ints = npt.NDArray[np.int64]


@compiled
def sorted_by(keys: Ints, bound: int) -> Ints:
    """Places of `keys` (0…bound-1) in rising order, equal ones in the order given: by counting."""
    ends = np.zeros(bound + 1, np.int64)
    for key in keys:
        ends[key + 1] += 1
    for key in range(bound):
        ends[key + 1] += ends[key]
    order = np.empty(len(keys), np.int64)
    for place in range(len(keys)):
        key = keys[place]
        order[ends[key]] = place
        ends[key] += 1
    return order


@compiled
def place_whole(lengths: Ints, capacity: int, words: Words, levels: Ints) -> tuple[Ints, Ints, int]:
    """Sequence and start of each of `lengths` (falling, 1…capacity); how many sequences there are.

    `words` and `levels` are an empty set of 0…capacity: of the spaces that sequences have. Those of
    one space are a stack: the last of them, and for each the one below it.
    """
    last = np.full(capacity + 1, -1, np.int32)
    below = np.empty(len(lengths), np.int32)
    sequence = np.empty(len(lengths), np.int64)
    start = np.empty(len(lengths), np.int64)
    opened = 0
    for item in range(len(lengths)):
        length = lengths[item]
        space = least_from(words, levels, length)
        if space < 0:
            chosen, space = opened, capacity
            opened += 1
        else:
            chosen = last[space]
            last[space] = below[chosen]
            if last[space] < 0:
                remove(words, levels, space)
        sequence[item], start[item] = chosen, capacity - space
        left = space - length
        if left:
            if last[left] < 0:
                add(words, levels, left)
            below[chosen], last[left] = last[left], chosen
    return sequence, start, opened


@compiled
def place_cropped(
    lengths: Ints, capacity: int, words: Words, levels: Ints
) -> tuple[Ints, Ints, Ints, Ints]:
    """Item, sequence, start and length of each piece, in order; `lengths` fall from capacity to 1.

    A piece is an item, whole or its beginning. `words` and `levels` are an empty set of 0…capacity:
    of the lengths that wait.
    """
    waiting = np.zeros(capacity + 1, np.int32)
    first = np.zeros(capacity + 1, np.int32)
    for item in range(len(lengths)):
        length = lengths[item]
        if waiting[length] == 0:
            first[length] = item
            add(words, levels, length)
        waiting[length] += 1
    items = np.empty(len(lengths), np.int64)
    sequence = np.empty(len(lengths), np.int64)
    start = np.empty(len(lengths), np.int64)
    taken = np.empty(len(lengths), np.int64)
    row, used = 0, 0
    for piece in range(len(lengths)):
        length = greatest_to(words, levels, capacity - used)
        if length < 0:
            length = least_from(words, levels, 0)
        items[piece] = first[length]
        first[length] += 1
        waiting[length] -= 1
        if waiting[length] == 0:
            remove(words, levels, length)
        sequence[piece], start[piece] = row, used
        taken[piece] = min(length, capacity - used)
        used += taken[piece]
        if used == capacity:
            row, used = row + 1, 0
    return items, sequence, start, taken
