"""The stage that decides: rules, contamination, exclusions, copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from artifacts_schema.config import MapExecution
from stages.engine import Context, Inputs, Many, Maybe, Stage, sources_of
from stages.filter.config import FilterConfig

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stages.engine import ShardResult
    from stages.filter.coverage import Beside
    from stages.filter.policies import DuplicatesPolicy


class Filter(Stage):
    """Decide about every document, write those that stay, and a ledger that says why.

    Earlier stages measured; every threshold is here, so a changed one reruns this stage alone. The
    order of decision is language, rules, contamination, exclusions, copies; all documents are
    checked for all of them. For copies, documents are taken in the order of their priority (that of
    the inputs and their rows, unless the config names criteria) and each stays unless it is a
    verified copy of one that stays, or that an earlier run kept. Passages that another document
    holds first are cut where that one stays.
    """

    name, version, reproducible = "filter", 4, "bytes"
    inputs = {
        "documents": Many("documents", at_least=1),
        "signals": Many("signals"),
        "views": Many("views"),
        "duplicates": Many("duplicates"),
        "ledger": Many("ledger"),
        "contamination": Maybe("contamination"),
        "exclusions": Many("exclusions"),
    }
    outputs = {"documents": "documents", "ledger": "ledger"}
    libraries = ("numba", "numpy", "pyarrow")
    handles_documents = True
    Config, Execution = FilterConfig, MapExecution

    @classmethod
    def sources(cls, config: Any, inputs: Inputs) -> frozenset[str] | None:
        """Those of its documents."""
        return sources_of(inputs.get("documents", ()))

    def run(self, context: Context) -> None:
        from stages.filter.assess import assess_shard
        from stages.filter.coverage import line_up
        from stages.filter.decide import decide_copies
        from stages.filter.ids import ids_of
        from stages.filter.links import known_copies
        from stages.filter.write import decided, write_shard

        config: FilterConfig = context.config
        documents, views = context.many("documents"), context.many("views")
        shards = line_up(documents, context.many("signals"), views, context.maybe("contamination"))
        _warn(context, config, shards)
        doc_ids, policy = ids_of(shards), config.duplicates
        duplicates, ledgers = context.many("duplicates"), context.many("ledger")
        known = known_copies(duplicates, ledgers, documents, doc_ids, policy)
        results = context.map(
            assess_shard, shards, config=config, exclusions=context.many("exclusions")
        )
        passes, order = _passes(results), _order(results, policy)
        copies = decide_copies(passes, known.links, policy, order)
        written = context.map(
            write_shard,
            decided(shards, results, known, passes, copies, config),
            config=config,
        )
        _account(context, [result.value for result in written])


def _warn(context: Context, config: FilterConfig, shards: Sequence[Beside]) -> None:
    """Say which edits will not be made."""
    from stages.filter.passages import passage_views

    given = [views for shard in shards for views in shard.views]
    if config.views and not given:
        context.log.warning("no views are given, so no text is edited")
    elif passage_views(config.views) and not any("/" in views.path for views in given):
        context.log.warning("no views of dedup are given, so no passages are cut")
    for view in config.views_presumed():
        context.log.warning("rules judge the text after view '%s', which is not cut", view)


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
    totals: Counter[str] = Counter()
    for shard in written:
        dropped.update(shard["dropped"])
        totals.update({name: n for name, n in shard.items() if isinstance(n, int)})
        for reason, samples in shard["samples"].items():
            for sample in samples:
                context.sample(reason, sample)
    context.count(**totals)
    context.conserve(records_in=totals["documents"], out=totals["kept"], dropped=dropped)
