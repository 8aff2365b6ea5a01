"""A profile: where and how the steps of a recipe run. It never changes a key.

jobs: 2                            # steps that run at the same time
default: {workers: 4}              # for every stage
stages:
  signals: {workers: 8}            # for the steps of one stage; wins over the recipe's own
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from artifacts_schema.config import did_you_mean
from artifacts_schema.errors import UsageError
from flows.recipe.reading import read_yaml
from flows.recipe.recipe import BUNDLED

PROFILE_KEYS = ("name", "description", "jobs", "default", "stages")


@dataclass(frozen=True)
class Profile:
    """Execution values by stage."""

    name: str = "local"
    jobs: int = 1
    default: dict[str, Any] = field(default_factory=dict)
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)

    def execution(self, stage: str, own: dict[str, Any]) -> dict[str, Any]:
        """Execution of a step: the default here, then the step's own, then the stage's here."""
        return {**self.default, **own, **self.stages.get(stage, {})}


def find_profile(name: str, recipe: Path) -> Path:
    """A profile by path, or by name beside the recipe or among those that come with Ingot."""
    path = Path(name)
    if path.exists() or path.suffix in (".yaml", ".yml") or "/" in name:
        return path
    folders = (recipe.parent / "profiles", BUNDLED / "profiles")
    for folder in folders:
        if (folder / f"{name}.yaml").exists():
            return folder / f"{name}.yaml"
    known = {found.stem for folder in folders for found in folder.glob("*.yaml")}
    raise UsageError(f"no profile '{name}'{did_you_mean(name, known)}", hint="or give a path")


def load_profile(name: str | None, recipe: Path) -> Profile:
    """The profile called `name`; one job with the stages' own defaults if None."""
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
    sections = {"default": values.get("default") or {}, **(values.get("stages") or {})}
    for section, content in sections.items():
        if not isinstance(content, dict):
            where = f"{document.place('stages', section)}: {section}"
            raise UsageError(f"expected keys and values, got {content!r}", where=where)
    return Profile(
        str(values.get("name", path.stem)), jobs, sections["default"], values.get("stages") or {}
    )
