"""What instruction data contributes to a report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stages.engine.excerpts import LeastIds, Row, excerpt
from stages.engine.figures import (
    Axis,
    BarFigure,
    Bars,
    Cell,
    Column,
    Figure,
    Sample,
    SamplesFigure,
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
    turned_away,
)
from stages.text.chat import spoken

SAMPLES = 3
MESSAGE = 380
"""Characters of a message in a sample."""
LONGEST = 12
"""Conversations of more messages are counted together."""


@dataclass
class Counted:
    """What was counted of the conversations."""

    rows: int = 0
    messages: Counter[int] = field(default_factory=Counter)
    characters: dict[str, LogHistogram] = field(default_factory=dict)
    by_source: dict[str, Counter[str]] = field(default_factory=dict)
    samples: LeastIds = field(default_factory=lambda: LeastIds(SAMPLES, "conversation_id"))

    def add(self, group: pa.Table) -> None:
        """Count a row group."""
        self.rows += len(group)
        group = group.combine_chunks()
        messages = group["messages"].combine_chunks()
        lengths = pc.list_value_length(messages).to_numpy()
        self.messages.update(np.minimum(lengths, LONGEST + 1).tolist())
        roles = pc.struct_field(messages.flatten(), "role")
        characters = pc.utf8_length(pc.struct_field(messages.flatten(), "content")).to_numpy()
        for role in pc.unique(roles).to_pylist():
            own = characters[pc.equal(roles, role).to_numpy(zero_copy_only=False)]
            self.characters.setdefault(role, LogHistogram()).add(own)
        of_row = np.repeat(np.arange(len(group)), lengths)
        by_row = np.bincount(of_row, weights=characters, minlength=len(group))
        for source in pc.unique(group["source"]).to_pylist():
            own = pc.equal(group["source"], source).to_numpy()
            counts = self.by_source.setdefault(source, Counter())
            counts.update(
                rows=int(own.sum()),
                messages=int(lengths[own].sum()),
                characters=int(by_row[own].sum()),
            )
        self.samples.offer("", group)


def page(artifact: Artifact) -> list[Figure]:
    """Conversations by source, their messages and lengths, some of them, and bad rows."""
    output = artifact.output("conversations")
    counted = Counted()
    for group in sampled_groups([output], ["conversation_id", "source", "messages"]):
        counted.add(group)
    note = of_sample(counted.rows, output.rows, "conversations")
    return [
        _sources(counted, note),
        _messages(counted, note),
        *log_histogram(
            "Characters a message", "characters", counted.characters, count="messages", note=note
        ),
        SamplesFigure("Conversations", tuple(map(_sample, counted.samples.groups.get("", [])))),
        *turned_away(artifact.manifest, "rows"),
    ]


def _sources(counted: Counted, note: str) -> TableFigure:
    rows: list[tuple[Cell, ...]] = []
    for source, count in most_common({n: c["rows"] for n, c in counted.by_source.items()}):
        of = counted.by_source.get(source)
        each = (of["messages"] / count, of["characters"] / count) if of else (None, None)
        rows.append((source, count, *each))
    columns = (
        Column("source"),
        number("conversations"),
        number("messages each", ",.1f"),
        number("characters each", ",.0f"),
    )
    return TableFigure("Conversations by source", columns, tuple(rows), note)


def _messages(counted: Counted, note: str) -> BarFigure:
    lengths = sorted(counted.messages)
    return BarFigure(
        "Messages a conversation",
        tuple(f"{n:,}" if n <= LONGEST else f"more than {LONGEST}" for n in lengths),
        Axis("conversations", format=","),
        (Bars("conversations", tuple(counted.messages[n] for n in lengths)),),
        label="messages",
        note=note,
    )


def _sample(row: Row) -> Sample:
    shown = row["messages"][: 2 * SAMPLES]
    told = "\n\n".join(f"{m['role']}: {excerpt(spoken(m), MESSAGE)}" for m in shown)
    facts = (("messages", len(row["messages"])),)
    return Sample(row["source"], row["conversation_id"], excerpt(told), facts)
