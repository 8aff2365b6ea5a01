"""The stage that decides: rules, contamination, exclusions, copies."""

from __future__ import annotations

from collections import Counter
from typing import Any

from artifacts_schema.config import Execution
from stages.engine import Context, Many, Maybe, Stage
from stages.filter.config import FilterConfig


class Filter(Stage):
    """Decide about every document, write those that stay, and a ledger that says why.

    Earlier stages measured; every threshold is here, so a changed one reruns this stage alone. The
    order of decision is rules, contamination, exclusions, copies; all documents are checked for all
    of them. For copies, documents are taken in priority order (that of the inputs, then of their
    rows) and each stays unless it is a verified copy of one that stays.
    """

    name, version, reproducible = "filter", 1, "bytes"
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
        from stages.filter.assess import assess_shard, check_names, gather, line_up
        from stages.filter.decide import decide_copies
        from stages.filter.links import check_floor, read_links, unlinked
        from stages.filter.write import decided, write_shard

        config: FilterConfig = context.config
        documents, duplicates = context.many("documents"), context.maybe("duplicates")
        if duplicates is not None:
            check_floor(duplicates, config.duplicates.threshold)
        shards = line_up(
            documents,
            context.many("signals"),
            context.many("views"),
            context.maybe("contamination"),
        )
        if config.redact and not context.many("views"):
            context.log.warning("no views are given, so nothing is redacted")
        results = context.map(
            assess_shard, shards, config=config, exclusions=context.many("exclusions")
        )
        doc_ids, passes = gather(results)

        known = unlinked(doc_ids)
        if duplicates is not None:
            known = read_links(duplicates, documents, doc_ids)
        policy = config.duplicates
        copies = decide_copies(passes, known.links, policy.threshold, policy.exact)

        written = context.map(
            write_shard,
            decided(shards, results, doc_ids, copies, known.classes()),
            names=check_names(config),
            views=config.redact,
            near_threshold=policy.threshold,
        )
        _account(context, [result.value for result in written])


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
