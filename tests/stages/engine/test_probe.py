"""What a machine says of itself and of a store: every operation, and what is wrong with it."""

from __future__ import annotations

import errno
import json
import os

import pytest

from artifacts_schema.store import Store, layout
from stages.engine.allotment import available_memory
from stages.engine.probe import ANSWER, QUESTION, Machine, main, try_store

KEY = "ab" * 32


@pytest.fixture
def folder(tmp_path):
    """A store in a folder; `store` is also one in a bucket."""
    return Store.open(str(tmp_path / "folder"))


def test_a_folder_passes_and_is_left_as_it_was(folder):
    before = folder.backend.files("")
    problems = try_store(folder.backend, layout.work(KEY, "trial"))
    assert problems == dict.fromkeys(
        ["write", "read", "hard link", "rename", "create once", "fsync", "remove"], ""
    )
    assert folder.backend.files("") == before


def test_a_bucket_passes(s3_url):
    store = Store.open(s3_url)
    problems = try_store(store.backend, layout.work(KEY, "trial"))
    assert problems == dict.fromkeys(
        ["write", "read", "copy", "replace", "create once", "remove"], ""
    )


@pytest.mark.parametrize(
    ("call", "broken"),
    [("link", {"hard link", "create once"}), ("replace", {"rename"}), ("fsync", None)],
)
def test_what_a_file_system_cannot_do_is_named(folder, monkeypatch, call, broken):
    """Hard links: a commit and a lease need them. fsync: every write does."""

    def refuse(*arguments):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, call, refuse)
    problems = try_store(folder.backend, layout.work(KEY, "trial"))
    wrong = {name for name, text in problems.items() if text}
    assert wrong >= (broken or {"write", "rename", "create once", "fsync"})
    assert wrong <= (broken or set(problems) - {"remove"})


def test_the_answer_lies_beside_the_question(store, capsys):
    store.backend.replace(layout.work(KEY, QUESTION), b"{}")
    assert main(["--store", store.url, "--key", KEY]) == 0
    raw = store.backend.read(layout.work(KEY, ANSWER))
    assert Machine.from_json(raw).to_json() == raw
    assert json.loads(capsys.readouterr().out) == json.loads(raw)


def test_another_store_and_none_are_told_apart(store, tmp_path, capsys):
    assert main(["--store", store.url, "--key", KEY]) == 1
    assert "another store" in capsys.readouterr().err
    assert main(["--store", str(tmp_path / "no"), "--key", KEY]) == 1
    assert "no store here" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


def test_memory_is_the_least_that_a_control_group_allows(tmp_path):
    """`memory.max` is bytes, or `max` for no limit (Linux, admin-guide/cgroup-v2, "Memory")."""
    for name, text in {"own": "max\n", "job": "2000000\n"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "memory.max").write_text(text)
    assert available_memory([tmp_path / "own", tmp_path / "job", tmp_path / "none"]) == 2_000_000
    assert available_memory([tmp_path / "own"]) == available_memory([]) > 2_000_000
