"""The passages of all documents that occur earlier, as spans of views: the order of the work.

Three maps: over shards, to note every passage; over ranges of hashes, to find where each occurs
first; over shards, to write the spans of all other places. For runs of tokens the first two are
made twice, of anchors and of the windows that these leave. A task holds a run of about
`rows_per_task` passages, or as many records of the merge, whatever the size of the corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stages.dedup.passages.excerpts import with_excerpts
from stages.dedup.passages.firsts import Found, Runs, first_passages
from stages.dedup.passages.noting import (
    ANCHORS,
    LINES,
    SENTENCES,
    WINDOWS,
    WindowTask,
    note_passages,
    note_windows,
)
from stages.dedup.passages.spans import Stretch
from stages.dedup.passages.writing import VIEWS, ViewTask, counted, most_frequent, write_passages

if TYPE_CHECKING:
    from stages.dedup.config import PassagesConfig
    from stages.dedup.signing import DocumentShard
    from stages.engine import Context, ShardResult


def find_passages(
    context: Context, shards: Sequence[DocumentShard], config: PassagesConfig, *, rows_per_task: int
) -> dict[str, Any]:
    """Write the views of every shard, and return by view what was found.

    Writes output `views`, a table beside each shard of documents, unless nothing is asked for:
    then it does nothing and returns an empty dict. A passage stays where it occurs first: in the
    earliest documents output, in the document of least id, at the first place. Spans of one view
    do not overlap, and bear the id of the document that holds the first occurrence as their label
    (of overlapping passages that of the first). For each view there are numbers of
    `documents` and `characters` in all; `passages`, `repeated` ones, `spans`, and the
    `repeated_characters` and `repeated_documents` they cover (of lines also `repeated_blank`); and
    the `most_frequent` passages with `count`, `doc_id` and `excerpt` of their first occurrence.
    Nothing of it depends on the order of rows or shards, the number of workers, or
    `rows_per_task`.
    """
    if not (config.lines or config.sentences or config.substrings):
        return {}
    generations = [item.generation for item in shards]
    noted = context.map(note_passages, shards, config=config, limit=rows_per_task)
    asked = {LINES: config.lines, SENTENCES: config.sentences, ANCHORS: config.substrings}
    runs = {name: Runs.of(name, noted, generations) for name, wanted in asked.items() if wanted}
    places = dict.fromkeys((LINES, SENTENCES), noted)
    found = _merged(context, runs, rows_per_task, "first_passages")
    if config.substrings:
        anchors, repeated = runs.pop(ANCHORS), found.pop(ANCHORS)
        items = zip(shards, anchors.by_file, strict=True)
        tasks = [WindowTask(item.id, item.shard, by_file) for item, by_file in items]
        least = config.substrings
        windows = context.map(note_windows, tasks, found=repeated, least=least, limit=rows_per_task)
        places[WINDOWS] = windows
        runs[WINDOWS] = Runs.of(WINDOWS, windows, generations)
        alone = {WINDOWS: runs[WINDOWS]}
        found |= _merged(context, alone, rows_per_task, "first_windows")
    written = context.map(write_passages, _view_tasks(shards, runs, places), found=found)
    return {
        view: _told(name, shards, noted, written) for name, view in VIEWS.items() if name in runs
    }


def _merged(
    context: Context, runs: dict[str, Runs], rows_per_task: int, name: str
) -> dict[str, Found]:
    tasks = [task for each in runs.values() for task in each.tasks(rows_per_task)]
    results = context.map(first_passages, tasks, name=name, runs=runs)
    of: dict[str, list[ShardResult]] = {measure: [] for measure in runs}
    for task, result in zip(tasks, results, strict=True):
        of[task.measure].append(result)
    return {measure: Found(runs[measure].number, tuple(files)) for measure, files in of.items()}


def _view_tasks(
    shards: Sequence[DocumentShard], runs: dict[str, Runs], places: dict[str, list[ShardResult]]
) -> list[ViewTask]:
    return [
        ViewTask(
            item.id,
            item.shard,
            {name: places[name][file] for name in runs},
            {name: each.by_file[file] for name, each in runs.items()},
        )
        for file, item in enumerate(shards)
    ]


def _told(
    measure: str,
    shards: Sequence[DocumentShard],
    noted: Sequence[ShardResult],
    written: Sequence[ShardResult],
) -> dict[str, Any]:
    """What the shards count together, and the most frequent passages of all."""
    measured = [result.value[measure] for result in written]
    told: dict[str, Any] = {
        name: sum(result.value[name] for result in noted) for name in ("documents", "characters")
    }
    told |= {name: sum(counts[name] for counts in measured) for name in counted(measure)}
    if measure == WINDOWS:
        told["passages"] = sum(result.value["windows"] for result in noted)
    files = {
        Stretch(**stretch): file
        for file, counts in enumerate(measured)
        for stretch in counts["frequent"]
    }
    most = [(stretch, shards[files[stretch]].shard) for stretch in most_frequent(list(files))]
    return {**told, "most_frequent": with_excerpts(most)}
