"""The settings of a stage: `Config` is what it makes (bears identity), `Execution` is how it runs
(does not). Also sizes in bytes as a person writes and reads them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from artifacts_schema.errors import UsageError


class _Settings(BaseModel):
    """Frozen, strict about names, loud about values."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def parse(cls, values: Mapping[str, Any] | None, *, where: str) -> Self:
        """Validate plain values; a UsageError names every wrong field and the nearest right one."""
        try:
            return cls.model_validate(dict(values or {}))
        except ValidationError as error:
            problems = "; ".join(_describe(cls, problem) for problem in error.errors())
            raise UsageError(problems, where=where) from None

    def plain(self) -> dict[str, Any]:
        """All values, defaults included, as JSON-ready Python."""
        return self.model_dump(mode="json")


class Config(_Settings):
    """What a stage makes. Every field bears identity unless it equals its default."""

    def identity(self) -> dict[str, Any]:
        """The values that differ from their default, nested configs likewise.

        A field left at its default never enters a key, so adding a field with a default that keeps
        the old behaviour keeps every key. A changed default needs a new stage version.
        """
        return {
            name: _identity(getattr(self, name))
            for name, field in type(self).model_fields.items()
            if getattr(self, name) != field.get_default(call_default_factory=True)
        }


class Execution(_Settings):
    """How a stage runs: never part of a key, never able to change a byte of a `bytes` stage."""

    workers: int | None = Field(
        default=None, ge=1, description="Worker processes; by default one for each core."
    )
    threads: int = Field(default=1, ge=1, description="Native threads in each process.")
    silent_seconds: float | None = Field(
        default=900.0,
        gt=0,
        description="A worker process that has a shard and uses no processor for so many seconds "
        "is ended, and its shard done again; null waits for ever. A warning comes after 60 s.",
    )
    verify_inputs: bool = Field(
        default=True, description="Hash input files before use; otherwise only sizes are compared."
    )
    copy_inputs: bool = Field(
        default=False,
        description="Read inputs from copies on this machine's own disk (`$INGOT_CACHE`), as those "
        "of a store in a bucket always are. A file is copied when it is first needed, and verified "
        "then, once on each machine.",
    )


_SCHEDULER = re.compile(r"(tcp|tls)://(\[[0-9a-fA-F:.]+\]|[\w.-]+):[0-9]{1,5}")
_LOOPBACK = re.compile(r"localhost|127(\.[0-9]{1,3}){3}|\[::1\]")
_START = "start one by `dask scheduler`, which prints it; workers by `dask worker ADDRESS`"


class MapExecution(Execution):
    """How a stage runs whose shards may be done by other machines as well: same bytes."""

    workers: int | None = Field(
        default=None,
        ge=1,
        description="Worker processes, by default one for each core; of a cluster the most workers "
        "at once, by default all.",
    )
    engine: Literal["processes", "dask"] = Field(
        default="processes",
        description="Who does the shards: processes of this machine, or the workers of a running "
        "Dask cluster.",
    )
    scheduler: str | None = Field(
        default=None,
        description="Address of the cluster's scheduler, tls://HOST:PORT, or tcp://HOST:PORT on "
        "this machine; what tls needs stands in Dask's own configuration.",
    )
    scheduler_file: str | None = Field(
        default=None,
        description="Or the file that names it: of `ingot dask` (with the certificates), or of "
        "`dask scheduler --scheduler-file`.",
    )
    allow_plain_tcp: bool = Field(
        default=False,
        description="Let the cluster be reached over a network without TLS: only where nobody "
        "else can reach its scheduler, since who does can run programs on its workers.",
    )

    absent_seconds: float = Field(
        default=60.0,
        gt=0,
        description="How long the stage waits while the cluster has no worker or its scheduler is "
        "gone; longer where workers wait in a queue.",
    )

    @model_validator(mode="after")
    def _dask_has_an_address(self) -> Self:
        if self.scheduler is not None and self.scheduler_file is not None:
            raise ValueError("`scheduler` and `scheduler_file` exclude each other")
        if self.scheduler is not None:
            check_scheduler(self.scheduler, allow_plain_tcp=self.allow_plain_tcp)
        elif self.engine == "dask" and self.scheduler_file is None:
            raise ValueError(f"engine dask needs the address of a scheduler: {_START}")
        return self


