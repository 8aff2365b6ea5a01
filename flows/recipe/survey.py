"""What a source of data holds: formats, fields, conversations and sizes, by samples of its files.

Files of one folder below the root and of one ending are a group; a few of each group are read, a
few rows of each. A few files of rows that differ (texts beside conversations) are a group each. So
a bucket of terabytes, or one file of ten gigabytes, takes seconds. Sizes are estimates: what share
of a file is text is measured on the sample where rows have lengths, and a usual value elsewhere.
Tables of commas are no rows here, and of a data set of the Hub only what is for training is used.
"""

from __future__ import annotations

import glob
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from artifacts_schema.config import format_bytes
from artifacts_schema.errors import InputError
from flows.recipe.survey_source import MOST_READ, DataSource, SampledFile

Use = Literal["text", "code", "chat", "pairs", "unknown"]
"""text and code become documents, chat and pairs are examples; unknown is left out."""

SAMPLED_FILES = 4
"""Of a group."""
SPLIT_FILES = 16
"""Of a group of rows: more files are looked at together."""
SAMPLED_ROWS = 100
"""Of a file."""
_EVALUATION = re.compile(
    r"(?:^|[-._ /0-9])(?:test(?:ing)?|eval(?:uation)?|val(?:id(?:ation)?)?|dev)(?:$|[-._ /0-9])",
    re.IGNORECASE,
)
"""Of a file's name: a split by the keywords of the Hub
(https://huggingface.co/docs/datasets/repository_structure#keywords)."""
_TABLE = re.compile(r"\.[ct]sv(?:\.gz|\.zst|\.zstd)?$", re.IGNORECASE)
TEXT_SHARES = {"html": 0.15, "warc": 0.5, "text": 1.0, "code": 1.0}
"""Bytes of text for each byte of a file. Archives are compressed five times, a tenth is text."""
EXPANSION = 4.0
"""Bytes for each byte of a compressed file of rows or text; of Parquet half as much."""


@dataclass
class RowSample:
    """Rows of files of one group."""

    rows: int = 0
    conversations: int = 0
    spoken: int = 0
    """Characters of their messages."""
    pairs: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    characters: Counter[str] = field(default_factory=Counter)
    """Characters of text by field, of strings alone."""
    fields: Counter[str] = field(default_factory=Counter)
    measured: int = 0
    """Bytes of rows whose length is known."""
    texts: list[str] = field(default_factory=list)
    """A few texts, for their script."""


@dataclass(frozen=True)
class FileGroup:
    """Files of one ending in one folder below the root, and what they are for."""

    pattern: str
    form: str
    use: Use
    files: int
    bytes: int
    text_bytes: int
    """Estimated."""
    text_field: str | None = None
    others: tuple[str, ...] = ()
    """Fields that may be the text as well: at least half as long, and 100 characters."""
    script: str | None = None
    problem: str | None = None


def survey_source(source: DataSource) -> list[FileGroup]:
    """The groups of files of a source, largest first.

    InputError for one that cannot be listed or read, or holds no file.
    """
    grouped: dict[tuple[str, str, bool], list[SampledFile]] = defaultdict(list)
    for file in source.list_files():
        top, _, rest = file.name.partition("/")
        evaluates = "dataset" in source.entry and bool(_EVALUATION.search(file.name))
        grouped[top if rest else "", _ending(file.name), evaluates].append(file)
    groups = []
    for (top, ending, evaluates), files in sorted(grouped.items()):
        pattern = _pattern(top, ending, files, grouped.get((top, ending, not evaluates), ()))
        if evaluates:
            total = sum(file.bytes for file in files)
            problem = "a split to test with: left out; a recipe that wants it names it"
            groups.append(FileGroup(pattern, "", "unknown", len(files), total, 0, problem=problem))
        else:
            groups += _split(_describe(pattern, files), files)
    return sorted(groups, key=lambda group: -group.bytes)


def _split(group: FileGroup, files: Sequence[SampledFile]) -> list[FileGroup]:
    """A group of rows as one for each of its files, if those are few and hold different things."""
    if group.form != "rows" or not 1 < len(files) <= SPLIT_FILES:
        return [group]
    apart = [_describe(glob.escape(file.name), [file]) for file in files]
    same = len({(one.use, one.text_field, one.problem) for one in apart}) == 1
    return [group] if same else apart


def _pattern(
    top: str, ending: str, files: Sequence[SampledFile], others: Sequence[SampledFile] = ()
) -> str:
    """The pattern of files of a folder and an ending; by how their names begin, beside `others`."""
    name = f"*{ending}" if ending.startswith(".") else ending
    if others:
        names, far = ([Path(one.name).name for one in some] for some in (files, others))
        word = re.split(r"[\W\d_]", names[0])[0]
        if all(one.startswith(word) for one in names) and not any(
            one.startswith(word) for one in far
        ):
            name = f"{word}{name}"
    return f"{top}/**/{name}" if top else name


