"""Files from outside are what the snapshot pinned, or they are not read."""

from __future__ import annotations

import os

import pytest

from artifacts_schema.errors import InputError
from flows.recipe.pipeline import Pipeline, Request
from stages.engine import Input, fetch
from stages.engine.sources import snapshot_name, source_files

RECIPE = """
name: outside
snapshots:
  notes: {files: ["notes/*.txt"]}
steps:
  read: {stage: ingest, inputs: {snapshot: notes}}
"""


@pytest.fixture
def pinned(tmp_path, store):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "b.txt").write_text("second")
    (folder / "a.txt").write_text("first")
    recipe = tmp_path / "outside.yaml"
    recipe.write_text(RECIPE)
    bound = Pipeline.open(Request(str(recipe), store.url))
    return folder, Input.from_manifest(bound.store, bound.snapshots["notes"], "snapshot")


def test_files_come_in_the_order_of_their_names(pinned):
    _, snapshot = pinned
    files = source_files(snapshot)
    assert snapshot_name(snapshot) == "notes"
    assert [(f.id, f.name, f.open().read()) for f in files] == [
        ("00000", "a.txt", b"first"),
        ("00001", "b.txt", b"second"),
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: path.write_text("FIRST"), r"a\.txt"),
        (lambda path: path.write_text("longer"), r"\b6\b.*\b5\b"),
        (lambda path: path.unlink(), r"a\.txt"),
    ],
)
def test_a_file_that_is_not_what_was_pinned_is_refused_by_name(pinned, change, message):
    folder, snapshot = pinned
    change(folder / "a.txt")
    with pytest.raises(InputError, match=message) as caught:
        source_files(snapshot)[0].open()
    assert caught.value.where == str(folder / "a.txt")


def test_a_file_is_hashed_once_in_a_process_however_often_its_parts_are_read(pinned, monkeypatch):
    hashed = []

    def checksum(file, digest):
        hashed.append(file.name)
        return real(file, digest)

    real = fetch.checksum
    monkeypatch.setattr(fetch, "checksum", checksum)
    folder, snapshot = pinned
    for _ in range(3):
        source_files(snapshot)[0].open().close()
    assert hashed == [str(folder / "a.txt")]
    (folder / "a.txt").write_text("FIRST")
    os.utime(folder / "a.txt", ns=(0, 0))
    with pytest.raises(InputError, match=r"a\.txt"):
        source_files(snapshot)[0].open()
