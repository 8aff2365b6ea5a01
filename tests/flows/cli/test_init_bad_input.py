"""`ingot init` on what users have: what it cannot use is named, and nothing large is read whole."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from click.testing import CliRunner

from artifacts_schema import files as files_module
from flows.cli.main import main
from stages.engine import allotment

ROW = {"text": "some words of a text " * 50}


@pytest.fixture
def data(tmp_path, monkeypatch):
    """`data(name, content)` writes a file in the folder `data` of the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()

    def write(name, content):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def rows(*values):
    return "".join(json.dumps(value) + "\n" for value in values)


def init(*arguments):
    return CliRunner().invoke(main, ["init", "data", *arguments])


def refused(result):
    """The error of a command that ended for wrong input."""
    assert result.exit_code == 2, result.output
    assert not Path("data.yaml").exists()
    return result.stderr


@pytest.mark.usefixtures("data")
def test_an_empty_folder():
    assert refused(init()) == "error: data: holds no file (hidden files are left out)\n"


def test_mixed_formats_are_each_named_with_what_becomes_of_them(data):
    data("a.jsonl", rows(*[ROW] * 40))
    data("pages/b.html", "<html><p>Some words.</p></html>")
    data("images/c.png", b"\x89PNG\r\n\x1a\n" + bytes(50))
    data("d.zip", b"PK\x03\x04")
    result = init()
    assert result.exit_code == 0
    uses = {line.split()[0]: line for line in result.stdout.splitlines()[1:5]}
    assert "text in 'text'" in uses["*.jsonl"]
    assert " text" in uses["pages/**/*.html"]
    assert "no format that is read" in uses["images/**/*.png"]
    assert "no format that is read" in uses["*.zip"]
    assert '"*.zip"' not in Path("data.yaml").read_text()


def test_rows_without_text_are_named_with_their_fields(data):
    data("a.jsonl", rows(*[{"id": 1, "label": "x"}] * 9))
    error = refused(init())
    assert "no field holds text (fields: id, label)" in error
    assert "--text-field" in error


def test_of_two_fields_the_longer_is_taken_and_the_other_named(data):
    row = {"summary": "a text of some words " * 20, "body": "other words of a text " * 30}
    data("a.jsonl", rows(*[row] * 40))
    result = init()
    assert "text in 'body', not 'summary' (longer; --text-field)" in result.stdout
    assert 'text_field: "body"' in Path("data.yaml").read_text()


def test_a_file_of_ten_gigabytes_is_not_read_whole(data):
    """Sparse: 40 rows, then zeros without an end of line."""
    path = data("a.jsonl", rows(*[ROW] * 40))
    os.truncate(path, 10 << 30)

    def read_so_far():
        return int(re.search(r"rchar: (\d+)", Path("/proc/self/io").read_text())[1])

    before = read_so_far()
    result = init("--minutes", "5")
    assert result.exit_code == 0, result.output
    assert read_so_far() - before < 100_000_000
    assert "10.7 GB" in result.stdout


def test_one_json_value_longer_than_what_is_read_is_named(data):
    path = data("a.json", "[\n")
    os.truncate(path, 1 << 30)
    assert "are they one JSON value?" in refused(init())


def test_less_than_one_batch(data):
    data("a.jsonl", rows({"text": "A short text of a few words."}))
    error = refused(init())
    assert "less than one batch of 8 sequences of 256" in error
    assert "add texts" in error


def test_of_models_larger_than_the_memory_the_largest_that_fits_is_taken(data, monkeypatch):
    data("a.jsonl", rows(*[ROW] * 40))
    os.truncate(Path("data/a.jsonl"), 100 << 30)
    monkeypatch.setattr(allotment, "available_memory", lambda: 1 << 30)
    result = init("--minutes", "1000000")
    assert result.exit_code == 0, result.output
    model = re.search(r"model: ([\d.]+) M parameters.*memory is the limit", result.stdout)
    assert float(model[1]) * 1e6 * 28 < 0.7 * (1 << 30)


def test_no_model_in_the_memory(data, monkeypatch):
    data("a.jsonl", rows(*[ROW] * 40))
    monkeypatch.setattr(allotment, "available_memory", lambda: 10_000_000)
    error = refused(init())
    assert "10.0 MB of memory hold the training of 250,000" in error  # 10 MB · 0.7 / 28.


def test_no_space_leaves_no_recipe(data, monkeypatch):
    data("a.jsonl", rows(*[ROW] * 40))

    def full(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(files_module, "_sync", full)
    result = init()
    assert result.exit_code != 0
    assert "data.yaml" in result.stderr
    assert "space" in result.stderr
    assert os.listdir() == ["data"]
    monkeypatch.undo()


@pytest.mark.parametrize("width", [60, 100])
def test_on_a_terminal_no_line_is_wider_and_no_word_is_lost(data, tmp_path, width):
    data("articles-of-the-encyclopedia/a.jsonl", rows(*[{"body": ROW["text"]}] * 40))
    data("b.zip", b"PK\x03\x04")
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    code = "from flows.cli.main import main; main()"
    environment = {name: v for name, v in os.environ.items() if name != "COLUMNS"}
    root = Path(main.callback.__code__.co_filename).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", code, "init", "data"], cwd=tmp_path, stdout=follower,
        stderr=follower, stdin=follower, close_fds=True,
        env={**environment, "TERM": "xterm", "PYTHONPATH": str(root)},
    )  # fmt: skip
    os.close(follower)
    text = b""
    while True:
        try:
            block = os.read(leader, 1 << 16)
        except OSError:  # The other side is closed.
            break
        if not block:
            break
        text += block
    assert process.wait() == 0, text
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.decode()).replace("\r", "")
    table = plain.partition("\n\n")[0]
    assert max(map(len, table.splitlines())) <= width
    assert "'body'" in plain
    assert "ingot run data.yaml" in plain


def test_in_a_pipe_there_is_no_colour_and_no_line_is_cut(data):
    name = "articles-" + "x" * 90
    data(f"{name}/a.jsonl", rows(*[ROW] * 40))
    result = init()
    assert "\x1b" not in result.stdout
    assert f"{name}/**/*.jsonl" in result.stdout
