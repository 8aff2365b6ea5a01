"""What is opened, what counts as unchanged, and what is printed."""

from __future__ import annotations

import errno
import json
import logging
import os

import pytest

from artifacts_schema.errors import (
    InputError,
    OneLine,
    is_utf8,
    printable,
    printable_json,
    printable_lines,
)
from artifacts_schema.files import file_state, make_read_only, open_regular


@pytest.mark.timeout(20)
def test_only_regular_files_are_opened_and_nothing_is_waited_for(tmp_path):
    regular = tmp_path / "regular"
    regular.write_bytes(b"data")
    (tmp_path / "link").symlink_to(regular)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "fifo_link").symlink_to("fifo")
    (tmp_path / "zeros").symlink_to("/dev/zero")
    for name in ("regular", "link"):
        with open_regular(tmp_path / name) as file:
            assert (file.read(), file.name) == (b"data", str(tmp_path / name))
    for name in ("fifo", "fifo_link", "zeros", "."):
        with pytest.raises(OSError) as caught:
            open_regular(tmp_path / name)
        assert (caught.value.errno, caught.value.filename) == (errno.EINVAL, str(tmp_path / name))
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "none")
    with pytest.raises(OSError, match="NUL"):
        open_regular("a\0b")


@pytest.mark.timeout(20)
def test_a_file_that_becomes_a_fifo_before_it_is_opened_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"data")
    regular = os.stat(path)
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(os, "stat", lambda _path: regular)
    with pytest.raises(OSError, match="FIFO"):
        open_regular(path)


def test_a_change_at_equal_size_and_time_is_a_change(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"one")
    before = os.stat(path)
    path.write_bytes(b"two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file_state(os.stat(path)) != file_state(before)
    other = tmp_path / "other"
    other.write_bytes(b"six")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(other, path)
    assert file_state(os.stat(path)) != file_state(before)


HOSTILE = "a\x1b]0;t\x07\x9b31m\u202e\u2066\ud800\n\t\r\x7fü日\u200d"


def test_nothing_that_a_terminal_obeys_is_printed():
    assert printable(HOSTILE) == (
        r"a\x1b]0;t\x07\x9b31m\u202e\u2066\ud800\n\t\r\x7f" "ü日\u200d"  # joins emoji and Arabic
    )
    assert printable(printable(HOSTILE)) == printable(HOSTILE)
    assert printable_lines("a\nerror: b\n  c") == "a\n  error: b\n  c"
    text = printable_json(json.dumps({"k": HOSTILE}, ensure_ascii=False, indent=2))
    assert "\u202e" not in text
    assert json.loads(text) == {"k": HOSTILE}
    assert not is_utf8("a\udcff")
    assert "\x1b" not in str(InputError("what", where="\x1b[2J"))


def test_no_message_forges_a_line_of_a_log():
    message = "x\n2026-01-01 00:00:00 INFO all is well\x1b[2J"
    record = logging.LogRecord("n", logging.INFO, "", 0, message, None, None)
    first, second = OneLine("%(levelname)s %(message)s").format(record).split("\n")
    assert (first, second) == ("INFO x", r"  2026-01-01 00:00:00 INFO all is well\x1b[2J")


def test_what_cannot_be_read_is_not_absent(tmp_path, monkeypatch):
    from artifacts_schema.files import exists, list_names

    (tmp_path / "b").touch()
    (tmp_path / "a").touch()
    assert list_names(tmp_path) == ["a", "b"]
    assert list_names(tmp_path / "none") == []
    assert exists(tmp_path / "a")
    assert not exists(tmp_path / "none")
    assert not exists(tmp_path / "a" / "below_a_file")

    def refuse(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "listdir", refuse)
    monkeypatch.setattr(os, "stat", refuse)
    with pytest.raises(PermissionError):
        list_names(tmp_path)
    with pytest.raises(PermissionError):
        exists(tmp_path / "a")


@pytest.mark.parametrize(("folder", "file"), [(0o755, 0o444), (0o2770, 0o440), (0o700, 0o400)])
def test_a_read_only_file_is_for_those_who_may_enter_its_folder(tmp_path, folder, file):
    """safetensors makes files 600, whatever the umask."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner").chmod(folder)
    path = tmp_path / "inner" / "file"
    path.touch(mode=0o600)
    make_read_only(path)
    assert path.stat().st_mode & 0o7777 == file
