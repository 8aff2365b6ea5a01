"""The filter stage: rules, contamination, exclusions and copies decide which documents stay.

A config that needs an input that is not connected is refused when a plan is made and again at run
time: without this a config that says `redact` would silently keep what it promises to remove.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from artifacts_schema.config import did_you_mean, parse_size
from artifacts_schema.errors import UsageError
from stages.engine import Context, Inputs, Many, Maybe, Stage, Upstream, source_names
from stages.filter.config import (
    PASSAGES,
    ContaminationPolicy,
    DuplicatesPolicy,
    FilterConfig,
    FilterExecution,
    other_views,
    passage_views,
)

if TYPE_CHECKING:
    from stages.filter.exclusions import Exclusions
    from stages.filter.sidecars import AlignedShard


_WITHOUT_PERSONAL_DATA = ("ingest", "dedup")
"""Stages whose views mark no personal data: boilerplate and repeated passages."""


def check_inputs(
    config: FilterConfig, made_by: Mapping[str, Sequence[str]], *, where: str | None = None
) -> None:
    """UsageError that names everything in `config` that lacks its input.

    `made_by` maps each role to the names of the stages that made its inputs.
    """
    if problems := list(_problems(config, made_by)):
        raise UsageError("; ".join(problems), where=where)


def check_upstreams(config: FilterConfig, inputs: Mapping[str, Sequence[Upstream]]) -> None:
    """The same when a plan is made; and every name in `views` is one that the inputs can mark."""
    made_by = {
        role: [one.stage.name if one.stage else one.name for one in upstreams]
        for role, upstreams in inputs.items()
    }
    check_inputs(config, made_by)
    _check_signals(config, inputs.get("signals", ()), len(inputs.get("documents", ())))
    marked: set[str] = set()
    for one in inputs.get("views", ()):
        views = _marked(one)
        if views is None:
            return
        marked |= views
    for view in config.views_applied():
        if view not in marked:
            raise UsageError(
                f"no views that are given mark '{view}'{did_you_mean(view, marked)}",
                where="views",
                hint="let the stage that makes the views mark it, or leave it out",
            )


def _check_signals(config: FilterConfig, signals: Sequence[Upstream], documents: int) -> None:
    """UsageError for a rule of the recipe on a signal that no input can have, or of another type.

    The signals of presets are checked at run time: an older table may lack a column, and one of
    conversations is not judged by rules of prose.
    """
    for rule in config.recipe_rules():
        if not signals:
            raise UsageError(
                f"rule '{rule.name}' needs signal '{rule.signal}', but no signals are given",
                where="rules",
                hint="connect the signals of the documents, or leave the rule out",
            )
        for one in _without(rule.signal, signals, documents):
            raise UsageError(
                f"rule '{rule.name}': {one.name} has no signal "
                f"'{rule.signal}'{did_you_mean(rule.signal, one.columns or ())}",
                where="rules",
                hint="docs/stages/signals.md lists the signals, and what some of them need",
            )
        types = {(one.columns or {}).get(rule.signal) for one in signals} - {None}
        if any(str(type_).startswith("string") != bool(rule.allowed) for type_ in types):
            holds, use = ("numbers", "`minimum` or `maximum`")
            if not rule.allowed:
                holds, use = "labels", "`allowed`"
            raise UsageError(
                f"rule '{rule.name}': signal '{rule.signal}' holds {holds}: use {use}",
                where="rules",
            )


def _without(signal: str, inputs: Sequence[Upstream], documents: int) -> list[Upstream]:
    """The inputs that should have a signal and do not.

    Those of `signals` have `characters`; scores of models do not, and come beside those. A signal
    of theirs is there if each documents input has it.
    """
    known = [one for one in inputs if one.columns is not None]
    holders = [one for one in known if signal in (one.columns or ())]
    lacking = [one for one in known if one not in holders]
    if any("characters" not in (one.columns or ()) for one in holders):
        return lacking if len(holders) < documents else []
    if any(one.columns is None and one.stage and one.stage.name != "signals" for one in inputs):
        return []
    full = [one for one in lacking if "characters" in (one.columns or ())]
    return full or ([] if holders else lacking)


def no_passages(passages: Sequence[str]) -> str:
    """The message for passages that are to be cut and that no views mark."""
    return (
        f"`views` names {', '.join(passages)}, but no views of `dedup` are given, so no passages "
        "would be cut: add them to the `views` input, or leave it out"
    )


def _problems(config: FilterConfig, made_by: Mapping[str, Sequence[str]]) -> Iterator[str]:
    documents = len(made_by.get("documents", ()))
    chat = any(made_by.get(role) for role in ("conversations", "preferences"))
    if not documents and not chat:
        yield "nothing to decide on: give documents, conversations or preferences"
        return
    described = documents + chat
    views = made_by.get("views", ())
    redacted = config.personal_data.redacted()
    labels = [label for sorts in redacted.values() for label in sorts]
    searched = [stage for stage in views if stage not in _WITHOUT_PERSONAL_DATA]
    if labels and len(searched) < described:
        have = f"only {len(searched)} of {described} inputs have" if searched else "no"
        yield (
            f"personal_data: {', '.join(labels)} would be redacted, but {have} views that mark "
            "personal data: give the `views` that `signals` made of each documents input, and of "
            "conversations and preferences, or set these to keep (`personal_data: keep` for all)"
        )
    others = [view for view in other_views(config.views_applied()) if view not in redacted]
    if others and set(views) <= {"dedup"}:
        yield (
            f"`views` names {', '.join(others)}, but no views that mark it are given: give the "
            "`views` of the documents, or leave it out"
        )
    passages = passage_views(config.views)
    if passages and set(views) <= {"signals", "ingest"}:
        yield no_passages(passages)
    if config.contamination != ContaminationPolicy() and not made_by.get("contamination"):
        yield "`contamination` is set, but no contamination is given: connect `decontaminate`"
    copies = config.duplicates
    drops = copies.exact is not None or copies.threshold is not None
    if copies != DuplicatesPolicy() and drops and not made_by.get("duplicates"):
        yield "`duplicates` is set, but no duplicates are given: connect `dedup`"


def _marked(upstream: Upstream) -> set[str] | None:
    """The views that an input can mark, by the config of its stage; None for a stage of one's own.

    Whole names of other stages' fields: rooms do not import each other.
    """
    stage, config = upstream.stage.name if upstream.stage else "", upstream.config
    if config is None:  # An artifact of an older version: its config cannot be read any more.
        return None
    if stage == "signals":
        views = {"personal_data", "secrets", "mojibake", *config.line_rules}
        return views | ({"boilerplate"} if upstream.inputs.get("page_views") else set())
    if stage == "ingest":
        return {"boilerplate"}
    if stage == "dedup":
        passages = config.passages
        switches = (passages.lines, passages.sentences, passages.substrings)
        return {view for view, on in zip(PASSAGES, switches, strict=True) if on}
    return None


CHAT = ("conversations", "preferences")
_COUNTED = ("documents", "kept", "edited", "edits", "characters", "characters_kept")
"""Counters that every manifest has; those of conversations and preferences come with them."""


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
    libraries = ("numba", "numpy", "pyarrow", "scipy")
    handles_documents = True
    Config, Execution = FilterConfig, FilterExecution

    @classmethod
    def check_plan(cls, config: FilterConfig, inputs: Inputs) -> None:
        """A policy that promises an edit, or a drop, without the input that marks it."""
        check_upstreams(config, inputs)

    @classmethod
    def sources(cls, config: Any, inputs: Inputs) -> frozenset[str] | None:
        """Those of its documents."""
        return source_names(inputs.get("documents", ()))

    def run(self, context: Context) -> None:
        from stages.filter.exclusions import Exclusions

        config: FilterConfig = context.config
        made_by = {role: [one.stage for one in context.many(role)] for role in self.inputs}
        check_inputs(config, made_by, where="filter")
        for view in config.views_presumed():
            context.log.warning("rules judge the text after view '%s', which is not cut", view)
        exclusions = Exclusions.sort(context)
        written = _decide_documents(context, config, exclusions) if made_by["documents"] else []
        _account(context, written + _decide_chat(context, config, exclusions))


def _decide_documents(
    context: Context, config: FilterConfig, exclusions: Exclusions
) -> list[dict[str, Any]]:
    """Decide about the documents and write them; what was counted, by shard."""
    from stages.filter.assess import assess_shard
    from stages.filter.copies import DecidedCopies, shard_starts
    from stages.filter.holders import staying_holders
    from stages.filter.ledger import DecidedShard, write_shard
    from stages.filter.links import add_duplicates
    from stages.filter.sidecars import align_tables

    documents, views = context.many("documents"), context.many("views")
    duplicates, ledgers = context.many("duplicates"), context.many("ledger")
    shards = align_tables(documents, context.many("signals"), views, context.maybe("contamination"))
    _check_passages(config, shards)
    policy = config.duplicates
    shards, earlier = add_duplicates(shards, duplicates, ledgers, documents, policy)
    results = context.map(assess_shard, shards, config=config, exclusions=exclusions)
    memory = parse_size(context.execution.memory)
    decided = DecidedCopies.decide(
        context.map, shards, results, earlier, policy, ledgers=len(ledgers), memory=memory
    )
    starts = shard_starts(shards)
    items = [
        DecidedShard(shard.id, shard, result, start)
        for shard, result, start in zip(shards, results, starts, strict=False)
    ]
    if passage_views(config.views):
        staying = staying_holders(context.map, starts, results, decided, earlier, memory)
        items = [replace(item, staying=stay) for item, stay in zip(items, staying, strict=True)]
    written = context.map(write_shard, items, config=config, decided=decided)
    return [result.value for result in written]


def _decide_chat(
    context: Context, config: FilterConfig, exclusions: Exclusions
) -> list[dict[str, Any]]:
    """The same of conversations and preferences."""
    from stages.filter.chat import align_chat_tables, check_ids, write_chat

    chat = {role: context.many(role) for role in CHAT}
    signals, views = context.many("signals"), context.many("views")
    items = align_chat_tables(chat, signals, views, context.maybe("contamination"), config)
    check_ids([item.chat for item in items])
    written = context.map(write_chat, items, config=config, exclusions=exclusions)
    return [result.value for result in written]


def _check_passages(config: FilterConfig, shards: Sequence[AlignedShard]) -> None:
    """UsageError if passages are to be cut and none of the views marks any."""
    passages = passage_views(config.views)
    marked = any("/" in views.path for shard in shards for views in shard.views)
    if passages and shards and not marked:
        raise UsageError(no_passages(passages), where="filter")


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
