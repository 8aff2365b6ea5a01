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
        manifest_of(
            attempt,
            name,
            reproducible=reproducible,
            inputs=inputs or {},
            code=Code(digest="0" * 64, libraries=libraries or {}),
        ),
    )


def manifest_of(attempt, name, **fields):
    """The manifest of an attempt at what `make` makes under this name."""
    defaults = {
        "reproducible": "bytes",
        "inputs": {},
        "code": Code(digest="0" * 64, libraries={}),
    }
    return Manifest(
        stage=attempt.stage,
        version=1,
        key=attempt.key,
        config={"name": name},
        identity={"name": name},
        outputs=attempt.outputs(),
        attempt=attempt.name,
        **{**defaults, **fields},
    )


def write_many(store, name, files, data=b"x", *, stage="s"):
    """An attempt with so many files, `00000.json` and on, in two outputs by turns."""
    kinds = {"one": "snapshot", "two": "snapshot"}
    attempt = Attempt(store.backend, stage, key_of(name, stage=stage), kinds)
    for number in range(files):
        with attempt.create(("one", "two")[number % 2], f"files/{number:05d}.json") as file:
            file.write(data * (number + 1))
    return attempt


def make_many(store, name, files, data=b"x"):
    """An artifact of `write_many`."""
    return commit(store, manifest_of(write_many(store, name, files, data), name))
