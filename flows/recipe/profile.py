"""Where and how the steps of a recipe run, as a YAML file says it. It never changes a key.

    jobs: 4                              # steps that run at the same time
    default: {workers: 4}                # execution values of every stage
    stages:
      signals: {workers: 8}              # of one stage; overrides the recipe's own
    pools:
      cpu: {type: slurm, partition: cpu}
      gpu: {type: slurm, partition: gpu, environment: {NCCL_SOCKET_IFNAME: ib0}}
    resources:
      default:  {pool: cpu, cpus: 8, memory: 32 GB, time: 4 h}
      pretrain: {pool: gpu, nodes: 2, cpus: 16, gpus: 8, memory: 400 GB, time: 24 h}
      flow:     {pool: cpu, cpus: 1, memory: 2 GB}
    openlineage: http://127.0.0.1:5000   # where events of lineage go, or a file
    prices: {currency: EUR, cpu_hour: 0.03, gpu_hour: 2.1}   # for `ingot cost`

A stage without resources runs in the pool `local`: a child process on this machine. `flow` among
the resources is the run itself where a form starts it (`ingot deploy`): a small job that waits for
those of its steps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator

from artifacts_schema.config import Config, MemorySize, did_you_mean, format_bytes, parse_size
from artifacts_schema.errors import UsageError
from flows.recipe.recipe import BUNDLED
from flows.recipe.yaml_document import Document, read_yaml
from stages.engine.protocol import stage_names

PROFILE_KEYS = (
    *("name", "description", "jobs", "default", "stages", "pools", "resources", "openlineage"),
    "prices",
)
LOCAL = "local"
DEFAULT = "default"
FLOW = "flow"
"""Among the resources: those of a run that a form starts, beside those of its steps."""
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(min|h|d)")
_MINUTES = {"min": 1, "h": 60, "d": 1440}


def parse_minutes(text: str) -> int:
    """Whole minutes of a time such as `90 min`, `4 h` or `2 d`; ValueError for anything else."""
    match = _TIME.fullmatch(text.strip())
    minutes = int(float(match[1]) * _MINUTES[match[2]]) if match else 0
    if minutes < 1:
        raise ValueError(f"'{text}' is no time of a minute or more: a number and min, h or d")
    return minutes


def _check_time(text: str) -> str:
    parse_minutes(text)
    return text


class Resources(Config):
    """What a pool gives to one step, on each node."""

    pool: str = Field(default=LOCAL, description="A pool of the profile, or `local`.")
    nodes: int = Field(default=1, ge=1, description="Nodes; above 1 for stages that train.")
    cpus: int | None = Field(default=None, ge=1, description="Cores on each node.")
    gpus: int = Field(default=0, ge=0, description="GPUs on each node.")
    memory: tuple[MemorySize, ...] = Field(
        default=(),
        description="Memory on each node. Of several, the next is taken once memory ran out.",
    )
    time: Annotated[str, AfterValidator(_check_time)] | None = Field(
        default=None, description="Limit of a job, as `90 min`, `4 h`, `2 d`; it is continued."
    )

    @field_validator("memory", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @property
    def minutes(self) -> int | None:
        """The limit in minutes."""
        return None if self.time is None else parse_minutes(self.time)

    @property
    def memory_bytes(self) -> list[int]:
        """Memory by class, smallest first as they are tried."""
        return [parse_size(size) for size in self.memory]

    def describe(self) -> str:
        """For a plan: `gpu: 2 nodes × 8 GPUs, 16 CPUs, 400.0 GB, 24 h`."""
        each = [
            f"{self.gpus} GPU{'s' * (self.gpus > 1)}" if self.gpus else "",
            f"{self.cpus} CPU{'s' * (self.cpus > 1)}" if self.cpus else "",
            format_bytes(self.memory_bytes[0]) if self.memory else "",
            self.time or "",
        ]
        nodes = f"{self.nodes} nodes × " if self.nodes > 1 else ""
        text = nodes + ", ".join(one for one in each if one)
        return f"{self.pool}: {text}" if text else self.pool


class Prices(Config):
    """What an hour costs, for `ingot cost`."""

    currency: str = Field(min_length=1, max_length=8, description="As it is printed: EUR.")
    cpu_hour: float = Field(default=0.0, ge=0, description="Of one core.")
    gpu_hour: float = Field(default=0.0, ge=0, description="Of one GPU, whose host is extra.")

    def money(self, cpu_seconds: float, gpu_seconds: float) -> float:
        """What these seconds cost, in `currency`."""
        return (cpu_seconds * self.cpu_hour + gpu_seconds * self.gpu_hour) / 3600


@dataclass(frozen=True)
class PoolEntry:
    """A pool as the profile names it: its type and the rest of its settings, not yet checked."""

    name: str
    type: str
    settings: dict[str, Any]
    where: str


@dataclass(frozen=True)
class Profile:
    """Execution values and resources by stage, and the pools that these name."""

    name: str = "local"
    jobs: int = 1
    default: dict[str, Any] = field(default_factory=dict)
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)
    pools: dict[str, PoolEntry] = field(default_factory=dict)
    places: dict[str, Resources] = field(default_factory=dict)
    openlineage: str | None = None
    """An HTTP URL or a file: where runs send OpenLineage events."""
    prices: Prices | None = None

    def resources(self, stage: str) -> Resources:
        """What the steps of a stage get."""
        return self.places.get(stage) or self.places.get(DEFAULT) or Resources()

    @property
    def flow(self) -> Resources:
        """What a run itself gets; the default is not meant for it, since it only waits."""
        return self.places.get(FLOW) or Resources()

    def execution(
        self, stage: str, own: Mapping[str, Any], typed: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Execution of a step: the default here, its own, the stage's here, what `--set` says.

        On several nodes, `machines.count` is their number. UsageError where the execution names
        another one, or more workers or threads than there are cores.
        """
        values = {**self.default, **own, **self.stages.get(stage, {}), **typed}
        resources = self.resources(stage)
        where = f"profile {self.name}: resources.{stage}"
        own_machines = values.get("machines") or {}
        if resources.nodes > 1 and isinstance(own_machines, Mapping):  # Else Execution refuses it.
            machines = {"count": resources.nodes, **own_machines}
            if machines["count"] != resources.nodes:
                raise UsageError(
                    f"{resources.nodes} nodes, and execution.machines.count is {machines['count']}",
                    where=where,
                    hint="leave execution.machines out",
                )
            values["machines"] = machines
        workers, threads = values.get("workers") or 1, values.get("threads") or 1
        are_numbers = isinstance(workers, int) and isinstance(threads, int)
        if resources.cpus is not None and are_numbers and workers * threads > resources.cpus:
            raise UsageError(
                f"{workers} workers of {threads} threads on {resources.cpus} cores",
                where=where,
                hint="ask for more cpus, or leave out workers: one for each core is the default",
            )
        return values


