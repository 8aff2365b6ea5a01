"""The stage that decides: rules, contamination, exclusions, copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from artifacts_schema.config import MapExecution
from artifacts_schema.errors import UsageError
from stages.engine import Context, Inputs, Many, Maybe, Stage, sources_of
from stages.filter.config import FilterConfig

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stages.engine import ShardResult
    from stages.filter.coverage import Beside
    from stages.filter.policies import DuplicatesPolicy


CHAT = ("conversations", "preferences")
_COUNTED = ("documents", "kept", "edited", "edits", "characters", "characters_kept")
"""Counters that every manifest has; those of conversations and preferences as far as given."""


class Filter(Stage):
    """Decide about every document, write those that stay, and a ledger that says why.

    Earlier stages measured; every threshold is here, so a changed one reruns this stage alone. The
    order of decision is language, rules, contamination, exclusions, copies; all documents are
    checked for all of them. For copies, documents are taken in the order of their priority (that of
    the inputs and their rows, unless the config names criteria) and each stays unless it is a
    verified copy of one that stays, or that an earlier run kept. Passages that another document
    holds first are cut where that one stays. Conversations and preference pairs are decided on each
    as a whole, by the same policies and no rule of prose.
    """

    name, version, reproducible = "filter", 5, "bytes"
    inputs = {
        "documents": Many("documents"),
        "conversations": Many("conversations"),
        "preferences": Many("preferences"),
        "signals": Many("signals"),
        "views": Many("views"),
        "duplicates": Many("duplicates"),
        "ledger": Many("ledger"),
        "contamination": Maybe("contamination"),
        "exclusions": Many("exclusions"),
    }
    outputs = {
        "documents": "documents",
        "conversations": "conversations",
        "preferences": "preferences",
        "ledger": "ledger",
    }
    libraries = ("numba", "numpy", "pyarrow")
    handles_documents = True
    Config, Execution = FilterConfig, MapExecution

    @classmethod
    def check_plan(cls, config: FilterConfig, inputs: Inputs) -> None:
        """A policy that promises an edit, or a drop, without the input that marks it."""
        from stages.filter.requirements import check_upstreams

        check_upstreams(config, inputs)

    @classmethod
    def sources(cls, config: Any, inputs: Inputs) -> frozenset[str] | None:
        """Those of its documents."""
        return sources_of(inputs.get("documents", ()))

    def run(self, context: Context) -> None:
        from stages.filter.requirements import check_inputs

        config: FilterConfig = context.config
        given = {role: [one.stage for one in context.many(role)] for role in self.inputs}
        check_inputs(config, given, where="filter")
        for view in config.views_presumed():
            context.log.warning("rules judge the text after view '%s', which is not cut", view)
        written = _decide_documents(context, config) if given["documents"] else []
        _account(context, written + _decide_chat(context, config))


def _decide_documents(context: Context, config: FilterConfig) -> list[dict[str, Any]]:
    """Decide about the documents and write them; what was counted, by shard."""
    from stages.filter.assess import assess_shard
    from stages.filter.coverage import line_up
    from stages.filter.decide import decide_copies
    from stages.filter.ids import ids_of
    from stages.filter.links import known_copies
    from stages.filter.write import decided, write_shard

    documents, views = context.many("documents"), context.many("views")
    shards = line_up(documents, context.many("signals"), views, context.maybe("contamination"))
    _check_passages(config, shards)
    doc_ids, policy = ids_of(shards), config.duplicates
    duplicates, ledgers = context.many("duplicates"), context.many("ledger")
    known = known_copies(duplicates, ledgers, documents, doc_ids, policy)
    results = context.map(
        assess_shard, shards, config=config, exclusions=context.many("exclusions")
    )
    passes, order = _passes(results), _order(results, policy)
    copies = decide_copies(passes, known.links, policy, order)
    items = decided(shards, results, known, passes, copies, config)
    return [result.value for result in context.map(write_shard, items, config=config)]


def _decide_chat(context: Context, config: FilterConfig) -> list[dict[str, Any]]:
    """The same of conversations and preferences."""
    from stages.filter.chat import check_ids, line_up_chat, write_chat

    chat = {role: context.many(role) for role in CHAT}
    signals, views = context.many("signals"), context.many("views")
    items = line_up_chat(chat, signals, views, context.maybe("contamination"), config)
    check_ids([item.chat for item in items])
    exclusions = context.many("exclusions")
    written = context.map(write_chat, items, config=config, exclusions=exclusions)
    return [result.value for result in written]


def _check_passages(config: FilterConfig, shards: Sequence[Beside]) -> None:
    """UsageError if passages are to be cut and the views given mark none."""
    from stages.filter.passages import passage_views
    from stages.filter.requirements import no_passages

    passages = passage_views(config.views)
    if (
        passages
        and shards
        and not any("/" in views.path for shard in shards for views in shard.views)
    ):
        raise UsageError(no_passages(passages), where="filter")


def _passes(results: list[ShardResult]) -> NDArray[np.bool_]:
    """Which documents fail nothing by themselves, in the order of the inputs."""
    import numpy as np

    from stages.filter.assess import findings_of

    return np.concatenate([np.empty(0, bool), *(findings_of(result).passes for result in results)])


def _order(results: list[ShardResult], policy: DuplicatesPolicy) -> NDArray[np.int64] | None:
    """The order of decision, if it is not that of the inputs."""
    from stages.filter.assess import priority_of
    from stages.filter.priority import decision_order

    if not policy.priority:
        return None
    return decision_order([priority_of(result) for result in results], len(policy.priority))


def _account(context: Context, written: list[dict[str, Any]]) -> None:
    """Counters, samples and conservation, shard by shard in order."""
    dropped: Counter[str] = Counter()
    totals: Counter[str] = Counter(dict.fromkeys(_COUNTED, 0))
    for shard in written:
        dropped.update(shard["dropped"])
        totals.update({name: n for name, n in shard.items() if isinstance(n, int)})
        for reason, samples in shard["samples"].items():
            for sample in samples:
                context.sample(reason, sample)
    context.count(**totals)
    records = totals["documents"] + sum(totals[role] for role in CHAT)
    kept = totals["kept"] + sum(totals[f"{role}_kept"] for role in CHAT)
    context.conserve(records_in=records, out=kept, dropped=dropped)
