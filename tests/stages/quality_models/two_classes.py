"""Two small classes of text that a classifier can nearly tell apart."""

from __future__ import annotations

import random

SMALL = {"buckets": 2000, "dim": 8, "epochs": 5, "learning_rate": 0.5}
"""A classifier of a moment."""

GOOD = ["theory", "therefore", "evidence", "because", "measured", "chapter", "example", "result"]
BAD = ["buy", "now", "click", "cheap", "offer", "free", "shipping", "deal", "subscribe"]
COMMON = ["the", "a", "of", "and", "to", "in", "it", "is", "was", "for", "on", "with", "as", "by"]


def texts(words: list[str], number: int, seed: int, share: float = 0.3) -> list[str]:
    """Texts of three lines, `share` of whose words are of one class."""
    random_ = random.Random(seed)

    def line() -> str:
        chosen = [random_.choice(words if random_.random() < share else COMMON) for _ in range(12)]
        return " ".join(chosen)

    return ["\n".join(line() for _ in range(3)) + "\n" for _ in range(number)]
