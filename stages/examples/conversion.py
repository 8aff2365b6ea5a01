"""Rows of data files into a table of examples: one map, one account of the bad rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

import pyarrow as pa

from artifacts_schema.errors import InputError
from artifacts_schema.identity import document_id
from artifacts_schema.kinds import kind_named
from stages.engine import Context, ShardOutput, ShardResult, check_bad_share
from stages.engine.inputs import REPAIR
from stages.engine.reading.row import Row, RowLimits, scrub
from stages.engine.reading.rows import read_rows, stem
from stages.engine.sources import SourceFile, snapshot_name, source_files
from stages.examples.config import ExamplesConfig

SAMPLES = 5
UNNAMED = ("unknown_shape", "missing_field")
"""Reasons of rows whose fields have names that the reader does not know."""
RENAME = "say what the fields mean with `rename` (field of the data: Ingot's name)"
_BATCH = 1_000
_NAMES = "names.parquet"


class BadExample(Exception):
    """A row that cannot become an example: a reason as one word, and the value that caused it."""

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason, self.detail = reason, detail
        super().__init__(reason, detail)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a row comes from: its id (hash of snapshot, file, row), file and data set."""

    id: str
    file: str
    source: str


Convert = Callable[[dict[str, Any], Origin], dict[str, Any]]
"""The fields of a row, which it may change, and its origin → a row of the table, or BadExample."""


@dataclass
class Examples:
    """What became of the rows of a file."""

    rows_in: int = 0
    rows_out: int = 0
    bad: Counter[str] = field(default_factory=Counter[str])
    samples: dict[str, list[str]] = field(default_factory=dict)

    def refuse(self, reason: str, sample: str) -> None:
        """Count a bad row."""
        self.bad[reason] += 1
        kept = self.samples.setdefault(reason, [])
        if len(kept) < SAMPLES:
            kept.append(scrub(sample)[0][:200])


def make_examples(
    context: Context,
    output: str,
    convert: Convert,
    unique: tuple[str, ...] = (),
    pattern: str | None = None,
) -> None:
    """Read every file of the `snapshot` role, write `output`, and account for every row.

    With a `pattern` only the files whose names match it. `convert` must be picklable (it runs in
    worker processes). The columns `unique` name an
    example: a second one of a name is bad (`duplicate_id`), in another file an InputError. Raises
    InputError as well above `max_bad_share`, and if no row became an example.
    """
    config: ExamplesConfig = context.config
    snapshot = context.one("snapshot")
    name = snapshot_name(snapshot)
    files = matching_files(source_files(snapshot), pattern, f"snapshot '{name}'")
    results = context.map(
        _convert_file,
        files,
        snapshot=name,
        config=config,
        output=output,
        convert=convert,
        unique=unique,
    )
    total = Examples()
    for result in results:
        total.rows_in += result.value["rows_in"]
        total.rows_out += result.value["rows_out"]
        total.bad.update(result.value["bad"])
        for reason, texts in result.value["samples"].items():
            total.samples.setdefault(reason, []).extend(texts)
            for text in texts:
                context.sample(reason, text)
    context.count(rows_in=total.rows_in, rows_out=total.rows_out, files=len(files))
    context.count(**{f"bad_{reason}": number for reason, number in sorted(total.bad.items())})
    samples = [f"{reason}: {texts[0]}" for reason, texts in sorted(total.samples.items())]
    where = f"snapshot '{name}'"
    bad = sum(total.bad.values())
    unnamed = sum(total.bad[reason] for reason in UNNAMED)
    hint = RENAME if 2 * unnamed > bad else REPAIR
    check_bad_share(bad, total.rows_in, config.max_bad_share, samples, where, hint)
    if not total.rows_out:
        reasons = "; ".join(samples[:3]) or "the files are empty"
        hint = RENAME if unnamed else "give a snapshot with rows"
        raise InputError(f"no row became one of {output}: {reasons}", where=where, hint=hint)
    if unique:
        _check_unique([(file.name, r) for file, r in zip(files, results, strict=True)], unique)
    context.conserve(records_in=total.rows_in, out=total.rows_out, dropped=total.bad)


def matching_files(files: list[SourceFile], pattern: str | None, where: str) -> list[SourceFile]:
    """The files whose names match a pattern (fnmatch), all without one. InputError if none does."""
    if pattern is None:
        return files
    chosen = [file for file in files if fnmatchcase(file.name, pattern)]
    if not chosen:
        names = ", ".join(file.name for file in files[:5])
        raise InputError(f"no file matches '{pattern}'; there are {names}", where=where)
    return chosen


def _convert_file(
    file: SourceFile,
    out: ShardOutput,
    *,
    snapshot: str,
    config: ExamplesConfig,
    output: str,
    convert: Convert,
    unique: tuple[str, ...],
) -> dict[str, Any]:
    """Write the examples of one file as one shard."""
    schema = kind_named(out.kind_of(output)).tables["*.parquet"].arrow()
    tally, batch, names = Examples(), [], dict[tuple[str, ...], None]()
    with out.table_writer(output, f"{file.id}.parquet", schema) as writer:
        for row in convert_rows(file, snapshot, config, convert, tally):
            example = tuple(row[column] for column in unique)
            if unique and example in names:
                tally.rows_out -= 1
                tally.refuse("duplicate_id", f"{file.name}: {' '.join(example)}")
                continue
            names[example] = None
            batch.append(row)
            if len(batch) >= _BATCH:
                writer.write(pa.Table.from_pylist(batch, schema=schema))
                batch = []
        if batch:
            writer.write(pa.Table.from_pylist(batch, schema=schema))
    if unique:
        out.write_scratch(
            _NAMES, pa.table({c: [n[i] for n in names] for i, c in enumerate(unique)})
        )
    return vars(tally)


def _check_unique(results: list[tuple[str, ShardResult]], unique: tuple[str, ...]) -> None:
    """Raise InputError if examples of two files bear one name."""
    first: dict[tuple[str, ...], str] = {}
    for file, result in results:
        table = result.read_scratch(_NAMES)
        for name in zip(*(table.column(column).to_pylist() for column in unique), strict=True):
            if name in first:
                raise InputError(
                    f"'{' '.join(name)}' is both in {first[name]} and in {file}",
                    hint="give each file its own `source`, or remove one of them",
                )
            first[name] = file


def convert_rows(
    file: SourceFile, snapshot: str, config: ExamplesConfig, convert: Convert, tally: Examples
) -> Iterator[dict[str, Any]]:
    """The examples of a file; `tally` counts its rows and what was bad about them."""
    limits = RowLimits(row=config.max_row_bytes, expansion=config.max_expansion)
    for row in islice(read_rows(file, limits), config.max_items):
        tally.rows_in += 1
        origin = Origin(
            document_id(snapshot, file.name, row.record),
            file.name,
            config.source or stem(file.name),
        )
        try:
            example = convert(row_fields(row, config.rename), origin)
        except BadExample as bad:
            tally.refuse(bad.reason, f"{file.name} at {row.record} {bad.detail}".rstrip())
            continue
        tally.rows_out += 1
        yield example


def row_fields(row: Row, rename: dict[str, str]) -> dict[str, Any]:
    """The row's fields under Ingot's names, without nulls. Raises BadExample for a faulty row."""
    if row.value is None:
        raise BadExample(row.reason or "malformed_record", row.detail or "")
    fields = {k: v for k, v in row.value.items() if k not in rename and v is not None}
    named = {ours: row.value[k] for k, ours in rename.items() if row.value.get(k) is not None}
    return fields | named