def _ending(name: str) -> str:
    """`.jsonl.gz` of a/b.x.jsonl.gz; the lower-case name of a file without an ending."""
    base = name.rsplit("/", 1)[-1]
    stem, dot, last = base.rpartition(".")
    if not stem:
        return base
    if last.lower() in ("gz", "zst", "zstd") and "." in stem:
        return f".{stem.rpartition('.')[2]}.{last}"
    return f"{dot}{last}"


def _describe(pattern: str, files: Sequence[SampledFile]) -> FileGroup:
    from stages.ingest.formats import describes_dataset, format_by_content, format_by_name

    total = sum(file.bytes for file in files)
    group = FileGroup(pattern, "", "unknown", len(files), total, 0)
    sample = files[:: max(1, len(files) // SAMPLED_FILES)][:SAMPLED_FILES]
    if _TABLE.search(pattern):
        problem = "a table of commas or tabs: write it as Parquet or JSONL, whose fields have names"
        return replace(group, form="unsupported", problem=problem)
    try:
        if all(describes_dataset(file) for file in sample):
            return replace(group, form="text", problem="describes a data set")
        form = format_by_name(sample[0].name) or format_by_content(sample[0])
        if form == "unsupported":
            return replace(group, form=form, problem="no format that is read")
        if form == "jsonl":
            return _describe_rows(replace(group, form="rows"), sample)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(error.filename)) from None
    share = TEXT_SHARES[form]
    if form in ("html", "text", "code") and _is_compressed(sample[0].name):
        share *= EXPANSION
    use: Use = "code" if form == "code" else "text"
    return replace(group, form=form, use=use, text_bytes=int(share * group.bytes))


def _describe_rows(group: FileGroup, sample: Sequence[SampledFile]) -> FileGroup:
    rows = _read_sample(sample)
    if not rows.rows:
        reasons = ", ".join(f"{reason} {n}" for reason, n in rows.faults.most_common(3))
        if max(file.bytes for file in sample) > MOST_READ:
            reasons += f" (no row ends within {format_bytes(MOST_READ)}; are they one JSON value?)"
        return replace(group, problem=f"no row can be read: {reasons or 'there is none'}")
    if rows.pairs >= 0.9 * rows.rows:  # First: an answer with a label reads as a conversation too.
        return replace(group, use="pairs")
    if rows.conversations >= 0.9 * rows.rows and "text" not in rows.fields:
        return replace(group, use="chat", text_bytes=_estimate(group, sample, rows, rows.spoken))
    likely = [name for name, size in rows.characters.most_common() if size >= 20 * rows.rows]
    if "text" in rows.characters:
        likely = ["text", *(name for name in likely if name != "text")]
    if not likely:
        named = ", ".join(sorted(rows.fields)[:8])
        return replace(group, problem=f"no field holds text (fields: {named})")
    from stages.text.characters import find_main_script

    first, *rest = likely
    least = max(100 * rows.rows, rows.characters[first] // 2)
    others = [one for one in rest if rows.characters[one] >= least]
    return replace(
        group, use="text", text_field=first, others=tuple(others),
        text_bytes=_estimate(group, sample, rows, rows.characters[first]),
        script=find_main_script("\n".join(rows.texts))[0],
    )  # fmt: skip


def _read_sample(files: Sequence[SampledFile]) -> RowSample:
    from stages.engine.reading.rows import read_rows
    from stages.examples import shapes

    sample = RowSample()
    for file in files:
        for row in islice(read_rows(file), SAMPLED_ROWS):
            if row.value is None:
                sample.faults[row.reason or "bad"] += 1
                continue
            sample.rows += 1
            sample.measured += row.length
            conversation = _convert(shapes.conversation_row, row.value)
            sample.conversations += bool(conversation)
            sample.spoken += sum(len(one["content"]) for one in conversation.get("messages", ()))
            sample.pairs += bool(_convert(shapes.preference_row, row.value))
            sample.fields.update(row.value.keys())
            texts = {name: one for name, one in row.value.items() if isinstance(one, str)}
            sample.characters.update({name: len(text) for name, text in texts.items()})
            if texts and len(sample.texts) < 50:
                sample.texts.append(max(texts.values(), key=len)[:500])
    return sample


def _convert(convert: Any, row: dict[str, Any]) -> dict[str, Any]:
    """The example that a row makes; nothing if it has another shape."""
    from stages.examples.conversion import BadExample, Origin

    try:
        example: dict[str, Any] = convert(dict(row), Origin("0" * 32, "", ""))
    except BadExample:
        return {}
    return example


def _estimate(
    group: FileGroup, sample: Sequence[SampledFile], rows: RowSample, characters: int
) -> int:
    """Bytes of text in all files of a group, by the characters of text in the sample's rows."""
    if rows.measured:
        size = group.bytes * (EXPANSION if _is_compressed(sample[0].name) else 1)
        return int(size * min(1.0, characters / rows.measured))
    share = characters / max(1, rows.characters.total(), characters)
    return int(group.bytes * EXPANSION / 2 * share)


def _is_compressed(name: str) -> bool:
    return name.lower().endswith((".gz", ".zst", ".zstd"))