def find_profile(name: str, recipe: Path) -> Path:
    """A profile by path, or by name beside the recipe or among those that come with Ingot."""
    path = Path(name)
    if path.exists() or path.suffix in (".yaml", ".yml") or "/" in name:
        return path
    folders = (recipe.parent / "profiles", BUNDLED / "profiles")
    for folder in folders:
        if (folder / f"{name}.yaml").exists():
            return folder / f"{name}.yaml"
    known = {file.stem for folder in folders for file in folder.glob("*.yaml")}
    raise UsageError(f"no profile '{name}'{did_you_mean(name, known)}", hint="or give a path")


def load_profile(name: str | None, recipe: Path) -> Profile:
    """The profile called `name`; one job with the stages' own defaults if None.

    UsageError names the line of what is wrong.
    """
    if name is None:
        return Profile()
    path = find_profile(name, recipe)
    document = read_yaml(path)
    values = document.values
    for key in values:
        if key not in PROFILE_KEYS:
            near = did_you_mean(key, PROFILE_KEYS)
            raise UsageError(f"unknown key '{key}'{near}", where=str(document.place(key)))
    jobs = values.get("jobs", 1)
    if not isinstance(jobs, int) or isinstance(jobs, bool) or jobs < 1:
        raise UsageError("expected a number of 1 or more", where=f"{document.place('jobs')}: jobs")
    default = values.get("default") or {}
    if not isinstance(default, dict):
        raise _no_mapping(document, default, "default")
    _check_stages(document, "stages")
    _check_stages(document, "resources", DEFAULT, FLOW)
    pools = {
        key: _read_pool(document, key, content) for key, content in _section(document, "pools")
    }
    places = {
        key: Resources.parse(content, where=f"{document.place('resources', key)}: resources.{key}")
        for key, content in _section(document, "resources")
    }
    for key, resources in places.items():
        if resources.pool != LOCAL and resources.pool not in pools:
            raise UsageError(
                f"no pool '{resources.pool}'{did_you_mean(resources.pool, [LOCAL, *pools])}",
                where=f"{document.place('resources', key)}: resources.{key}",
            )
    stages = dict(_section(document, "stages"))
    prices = None
    if values.get("prices") is not None:
        prices = Prices.parse(values["prices"], where=f"{document.place('prices')}: prices")
    name = str(values.get("name", path.stem))
    return Profile(name, jobs, default, stages, pools, places, _read_target(document), prices)


