"""The documenting program, run as the stage runs it: in an interpreter of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stages.sample import modules
from stages.sample.crawl import visible_text

# Modules whose pages could hang on the surroundings: sets, enums, defaults that are live objects,
# values read from the environment, optional libraries, conditional definitions.
DELICATE = (
    "argparse",
    "ast",
    "collections",
    "csv",
    "enum",
    "importlib.metadata",
    "inspect",
    "logging",
    "mailbox",
    "pickle",
    "posixpath",
    "random",
    "re",
    "shelve",
    "threading",
    "typing",
    "wsgiref.simple_server",
    "pydoc_data.topics",
)


@pytest.fixture(scope="module")
def documented() -> dict[str, dict[str, Any]]:
    return {row["module"]: row for row in modules.run_documenter(DELICATE)}


def html_of(rows: dict[str, dict[str, Any]], path: str) -> str:
    return next(p["html"] for row in rows.values() for p in row["pages"] if p["path"] == path)


@pytest.mark.full
def test_surroundings_of_the_parent_reach_no_page(
    documented: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import enum

    (tmp_path / "enum.py").write_text("raise RuntimeError('the wrong enum')")
    monkeypatch.chdir(tmp_path)
    for name, value in {
        "PYTHONHASHSEED": "77",
        "PYTHONPATH": str(tmp_path),
        "PYTHONDOCS": "https://elsewhere.example",
        "PYTHONOPTIMIZE": "2",
        "HOME": "/home/nobody",
        "TZ": "Asia/Tokyo",
        "LC_ALL": "de_DE.UTF-8",
        "LANG": "ja_JP.UTF-8",
        "COLUMNS": "40",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(enum.Enum, "__doc__", "patched in the parent")
    assert {r["module"]: r for r in modules.run_documenter(DELICATE)} == documented


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "UTC"},
        {"PYTHONHASHSEED": "2", "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo", "HOME": "/", "X": "y"},
    ],
)
def test_pages_do_not_hang_on_hash_seed_locale_or_environment(
    documented: dict[str, dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
) -> None:
    monkeypatch.setattr(modules, "ENVIRONMENT", environment)
    again = {r["module"]: r for r in modules.run_documenter(DELICATE)}
    assert [name for name in documented if documented[name] != again[name]] == []


def test_pages_do_not_hang_on_optional_libraries_or_the_platform(
    documented: dict[str, dict[str, Any]],
) -> None:
    """As a Python built without them, on another POSIX system, would document the same modules."""
    program = Path(modules.__file__).with_name("documenter.py")
    setup = (
        "import sys, pydoc, runpy\n"
        "for name in ('_ssl _hashlib _bz2 _lzma _sqlite3 _ctypes _curses readline _dbm _tkinter "
        "_uuid _posixshmem').split(): sys.modules[name] = None\n"
        "sys.platform = 'darwin'\n"
        f"runpy.run_path({str(program)!r}, run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, *modules.FLAGS, "-c", setup],
        input=json.dumps({"modules": DELICATE, "class_page": modules.CLASS_PAGE}).encode(),
        env=modules.ENVIRONMENT,
        capture_output=True,
        check=True,
    )
    again = {r["module"]: r for r in map(json.loads, done.stdout.splitlines())}
    assert [name for name in documented if documented[name] != again[name]] == []


def test_nothing_names_this_machine(documented: dict[str, dict[str, Any]]) -> None:
    everything = json.dumps(list(documented.values()))
    assert not re.search(r" at 0x[0-9a-f]{4,}", everything)
    assert 'href=\\"file:' not in everything
    folders = {sys.prefix, sys.base_prefix, str(Path(json.__file__).parents[1]), os.getcwd()}
    for folder in folders - {"/usr", "/usr/local"}:  # which documentation names as well
        assert folder not in everything


def test_a_page_shows_the_docstrings_of_its_module(documented: dict[str, dict[str, Any]]) -> None:
    import csv

    text = " ".join(visible_text(html_of(documented, "library/csv")).split())
    assert " ".join(csv.Sniffer.sniff.__doc__.split()) in text  # type: ignore[union-attr]
    assert "Source code: Lib/csv.py" in text


def test_a_class_documents_what_it_defines_and_not_what_it_inherits(
    documented: dict[str, dict[str, Any]],
) -> None:
    import collections

    counter = html_of(documented, "library/collections.Counter")
    assert "most_common" in counter
    assert "inherited from" not in counter
    assert str(collections.Counter.popitem.__doc__) not in visible_text(counter)


def test_a_large_class_has_a_page_of_its_own_and_is_linked(
    documented: dict[str, dict[str, Any]],
) -> None:
    import argparse

    module = html_of(documented, "library/argparse")
    assert 'href="argparse.ArgumentParser.html"' in module
    text = argparse.ArgumentParser.__doc__ or ""
    assert text.strip().splitlines()[-1].strip() not in visible_text(module)


def test_a_topic_of_the_reference_is_a_page_with_paragraphs(
    documented: dict[str, dict[str, Any]],
) -> None:
    page = html_of(documented, "reference/assert")
    assert "statement</h1>\n<p>Assert statements are a convenient way" in page
    assert "***" not in page


def test_entries_are_public_and_described_by_the_module_itself(
    documented: dict[str, dict[str, Any]],
) -> None:
    entries = {e["name"]: e for e in documented["random"]["entries"]}
    assert entries["Random.shuffle"] == {
        "kind": "method",
        "name": "Random.shuffle",
        "signature": "(self, x)",
        "doc": "Shuffle list x in place, and return None.",
    }
    assert not any(part.startswith("_") for name in entries for part in name.split("."))


def test_a_module_that_cannot_be_imported_is_told_with_its_reason() -> None:
    (row,) = modules.run_documenter(["no_such_module"])
    assert row == {
        "module": "no_such_module",
        "missing": "ModuleNotFoundError: No module named 'no_such_module'",
    }
