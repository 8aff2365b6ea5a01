"""Which documents a tokenizer is trained on, and which are held out to measure it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from stages.text.draw import draw

if TYPE_CHECKING:
    from stages.engine import Shard

SALT = "tokenizer sample"


class Sample:
    """About `max_bytes` of the shards' text, drawn evenly by a hash of each duplicate class.

    The highest `held_share` of the draw is held, the rest is trained on, the lowest is left out
    where there is more text than `max_bytes`. Copies of a text fall on one side. `documents` and
    `bytes` of what was trained on are counted by source while `training` is read.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        max_bytes: int,
        held_share: float,
        check_stop: Callable[[], None],
    ) -> None:
        import pyarrow.compute as pc

        self._shards, self._check_stop = shards, check_stop
        self.total_documents = sum(shard.rows for shard in shards)
        self.total_bytes = 0
        for shard in shards:
            check_stop()
            sizes = pc.binary_length(shard.read(["text"])["text"])
            self.total_bytes += pc.sum(sizes).as_py() or 0
        self.share = min(1.0, max_bytes / max(1, self.total_bytes))
        self._trained_from = 1.0 - self.share
        self._held_from = 1.0 - self.share * held_share
        self.documents: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()

    def training(self) -> Iterator[str]:
        """The texts to train on."""
        for source, text in self._drawn(self._trained_from, self._held_from):
            self.documents[source] += 1
            self.bytes[source] += len(text.encode())
            yield text

    def held(self) -> Iterator[tuple[str, str]]:
        """(source, text) of the documents to measure on."""
        return self._drawn(self._held_from, 1.0)

    def _drawn(self, start: float, stop: float) -> Iterator[tuple[str, str]]:
        columns = ["doc_id", "duplicate_class", "source", "text"]
        for shard in self._shards:
            self._check_stop()
            table = shard.read(columns)
            for batch in table.to_batches(max_chunksize=1024):
                for row in batch.to_pylist():
                    place = draw(row["duplicate_class"] or row["doc_id"], SALT)
                    if start <= place < stop:
                        yield row["source"], row["text"]
