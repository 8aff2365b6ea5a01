"""What holds for every installed stage: light to import, described, and stable in its identity.

`defaults.json` stores, for each stage and version, a digest of the defaults of its Config, and of
each preset that recipes name. A changed default or preset changes what an unchanged recipe means,
so it needs a new version of the stage: then add its digests with

    python tests/stages/test_every_stage.py [STAGE…]

A new field needs no new version if its default changes no output. Name the stage then, and its
stored digest is replaced; without its name a stored digest is never changed.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from artifacts_schema.config import Config
from artifacts_schema.identity import canonical_sha256
from artifacts_schema.kinds import KINDS
from stages.dedup.presets import PRESETS as DEDUP_PRESETS
from stages.engine.protocol import stage_named, stage_names
from stages.filter.presets import PRESETS as FILTER_PRESETS

STORED = Path(__file__).parent / "defaults.json"
STAGES = [name for name in stage_names() if stage_named(name).__module__.startswith("stages.")]
PRESETS = {"dedup": DEDUP_PRESETS, "filter": FILTER_PRESETS}
"""Presets that a config holds by name, so that its key does not tell what is in them."""
PROSE = ("source", "fidelity")
"""Fields of rules and presets that decide nothing."""
HEAVY = ("torch", "numpy", "pyarrow", "transformers", "tokenizers", "duckdb", "scipy", "prefect")


def required(config: type[Config]) -> dict[str, str]:
    """Stand-ins for fields without a default."""
    return {
        name: f"required {field.annotation}"
        for name, field in config.model_fields.items()
        if field.is_required()
    }


def defaults_digest(config: type[Config]) -> str:
    """Digest of what the fields are when nobody sets them."""
    values = {
        name: field.get_default(call_default_factory=True)
        for name, field in config.model_fields.items()
        if not field.is_required()
    }
    plain = json.loads(config.model_construct(**values).model_dump_json(warnings=False))
    return canonical_sha256({**plain, **required(config)})[:16]


def preset_digest(preset: Any) -> str:
    """Digest of the settings, or of the rules, of a preset."""
    parts = preset if isinstance(preset, tuple) else (preset,)
    names = [field.name for field in fields(parts[0]) if field.name not in PROSE]
    values = [{name: getattr(part, name) for name in names} for part in parts]
    return hashlib.sha256(repr(values).encode()).hexdigest()[:16]


def digests(name: str) -> dict[str, str]:
    """Digests of a stage's defaults and of each of its presets, as the code has them."""
    presets = {
        f"preset {preset_name}": preset_digest(preset)
        for preset_name, preset in PRESETS.get(name, {}).items()
    }
    return {"defaults": defaults_digest(stage_named(name).Config), **presets}


@pytest.mark.parametrize("name", STAGES)
def test_a_changed_default_or_preset_comes_with_a_new_version(name):
    stored = json.loads(STORED.read_text())
    version = str(stage_named(name).version)
    assert stored.get(name, {}).get(version) == digests(name), (
        f"defaults or presets of {name} changed, or its version {version} is new: see this "
        "file's head"
    )


@pytest.mark.parametrize("name", STAGES)
def test_every_field_is_described(name):
    stage = stage_named(name)
    waiting: list[type] = [stage.Config, stage.Execution]
    while waiting:
        model = waiting.pop()
        for field_name, field in model.model_fields.items():
            assert field.description, f"{model.__name__}.{field_name}"
            inner = getattr(field.annotation, "model_fields", None)
            if inner is not None:
                waiting.append(field.annotation)


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_tells_its_story(name):
    stage = stage_named(name)
    assert len(stage.__doc__.strip().splitlines()) >= 1
    assert stage.reproducible in ("bytes", "numerics")
    assert "python" not in stage.libraries


def test_planning_imports_nothing_heavy():
    program = (
        "import sys; from stages.engine.protocol import all_stages; all_stages();"
        f"print([n for n in {HEAVY!r} if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_every_column_of_every_kind_is_described():
    for kind in KINDS.values():
        assert kind.description.endswith(".")
        for layout in kind.tables.values():
            layout.arrow()
            for column in layout.columns:
                assert column.description.strip(), f"{kind.name}.{column.name}"


def store_digests(replace: Sequence[str]) -> None:
    """Add what is new to `defaults.json`; SystemExit where a stored digest differs."""
    known = json.loads(STORED.read_text())
    for name in STAGES:
        stage, current = stage_named(name), digests(name)
        stored = known.setdefault(name, {}).setdefault(str(stage.version), {})
        changed = [one for one, digest in stored.items() if current.get(one) != digest]
        if changed and name not in replace:
            sys.exit(f"{name}, {', '.join(changed)}: raise its version {stage.version} first")
        known[name][str(stage.version)] = current
    STORED.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    store_digests(sys.argv[1:])
