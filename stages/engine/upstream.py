"""What a step will read, as far as it is known when a plan is made: before anything has run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import IngotError, InputError, UsageError

if TYPE_CHECKING:
    from artifacts_schema.manifest import Manifest
    from stages.engine.protocol import Stage

Inputs = Mapping[str, Sequence["Upstream"]]
"""What a step reads, by role, in order."""


def _no_inputs() -> Inputs:
    return {}


@dataclass(frozen=True, eq=False)
class Upstream:
    """One output given to a role.

    `name` is the step, snapshot or artifact, for messages. `stage` and its parsed `config` are
    those of the producer, None for snapshots and for stages that are not installed. `manifest` is
    that of the artifact where it exists already; None where the producer has yet to run.
    """

    name: str
    kind: str
    output: str
    stage: type[Stage] | None = None
    config: Any = None
    manifest: Manifest | None = None
    read_inputs: Callable[[], Inputs] = _no_inputs

    @cached_property
    def inputs(self) -> Inputs:
        """What the producer reads itself, by role; read from the store only when asked for."""
        return self.read_inputs()

    @cached_property
    def sources(self) -> frozenset[str] | None:
        """Names of the sources that its documents or sequences can come from; None: not known."""
        if self.stage is None or self.config is None:
            return None
        return self.stage.sources(self.config, self.inputs)


def all_problems(*checks: Callable[[], object]) -> None:
    """Make every check; one UsageError tells what all of them found.

    InputError counts as well: a plan cannot be run with such inputs.
    """
    problems: list[IngotError] = []
    for check in checks:
        try:
            check()
        except (UsageError, InputError) as error:
            problems.append(error)
    if len(problems) == 1:
        raise UsageError(problems[0].what, where=problems[0].where, hint=problems[0].hint)
    if problems:
        raise UsageError("; ".join(str(problem) for problem in problems))


def sources_of(given: Sequence[Upstream]) -> frozenset[str] | None:
    """The sources of several outputs together; None if those of any are not known."""
    found: set[str] = set()
    for one in given:
        if one.sources is None:
            return None
        found |= one.sources
    return frozenset(found)
