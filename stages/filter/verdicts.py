"""What a config decides about documents that are at hand, without a run: the stage's own decision.

`what-if` asks here, with one value changed; nothing is written, and text is read only where edits
cut so much that nothing might be left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stages.filter.assess import Assessed, assess, check_names
from stages.filter.chat import ChatAssessed, ChatBeside, line_up_chat, verdicts_of_chat
from stages.filter.checks import Findings
from stages.filter.config import FilterConfig
from stages.filter.coverage import line_up
from stages.filter.decide import decide_copies
from stages.filter.ids import ids_of
from stages.filter.ledger import first_failing, with_copies
from stages.filter.links import known_copies
from stages.filter.priority import decision_order

if TYPE_CHECKING:
    from stages.engine import Input


@dataclass(frozen=True)
class Given:
    """What `filter` is given, by role: the inputs of a stage run, or of a manifest."""

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


def verdicts_of(given: Given, config: FilterConfig) -> Verdicts:
    """Decide as the stage does, in this process.

    Errors are the stage's: UsageError for what was not measured or a threshold below dedup's floor,
    InputError for tables that describe other documents.
    """
    shards = line_up(given.documents, given.signals, given.views, given.contamination)
    doc_ids, policy, names = ids_of(shards), config.duplicates, check_names(config)
    known = known_copies(given.duplicates, given.ledger, given.documents, doc_ids, policy)
    found = [assess(shard, config, given.exclusions) for shard in shards]
    own = _joined([one.findings for one in found])
    order = decision_order([one.priority for one in found], len(policy.priority))
    copies = decide_copies(own.passes, known.links, policy, order)
    chat = [verdicts_of_chat(item, config, given.exclusions) for item in _chat(given, config)]
    final = with_copies(own, copies, names, policy.threshold)
    final = _joined([final, *(one.findings for one in chat)])
    partners = known.ids.take(pa.array(copies.partner, mask=copies.partner < 0))
    rows = sum(len(one.ids) for one in chat)
    ids = [pa.chunked_array([doc_ids]), *(one.ids for one in chat)]
    assessed: list[Assessed | ChatAssessed] = [*found, *chat]
    return Verdicts(
        doc_ids=_concatenated(ids, pa.string()),
        sources=_concatenated([one.sources for one in assessed], pa.string()),
        characters=_concatenated([one.characters for one in assessed], pa.int64()),
        names=names,
        findings=final,
        kept=final.passes,
        first=first_failing(final),
        partners=pa.concat_arrays([partners, pa.nulls(rows, pa.string())]),
    )


def _chat(given: Given, config: FilterConfig) -> list[ChatBeside]:
    chat = {"conversations": given.conversations, "preferences": given.preferences}
    return line_up_chat(chat, given.signals, given.views, given.contamination, config)


def _joined(parts: Sequence[Findings]) -> Findings:
    """The findings of batches, one after the other."""
    counts = np.concatenate([np.empty(0, np.int32), *(np.diff(part.offsets) for part in parts)])
    none = np.empty(0)
    return Findings(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        np.concatenate([np.empty(0, np.int32), *(part.codes for part in parts)]),
        np.concatenate([none, *(part.value for part in parts)]),
        np.concatenate([none, *(part.threshold for part in parts)]),
    )


def _concatenated(columns: Sequence[pa.ChunkedArray], kind: pa.DataType) -> pa.Array:
    chunks = [chunk for column in columns for chunk in column.chunks]
    return pa.concat_arrays([pa.array([], kind), *chunks])
