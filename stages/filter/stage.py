"""The stage that decides: rules, contamination, exclusions, copies."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from artifacts_schema.config import Execution
from stages.engine import Context, Many, Maybe, Stage
from stages.filter.config import FilterConfig

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stages.engine import ShardResult


class Filter(Stage):
    """Decide about every document, write those that stay, and a ledger that says why.

    Earlier stages measured; every threshold is here, so a changed one reruns this stage alone. The
    order of decision is language, rules, contamination, exclusions, copies; all documents are
    checked for all of them. For copies, documents are taken in priority order (that of the inputs,
    then of their rows) and each stays unless it is a verified copy of one that stays.
    """

    name, version, reproducible = "filter", 2, "bytes"
    inputs = {
        "documents": Many("documents", at_least=1),
        "signals": Many("signals"),
        "views": Many("views"),
        "duplicates": Maybe("duplicates"),
        "contamination": Maybe("contamination"),
        "exclusions": Many("exclusions"),
    }
    outputs = {"documents": "documents", "ledger": "ledger"}
    libraries = ("numpy", "pyarrow", "scipy")
    handles_documents = True
    Config, Execution = FilterConfig, Execution

    def run(self, context: Context) -> None:
        from stages.filter.assess import assess_shard, line_up
        from stages.filter.decide import decide_copies
        from stages.filter.ids import ids_of
        from stages.filter.links import known_links
        from stages.filter.write import decided, write_shard

        config: FilterConfig = context.config
        documents, views = context.many("documents"), context.many("views")
        shards = line_up(documents, context.many("signals"), views, context.maybe("contamination"))
        if config.views and not views:
            context.log.warning("no views are given, so no text is edited")
        for view in config.views_presumed():
            context.log.warning("rules judge the text after view '%s', which is not cut", view)
        doc_ids, policy = ids_of(shards), config.duplicates
        known = known_links(context.maybe("duplicates"), documents, doc_ids, policy.threshold)
        results = context.map(
            assess_shard, shards, config=config, exclusions=context.many("exclusions")
        )
        copies = decide_copies(_passes(results), known.links, policy.threshold, policy.exact)
        written = context.map(
            write_shard,
            decided(shards, results, doc_ids, copies, known.classes()),
            config=config,
        )
        _account(context, [result.value for result in written])


def _passes(results: list[ShardResult]) -> NDArray[np.bool_]:
    """Which documents fail nothing by themselves, in priority order."""
    import numpy as np

    from stages.filter.assess import assessed

    return np.concatenate([np.empty(0, bool), *(assessed(result).passes for result in results)])


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
