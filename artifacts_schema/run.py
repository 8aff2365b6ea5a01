"""What a run of a recipe says about itself: its steps, how each stands, and how it ended.

A run record is for people: `ingot report`, `ingot watch` and the comparison of two runs read it. No
key depends on it, and a lost one costs only the picture. While a run goes on, a collection keeps
the artifacts that its record names.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from artifacts_schema.errors import CorruptArtifact

StepState = Literal["waiting", "reused", "running", "made", "failed", "stopped"]
RunState = Literal["running", "done", "failed", "stopped"]


class RunStep(BaseModel):
    """One step instance of a run. `key` is None until its inputs are known."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    instance: str
    stage: str
    key: str | None
    state: StepState
    cause: str = ""
    waits_for: tuple[str, ...] = ()
    seconds: float | None = None
    error: str | None = None


class Run(BaseModel):
    """One run of a recipe in a store; times are UTC, for people only."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    recipe: str
    state: RunState
    started: str
    updated: str
    steps: tuple[RunStep, ...]
    snapshots: dict[str, str] = Field(default_factory=dict)
    overrides: tuple[str, ...] = ()
    profile: str | None = None
    machine: str = ""
    process: int = 0
    process_started: str = ""
    error: str | None = None

    @property
    def name(self) -> str:
        """`recipe@id`: what commands take for this run."""
        return f"{self.recipe}@{self.id}"

    @classmethod
    def load(cls, raw: bytes, *, where: str) -> Run:
        """Parse a stored record; CorruptArtifact if it is none."""
        try:
            return cls.model_validate_json(raw)
        except ValidationError as error:
            first = error.errors()[0]
            raise CorruptArtifact(
                f"not a run record: {'.'.join(map(str, first['loc']))}: {first['msg']}",
                where=where,
                hint="remove the file: only the picture of that run is lost",
            ) from None
