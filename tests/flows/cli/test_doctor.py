"""`ingot doctor` without pools: one table about this machine; what fails says what to do."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from collections import namedtuple
from pathlib import Path

import pytest
from click.testing import CliRunner

from flows.cli.main import main
from flows.orchestration import server
from flows.recipe import machine_checks


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """Nothing of this machine's own servers and caches."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INGOT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("INGOT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setattr(server, "find_server", lambda: None)


def doctor(*options):
    """(exit code, checks by name)."""
    result = CliRunner().invoke(main, ["doctor", "--json", *options])
    answer = json.loads(result.stdout)
    assert answer["ok"] == (result.exit_code == 0)
    return result.exit_code, {check["name"]: check for check in answer["checks"]}


def failed(checks):
    return {name: check["hint"] for name, check in checks.items() if check["ok"] is False}


def test_all_is_well_and_nothing_is_left(tmp_path):
    code, checks = doctor()
    assert (code, failed(checks)) == (0, {})
    assert list(checks) == [
        "Python", "versions", "extras", "cores", "memory", "GPU", "compiler", "cache disk",
        "store disk", "store modes", "store", "Prefect",
    ]  # fmt: skip
    assert "create once" in checks["store"]["text"]
    assert not list(tmp_path.rglob("*doctor*"))
    assert not (tmp_path / "ingot-store").exists()


def test_the_store_that_exists_is_tried_and_left_as_it_was(store):
    before = sorted(Path(store.url).rglob("*"))
    code, checks = doctor("--store", store.url)
    assert code == 0
    assert "none yet" not in checks["store"]["text"]
    assert [path for path in Path(store.url).rglob("*") if path.is_file()] == [
        path for path in before if path.is_file()
    ]


def test_a_store_that_anybody_may_write_fails_with_the_command(store):
    os.chmod(store.url, 0o777)
    code, checks = doctor("--store", store.url)
    assert code == 1
    assert failed(checks) == {"store modes": f"chmod o-w {store.url}"}


def test_a_bucket_is_tried_with_conditional_writes(s3_url):
    from artifacts_schema.store import Store

    Store.open(s3_url)
    code, checks = doctor("--store", s3_url)
    assert (code, failed(checks)) == (0, {})
    assert "create once" in checks["store"]["text"]


def test_too_little_of_each_is_named(monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage(10, 9, 1_000_000))
    monkeypatch.setattr(machine_checks, "available_memory", lambda: 1_000_000_000)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    code, checks = doctor()
    assert code == 1
    assert set(failed(checks)) == {"memory", "cache disk", "store disk"}
    assert "INGOT_CACHE" in checks["cache disk"]["hint"]
    assert checks["compiler"]["ok"] is None


@pytest.mark.parametrize(("version", "ok"), [((3, 10), False), ((3, 12), True), ((3, 99), None)])
def test_versions_of_python(version, ok):
    assert machine_checks._check_python(version).ok is ok


def test_packages_that_are_not_as_tested_are_named(tmp_path, monkeypatch):
    other = tmp_path / "constraints.txt"
    other.write_text("# Tested.\nclick==0.0.1\nno-such-package==1\n")
    monkeypatch.setattr(machine_checks, "CONSTRAINTS", other)
    _, checks = doctor()
    assert checks["versions"]["ok"] is None
    assert re.match(
        r"1 of 1 packages are not as tested: click \d.* \(tested: 0.0.1\)",
        checks["versions"]["text"],
    )


def test_a_configured_server_that_does_not_answer_fails(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        api = f"http://127.0.0.1:{taken.getsockname()[1]}/api"
        monkeypatch.setattr(server, "find_server", lambda: server.Server(api))
        code, checks = doctor()
    assert code == 1
    assert "--no-prefect" in failed(checks)["Prefect"]


def test_the_table_is_aligned_and_a_failing_row_says_what_to_do(monkeypatch):
    monkeypatch.setattr(machine_checks, "available_memory", lambda: 1_000_000_000)
    result = CliRunner().invoke(main, ["doctor"])
    head, *rows = result.stdout.splitlines()
    seen = head.index("seen")
    assert all(row[seen - 1] == " " != row[seen] for row in rows[:12])
    (memory,) = [row for row in rows if row.startswith("memory")]
    assert memory[head.index("what to do") :].startswith("the quickstart needs 4.0 GB")
    assert rows[-1] == "12 checks: 1 failed"
