"""What a stage is: a program that makes one artifact of given ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from artifacts_schema import config as settings
from artifacts_schema.kinds import kind_named
from artifacts_schema.manifest import Reproducible

if TYPE_CHECKING:
    from stages.engine.context import Context
    from stages.engine.inputs import Input
    from stages.engine.interim import Milestone
    from stages.engine.upstream import Inputs


@dataclass(frozen=True)
class Role:
    """What a stage takes under one name: a kind, and how many outputs of that kind."""

    kind: str
    least: int
    most: int | None


def One(kind: str) -> Role:
    """Exactly one output of `kind`."""
    return Role(kind, 1, 1)


def Maybe(kind: str) -> Role:
    """One output of `kind`, or none."""
    return Role(kind, 0, 1)


def Many(kind: str, at_least: int = 0) -> Role:
    """Any number of outputs of `kind`, in an order that bears identity."""
    return Role(kind, at_least, None)


class Stage(ABC):
    """A program with declared inputs, outputs and config; `run` is its story.

    A stage never prints, reads no environment variable and touches nothing outside what the context
    gives it. `version` changes when equal config and inputs give other output.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    reproducible: ClassVar[Reproducible]
    inputs: ClassVar[Mapping[str, Role]] = {}
    outputs: ClassVar[Mapping[str, str]]
    """Output name → kind."""
    libraries: ClassVar[tuple[str, ...]] = ()
    """Distributions whose version bears on the output's bytes."""
    handles_documents: ClassVar[bool] = False
    """Whether `context.conserve` must account for every record before the commit."""
    Config: ClassVar[type[settings.Config]] = settings.Config
    Execution: ClassVar[type[settings.Execution]] = settings.Execution

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for kind in (*cls.outputs.values(), *(role.kind for role in cls.inputs.values())):
            kind_named(kind)

    @classmethod
    def complete(cls, config: settings.Config) -> settings.Config:
        """Fill in what only the moment of planning knows; by default nothing."""
        return config

    @classmethod
    def check_plan(cls, config: Any, inputs: Inputs) -> Sequence[str] | None:
        """Raise UsageError for what can be known to be wrong before anything runs.

        Called whenever a plan is made, for each step that would run; the plan adds the step's name.
        `config` is the stage's own, `inputs` maps each role to what it will read. It must be cheap:
        it reads configs and manifests, no payload, and imports nothing heavy. May return notes,
        which the plan shows beside the step.
        """
        return None

    @classmethod
    def sources(cls, config: Any, inputs: Inputs) -> frozenset[str] | None:
        """Names of the sources that its outputs can hold, for plan checks; None: not known."""
        return None

    @classmethod
    def milestones(cls, config: Any, inputs: Mapping[str, Sequence[Input]]) -> Sequence[Milestone]:
        """Where a run commits some of its outputs on the way, in order, its end last.

        `config` is the stage's own. By default nowhere. UsageError if such a run cannot be planned.
        """
        return ()

    @classmethod
    def commits_on_its_way(cls) -> bool:
        """Whether the stage has milestones at all."""
        return cls.milestones.__func__ is not Stage.milestones.__func__  # type: ignore[attr-defined]

    @abstractmethod
    def run(self, context: Context) -> None:
        """Make the outputs."""
