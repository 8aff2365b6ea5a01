"""All of several phrases looked for at once, in any case: an automaton as a table.

Aho and Corasick 1975 (doi 10.1145/360825.360855), with the failures filled in: one look-up a
character, whatever the phrases.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

KELVIN = 0x212A
"""The sign whose lower case is the ASCII k: the one character outside ASCII with such a case."""


def automaton(phrases: Mapping[str, int]) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    """(next states, found bits) for phrases of ASCII in lower case, each with its bits.

    next_states [states, 129]: from each state by ASCII code, by column 128 for all others; capital
    letters lead where small ones do. found [states]: bits of all phrases that end in a state.
    Begins in state 0. Raises ValueError for more than 256 states.
    """
    children: list[dict[int, int]] = [{}]
    found = [0]
    for phrase, bits in phrases.items():
        state = 0
        for code in phrase.encode("ascii"):
            if code not in children[state]:
                children[state][code] = len(children)
                children.append({})
                found.append(0)
            state = children[state][code]
        found[state] |= bits
    if len(children) > 256:
        raise ValueError(f"the phrases need {len(children)} states, more than 256")

    next_states = np.zeros((len(children), 129), dtype=np.uint8)
    queue = deque([(0, 0)])
    while queue:
        state, failure = queue.popleft()
        found[state] |= found[failure]
        if state:
            next_states[state] = next_states[failure]
        followers = next_states[state].copy()
        for code, child in children[state].items():
            next_states[state, code] = child
            queue.append((child, int(followers[code])))
    next_states[:, ord("A") : ord("Z") + 1] = next_states[:, ord("a") : ord("z") + 1]
    return next_states, np.array(found, dtype=np.uint16)
