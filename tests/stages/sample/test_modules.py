"""The stored lists: disjoint, complete for this Python, and free of side effects."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from stages.sample import modules

IMPORTED = (*modules.CRAWL, *modules.CONVERSATIONS, *modules.BENCHMARKS)


def test_no_module_serves_two_purposes() -> None:
    everything = [*IMPORTED, *modules.CODE]
    assert len(everything) == len(set(everything))


def test_every_module_has_a_source_file_in_this_python() -> None:
    assert [name for name in (*IMPORTED, *modules.CODE) if modules.source_file(name) is None] == []


def test_source_files_are_named_by_their_place_in_the_library() -> None:
    found = modules.source_file("json.decoder")
    assert found is not None
    name, text = found
    assert name == "json/decoder.py"
    assert text == (Path(json.__file__).parent / "decoder.py").read_text(encoding="utf-8")
    package = modules.source_file("json")
    assert package is not None
    assert package[0] == "json/__init__.py"


def test_importing_the_documented_modules_does_nothing_to_be_seen(tmp_path: Path) -> None:
    """No output, no file, no window, no thread left behind."""
    program = (
        "import importlib, sys, threading\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "assert threading.active_count() == 1\n"
        "assert not {'tkinter', 'antigravity', 'this', 'turtle', 'idlelib'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, *modules.FLAGS, "-c", program, *IMPORTED],
        env=modules.ENVIRONMENT,
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert list(tmp_path.iterdir()) == []
