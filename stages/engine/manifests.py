"""What every manifest of a stage's run says: what was run, of what, by which program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from artifacts_schema.manifest import Code, Manifest
from stages.engine.code import code_digest, library_versions

if TYPE_CHECKING:
    from artifacts_schema.store.commit import Attempt
    from stages.engine.protocol import Stage
    from stages.engine.spec import StageSpec


def manifest_of(
    spec: StageSpec, stage: type[Stage], attempt: Attempt, *, key: str, **told: Any
) -> Manifest:
    """The manifest of what `attempt` wrote under `key`; `told` are its other fields."""
    return Manifest(
        stage=spec.stage,
        version=spec.version,
        key=key,
        reproducible=stage.reproducible,
        config=spec.config,
        identity=spec.identity,
        inputs=spec.inputs,
        outputs=attempt.outputs(),
        attempt=attempt.name,
        code=Code(digest=code_digest(stage), libraries=library_versions(stage)),
        **told,
    )
