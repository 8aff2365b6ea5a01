"""What became of the records of a unit, and of all units together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from stages.engine.reading.rows import scrub
from stages.ingest.records import DETAIL, Document, Ignored, Record

SAMPLES = 5


@dataclass
class Tally:
    """Counts by what a record became, and the first few samples of each reason."""

    documents: int = 0
    characters: int = 0
    repaired: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    ignored: dict[str, int] = field(default_factory=dict)
    extractors: dict[str, int] = field(default_factory=dict)
    samples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, record: Record, file: str) -> None:
        """Count a record of `file`."""
        if isinstance(record, Document):
            self.documents += 1
            self.characters += len(record.text)
            self.repaired += record.repaired
            if (extractor := record.page.get("extractor")) is not None:
                self.extractors[extractor] = self.extractors.get(extractor, 0) + 1
        elif isinstance(record, Ignored):
            self.ignored[record.type] = self.ignored.get(record.type, 0) + 1
        else:
            self.rejected[record.reason] = self.rejected.get(record.reason, 0) + 1
            samples = self.samples.setdefault(record.reason, [])
            if len(samples) < SAMPLES:
                told = [f"{file} at {record.place.record}", record.url, record.detail]
                samples.append(scrub(" ".join(part for part in told if part))[0][:DETAIL])


def total_of(values: Iterable[dict[str, Any]]) -> Tally:
    """The tallies of all units, as plain values in their order, as one."""
    total = Tally()
    for value in values:
        total.documents += value["documents"]
        total.characters += value["characters"]
        total.repaired += value["repaired"]
        for name in ("rejected", "ignored", "extractors"):
            counts = getattr(total, name)
            for key, number in value[name].items():
                counts[key] = counts.get(key, 0) + number
        for reason, texts in value["samples"].items():
            kept = total.samples.setdefault(reason, [])
            kept.extend(texts[: SAMPLES - len(kept)])
    return total
