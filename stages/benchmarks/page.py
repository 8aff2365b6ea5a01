"""What benchmark items contribute to a report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stages.engine.excerpts import LeastIds, Row, excerpt
from stages.engine.figures import (
    Cell,
    Column,
    Figure,
    MatrixFigure,
    Sample,
    SamplesFigure,
    TableFigure,
    number,
)
from stages.engine.page import Artifact
from stages.engine.tally import LogHistogram, log_histogram, turned_away

BENCHMARKS = 20
SAMPLES = 6
PLACES = 10
"""Places of the right answer that are told apart."""
CHOICE = 120


@dataclass
class Counted:
    """What was counted of one benchmark."""

    counts: Counter[str] = field(default_factory=Counter)
    chance: float = 0.0
    places: Counter[int] = field(default_factory=Counter)
    characters: LogHistogram = field(default_factory=LogHistogram)

    def add(self, items: pa.Table) -> None:
        """Count items of this benchmark."""
        choices = pc.list_value_length(items["choices"]).to_numpy()
        lengths = pc.utf8_length(items["prompt"]).to_numpy()
        chosen = choices > 0
        self.counts.update(
            items=len(items),
            multiple_choice=int(chosen.sum()),
            choices=int(choices.sum()),
            characters=int(lengths.sum()),
        )
        self.chance += float((1 / choices[chosen]).sum())
        self.places.update(pc.drop_null(items["answer"]).to_pylist())
        self.characters.add(lengths)


def page(artifact: Artifact) -> list[Figure]:
    """Items by benchmark, what chance gives, where the right answer stands, and some items."""
    output = artifact.output("benchmarks")
    counted: dict[str, Counted] = {}
    least = LeastIds(1, "item_id")
    columns = ["benchmark", "item_id", "form", "prompt", "choices", "answer"]
    for shard in output.shards():
        for group in shard.row_groups(columns):
            for name in pc.unique(group["benchmark"]).to_pylist():
                items = group.filter(pc.equal(group["benchmark"], name))
                counted.setdefault(name, Counted()).add(items)
                least.offer(name, items)
    largest = sorted(counted, key=lambda name: (-counted[name].counts["items"], name))
    shown = {name: counted[name] for name in largest[:BENCHMARKS]}
    samples = tuple(_sample(row) for name in largest[:SAMPLES] for row in least.groups[name])
    prompts = {name: one.characters for name, one in list(shown.items())[:SAMPLES]}
    return [
        _table(shown, len(counted)),
        *_places(shown),
        *log_histogram("Characters a prompt", "characters", prompts, count="items"),
        SamplesFigure("Benchmark items", samples, "The item with the least id of each."),
        *turned_away(artifact.manifest, "rows"),
    ]


def _table(shown: dict[str, Counted], benchmarks: int) -> TableFigure:
    rows: list[tuple[Cell, ...]] = []
    for name, one in shown.items():
        items, chosen = one.counts["items"], one.counts["multiple_choice"]
        form = "multiple choice" if chosen == items else "text" if not chosen else "both"
        choices = (one.counts["choices"] / chosen, one.chance / chosen) if chosen else (None, None)
        rows.append((name, form, items, one.counts["characters"] / items, *choices))
    columns = (
        Column("benchmark"),
        Column("form"),
        number("items"),
        number("characters a prompt", ",.0f"),
        number("choices", ",.2f"),
        number("accuracy by chance", ".1%"),
    )
    left = benchmarks - len(shown)
    note = f"{left:,} smaller benchmarks are not shown." if left else ""
    return TableFigure("Items by benchmark", columns, tuple(rows), note)


def _places(shown: dict[str, Counted]) -> list[Figure]:
    """The share of each place of the right answer: a benchmark may be won by always saying one."""
    chosen = {name: one for name, one in shown.items() if one.places}
    if not chosen:
        return []
    places = max(max(one.places) for one in chosen.values()) + 1
    names = [str(place + 1) for place in range(min(places, PLACES))]
    names += [f"{PLACES + 1} and on"] if places > PLACES else []
    values = []
    for one in chosen.values():
        counts = np.zeros(len(names))
        for place, count in one.places.items():
            counts[min(place, PLACES)] += count
        values.append(tuple(share or None for share in (counts / counts.sum()).tolist()))
    return [
        MatrixFigure(
            "Where the right answer stands (share of items)",
            tuple(chosen),
            tuple(names),
            tuple(values),
            ".1%",
            "Rows are benchmarks, columns the place among the choices. A row far from even can be "
            "won by always naming one place.",
        )
    ]


def _sample(row: Row) -> Sample:
    choices = [
        f"{'→' if place == row['answer'] else ' '} {excerpt(choice, CHOICE)}"
        for place, choice in enumerate(row["choices"][:PLACES])
    ]
    text = "\n".join([excerpt(row["prompt"], 500), *choices])
    return Sample(row["benchmark"], row["item_id"], excerpt(text), (("form", row["form"]),))
