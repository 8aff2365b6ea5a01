"""Paths in a store, relative to its root. Nothing else spells these paths."""

from __future__ import annotations

import re

FORMAT = "ingot-store.json"
"""Marks a folder as a store and names its schema version."""

CLOCK = "refs/.clock"
"""Where an object is written to learn the store's time, and then removed."""


def manifest(stage: str, key: str) -> str:
    """The manifest of an artifact: its presence is the commit."""
    return f"artifacts/{stage}/{key}.json"


def payload(stage: str, key: str, attempt: str = "", output: str = "") -> str:
    """The payload of an artifact, of one attempt at it, or of one output of that attempt."""
    return "/".join(part for part in ("data", stage, key, attempt, output) if part)


def file_table(stage: str, key: str, attempt: str) -> str:
    """The files of an artifact of many, beside its outputs: no output has such a name."""
    return payload(stage, key, attempt) + "/files.jsonl"


def block_table(place: str, output: str, path: str) -> str:
    """The table of blocks of the file `path` of an output that lies at `place`: in a folder beside
    the outputs, which bears no output's name."""
    return f"{place.removesuffix(f'{output}/{path}')}blocks/{output}/{path}"


def damage(stage: str, key: str) -> str:
    """What `ingot verify` found wrong with an artifact: kept until that is made again or whole."""
    return f"damage/{stage}/{key}.json"


def work(key: str, *parts: str) -> str:
    """Resume state, lease, log and events of a run."""
    return "/".join(("work", key, *parts))


_UPLOADED = ("lease/", "log", "events", "spec", "telemetry/", "kept.json")
_MARK = re.compile(r"state/[^/]+/[^/]+(\.json|/\.whole)")


def is_resume_state(name: str) -> bool:
    """Whether a file of a work folder is something to resume from, not a report of the run,
    nor a mark of who held its lease."""
    return not name.startswith(_UPLOADED) and _MARK.fullmatch(name) is None


def ref(name: str) -> str:
    """A movable name."""
    return f"refs/{name}.json"


def run(recipe: str, run_id: str) -> str:
    """The record of one run of a recipe."""
    return f"runs/{recipe}/{run_id}.json"


def locations(digest: str) -> str:
    """The locations of a snapshot's files: it changes when they move, and is never hashed."""
    return f"refs/.locations/{digest}.json"


def checksums() -> str:
    """Checksums of outside files by path, size and time: a cache, safe to remove."""
    return "refs/.checksums.json"


def published(organisation: str, name: str) -> str:
    """What was published last to a repository, and at which of its commits; never hashed."""
    return f"refs/.published/{organisation}/{name}.json"
