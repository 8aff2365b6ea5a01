"""What is kept of a kernel: it must not outlive what was compiled into it, nor be lost for less."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from stages.engine import kernels, transfers

ROOT = Path(__file__).parents[3]
MODULES = {
    "constants.py": "ADDED = 10\nUNUSED = 1\n",
    "callee.py": """
from stages.engine.kernels import kernel

@kernel
def double(number):
    return 2 * number

@kernel
def other(number):
    return number
""",
    "caller.py": """
import sys
from stages.engine.kernels import kernel
from callee import double, other
from constants import ADDED

@kernel
def add(number):
    return double(number) + ADDED

add(1), other(1)
hits = (sum(function.stats.cache_hits.values()) for function in (add, other))
print(add(1), *hits)
""",
}


@pytest.fixture
def folder(tmp_path):
    for name, content in MODULES.items():
        (tmp_path / name).write_text(content)
    assert run(tmp_path) == [12, 0, 0]
    assert run(tmp_path) == [12, 1, 1]
    return tmp_path


def run(folder: Path, **environment: str) -> list[int]:
    """2 * 1 + ADDED, and whether kept machine code of `add` and of `other` was used."""
    path = os.pathsep.join((str(folder), str(ROOT)))
    variables = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    command = [sys.executable, str(folder / "caller.py")]
    done = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, check=True
    )
    return [int(word) for word in done.stdout.split()]


def edit(path: Path, old: str, new: str) -> None:
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_a_changed_constant_of_another_module_recompiles_its_reader_alone(folder):
    edit(folder / "constants.py", "ADDED = 10", "ADDED = 200")
    assert run(folder) == [202, 0, 1]


def test_a_changed_callee_in_another_module_recompiles_its_caller(folder):
    edit(folder / "callee.py", "2 * number", "3 * number")
    assert run(folder) == [13, 0, 0]


def test_an_edit_that_reaches_no_kernel_recompiles_only_those_of_its_module(folder):
    edit(folder / "constants.py", "UNUSED = 1", "UNUSED = 2")
    assert run(folder) == [12, 1, 1]
    edit(folder / "callee.py", "return number", "return number + 0")
    assert run(folder) == [12, 1, 0]


def test_without_compilation_a_kernel_is_its_function():
    code = (
        "from stages.engine.kernels import kernel\n"
        "def same(number): return number\n"
        "print(kernel(same) is same)"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout == "True\n"


def test_every_kernel_can_be_named_by_what_it_reads():
    uses = re.compile(r"^from stages\.engine\.kernels import ", re.MULTILINE)
    paths = [path for path in (ROOT / "stages").rglob("*.py") if uses.search(path.read_text())]
    functions = [
        value.py_func
        for path in paths
        for value in vars(
            import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        ).values()
        if hasattr(value, "py_func")
    ]
    assert len(functions) > 100
    for function in functions:
        text = "\n".join(kernels._describe(function, set()))
        assert not re.search(r"\bat 0x[0-9a-f]+", text), function


def test_a_constant_that_says_nothing_of_its_value_is_refused():
    with pytest.raises(TypeError, match="object object"):
        list(kernels._describe(object(), set()))


def test_the_log_says_that_kernels_are_compiled_and_how_long_it_took(caplog, monkeypatch):
    def keep_nothing(function):
        raise RuntimeError("no locator available")

    monkeypatch.setattr(kernels, "_Cache", keep_nothing)  # Or a second run of this test loads it.
    log = logging.getLogger("a stage")
    with caplog.at_level(logging.INFO, "a stage"), transfers.log_compiling(log):

        @kernels.kernel
        def half(number):
            return number / 2

        assert half(3) == 1.5
    first, last = caplog.messages
    assert "compiling" in first
    assert re.search(r"compiled 1 .* [0-9.]+ s", last)


def test_the_log_names_the_slowest_of_the_workers_that_compiled(caplog):
    relay = transfers.Relay()
    log = logging.getLogger("a stage")
    with caplog.at_level(logging.INFO, "a stage"), transfers.log_compiling(log):
        for process, kernels_so_far, seconds in ((7, 0, 0.0), (8, 2, 1.5), (7, 3, 2.5)):
            relay.sender.send_bytes(json.dumps([process, kernels_so_far, seconds]).encode())
        assert relay.forward() == {7, 8}
    relay.close()
    first, last = caplog.messages
    assert "compiling" in first
    assert "3" in last
    assert "2.5 s" in last
    assert "2 processes" in last


def test_a_kernel_imports_no_package_that_extends_numba(folder: Path) -> None:
    metadata = folder / "extends_numba-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: extends-numba\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[numba_extensions]\ninit = extends_numba:init\n")
    (folder / "extends_numba.py").write_text("print('imported')\ndef init(): pass\n")
    assert run(folder) == [12, 1, 1]
