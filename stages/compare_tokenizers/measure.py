"""The tokenizers of a comparison, what they measure on each shard, and the tables of all shards.

Each shard is cut by every tokenizer: sums by language and source, and uses of each token. Of the
vocabularies: what each token stands for, and which tokens no text can ever become. A token is
unreachable if no text is encoded to it: its merges lead elsewhere, the pre-tokenizer always cuts
it, or the normalizer changes it (Land & Bartolo 2024, "Fishing for Magikarp", arXiv 2405.05417,
section 3.1). As there, tokens that are no whole characters are not judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from artifacts_schema.identity import short
from artifacts_schema.kinds import KINDS
from stages.compare_tokenizers.config import check_names
from stages.engine.arrays import arrow_array, numpy_array
from stages.tokens.fertility import Fertility, batch_items, find_unicode_words
from stages.tokens.vocabulary import decode_vocabulary, format_token, is_text

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from stages.compare_tokenizers.parts import Part, Passages
    from stages.engine import Context, Input, ShardOutput, ShardResult
    from stages.tokens.fertility import FertilityCounter


_loaded_cutters: dict[str, FertilityCounter] = {}
"""By digest: a worker measures many shards with the same few tokenizers."""


@dataclass(frozen=True)
class ComparedTokenizer:
    """A tokenizer of the comparison."""

    place: int
    """Its number among the inputs."""
    name: str
    input: Input

    @property
    def id(self) -> str:
        """Its place, for the shard map."""
        return f"{self.place:03d}"

    def load(self) -> FertilityCounter:
        """The tokenizer, ready to measure with."""
        from stages.tokens.fertility import FertilityCounter

        if self.input.digest not in _loaded_cutters:
            description = self.input.read_bytes("tokenizer.json").decode()
            _loaded_cutters[self.input.digest] = FertilityCounter.from_json(description)
        return _loaded_cutters[self.input.digest]

    def described(self) -> dict[str, Any]:
        """What tokenizers.json says of it: digest, and some of its training.json."""
        training = self.input.read_json("training.json")
        facts = {name: training[name] for name in _DESCRIBED if name in training}
        return {"digest": self.input.digest, **facts}


_DESCRIBED = (
    *("algorithm", "pre_tokenizer", "vocabulary_size", "padded_vocabulary_size"),
    *("documents", "bytes", "origin"),
)


def name_tokenizers(tokenizers: Sequence[Input], names: Sequence[str]) -> list[ComparedTokenizer]:
    """The tokenizers under their names; UsageError unless there are as many names, or none."""
    check_names(names, len(tokenizers))
    names = names or unique_names(tokenizers)
    return [
        ComparedTokenizer(place, name, one)
        for place, (name, one) in enumerate(zip(names, tokenizers, strict=True))
    ]


def unique_names(tokenizers: Sequence[Input]) -> list[str]:
    """Where each came from, or its algorithm and size; equal ones with digits of their digest, then
    a number.

    Made of the tokenizers' contents alone, as all that decides the output's bytes must be.
    """
    names = [_default_name(one.read_json("training.json")) for one in tokenizers]
    for suffix in (lambda at: short(tokenizers[at].digest)[:6], lambda at: str(at + 1)):
        counts = Counter(names)
        names = [
            name if counts[name] == 1 else f"{name} ({suffix(at)})" for at, name in enumerate(names)
        ]
    return names


def _default_name(training: dict[str, Any]) -> str:
    snapshot = (training.get("origin") or {}).get("snapshot")
    if snapshot:
        return str(snapshot)
    return f"{training.get('algorithm') or 'tokenizer'} {training['vocabulary_size']:,}"


Group = tuple[int, str | None, str]
"""Place of the tokenizer, language, source."""


def measure_part(
    part: Part, out: ShardOutput, *, tokenizers: Sequence[ComparedTokenizer]
) -> dict[str, Any]:
    """Cut the part's documents with each tokenizer, a batch at a time.

    Returns {"text", "read": rows, "measured": rows, "groups": [{tokenizer, language, source,
    sums}]}; uses of each token go to scratch.
    """
    loaded = [tokenizer.load() for tokenizer in tokenizers]
    sizes = (
        1 + max(one.tokenizer.get_vocab(True).values()) for one in loaded
    )  # Ids may have gaps.
    uses = [np.zeros(size, dtype=np.int64) for size in sizes]
    groups: dict[Group, Fertility] = {}
    measured = 0
    for rows in batch_items(part.documents(), text=lambda row: row["text"]):
        texts = [row["text"] for row in rows]
        words = find_unicode_words(texts)
        measured += len(rows)
        for place, cutter in enumerate(loaded):
            cuts = cutter.cut(texts, words)
            uses[place] += np.bincount(cuts.ids, minlength=len(uses[place]))
            for row, sums in zip(rows, cuts.sums, strict=True):
                group = (place, row["language"], row["source"])
                groups.setdefault(group, Fertility()).add(sums)
    out.write_scratch("uses", _uses_table(uses))
    return {
        "text": part.text,
        "read": part.shard.rows,
        "measured": measured,
        "groups": [
            {"tokenizer": place, "language": language, "source": source, "sums": vars(sums)}
            for (place, language, source), sums in groups.items()
        ],
    }


def _uses_table(uses: Sequence[NDArray[np.int64]]) -> pa.Table:
    """One row for each token that was used."""
    used = [np.flatnonzero(counts) for counts in uses]
    places = np.repeat(np.arange(len(uses)), [len(ids) for ids in used])
    counts = [counts[ids] for counts, ids in zip(uses, used, strict=True)]
    return pa.table(
        {
            "tokenizer": arrow_array(places),
            "token_id": arrow_array(np.concatenate(used)),
            "uses": arrow_array(np.concatenate(counts)),
        }
    )


CONTEXTS = ("", " ", "a", "1", ".", "\n")
"""Text put before a token's own when it is searched: at first nothing."""

