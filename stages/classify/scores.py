"""Texts of a part of a shard in, scores out; scores of texts that were scored before are reused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from artifacts_schema.errors import InputError
from artifacts_schema.kinds import KINDS, Column
from stages.encoders.encoder import EncoderSpec, load_encoder
from stages.encoders.parts import Part, digest_text
from stages.engine import Input, ShardOutput

if TYPE_CHECKING:
    from stages.classify.config import ClassifyConfig

SCRATCH = "scores"


@dataclass(frozen=True)
class ScoreColumns:
    """The columns that are written, and which outputs of the model they hold."""

    name: str
    labels: tuple[str, ...]
    """All labels of the model, in its order."""
    chosen: tuple[int, ...]
    top_label: bool

    @classmethod
    def choose(cls, config: ClassifyConfig, labels: Sequence[str], where: str) -> ScoreColumns:
        """InputError for a label that the model lacks, and for two columns of one name."""
        unknown = [label for label in config.labels if label not in labels]
        if unknown:
            raise InputError(
                f"the model has no label '{unknown[0]}'",
                where=where,
                hint=f"labels: {', '.join(labels)}",
            )
        twice = [label for label in labels if labels.count(label) > 1]
        if twice:
            raise InputError(f"two of the model's labels are called '{twice[0]}'", where=where)
        wanted = config.labels or tuple(labels)
        places = tuple(labels.index(label) for label in wanted)
        made = cls(config.name, tuple(labels), places, config.top_label)
        names = [column.name for column in made.columns]
        if equal := sorted({name for name in names if names.count(name) > 1}):
            raise InputError(f"two of its labels give the column '{equal[0]}'", where=where)
        return made

    @property
    def columns(self) -> list[Column]:
        """Descriptions of the columns, the digest of the text last."""
        return list(
            describe_columns(self.name, [self.labels[n] for n in self.chosen], self.top_label)
        )

    def schema(self) -> pa.Schema:
        """The schema of the signals table."""
        return KINDS["signals"].tables["*.parquet"].arrow(self.columns)


def describe_columns(name: str, labels: Sequence[str], top_label: bool) -> Iterator[Column]:
    """The columns for these labels in order."""
    for label in labels:
        text = f"Score of '{label}'; null for a text without tokens."
        yield Column(f"{name}.{label.replace('/', '_')}", "float32?", text)
    if top_label:
        yield Column(name, "string?", "Label with the highest score; null for no tokens.")
    yield Column(f"{name}.{DIGEST}", "string", "BLAKE2b of the text, 32 digits: finds it again.")


DIGEST = "text_digest"


def score_part(
    part: Part,
    out: ShardOutput,
    *,
    spec: EncoderSpec,
    columns: ScoreColumns,
    activation: str,
    known: Sequence[Input],
) -> dict[str, int]:
    """Leave the table of a part as scratch; return its counts."""
    documents = part.read(["doc_id", "text"])
    texts = documents["text"].to_pylist()
    digests = [digest_text(text) for text in texts]
    schema = columns.schema()
    names = [name for name in schema.names if name not in ("doc_id", f"{columns.name}.{DIGEST}")]
    values: dict[str, list[Any]] = {name: [None] * len(texts) for name in names}
    reused = load_known(tuple(known), columns.name, tuple(names)).find(digests) if known else {}
    for row, scores in reused.items():
        for name, score in zip(names, scores, strict=True):
            values[name][row] = score

    # Equal texts are scored once: the first row of each digest that is not known.
    first = {digests[row]: row for row in reversed(range(len(texts))) if row not in reused}
    rows = sorted(first.values())
    scored = score_texts([texts[row] for row in rows], spec, activation, out.check_stop)
    for row, of_labels in zip(rows, scored.scores, strict=True):
        if of_labels is not None:
            chosen: list[Any] = [of_labels[place] for place in columns.chosen]
            chosen += [columns.labels[int(of_labels.argmax())]] if columns.top_label else []
            for name, score in zip(names, chosen, strict=True):
                values[name][row] = score
    for row, digest in enumerate(digests):
        if row not in reused and first[digest] != row:
            for name in names:
                values[name][row] = values[name][first[digest]]
    data = {"doc_id": documents["doc_id"], **values, f"{columns.name}.{DIGEST}": digests}
    out.write_scratch(SCRATCH, pa.table(data, schema=schema))
    empty = sum(value is None for value in values[names[0]])
    return {
        "documents": len(texts),
        "scored": len(rows),
        "reused": len(reused),
        "empty": empty,
        "cut": scored.cut,
        "tokens": scored.tokens,
    }


@dataclass(frozen=True)
class Scored:
    """Scores of texts: [label] of each, None without tokens; tokens read, texts that go on."""

    scores: list[NDArray[np.float32] | None]
    tokens: int
    cut: int


def score_texts(
    texts: Sequence[str], spec: EncoderSpec, activation: str, check_stop: Any = lambda: None
) -> Scored:
    """Score texts; of several windows the mean, weighted by their tokens."""
    encoder = load_encoder(spec)
    tokenized = encoder.tokenize(texts)
    sequences = [one for windows, _ in tokenized for one in windows]
    logits = encoder.run(sequences, check_stop)
    outputs = apply_activation(
        logits, choose_activation(activation, encoder.problem, encoder.labels)
    )
    scores: list[NDArray[np.float32] | None] = []
    end = 0
    for windows, _ in tokenized:
        begin, end = end, end + len(windows)
        if len(windows) > 1:
            weights = [len(one) for one in windows]
            mean = np.average(outputs[begin:end].astype(np.float64), axis=0, weights=weights)
            scores.append(mean.astype(np.float32))
        else:
            scores.append(outputs[begin] if windows else None)
    return Scored(scores, sum(map(len, sequences)), sum(goes_on for _, goes_on in tokenized))


def choose_activation(setting: str, problem: str, labels: Sequence[str]) -> str:
    """What `auto` stands for: the rule of transformers' TextClassificationPipeline."""
    if setting != "auto":
        return setting
    if problem == "regression":
        return "none"
    several = problem == "multi_label_classification" or len(labels) == 1
    return "sigmoid" if several else "softmax"


