"""Groups of lm-eval's tasks: their members, and their scores as the harness aggregates them.

A group's YAML names tasks, tags and other groups. Its scores are over its leaf tasks, each metric
weighted by their rows or, with `weight_by_size: false`, each task alike (lm_eval/api/group.py and
api/metrics.py, `aggregate_subtask_metrics`, `pooled_sample_stderr`, `unweighted_mean_stderr`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import InputError
from stages.harness.scores import NAMES, Score, TaskScores, make_record
from stages.scoring.observations import results_table

GROUP_FIELDS = ("group", "group_alias", "task", "aggregate_metric_list", "metadata", "tag")
DEPTH, LEAVES = 20, 20_000
"""Most groups within each other, and most tasks of a group: a few lines can stand for billions."""
AGGREGATE_FIELDS = ("metric", "filter_list", "aggregation", "weight_by_size")


@dataclass(frozen=True)
class Aggregate:
    """A metric of a group; `filters` None: all that its tasks have it under."""

    metric: str
    filters: tuple[str, ...] | None = None
    by_size: bool = True

    def takes(self, score: Score) -> bool:
        """Whether a task's score is one of this metric."""
        name, _, filter_name = score.metric.partition("/")
        return name == NAMES.get(self.metric, self.metric) and (
            self.filters is None or (filter_name or "none") in self.filters
        )


@dataclass(frozen=True)
class Group:
    """A group; `tasks` are its leaves, a task twice where two groups within have it."""

    name: str
    tasks: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    version: str


@dataclass
class Catalogue:
    """Names that may be measured: tasks, settings of groups by name, tasks of a tag by name."""

    tasks: set[str] = field(default_factory=set)
    groups: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    tags: dict[str, list[str]] = field(default_factory=dict)

    def names(self) -> list[str]:
        """All of them."""
        return [*self.tasks, *self.groups, *self.tags]


def resolve(name: str, catalogue: Catalogue) -> tuple[list[str], list[Group]]:
    """Tasks behind a name, and the groups that it stands for, the outermost first.

    InputError for a member that nothing has, a group within itself, and members with settings of
    their own.
    """
    groups: list[Group] = []
    tasks = _members(name, catalogue, groups, (), where="tasks")
    return tasks, groups


def _members(
    name: str, catalogue: Catalogue, groups: list[Group], path: tuple[str, ...], *, where: str
) -> list[str]:
    if name in catalogue.groups:
        return _leaves(name, catalogue.groups[name], catalogue, groups, path)
    if name in catalogue.tasks:
        return [name]
    if name in catalogue.tags:
        return sorted(catalogue.tags[name])
    raise InputError(f"no task '{name}'{did_you_mean(name, catalogue.names())}", where=where)


def _leaves(
    name: str,
    settings: Mapping[str, Any],
    catalogue: Catalogue,
    groups: list[Group],
    path: tuple[str, ...],
) -> list[str]:
    """The leaf tasks of a group, which is appended to `groups` before those within."""
    where = f"group {name}"
    if name in path:
        raise InputError(f"is a member of itself by way of {path[-1]}", where=where)
    if len(path) >= DEPTH:
        raise InputError(f"lies within {DEPTH} other groups", where=where)
    for one in settings:
        if one not in GROUP_FIELDS:
            raise InputError(
                f"sets {one} for its tasks{did_you_mean(one, GROUP_FIELDS)}",
                where=where,
                hint="write it in a task file of your own",
            )
    members = settings.get("task")
    members = [members] if isinstance(members, str) else members
    if not isinstance(members, list) or not members:
        raise InputError("names no tasks", where=where, hint="task: [NAME, …]")
    place = len(groups)
    tasks: list[str] = []
    for member in members:
        if isinstance(member, Mapping) and [*member] in (["group"], ["task"]):
            (member,) = member.values()
        if isinstance(member, str):
            tasks += _members(member, catalogue, groups, (*path, name), where=where)
        elif _is_inline(member, catalogue):
            inner = f"{name}::{member['group']}"
            tasks += _leaves(inner, member, catalogue, groups, (*path, name))
        else:
            raise InputError(
                "has a member with settings of its own",
                where=where,
                hint="write it as a task file of its own, and name that",
            )
        if len(tasks) > LEAVES:
            raise InputError(f"has more than {LEAVES:,} tasks", where=where)
    metadata = settings.get("metadata")
    version = metadata.get("version", "N/A") if isinstance(metadata, Mapping) else "N/A"
    groups.insert(place, Group(name, tuple(tasks), _aggregates(settings, where), str(version)))
    return tasks