MORE_CONTEXTS = 200
"""Characters of the vocabulary that are tried besides, for what these did not find."""


def read_vocabulary(compared: ComparedTokenizer, out: ShardOutput) -> dict[str, Any]:
    """Ids of unreachable tokens as {"unreachable": […]}; id, text and bytes of all to scratch."""
    tokenizer = compared.load().tokenizer
    spellings = decode_vocabulary(tokenizer)
    columns = {
        "token_id": pa.array(list(spellings), pa.int64()),
        "token": pa.array(
            [
                format_token(spelling) if spelling else str(tokenizer.id_to_token(index))
                for index, spelling in spellings.items()
            ],
            pa.string(),
        ),
        "bytes": pa.array([len(spelling) for spelling in spellings.values()], pa.int32()),
    }
    out.write_scratch("vocabulary", pa.table(columns))
    return {"unreachable": unreachable_tokens(tokenizer, spellings)}


def unreachable_tokens(tokenizer: Tokenizer, spellings: Mapping[int, bytes]) -> list[int]:
    """Ids of tokens that do not come out when their own text is encoded, whatever precedes it.

    A token that does not come out alone is searched after a few characters, since a tokenizer may
    only use it to continue a word. Special tokens are skipped.
    """
    sought = {index: format_token(raw) for index, raw in spellings.items() if raw and is_text(raw)}
    for context in _contexts(sought.values()):
        if not sought:
            break
        texts = [context + text for text in sought.values()]
        encodings = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        sought = {
            index: text
            for (index, text), encoding in zip(sought.items(), encodings, strict=True)
            if index not in encoding.ids
        }
    return sorted(sought)


def _contexts(texts: Iterable[str]) -> Iterator[str]:
    single = sorted({text for text in texts if len(text) == 1 and text.isprintable()})
    yield from CONTEXTS
    yield from islice((one for one in single if one not in CONTEXTS), MORE_CONTEXTS)


_TABLES = KINDS["tokenizer_comparison"].tables


def write_comparison(
    context: Context,
    tokenizers: Sequence[ComparedTokenizer],
    measured: Sequence[ShardResult],
    vocabularies: Sequence[ShardResult],
) -> None:
    """Write measures, tokens and what describes each tokenizer."""
    context.write_table("comparison", "measures.parquet", _measures(tokenizers, measured))
    described = {}
    schema = _TABLES["tokens.parquet"].arrow()
    with context.table_writer("comparison", "tokens.parquet", schema) as writer:
        for one, vocabulary in zip(tokenizers, vocabularies, strict=True):
            table = vocabulary.read_scratch("vocabulary")
            uses = _token_uses(one.place, numpy_array(table["token_id"].combine_chunks()), measured)
            names = pa.array([one.name] * table.num_rows, pa.string())
            columns = [names, *table.columns, arrow_array(uses)]
            writer.write(pa.table(columns, schema=schema))
            described[one.name] = {
                **one.described(),
                "unreachable": vocabulary.value["unreachable"],
                "unused": int((uses == 0).sum()),
            }
            context.count(tokenizers=1, unreachable=len(vocabulary.value["unreachable"]))
    context.write_json("comparison", "tokenizers.json", described)


def _measures(tokenizers: Sequence[ComparedTokenizer], measured: Sequence[ShardResult]) -> pa.Table:
    """Fertility of all shards; rows in the order of the tokenizers, text, source, then language."""
    sums: dict[tuple[int, str, str, str | None], Fertility] = {}
    for result in measured:
        for group in result.value["groups"]:
            key = (group["tokenizer"], result.value["text"], group["source"], group["language"])
            sums.setdefault(key, Fertility()).add(Fertility(**group["sums"]))
    rows = [
        {
            "tokenizer": tokenizers[place].name,
            "text": text,
            "language": language,
            "source": source,
            **vars(sums[place, text, source, language]),
        }
        for place, text, source, language in sorted(sums, key=lambda k: (*k[:3], k[3] or ""))
    ]
    return pa.Table.from_pylist(rows, schema=_TABLES["measures.parquet"].arrow())


def _token_uses(
    place: int, ids: NDArray[np.int64], measured: Sequence[ShardResult]
) -> NDArray[np.int64]:
    """[tokens] uses of each token of a vocabulary in all shards; `ids` rise."""
    uses = np.zeros(len(ids), dtype=np.int64)
    for result in measured:
        table = result.read_scratch("uses")
        tokenizer, used, counts = (numpy_array(column.combine_chunks()) for column in table.columns)
        here = tokenizer == place
        uses[np.searchsorted(ids, used[here])] += counts[here]
    return uses


def count_documents(context: Context, measured: Sequence[ShardResult], passages: Passages) -> None:
    """Counters and conservation."""
    values: list[dict[str, Any]] = [result.value for result in measured]
    out = sum(value["measured"] for value in values)
    dropped = Counter(passages.excluded)
    for value in values:
        if value["text"] == "documents":
            dropped["not_drawn"] += value["read"] - value["measured"]
    context.count(documents_measured=out, passages=passages.passages)
    context.conserve(
        records_in=sum(value["read"] for value in values), out=out, dropped=dict(dropped)
    )
