"""What a config decides about existing inputs without a run, and how presets disagree on them.

`what-if` calls this with one value changed. The decision is the stage's own; nothing is written,
and text is read only where edits cut so much that nothing might be left.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from artifacts_schema.config import parse_size
from stages.filter.assess import Assessment, assess, leave_assessment, reason_names
from stages.filter.chat import AlignedChatShard, ChatAssessment, align_chat_tables, decide_chat
from stages.filter.checks import LANGUAGE, Findings, rule_checks
from stages.filter.config import FilterConfig, FilterExecution
from stages.filter.copies import DecidedCopies, LocalMaps
from stages.filter.document_ids import DocumentIds
from stages.filter.exclusions import Exclusions
from stages.filter.ledger import add_copies, first_failures
from stages.filter.links import add_duplicates, leave_links
from stages.filter.presets import PRESETS
from stages.filter.sidecars import AlignedShard, align_tables

if TYPE_CHECKING:
    from stages.engine import Input, Shard, ShardOutput


@dataclass(frozen=True)
class FilterInputs:
    """The inputs of `filter` by role: those of a stage run, or of a manifest."""

    documents: list[Input]
    signals: list[Input]
    views: list[Input]
    duplicates: list[Input]
    ledger: list[Input]
    contamination: Input | None
    exclusions: list[Input]
    conversations: Sequence[Input] = ()
    preferences: Sequence[Input] = ()


@dataclass(frozen=True, eq=False)
class Verdicts:
    """The decision about every document, in the order of the inputs and their rows.

    Conversations and preference pairs follow the documents.
    """

    doc_ids: pa.StringArray
    sources: pa.StringArray
    characters: pa.Int64Array
    """Of the text before any edit, as `signals` counted them; null where it did not."""
    names: list[str]
    """Every reason that there may be, in the order of decision."""
    findings: Findings
    """What each document fails, being a copy included, as places in `names`."""
    kept: NDArray[np.bool_]
    first: NDArray[np.int32]
    """The place of the reason in `names`; -1 for a document that stays."""
    partners: pa.StringArray
    """doc_id of the kept document that this one copies; null for one that is no copy."""

    @property
    def reasons(self) -> pa.StringArray:
        """The first failing rule of each document; null for one that stays."""
        return pa.array(self.names, pa.string()).take(pa.array(self.first, mask=self.kept))

    def failing(self, row: int) -> list[str]:
        """All that one document fails, in the order of decision."""
        offsets = self.findings.offsets
        return [self.names[code] for code in self.findings.codes[offsets[row] : offsets[row + 1]]]


def compute_verdicts(inputs: FilterInputs, config: FilterConfig) -> Verdicts:
    """Decide as the stage does, in this process.

    Errors are the stage's: UsageError for what was not measured or a threshold below dedup's floor,
    InputError for tables that describe other documents.
    """
    policy, names = config.duplicates, reason_names(config)
    shards = align_tables(inputs.documents, inputs.signals, inputs.views, inputs.contamination)
    shards, earlier = add_duplicates(
        shards, inputs.duplicates, inputs.ledger, inputs.documents, policy
    )
    exclusions = Exclusions.read(inputs.exclusions)
    assessments: list[Assessment] = []

    def assess_here(item: AlignedShard, out: ShardOutput) -> dict[str, int]:
        assessments.append(assess(item, config, exclusions))
        leave_assessment(assessments[-1], out, config)
        return {"names": leave_links(item, out, policy.measure)}

    with TemporaryDirectory(prefix="ingot-verdicts-") as folder:
        maps = LocalMaps(Path(folder))
        results = maps(assess_here, shards)
        memory = parse_size(FilterExecution().memory)
        decided = DecidedCopies.decide(
            maps, shards, results, earlier, policy, ledgers=len(inputs.ledger), memory=memory
        )
        ids = DocumentIds(tuple(shard.documents for shard in shards))
        known = decided.among(0, len(ids))
    own = _join_findings([one.findings for one in assessments])
    chat = [decide_chat(item, config, exclusions) for item in _aligned_chat(inputs, config)]
    final = add_copies(own, known.copies(), names, policy.threshold)
    final = _join_findings([final, *(one.findings for one in chat)])
    undecided = sum(len(one.ids) for one in chat)
    chunks = [chunk for _, chunk in ids.batches()]
    all_ids = [pa.chunked_array(chunks, pa.string()), *(one.ids for one in chat)]
    assessed: list[Assessment | ChatAssessment] = [*assessments, *chat]
    return Verdicts(
        doc_ids=_concatenate(all_ids, pa.string()),
        sources=_concatenate([one.sources for one in assessed], pa.string()),
        characters=_concatenate([one.characters for one in assessed], pa.int64()),
        names=names,
        findings=final,
        kept=final.passes,
        first=first_failures(final),
        partners=pa.concat_arrays([known.partners(), pa.nulls(undecided, pa.string())]),
    )


def _aligned_chat(inputs: FilterInputs, config: FilterConfig) -> list[AlignedChatShard]:
    chat = {"conversations": inputs.conversations, "preferences": inputs.preferences}
    return align_chat_tables(chat, inputs.signals, inputs.views, inputs.contamination, config)


def _join_findings(parts: Sequence[Findings]) -> Findings:
    """The findings of batches, one after the other."""
    counts = np.concatenate([np.empty(0, np.int32), *(np.diff(part.offsets) for part in parts)])
    none = np.empty(0)
    return Findings(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        np.concatenate([np.empty(0, np.int32), *(part.codes for part in parts)]),
        np.concatenate([none, *(part.value for part in parts)]),
        np.concatenate([none, *(part.threshold for part in parts)]),
    )


def _concatenate(columns: Sequence[pa.ChunkedArray], kind: pa.DataType) -> pa.Array:
    chunks = [chunk for column in columns for chunk in column.chunks]
    return pa.concat_arrays([pa.array([], kind), *chunks])


@dataclass(frozen=True, eq=False)
class Comparison:
    """What each preset alone would drop of the same documents."""

    presets: tuple[str, ...]
    """Those that could be evaluated: all their signals were measured."""
    missing: dict[str, tuple[str, ...]]
    """The others, each with the signals that were not measured for all documents."""
    documents: int
    dropped: NDArray[np.int64]
    """[preset]: documents that it drops."""
    both: NDArray[np.int64]
    """[preset, preset]: documents that both drop."""

    @property
    def kept(self) -> NDArray[np.int64]:
        """[preset]: documents that it keeps."""
        return self.documents - self.dropped

    @property
    def only(self) -> NDArray[np.int64]:
        """[preset, preset]: documents that the first drops and the second keeps."""
        return self.dropped[:, None] - self.both

    def table(self) -> pa.Table:
        """`preset`, `kept`, `dropped`, and for each other preset what only this one drops."""
        columns = {"preset": list(self.presets), "kept": self.kept, "dropped": self.dropped}
        against = {f"only, not {name}": self.only[:, k] for k, name in enumerate(self.presets)}
        return pa.table({**columns, **against})


def compare_presets(inputs: FilterInputs, presets: Sequence[str]) -> Comparison:
    """Evaluate each of `presets` alone: rules on signals only, for documents of all sources.

    UsageError for an unknown preset.
    """
    configs = {name: FilterConfig(rules=(name,)) for name in presets}
    every = [shard for signals in inputs.signals for shard in signals.shards()]
    described = [(shard, _columns(shard)) for shard in every]
    described = [(shard, names) for shard, names in described if not _are_of_a_model(names)]
    missing = _missing(configs, [names for _, names in described])
    compared = tuple(name for name in configs if name not in missing)
    dropped = np.zeros(len(compared), dtype=np.int64)
    both = np.zeros((len(compared), len(compared)), dtype=np.int64)
    for shard, names in described:
        drops = _drops(shard, names, compared)
        # Exact: counts of one shard lie far below 2^53.
        both += (drops @ drops.T).astype(np.int64)
        dropped += drops.sum(axis=1).astype(np.int64)
    documents = sum(shard.rows for shard, _ in described)
    return Comparison(compared, missing, documents, dropped, both)


def _columns(shard: Shard) -> frozenset[str]:
    """The names of a table's columns."""
    with shard.input.open(shard.path) as file:
        return frozenset(pq.read_schema(file).names)


