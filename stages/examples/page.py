"""What instruction, preference and evaluation data contributes to a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stages.engine.page import (
    Artifact,
    BarFigure,
    Cell,
    Figure,
    MatrixFigure,
    Pair,
    PairsFigure,
    Part,
    Sample,
    SamplesFigure,
    TableFigure,
    make_bars,
    make_table,
)
from stages.engine.sampling import sample_note, sampled_groups
from stages.engine.tally import (
    LeastIds,
    LogHistogram,
    Row,
    excerpt,
    log_histogram,
    most_common,
    rejection_figures,
    sentences,
)
from stages.tokens.chat import format_message

CONVERSATION_SAMPLES = 3
MESSAGE = 380
"""Characters of a message in a sample."""
LONGEST = 12
"""Conversations of more messages are counted together."""


def add_sums(
    totals: dict[str, Counter[str]], sources: pa.ChunkedArray, **columns: NDArray[np.int64]
) -> None:
    """Add the rows of each source, and the sums of its columns."""
    table = pa.table({"source": sources, **columns}).group_by("source")
    sums = table.aggregate([([], "count_all"), *((name, "sum") for name in columns)])
    for row in sums.to_pylist():
        counts = totals.setdefault(row["source"], Counter())
        counts.update(rows=row["count_all"], **{name: row[f"{name}_sum"] for name in columns})


def mean_rows(totals: dict[str, Counter[str]], *names: str) -> Iterator[tuple[Cell, ...]]:
    """Source, rows and means of columns; the largest sources first, the others in one row."""
    for source, rows in most_common({name: counts["rows"] for name, counts in totals.items()}):
        counts = totals.get(source)
        yield (source, rows, *(counts[name] / rows if counts else None for name in names))


@dataclass
class ConversationCounts:
    """Counts of the conversations."""

    rows: int = 0
    messages: Counter[int] = field(default_factory=Counter)
    characters: dict[str, LogHistogram] = field(default_factory=dict)
    by_source: dict[str, Counter[str]] = field(default_factory=dict)
    samples: LeastIds = field(
        default_factory=lambda: LeastIds(CONVERSATION_SAMPLES, "conversation_id")
    )

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
        totals = message_characters(messages)
        add_sums(self.by_source, group["source"], messages=lengths, characters=totals)
        self.samples.offer("", group)


def conversations_page(artifact: Artifact) -> list[Figure]:
    """Conversations by source, their messages and lengths, some of them, and bad rows."""
    output = artifact.output("conversations")
    counted = ConversationCounts()
    for group in sampled_groups([output], ["conversation_id", "source", "messages"]):
        counted.add(group)
    note = sample_note(counted.rows, output.rows, "conversations")
    return [
        _conversation_sources(counted, note),
        _messages(counted, note),
        *log_histogram(
            "Characters a message", "characters", counted.characters, count="messages", note=note
        ),
        SamplesFigure(
            "Conversations", tuple(map(_conversation_sample, counted.samples.groups.get("", [])))
        ),
        *rejection_figures(artifact.manifest, "rows"),
    ]


def _conversation_sources(counted: ConversationCounts, note: str) -> TableFigure:
    rows = mean_rows(counted.by_source, "messages", "characters")
    return make_table(
        "Conversations by source",
        "source | conversations:, | messages each:,.1f | characters each:,.0f",
        rows,
        note,
    )


def _messages(counted: ConversationCounts, note: str) -> BarFigure:
    lengths = sorted(counted.messages)
    return make_bars(
        "Messages a conversation",
        (f"{n:,}" if n <= LONGEST else f"more than {LONGEST}" for n in lengths),
        "conversations:,",
        {"conversations": [counted.messages[n] for n in lengths]},
        label="messages",
        note=note,
    )


def _conversation_sample(row: Row) -> Sample:
    messages = row["messages"][: 2 * CONVERSATION_SAMPLES]
    text = "\n\n".join(f"{m['role']}: {excerpt(format_message(m), MESSAGE)}" for m in messages)
    facts = (("messages", len(row["messages"])),)
    return Sample(row["source"], row["conversation_id"], excerpt(text), facts)


PREFERENCE_SAMPLES = 3
PROMPT = 300
"""Characters of a prompt in the heading of a sample."""


@dataclass
class PreferenceCounts:
    """Counts of the pairs."""

    rows: int = 0
    by_source: dict[str, Counter[str]] = field(default_factory=dict)
    single: dict[str, Counter[str]] = field(default_factory=dict)
    """Rows of one answer."""
    characters: dict[str, LogHistogram] = field(
        default_factory=lambda: {"chosen": LogHistogram(), "rejected": LogHistogram()}
    )
    samples: LeastIds = field(default_factory=lambda: LeastIds(PREFERENCE_SAMPLES, "preference_id"))

    def add(self, group: pa.Table) -> None:
        """Count a row group."""
        self.rows += len(group)
        lengths = {
            name: message_characters(group[name].combine_chunks()) for name in self.characters
        }
        present = {
            name: pc.list_value_length(group[name]).to_numpy() > 0 for name in self.characters
        }
        for name, values in lengths.items():
            self.characters[name].add(values[present[name]])
        pairs = present["chosen"] & present["rejected"]
        longer = lengths["chosen"] > lengths["rejected"]
        compared = {"longer": longer.astype(np.int64), **lengths}
        add_sums(
            self.by_source,
            group["source"].filter(pa.array(pairs)),
            **{name: values[pairs] for name, values in compared.items()},
        )
        add_sums(
            self.single,
            group["source"].filter(pa.array(~pairs)),
            desirable=present["chosen"][~pairs].astype(np.int64),
        )
        self.samples.offer("", group.filter(pa.array(pairs)))


def preferences_page(artifact: Artifact) -> list[Figure]:
    """Pairs by source, lengths of both answers, some pairs, and bad rows."""
    output = artifact.output("preferences")
    counted = PreferenceCounts()
    columns = ["preference_id", "source", "prompt", "chosen", "rejected"]
    for group in sampled_groups([output], columns):
        counted.add(group)
    note = sample_note(counted.rows, output.rows, "pairs")
    return [
        *([_preference_sources(counted, note)] if counted.by_source else []),
        *([_single_sources(counted, note)] if counted.single else []),
        *log_histogram(
            "Characters an answer", "characters", counted.characters, count="answers", note=note
        ),
        PairsFigure("Preference pairs", tuple(map(_pair, counted.samples.groups.get("", [])))),
        *rejection_figures(artifact.manifest, "rows"),
    ]


def _preference_sources(counted: PreferenceCounts, note: str) -> TableFigure:
    rows = mean_rows(counted.by_source, "chosen", "rejected", "longer")
    advice = "Where the chosen answer is mostly the longer one, a model learns to write longer."
    return make_table(
        "Preference pairs by source",
        "source | pairs:, | characters chosen:,.0f | characters rejected:,.0f"
        " | chosen is longer:.1%",
        rows,
        sentences(advice, note),
    )


def _single_sources(counted: PreferenceCounts, note: str) -> TableFigure:
    return make_table(
        "Single answers by source",
        "source | answers:, | desirable:.1%",
        mean_rows(counted.single, "desirable"),
        note,
    )


def message_characters(messages: pa.ListArray) -> NDArray[np.int64]:
    """Characters that each row has in all its messages; tool calls are not counted."""
    contents = pc.utf8_length(pc.struct_field(messages.flatten(), "content")).to_numpy()
    row_numbers = np.repeat(np.arange(len(messages)), pc.list_value_length(messages).to_numpy())
    return np.bincount(row_numbers, weights=contents, minlength=len(messages)).astype(np.int64)


def answer_text(answer: list[Row]) -> str:
    """The text of an answer, with roles if it has several messages."""
    if len(answer) == 1:
        return format_message(answer[0])
    return "\n\n".join(f"{message['role']}: {format_message(message)}" for message in answer)


def _pair(row: Row) -> Pair:
    prompt = format_message(row["prompt"][-1]) if row["prompt"] else ""
    return Pair(
        excerpt(prompt, PROMPT),
        "chosen",
        "rejected",
        (Part(excerpt(answer_text(row["chosen"]))),),
        (Part(excerpt(answer_text(row["rejected"]))),),
        (("source", row["source"]), ("messages before", len(row["prompt"]))),
    )


MOST_BENCHMARKS = 20
BENCHMARK_SAMPLES = 6
MOST_PLACES = 10
"""Places of the right answer that are counted separately."""
CHOICE = 120


@dataclass
class BenchmarkCounts:
    """Counts of one benchmark."""

    counts: Counter[str] = field(default_factory=Counter)
    forms: Counter[str] = field(default_factory=Counter)
    chance: float = 0.0
    places: Counter[int] = field(default_factory=Counter)
    characters: LogHistogram = field(default_factory=LogHistogram)

    def add(self, items: pa.Table) -> None:
        """Count items of this benchmark."""
        choices = pc.list_value_length(items["choices"]).to_numpy()
        lengths = pc.utf8_length(items["prompt"]).to_numpy()
        chosen = choices > 0
        self.forms.update(items["form"].to_pylist())
        self.counts.update(
            items=len(items),
            multiple_choice=int(chosen.sum()),
            choices=int(choices.sum()),
            characters=int(lengths.sum()),
        )
        self.chance += float((1 / choices[chosen]).sum())
        self.places.update(pc.drop_null(items["answer"]).to_pylist())
        self.characters.add(lengths)


def benchmarks_page(artifact: Artifact) -> list[Figure]:
    """Items by benchmark, what chance gives, the place of the right answer, and some items."""
    output = artifact.output("benchmarks")
    counted: dict[str, BenchmarkCounts] = {}
    least = LeastIds(1, "item_id")
    columns = ["benchmark", "item_id", "form", "prompt", "choices", "answer"]
    for shard in output.shards():
        for group in shard.row_groups(columns):
            for name in pc.unique(group["benchmark"]).to_pylist():
                items = group.filter(pc.equal(group["benchmark"], name))
                counted.setdefault(name, BenchmarkCounts()).add(items)
                least.offer(name, items)
    largest = sorted(counted, key=lambda name: (-counted[name].counts["items"], name))
    largest_counts = {name: counted[name] for name in largest[:MOST_BENCHMARKS]}
    samples = tuple(
        _benchmark_sample(row) for name in largest[:BENCHMARK_SAMPLES] for row in least.groups[name]
    )
    prompts = {
        name: one.characters for name, one in list(largest_counts.items())[:BENCHMARK_SAMPLES]
    }
    return [
        _benchmark_table(largest_counts, len(counted)),
        *_answer_places(largest_counts),
        *log_histogram("Characters a prompt", "characters", prompts, count="items"),
        SamplesFigure("Benchmark items", samples, "The item with the least id of each."),
        *rejection_figures(artifact.manifest, "rows"),
    ]


def _benchmark_table(counts_by_name: dict[str, BenchmarkCounts], benchmarks: int) -> TableFigure:
    rows: list[tuple[Cell, ...]] = []
    for name, one in counts_by_name.items():
        items, chosen = one.counts["items"], one.counts["multiple_choice"]
        form = ", ".join(name.replace("_", " ") for name in sorted(one.forms))
        choices = (one.counts["choices"] / chosen, one.chance / chosen) if chosen else (None, None)
        rows.append((name, form, items, one.counts["characters"] / items, *choices))
    left = benchmarks - len(counts_by_name)
    note = f"{left:,} smaller benchmarks are not shown." if left else ""
    return make_table(
        "Items by benchmark",
        "benchmark | form | items:, | characters a prompt:,.0f | choices:,.2f"
        " | accuracy by chance:.1%",
        rows,
        note,
    )


def _answer_places(counts_by_name: dict[str, BenchmarkCounts]) -> list[Figure]:
    """The share of each place of the right answer: a benchmark may be won by always saying one."""
    chosen = {name: one for name, one in counts_by_name.items() if one.places}
    if not chosen:
        return []
    places = max(max(one.places) for one in chosen.values()) + 1
    names = [str(place + 1) for place in range(min(places, MOST_PLACES))]
    names += [f"{MOST_PLACES + 1} and on"] if places > MOST_PLACES else []
    values = []
    for one in chosen.values():
        counts = np.zeros(len(names))
        for place, count in one.places.items():
            counts[min(place, MOST_PLACES)] += count
        values.append(tuple(share or None for share in (counts / counts.sum()).tolist()))
    return [
        MatrixFigure(
            "Place of the right answer (share of items)",
            tuple(chosen),
            tuple(names),
            tuple(values),
            ".1%",
            "Rows are benchmarks, columns the place among the choices. A row far from even can be "
            "won by always naming one place.",
        )
    ]


def _benchmark_sample(row: Row) -> Sample:
    choices = [
        f"{'→' if place == row['answer'] else ' '} {excerpt(choice, CHOICE)}"
        for place, choice in enumerate(row["choices"][:MOST_PLACES])
    ]
    text = "\n".join([excerpt(row["prompt"], 500), *choices])
    return Sample(row["benchmark"], row["item_id"], excerpt(text), (("form", row["form"]),))


def page(artifact: Artifact) -> list[Figure]:
    """The figures of an artifact of one of the three stages."""
    pages = {
        "conversations": conversations_page,
        "preferences": preferences_page,
        "benchmarks": benchmarks_page,
    }
    (table,) = artifact.manifest.outputs
    return pages[table](artifact)
