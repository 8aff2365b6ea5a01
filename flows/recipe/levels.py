"""Levels of a growing series: earlier instances are read merged (the logarithmic method).

After n snapshots a step reads one artifact for each 1 in the binary digits of n: three after
7 = 4 + 2 + 1 (Bentley and Saxe 1980). Once a block of 2^k snapshots is complete, its last one and
what that one read of the block are merged, as a binary counter carries. A block is fixed by its
positions, so one more snapshot changes no earlier block, and no snapshot is merged more than
log2(n) times.

    merge:
      stage: merge_indexes
      for_each: {levels: dedup}
      inputs: {dedup_index: "each:dedup_index"}
    dedup: {…, inputs: {…, dedup_index: "merge[earlier]:dedup_index"}}
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Block:
    """Positions [start, end) of a series: a power of two of them, which divides `start`."""

    start: int
    end: int

    @property
    def is_merged(self) -> bool:
        """Whether it is an artifact of its own; a block of one is the instance itself."""
        return self.end - self.start > 1

    @property
    def parts(self) -> list[Block]:
        """The blocks that it is merged from, oldest first."""
        before = read_blocks(self.end - self.start - 1)
        offset = self.start
        shifted = [Block(offset + one.start, offset + one.end) for one in before]
        return [*shifted, Block(self.end - 1, self.end)]


def read_blocks(count: int) -> list[Block]:
    """Blocks that cover the first positions, one for each binary 1 of `count`; oldest first."""
    blocks, start = [], 0
    for digit in reversed(range(count.bit_length())):
        size = 1 << digit
        if count & size:
            blocks.append(Block(start, start + size))
            start += size
    return blocks


def merged_blocks(count: int) -> list[Block]:
    """All blocks of several positions that a reader of some first positions of `count` reads.

    In the order in which they become complete; the parts of each come before it.
    """
    blocks = [block for end in range(2, count + 1) for block in read_blocks(end)]
    return list(dict.fromkeys(block for block in blocks if block.is_merged))


@dataclass(frozen=True)
class Series:
    """The instances of a step, `base`, and those of the step that merges them."""

    step: str
    base: str
    labels: tuple[str, ...]
    """Of the instances of `base`, oldest first."""

    @property
    def blocks(self) -> list[Block]:
        """What is merged; the newest only where something reads it."""
        return merged_blocks(len(self.labels))

    @property
    def newest(self) -> str | None:
        """The instance of the block that ends with the newest label, if there is such a block."""
        ends = [block for block in self.blocks if block.end == len(self.labels)]
        return self._node(ends[-1]) if ends else None

    def label(self, block: Block) -> str:
        """`A..D`: the first and the last label of a block; of a block of one its own."""
        first, last = self.labels[block.start], self.labels[block.end - 1]
        return f"{first}..{last}" if block.is_merged else first

    def parts(self, block: Block) -> tuple[str, ...]:
        """Names of the instances that a block is merged from, oldest first."""
        return tuple(map(self._node, block.parts))

    def read(self, count: int) -> list[str]:
        """Names of the instances that stand for the first `count` labels, oldest first."""
        return [self._node(block) for block in read_blocks(count)]

    def _node(self, block: Block) -> str:
        return f"{self.step if block.is_merged else self.base}[{self.label(block)}]"