def _are_of_a_model(columns: frozenset[str]) -> bool:
    """Whether a table holds scores alone, on which no preset has a rule."""
    known = {rule.signal for rules in PRESETS.values() for rule in rules}
    names = columns - {"doc_id"}
    return bool(names) and not names & known


def _drops(shard: Shard, columns: frozenset[str], presets: Sequence[str]) -> NDArray[np.float64]:
    """[preset, document]: 1 where the preset drops it. Each rule is evaluated once."""
    every = tuple({rule.name: rule for name in presets for rule in PRESETS[name]}.values())
    wanted = {LANGUAGE, *(rule.signal for rule in every)}
    signals = shard.read(["doc_id", *sorted(columns & wanted)])
    sources = pa.chunked_array([pa.repeat(pa.scalar(""), len(signals))])
    config = FilterConfig(rules=tuple(presets))
    failing = {check.name: check.rows for check in rule_checks(config, sources, signals)}
    drops = np.zeros((len(presets), len(signals)))
    for place, name in enumerate(presets):
        for rule in PRESETS[name]:
            if rule.name in failing:
                drops[place, failing[rule.name]] = 1
    return drops


def _missing(
    configs: dict[str, FilterConfig], columns: Collection[frozenset[str]]
) -> dict[str, tuple[str, ...]]:
    """The presets that cannot be evaluated, with the signals that some shard lacks."""
    measured = frozenset.intersection(*columns) if columns else frozenset()
    missing = {}
    for name, config in configs.items():
        needed = {rule.signal for rule in PRESETS[name]}
        if config.asks_language:
            needed.add(LANGUAGE)
        lacking = tuple(sorted(needed - measured))
        if lacking:
            missing[name] = lacking
    return missing
