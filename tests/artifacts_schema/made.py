"""Small artifacts for tests of the store: one file, one name, a key that follows from them."""

from __future__ import annotations

from artifacts_schema.identity import artifact_key
from artifacts_schema.manifest import Code, Manifest
from artifacts_schema.store.commit import Attempt, commit


def key_of(name, inputs=None, stage="s"):
    """The key of what `make` makes under this name."""
    digests = {role: [one.digest for one in given] for role, given in (inputs or {}).items()}
    return artifact_key(stage, 1, {"name": name}, digests)


def make(store, name, data=b"{}", *, inputs=None, libraries=None, reproducible="bytes", stage="s"):
    key = key_of(name, inputs, stage)
    attempt = Attempt(store.backend, stage, key, {"snapshot": "snapshot"})
    with attempt.create("snapshot", "snapshot.json") as file:
        file.write(data)
    return commit(
        store,
        Manifest(
            stage=stage,
            version=1,
            key=key,
            reproducible=reproducible,
            config={"name": name},
            identity={"name": name},
            inputs=inputs or {},
            outputs=attempt.outputs(),
            attempt=attempt.name,
            code=Code(digest="0" * 64, libraries=libraries or {}),
        ),
    )
