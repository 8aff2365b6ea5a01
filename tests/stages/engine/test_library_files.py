"""What a library writes is there in whole or not at all; failed writes strike below Python.

Each writer that a stage uses runs in a process of its own, in which writes fail from the nth on.
fastText is the one that reports nothing (its stream's state is never asked).
"""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from failing_io import LASTING, FailingIO, Fault, compiled

from artifacts_schema.errors import InputError, StoreError
from artifacts_schema.files import write_whole

PROGRAM = """
import sys
from functools import partial
from pathlib import Path
from artifacts_schema.errors import StoreError
from artifacts_schema.files import write_whole

target, lines = Path(sys.argv[2]), sys.argv[3]

def fasttext(path):
    import fasttext
    model = fasttext.train_supervised(lines, thread=1, dim=4, bucket=20_000, verbose=0)
    model.save_model(str(path))

def safetensors(path):
    import torch
    from safetensors.torch import save_file
    save_file({"a": torch.zeros(50_000)}, path)

def numpy(path):
    import numpy
    with path.open("wb") as file:
        numpy.save(file, numpy.zeros(50_000))

def arrow(path):
    import pyarrow, pyarrow.parquet
    table = pyarrow.table({"a": range(50_000)})
    pyarrow.parquet.write_table(table, path, row_group_size=5_000)

def check(path):
    from stages.language_model.classifier import check_model
    check_model(path, where="model")

try:
    write_whole(target, globals()[sys.argv[1]], check if sys.argv[1] == "fasttext" else None)
except StoreError as error:
    print(error)
    sys.exit(4)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("library"))


def written_by(name, io, lines):
    target = io.folder / "target"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, name, str(target), str(lines)],
        env={**os.environ, **io.environment, "MALLOC_PERTURB_": "255"},
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 4), done.stderr
    return done.returncode, target, done.stdout


@pytest.mark.full
@pytest.mark.parametrize("name", ["fasttext", "safetensors", "numpy", "arrow"])
def test_a_failed_write_leaves_nothing_and_says_so(name, library, tmp_path):
    """At the first, a middle and the last write of the file; then again on a disk with room."""
    lines = tmp_path / "lines"
    lines.write_text("__label__a hello world\n__label__b good bye\n" * 50)
    folder = tmp_path / "folder"
    folder.mkdir()
    io = FailingIO(library, folder, tmp_path / "control")
    assert written_by(name, io, lines)[0] == 0
    whole = (folder / "target").stat().st_size
    (folder / "target").unlink()
    writes = io.calls["write"]
    assert writes > 0
    for first in sorted({1, writes // 2 + 1, writes}):
        io.strike(Fault("write", errno.ENOSPC, first, LASTING))
        code, target, printed = written_by(name, io, lines)
        assert io.struck > 0
        assert code == 4, f"write {first} of {writes} failed in silence"
        assert str(target) in printed
        assert "free space" in printed
        assert list(folder.iterdir()) == []
    io.strike(Fault("write", 0, 1, LASTING))  # Short writes are no failures.
    code, target, _ = written_by(name, io, lines)
    assert (code, target.stat().st_size) == (0, whole)


def test_what_a_check_refuses_is_not_kept(tmp_path):
    def refuse(path: Path) -> None:
        raise InputError("cut")

    with pytest.raises(StoreError) as caught:
        write_whole(tmp_path / "a", lambda path: path.write_text("half"), refuse)
    assert caught.value.where == str(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_appears_whole(tmp_path):
    def half(path: Path) -> None:
        path.mkdir()
        (path / "one").write_text("1")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "folder", half)
    assert list(tmp_path.iterdir()) == []

    def make(path: Path) -> None:
        path.mkdir()
        (path / "one").write_text("1")

    write_whole(tmp_path / "folder", make)
    assert [path.name for path in tmp_path.rglob("*")] == ["folder", "one"]


def test_what_a_killed_writer_left_is_replaced(tmp_path):
    (tmp_path / "a.unfinished").write_text("left")
    write_whole(tmp_path / "a", lambda path: path.write_text("whole"))
    assert (tmp_path / "a").read_text() == "whole"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
