"""The files of a model: ARPA text for every tool, and flat tables to map into memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from artifacts_schema.errors import InputError, UsageError
from stages.language_model.config import NgramConfig, Summary
from stages.language_model.tables import Table, map_table
from stages.language_model.vocabulary import Vocabulary

ARPA, DESCRIPTION = "model.arpa", "model.json"

_WORDS, _ENDS, _SLOTS, _UNIGRAMS = "words.bin", "word_ends.bin", "word_slots.bin", "1-grams.bin"


class Description(BaseModel):
    """`model.json`: what the model is and how large its tables are."""

    model_config = ConfigDict(extra="forbid")

    config: dict[str, Any]
    lines: int
    tokens: int
    counts: list[int] = Field(min_length=2, max_length=6)
    counts_before_pruning: list[int]
    discounts: list[tuple[float, float, float]]
    fallback_orders: list[int]
    word_bytes: int = Field(ge=0)
    word_slots: int = Field(ge=1)
    table_slots: list[int] = Field(min_length=1, max_length=5)


def table_name(order: int) -> str:
    """The file of the table of an order from 2."""
    return f"{order}-grams.bin"


def write_vocabulary(folder: Path, words: Vocabulary, weights: NDArray[np.float32]) -> None:
    """The words, the table that finds them, and the unigrams' [words, 2] weights."""
    words.compact()
    for name, array in (
        (_WORDS, words.arena),
        (_ENDS, words.ends.astype("<i8")),
        (_SLOTS, words.slots.astype("<u8")),
        (_UNIGRAMS, weights.astype("<f4")),
    ):
        (folder / name).write_bytes(array.tobytes())


def write_description(
    folder: Path, config: NgramConfig, summary: Summary, words: Vocabulary, slots: Sequence[int]
) -> None:
    """`model.json`."""
    described = Description(
        config=config.plain(),
        **asdict(summary),
        word_bytes=len(words.arena),
        word_slots=len(words.slots),
        table_slots=list(slots),
    )
    text = json.dumps(described.model_dump(mode="json"), indent=1)
    (folder / DESCRIPTION).write_text(text + "\n")


def read_description(folder: Path) -> tuple[Description, NgramConfig]:
    """`model.json` of a folder. Raises InputError."""
    path = folder / DESCRIPTION
    try:
        described = Description.model_validate_json(path.read_bytes())
        config = NgramConfig.parse(described.config, where=str(path))
        if not config.order == len(described.counts) == len(described.table_slots) + 1:
            raise ValueError("the numbers of counts and tables are not the order")
    except OSError as error:
        raise InputError(f"not a language model: {error.strerror}", where=str(path)) from None
    except (ValidationError, ValueError, UsageError) as error:
        problem = error.what if isinstance(error, UsageError) else " ".join(str(error).split())
        raise InputError(f"not the description of a model: {problem}", where=str(path)) from None
    return described, config


def map_model(
    folder: Path, described: Description
) -> tuple[Vocabulary, NDArray[np.float32], list[Table]]:
    """The words, the unigrams' weights and the other tables, mapped. Raises InputError."""
    count = described.counts[0]
    arena = _map(folder / _WORDS, "u1", described.word_bytes)
    ends = _map(folder / _ENDS, "<i8", count + 1)
    slots = _map(folder / _SLOTS, "<u8", 2 * described.word_slots).reshape(-1, 2)
    weights = _map(folder / _UNIGRAMS, "<f4", 2 * count).reshape(-1, 2)
    whole = (
        described.word_slots & (described.word_slots - 1) == 0
        and ends[0] == 0
        and ends[-1] == described.word_bytes
        and (ends[1:] >= ends[:-1]).all()
        and slots[:, 1].max() <= count
        and slots[:, 1].min() == 0
    )
    if not whole:
        raise InputError("the table of words is not whole", where=str(folder / _SLOTS))
    tables = [
        map_table(folder / table_name(order), size, slots_of)
        for order, (size, slots_of) in enumerate(
            zip(described.counts[1:], described.table_slots, strict=True), 2
        )
    ]
    return Vocabulary(arena, ends, slots, count), weights, tables


def _map(path: Path, dtype: str, length: int) -> NDArray[Any]:
    expected = length * np.dtype(dtype).itemsize
    found = path.stat().st_size if path.is_file() else None
    if found != expected:
        raise InputError(
            f"{'no such file' if found is None else f'{found} bytes'}; {expected} bytes expected",
            where=str(path),
        )
    return np.asarray(np.memmap(path, dtype, "r")) if length else np.zeros(0, dtype)