def check_scheduler(address: str, *, allow_plain_tcp: bool) -> None:
    """Raise ValueError for what is no address of a scheduler, or one that is not protected."""
    if "@" in address:  # Not repeated: it may hold a password.
        raise ValueError("scheduler: an address holds no user and no password")
    if (match := _SCHEDULER.fullmatch(address)) is None:
        raise ValueError(
            f"scheduler: '{address}' is no address like tcp://HOST:8786 or tls://HOST:8786"
        )
    if match[1] == "tcp" and not _LOOPBACK.fullmatch(match[2]) and not allow_plain_tcp:
        raise ValueError(
            f"scheduler: whoever reaches {address} can run programs on its workers: use TLS "
            "(`ingot dask` starts such a cluster), or set `allow_plain_tcp: true` in a network "
            "that nobody else can enter"
        )


def _identity(value: Any) -> Any:
    if isinstance(value, Config):
        return value.identity()
    if isinstance(value, BaseModel):
        raise TypeError(f"{type(value).__name__} inside a Config must be a Config")
    if isinstance(value, Mapping):
        return {key: _identity(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_identity(item) for item in value]
    return value


def _describe(cls: type[BaseModel], problem: Any) -> str:
    location = [str(part) for part in problem["loc"]]
    path = ".".join(location)
    if problem["type"] == "extra_forbidden":
        if issubclass(cls, Config) and path in Execution.model_fields:
            return f"unknown key '{path}': it says how a stage runs, so write execution.{path}"
        return f"unknown key '{path}'{did_you_mean(location[-1], _keys_at(cls, location[:-1]))}"
    value = problem.get("input")
    got = f" (got {value!r})" if isinstance(value, str | int | float | bool) else ""
    message = problem["msg"].removeprefix("Value error, ")
    return f"{path}: {message[:1].lower()}{message[1:]}{got}" if path else message


def _keys_at(cls: type[BaseModel], path: list[str]) -> list[str]:
    """Field names of the model that `path` leads to; of all models, where the path is ambiguous."""
    model: Any = cls
    for part in path:
        field = getattr(model, "model_fields", {}).get(part)
        nested = _nested_models(field.annotation) if field is not None else []
        if nested:
            model = nested[0]
    return list(model.model_fields)


def _nested_models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for arg in getattr(annotation, "__args__", ()) for m in _nested_models(arg)]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """', did you mean …?' with the nearest known name, or the list of names when none is near."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f", did you mean '{near[0]}'?"
    return f"; known here: {', '.join(names)}" if names else ""


_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT])(i?)B")


def parse_size(size: str) -> int:
    """The bytes of a size such as "2GiB" (of 1,024) or "1.5 GB" (of 1,000), rounded down.

    Raises ValueError, worded for the person who wrote it, for anything else and for nothing.
    """
    match = _SIZE.fullmatch(size.strip())
    if match is None:
        raise ValueError(f"'{size}' is no size: a number and KB, MB, GB, TB or KiB to TiB, as 2GiB")
    number, unit, binary = match.groups()
    amount = int(float(number) * (1024 if binary else 1000) ** ("KMGT".index(unit) + 1))
    if amount == 0:
        raise ValueError(f"'{size}' is no memory at all")
    return amount


def _check_size(size: str) -> str:
    parse_size(size)
    return size


MemorySize = Annotated[str, AfterValidator(_check_size)]
"""A field whose value `parse_size` takes."""


def format_bytes(count: float) -> str:
    """Bytes for a person to read: `512 B`, `38.2 MB`, `1.5 GB`, in steps of 1,000."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} TB"
