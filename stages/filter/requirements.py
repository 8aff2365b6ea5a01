"""What a config needs of the inputs: an edit or a threshold that nothing could apply is refused.

Without this a config that says `redact` would keep what it promises to remove, without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from stages.engine import Upstream
from stages.filter.config import FilterConfig
from stages.filter.policies import (
    PASSAGES,
    ContaminationPolicy,
    DuplicatesPolicy,
    other_views,
    passage_views,
)

_WITHOUT_PERSONAL_DATA = ("ingest", "dedup")
"""Stages whose views mark no personal data: boilerplate and repeated passages."""


def check_inputs(
    config: FilterConfig, given: Mapping[str, Sequence[str]], *, where: str | None = None
) -> None:
    """UsageError that names everything in `config` for which no input is given.

    `given` maps each role to the names of the stages that made its inputs.
    """
    if problems := list(_problems(config, given)):
        raise UsageError("; ".join(problems), where=where)


def check_upstreams(config: FilterConfig, inputs: Mapping[str, Sequence[Upstream]]) -> None:
    """The same when a plan is made; and every name in `views` is one that the inputs can mark."""
    made_by = {
        role: [one.stage.name if one.stage else one.name for one in given]
        for role, given in inputs.items()
    }
    check_inputs(config, made_by)
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


def no_passages(passages: Sequence[str]) -> str:
    """What is wrong where passages are to be cut that no views mark."""
    return (
        f"`views` names {', '.join(passages)}, but no views of `dedup` are given, so no passages "
        "would be cut: add them to the `views` input, or leave it out"
    )


def _problems(config: FilterConfig, given: Mapping[str, Sequence[str]]) -> Iterator[str]:
    documents = len(given.get("documents", ()))
    chat = any(given.get(role) for role in ("conversations", "preferences"))
    if not documents and not chat:
        yield "nothing to decide on: give documents, conversations or preferences"
        return
    described = documents + chat
    views = given.get("views", ())
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
    if config.contamination != ContaminationPolicy() and not given.get("contamination"):
        yield "`contamination` is set, but no contamination is given: connect `decontaminate`"
    copies = config.duplicates
    drops = copies.exact is not None or copies.threshold is not None
    if copies != DuplicatesPolicy() and drops and not given.get("duplicates"):
        yield "`duplicates` is set, but no duplicates are given: connect `dedup`"


def _marked(given: Upstream) -> set[str] | None:
    """The views that an input can mark, by the config of its stage; None for a stage of one's own.

    Whole names of other stages' fields: rooms do not import each other.
    """
    stage, config = given.stage.name if given.stage else "", given.config
    if config is None:  # An artifact of an older version: its config cannot be read any more.
        return None
    if stage == "signals":
        views = {"personal_data", "secrets", "mojibake", *config.line_rules}
        return views | ({"boilerplate"} if given.inputs.get("page_views") else set())
    if stage == "ingest":
        return {"boilerplate"}
    if stage == "dedup":
        found = config.passages
        switches = (found.lines, found.sentences, found.substrings)
        return {view for view, on in zip(PASSAGES, switches, strict=True) if on}
    return None
