"""Disk: needs by arithmetic, against a disk that the test makes up."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest

from artifacts_schema.errors import StoreError
from artifacts_schema.store import Store
from stages.pretrain import preflight_checks
from stages.pretrain.preflight_checks import (
    check_disk,
    check_writable,
    disk_needs,
    nearest_existing,
)


def needs(tmp_path, permanent=2, size=100):
    return disk_needs(tmp_path / "work", tmp_path / "data", size, permanent)


@pytest.fixture
def free(monkeypatch):
    """`free(bytes)`: so much is free on every disk."""

    def set_free(count):
        usage = SimpleNamespace(free=count)
        monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)

    return set_free


def test_rolling_and_permanent_checkpoints_are_needed(tmp_path):
    rolling, more, permanent = needs(tmp_path)
    assert (rolling.bytes, more.bytes, permanent.bytes) == (300, 200, 200)
    assert permanent.what == "1 permanent checkpoint and the output"
    assert needs(tmp_path, permanent=1)[2].what == "the output"
    assert len(disk_needs(tmp_path, None, 100, 2)) == 2  # a bucket has room


def test_what_a_killed_run_has_written_is_not_needed_again(tmp_path):
    saved = tmp_path / "work" / "checkpoints" / "training-step-2"
    saved.mkdir(parents=True)
    (saved / "model.safetensors").write_bytes(bytes(80))
    (saved / "other.json").write_bytes(bytes(80))
    assert [need.bytes for need in needs(tmp_path)] == [220, 200, 200]
    (saved / "optimizer.safetensors").write_bytes(bytes(300))
    assert [need.bytes for need in needs(tmp_path)] == [0, 120, 200]


@pytest.mark.parametrize(("spare", "level"), [(0, "ok"), (-1, "warning"), (-400, "warning")])
def test_too_little_for_permanent_ones_is_a_warning(tmp_path, free, spare, level):
    free(700 + spare)
    (finding,) = check_disk(needs(tmp_path))
    assert finding.level == level
    assert finding.numbers["needed_bytes"] == 700


def test_too_little_for_rolling_ones_is_a_refusal(tmp_path, free):
    free(299)
    (finding,) = check_disk(needs(tmp_path))
    assert finding.level == "refusal"
    assert "rolling checkpoints" in finding.message
    assert "permanent" in finding.hint


def test_folders_on_two_disks_are_two_findings(tmp_path, free, monkeypatch):
    free(10**9)
    monkeypatch.setattr(preflight_checks, "disk_of", lambda folder: folder.name)
    assert [one.level for one in check_disk(needs(tmp_path))] == ["ok", "ok"]


def test_a_folder_that_is_still_to_come_lies_on_the_disk_of_the_one_above(tmp_path):
    assert nearest_existing(tmp_path / "a" / "b") == tmp_path


def test_a_store_is_tried_and_nothing_stays(store):
    before = store.backend.files("")
    assert check_writable(store.backend).level == "ok"
    assert store.backend.files("") == before


def test_a_store_that_refuses_or_garbles_is_a_refusal(store: Store, monkeypatch):
    monkeypatch.setattr(type(store.backend), "read", lambda self, path: b"other")
    assert "other bytes" in check_writable(store.backend).message

    def refuse(self, path, data):
        raise StoreError("no permission", where=path)

    monkeypatch.setattr(type(store.backend), "replace", refuse)
    finding = check_writable(store.backend)
    assert finding.level == "refusal"
    assert "no permission" in finding.message