def _is_inline(member: Any, catalogue: Catalogue) -> bool:
    """Whether a member is a group written out where it is named."""
    name = member.get("group") if isinstance(member, Mapping) else None
    return isinstance(name, str) and name not in catalogue.groups


def _aggregates(settings: Mapping[str, Any], where: str) -> tuple[Aggregate, ...]:
    entries = settings.get("aggregate_metric_list") or ()
    made = []
    for one in entries if isinstance(entries, list | tuple) else [entries]:
        if not isinstance(one, Mapping) or not isinstance(one.get("metric"), str):
            raise InputError("an entry of aggregate_metric_list has no `metric`", where=where)
        for name in one:
            if name not in AGGREGATE_FIELDS:
                known = did_you_mean(name, AGGREGATE_FIELDS)
                raise InputError(f"aggregate_metric_list has no '{name}'{known}", where=where)
        if one.get("aggregation", "mean") != "mean":
            raise InputError("aggregates by something else than the mean", where=where)
        filters = one.get("filter_list")
        filters = [filters] if isinstance(filters, str) else filters
        by_size = bool(one.get("weight_by_size", True))
        made.append(Aggregate(one["metric"], tuple(filters) if filters else None, by_size))
    return tuple(made)


def aggregate(group: Group, tasks: Sequence[TaskScores], *, harness: str) -> TaskScores:
    """The group's scores. A metric that some tasks lack is over the others, as in the harness."""
    by_name = {one.task: one for one in tasks}
    leaves = [by_name[name] for name in group.tasks]
    errors = {
        (row["benchmark"], row["metric"]): row["standard_error"]
        for row in results_table([one for task in tasks for one in task.observed]).to_pylist()
    }
    scores: dict[str, Score] = {}
    weights = {}
    for wanted in group.aggregates:
        metrics = sorted({s.metric for one in leaves for s in one.scores if wanted.takes(s)})
        for metric in metrics:
            parts = [(one, s) for one in leaves for s in one.scores if s.metric == metric]
            sizes = [one.count for one, _ in parts]
            own = [errors.get((one.task, metric), s.standard_error) for one, s in parts]
            better = {s.higher_is_better for _, s in parts}
            scores[metric] = Score(
                metric,
                weighted_mean([s.value for _, s in parts], sizes, by_size=wanted.by_size),
                pooled_error(own, sizes, by_size=wanted.by_size),
                better.pop() if len(better) == 1 else None,
            )
            weights[metric] = "rows" if wanted.by_size else "tasks"
    shots = {one.shots for one in leaves}
    record = make_record(
        group.name,
        group.version,
        list(scores.values()),
        harness=harness,
        model=None,
        settings={"tasks": list(group.tasks), "weighted_by": weights},
    )
    return TaskScores(
        group.name,
        shots.pop() if len(shots) == 1 else None,
        sum(one.count for one in leaves),
        tuple(scores.values()),
        (),
        record,
    )


def weighted_mean(values: Sequence[float], sizes: Sequence[int], *, by_size: bool) -> float:
    """Of tasks' values, by their rows or each alike."""
    weights = sizes if by_size else [1] * len(values)
    return sum(v * w for v, w in zip(values, weights, strict=True)) / sum(weights)


def pooled_error(
    errors: Sequence[float | None], sizes: Sequence[int], *, by_size: bool
) -> float | None:
    """The standard error of that mean, as the harness has it; None where a task has none.

    By rows that of the pooled variance: each task's is (its error)² × its rows.
    """
    known = [one for one in errors if one is not None and math.isfinite(one)]
    if len(known) < len(errors) or not known:
        return None
    if not by_size:
        return math.sqrt(math.fsum(one**2 for one in known)) / len(known)
    total, freedom = sum(sizes), sum(sizes) - len(sizes)
    if freedom < 1:
        return None
    squares = math.fsum((n - 1) * n * one**2 for n, one in zip(sizes, known, strict=True))
    return math.sqrt(squares / freedom / total)