def check_target(target: str) -> None:
    """Raise ValueError for what is neither an HTTP URL without a login and query nor a path."""
    if "://" not in target:
        return
    parts = urlsplit(target)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("expected an http or https URL, or the path of a file")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("the URL holds a login or a query; set OPENLINEAGE_API_KEY for a key")


def _read_target(document: Document) -> str | None:
    """Where events of lineage go; UsageError for what is neither a URL nor a path."""
    target = document.values.get("openlineage")
    try:
        if target is not None and not (isinstance(target, str) and target):
            raise ValueError("expected an http or https URL, or the path of a file")
        check_target(target or "")
    except ValueError as error:
        raise UsageError(
            str(error), where=f"{document.place('openlineage')}: openlineage"
        ) from None
    return target


def _check_stages(document: Document, section: str, *others: str) -> None:
    """UsageError for a key that names no stage: a typing error would leave a stage where it is."""
    known = [*stage_names(), *others]
    for key, _ in _section(document, section):
        if key not in known:
            where = f"{document.place(section, key)}: {section}.{key}"
            raise UsageError(f"no stage '{key}'{did_you_mean(key, known)}", where=where)


def _read_pool(document: Document, name: str, content: Mapping[str, Any]) -> PoolEntry:
    where = f"{document.place('pools', name)}: pools.{name}"
    settings = dict(content)
    kind = settings.pop("type", None)
    if name == LOCAL or not isinstance(kind, str):
        what = "this name is taken" if name == LOCAL else "a pool needs a type"
        raise UsageError(what, where=where, hint="as `gpu: {type: slurm, partition: gpu}`")
    return PoolEntry(name, kind, settings, where)


def _section(document: Document, name: str) -> list[tuple[str, dict[str, Any]]]:
    """The entries of a section of the profile, each a mapping."""
    section = document.values.get(name) or {}
    if not isinstance(section, dict):
        raise _no_mapping(document, section, name)
    for key, content in section.items():
        if not isinstance(content, dict):
            raise _no_mapping(document, content, name, str(key))
    return list(section.items())


def _no_mapping(document: Document, content: Any, *where: str) -> UsageError:
    place = f"{document.place(*where)}: {'.'.join(where)}"
    return UsageError(f"expected keys and values, got {content!r}", where=place)
