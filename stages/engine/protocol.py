"""What a stage is, what it will read when a plan is made, and the registry of stages.

Stages are Ingot's own and anybody's, found by the entry point group `ingot.stages`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from artifacts_schema import config as settings
from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import IngotError, InputError, UsageError
from artifacts_schema.kinds import kind_named
from artifacts_schema.manifest import Reproducible

if TYPE_CHECKING:
    from artifacts_schema.manifest import Manifest
    from stages.engine.context import Context
    from stages.engine.inputs import Input
    from stages.engine.outputs import Milestone


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
    worker_modules: ClassVar[tuple[str, ...]] = ()
    """Modules with the functions that it maps, imported once for all of its worker processes."""
    launch: ClassVar[Literal["single", "spmd"]] = "single"
    """How its program runs: as one process, or as several that run the same (SPMD), one for each
    rank of `execution.layout`; see `stages.engine.spmd`."""
    handles_documents: ClassVar[bool] = False
    """Whether `context.conserve` must account for every record before the commit."""
    Config: ClassVar[type[settings.Config]] = settings.Config
    Execution: ClassVar[type[settings.Execution]] = settings.Execution

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for kind in (*cls.outputs.values(), *(role.kind for role in cls.inputs.values())):
            kind_named(kind)

    @classmethod
    def ranks(cls, execution: settings.Execution) -> int:
        """Processes that run its program. UsageError if it cannot run as so many."""
        layout = getattr(execution, "layout", None)
        world = layout.world if layout is not None else 1
        if world > 1 and cls.launch == "single":
            raise UsageError(
                f"{cls.name} runs as one process, the layout has {world}",
                where="execution.layout",
                hint="leave it out",
            )
        return int(world)

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
        which the plan shows with the step.
        """
        return None

    @classmethod
    def check_layout(cls, config: Any, execution: Any, inputs: Inputs) -> None:
        """UsageError where the ranks that `execution` asks for cannot divide the work.

        Called as `check_plan` is, and as cheap.
        """
        cls.ranks(execution)

    @classmethod
    def sources(cls, config: Any, inputs: Inputs) -> frozenset[str] | None:
        """Names of the sources that its outputs can hold, for plan checks; None: not known."""
        return None

    @classmethod
    def columns(cls, config: Any, inputs: Inputs) -> Mapping[str, str] | None:
        """The columns of measurements that its outputs have, with their types; None: not known."""
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


Inputs = Mapping[str, Sequence["Upstream"]]
"""What a step reads, by role, in order."""


@dataclass(frozen=True, eq=False)
class Upstream:
    """One output that a role reads.

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
    read_inputs: Callable[[], Inputs] = dict

    @cached_property
    def inputs(self) -> Inputs:
        """What the producer reads itself, by role; read from the store on first use."""
        return self.read_inputs()

    @cached_property
    def sources(self) -> frozenset[str] | None:
        """Names of the sources that its documents or sequences can come from; None: not known."""
        if self.stage is None or self.config is None:
            return None
        return self.stage.sources(self.config, self.inputs)

    @cached_property
    def columns(self) -> Mapping[str, str] | None:
        """Columns of measurements that it has, with their types; None: not known."""
        if self.stage is None or self.config is None:
            return None
        return self.stage.columns(self.config, self.inputs)


def check_all(*checks: Callable[[], object]) -> None:
    """Make every check; one UsageError reports all problems.

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


def source_names(inputs: Sequence[Upstream]) -> frozenset[str] | None:
    """The sources of several outputs together; None if those of any are not known."""
    names: set[str] = set()
    for one in inputs:
        if one.sources is None:
            return None
        names |= one.sources
    return frozenset(names)


GROUP = "ingot.stages"
_registered: dict[str, type[Stage]] = {}


def register(stage: type[Stage]) -> type[Stage]:
    """Register a stage in this process only, in addition to the installed ones."""
    _registered[stage.name] = stage
    return stage


def stage_names() -> list[str]:
    """Names of all known stages, sorted; imports none of them."""
    return sorted({*_installed(), *_registered})


def stage_named(name: str) -> type[Stage]:
    """The stage called `name`. UsageError if there is none, or if it does not import.

    IngotError where none is installed at all: no name could be right.
    """
    if name in _registered:
        return _registered[name]
    if not _installed():
        raise IngotError(
            "no stage is installed: Ingot runs from a folder that is not installed",
            hint="pip install FOLDER, or start the `ingot` of the environment that has it",
        )
    if name not in _installed():
        raise UsageError(f"no stage '{name}'{did_you_mean(name, stage_names())}")
    return _load(name)


def all_stages() -> dict[str, type[Stage]]:
    """All known stages by name."""
    return {name: stage_named(name) for name in stage_names()}


@cache
def _installed() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


@cache
def _load(name: str) -> type[Stage]:
    point = _installed()[name]
    try:
        stage = point.load()
    except Exception as error:
        raise UsageError(
            f"stage '{name}' does not import: {error}", where=point.value, hint="check its package"
        ) from error
    if not (isinstance(stage, type) and issubclass(stage, Stage) and stage.name == name):
        raise UsageError(f"entry point '{name}' is not a Stage of that name", where=point.value)
    return stage
