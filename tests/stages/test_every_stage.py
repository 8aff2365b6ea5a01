"""What holds for every installed stage: light to import, described, and stable in its identity.

`defaults.json` stores, for each stage and version, a digest of the defaults of its Config. A
changed default changes what an unchanged recipe means, so it needs a new version: then add the new
line with `python tests/stages/test_every_stage.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from artifacts_schema.config import Config
from artifacts_schema.identity import canonical_sha256
from artifacts_schema.kinds import KINDS
from stages.engine.protocol import stage_named, stage_names

STORED = Path(__file__).parent / "defaults.json"
STAGES = [name for name in stage_names() if stage_named(name).__module__.startswith("stages.")]
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


def table() -> dict[str, dict[str, str]]:
    """Stage → version → digest of its defaults, as the code has it."""
    return {
        name: {str(stage_named(name).version): defaults_digest(stage_named(name).Config)}
        for name in STAGES
    }


@pytest.mark.parametrize("name", STAGES)
def test_a_changed_default_comes_with_a_new_version(name):
    stored = json.loads(STORED.read_text())
    (version, digest), *_ = table()[name].items()
    assert stored.get(name, {}).get(version) == digest, (
        f"the defaults of {name} changed, or its version {version} is new: see this file's head"
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


if __name__ == "__main__":
    known = json.loads(STORED.read_text()) if STORED.exists() else {}
    for stage_name, versions in table().items():
        known.setdefault(stage_name, {}).update(versions)
    STORED.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
