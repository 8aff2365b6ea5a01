"""What preference data contributes to a report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stages.engine.excerpts import LeastIds, Row, excerpt
from stages.engine.figures import (
    Cell,
    Column,
    Figure,
    Pair,
    PairsFigure,
    Part,
    TableFigure,
    number,
)
from stages.engine.page import Artifact
from stages.engine.tally import (
    LogHistogram,
    log_histogram,
    most_common,
    of_sample,
    sampled_groups,
    sentences,
    turned_away,
)
from stages.text.chat import spoken

SAMPLES = 3
PROMPT = 300
"""Characters of a prompt in the heading of a sample."""


@dataclass
class Counted:
    """What was counted of the pairs."""

    rows: int = 0
    by_source: dict[str, Counter[str]] = field(default_factory=dict)
    characters: dict[str, LogHistogram] = field(
        default_factory=lambda: {"chosen": LogHistogram(), "rejected": LogHistogram()}
    )
    samples: LeastIds = field(default_factory=lambda: LeastIds(SAMPLES, "preference_id"))

    def add(self, group: pa.Table) -> None:
        """Count a row group."""
        self.rows += len(group)
        lengths = {name: characters(group[name]) for name in self.characters}
        for name, values in lengths.items():
            self.characters[name].add(values)
        longer = lengths["chosen"] > lengths["rejected"]
        for source in pc.unique(group["source"]).to_pylist():
            own = pc.equal(group["source"], source).to_numpy()
            self.by_source.setdefault(source, Counter()).update(
                rows=int(own.sum()),
                longer=int(longer[own].sum()),
                chosen=int(lengths["chosen"][own].sum()),
                rejected=int(lengths["rejected"][own].sum()),
            )
        self.samples.offer("", group)


def page(artifact: Artifact) -> list[Figure]:
    """Pairs by source, lengths of both answers, some pairs, and bad rows."""
    output = artifact.output("preferences")
    counted = Counted()
    columns = ["preference_id", "source", "prompt", "chosen", "rejected"]
    for group in sampled_groups([output], columns):
        counted.add(group)
    note = of_sample(counted.rows, output.rows, "pairs")
    return [
        _sources(counted, note),
        *log_histogram(
            "Characters an answer", "characters", counted.characters, count="answers", note=note
        ),
        PairsFigure("Preference pairs", tuple(map(_pair, counted.samples.groups.get("", [])))),
        *turned_away(artifact.manifest, "rows"),
    ]


def _sources(counted: Counted, note: str) -> TableFigure:
    rows: list[tuple[Cell, ...]] = []
    for source, count in most_common({n: c["rows"] for n, c in counted.by_source.items()}):
        of = counted.by_source.get(source)
        means = (
            [of[name] / count for name in ("chosen", "rejected", "longer")] if of else [None] * 3
        )
        rows.append((source, count, *means))
    columns = (
        Column("source"),
        number("pairs"),
        number("characters chosen", ",.0f"),
        number("characters rejected", ",.0f"),
        number("chosen is longer", ".1%"),
    )
    told = "Where the chosen answer is mostly the longer one, a model learns to write longer."
    return TableFigure("Preference pairs by source", columns, tuple(rows), sentences(told, note))


def characters(answers: pa.ChunkedArray) -> NDArray[np.int64]:
    """Characters that each answer has in all its messages; tool calls are not counted."""
    messages = answers.combine_chunks()
    contents = pc.utf8_length(pc.struct_field(messages.flatten(), "content")).to_numpy()
    of_row = np.repeat(np.arange(len(messages)), pc.list_value_length(messages).to_numpy())
    return np.bincount(of_row, weights=contents, minlength=len(messages)).astype(np.int64)


def text_of(answer: list[Row]) -> str:
    """What is said in an answer, the roles named where there are several messages."""
    if len(answer) == 1:
        return spoken(answer[0])
    return "\n\n".join(f"{message['role']}: {spoken(message)}" for message in answer)


def _pair(row: Row) -> Pair:
    prompt = spoken(row["prompt"][-1]) if row["prompt"] else ""
    return Pair(
        excerpt(prompt, PROMPT),
        "chosen",
        "rejected",
        (Part(excerpt(text_of(row["chosen"]))),),
        (Part(excerpt(text_of(row["rejected"]))),),
        (("source", row["source"]), ("messages before", len(row["prompt"]))),
    )