def apply_activation(logits: NDArray[np.float32], activation: str) -> NDArray[np.float32]:
    """[text, label] Scores of logits, computed in float64."""
    if activation == "none" or not logits.size:
        return logits
    wide = logits.astype(np.float64)
    if activation == "sigmoid":
        return (0.5 * (1 + np.tanh(wide / 2))).astype(np.float32)
    powers = np.exp(wide - wide.max(axis=1, keepdims=True))
    return (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)


# Earlier scores -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class KnownScores:
    """Scores of earlier runs, sorted by the digest of their text: about 30 bytes a text in memory,
    and what its scores take."""

    digests: NDArray[np.uint64]
    """[text, 2] Rising by the first column."""
    table: pa.Table
    """The columns to reuse, row for row."""

    def find(self, digests: Sequence[str]) -> dict[int, list[Any]]:
        """By place in `digests`, the values of those that are known."""
        wanted = _parse_digests(digests)
        places = np.searchsorted(self.digests[:, 0], wanted[:, 0])
        inside = places < len(self.digests)
        hits = np.flatnonzero(inside)
        hits = hits[(self.digests[places[hits]] == wanted[hits]).all(axis=1)]
        rows = self.table.take(pa.array(places[hits])).to_pylist()
        return {int(row): list(values.values()) for row, values in zip(hits, rows, strict=True)}


@lru_cache(maxsize=1)
def load_known(inputs: tuple[Input, ...], name: str, columns: tuple[str, ...]) -> KnownScores:
    """The scores in some artifacts; where two know a text, those of the first."""
    digest = f"{name}.{DIGEST}"
    tables = [
        shard.read([digest, *columns]) for one in inputs for shard in one.shards() if shard.rows
    ]
    schema = pa.schema([pa.field(digest, pa.string())])
    joined = pa.concat_tables(tables) if tables else schema.empty_table()
    joined = joined.filter(pa.compute.is_valid(joined[columns[0]])) if tables else joined
    parsed = _parse_digests(joined[digest].to_pylist())
    order = np.argsort(parsed[:, 0], kind="stable")
    return KnownScores(parsed[order], joined.drop_columns([digest]).take(pa.array(order)))


def _parse_digests(digests: Sequence[str]) -> NDArray[np.uint64]:
    raw = np.frombuffer(bytes.fromhex("".join(digests)), dtype=">u8")
    return raw.astype(np.uint64).reshape(-1, 2)


def explain_difference(earlier: Mapping[str, Any], own: Mapping[str, Any]) -> str | None:
    """The first thing that an earlier run did otherwise, on which scores depend; None if nothing.

    Both map a name to a plain value.
    """
    for name in sorted({*earlier, *own}):
        if earlier.get(name) != own.get(name):
            return f"{name} was {earlier.get(name)!r}, is {own.get(name)!r}"
    return None
