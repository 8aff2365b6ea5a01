"""Recipes, command lines and files that are none: each ends soon, in one clean line, code 2."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from artifacts_schema.store import Store
from flows.cli.main import main

pytestmark = pytest.mark.timeout(60)

RAW = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
STEP = "steps: {read: {stage: ingest, inputs: {snapshot: crawl}, config: {%s}}}\n"
GOOD = 'name: demo\nsnapshots: {crawl: {files: ["data/*"]}}\n' + STEP


def bomb(link: str) -> str:
    """13 lines, each of which means the one before it nine times."""
    return "".join(f"a{i}: &a{i} {link % ', '.join([f'*a{i - 1}'] * 9)}\n" for i in range(1, 13))


def snapshot(values: str) -> str:
    return f"name: demo\nsnapshots: {{crawl: {values}}}\n" + STEP % ""


RECIPES = {
    # Found by an outside trial.
    "merge_bomb": "a0: &a0 {k: 1}\n" + bomb("{<<: [%s]}"),
    "alias_bomb": "a0: &a0 [x]\n" + bomb("[%s]"),
    "int_of_a_word": GOOD % "max_files: !!int abc",
    "float_of_a_word": GOOD % "max_bad_share: !!float abc",
    "bool_of_a_word": GOOD % "plain_text: !!bool abc",
    "int_of_5000_digits": GOOD % f"max_files: {'9' * 5000}",
    "nul": GOOD % "source: a\0b",
    # Others.
    "int_of_80_bits": GOOD % f"max_files: {2**80}",
    "int_in_hexadecimal": GOOD % f"max_files: 0x{'f' * 5000}",
    "empty_float": GOOD % 'max_bad_share: !!float ""',
    "infinite_share": GOOD % "max_bad_share: .inf",
    "share_that_is_no_number": GOOD % "max_bad_share: .nan",
    "share_beyond_floats": GOOD % "max_bad_share: 1e999",
    "date_that_is_none": GOOD % "source: !!timestamp 2020-99-99",
    "binary": GOOD % "source: !!binary aGk=",
    "set": GOOD % "source: !!set {a, b}",
    "python_object": GOOD % "source: !!python/object/apply:os.system [ls]",
    "escaped_nul": GOOD % 'source: "a\\0b"',
    "half_a_character": GOOD % 'source: "\\ud800"',
    "escape_codes": GOOD % 'source: "\\e]0;pwned\\a"',
    "name_of_escape_codes": (GOOD % "").replace("demo", '"\\e[2J"'),
    "key_of_escape_codes": GOOD % '"\\e[31mred": 1',
    "overriding_direction": GOOD % 'source: "\\u202egnp"',
    "newlines_in_a_path": snapshot('{files: ["a\\nerror: none\\r\\n"]}'),
    "nul_in_a_path": snapshot('{files: ["a\\0b"]}'),
    "path_of_5000_characters": snapshot(f'{{files: ["{"x" * 5000}"]}}'),
    "pattern_of_5000_characters": snapshot(f'{{files: ["{"x" * 5000}/*"]}}'),
    "root_of_5000_characters": snapshot(f'{{root: "{"x" * 5000}", files: ["*"]}}'),
    "root_of_nobody": snapshot('{root: "~nobody-here/x", files: ["*"]}'),
    "pattern_of_nobody": snapshot('{files: ["~nobody-here/*"]}'),
    "list_of_nobody": snapshot('{paths: "~nobody-here/x"}'),
    "list_of_5000_characters": snapshot(f'{{paths: "{"x" * 5000}"}}'),
    "extends_5000_characters": f'extends: "{"x" * 5000}"\n' + GOOD % "",
    "extends_a_nul": 'extends: "a\\0b"\n' + GOOD % "",
    "extends_a_folder": "extends: data\n" + GOOD % "",
    "extends_itself": "extends: demo.yaml\n" + GOOD % "",
    "extends_zeros": "extends: /dev/zero\n" + GOOD % "",
    "list_of_zeros": snapshot("{paths: /dev/zero}"),
    "files_of_zeros": snapshot("{files: [/dev/zero]}"),
    "files_of_a_terminal": snapshot("{files: [/dev/tty]}"),
    "merge_of_itself": "a: &a {<<: *a}\n",
    "alias_of_itself": "a: &a [*a]\n",
    "merge_of_a_word": "a: {<<: word}\n",
    "alias_of_nothing": "a: *nothing\n",
    "flow_nested_deeply": "a: " + "[" * 3_000,
    "blocks_nested_deeply": "".join(f"{' ' * n}a:\n" for n in range(1_500)),
    "two_documents": "a: 1\n---\nb: 2\n",
    "tabs": "\ta: 1\n",
    "list": "- a\n- b\n",
    "word": "word\n",
    "key_that_is_a_list": "? [a, b]\n: c\n",
    "key_twice": "name: a\nname: b\n",
    "unclosed": "name: 'a\n",
    "directive": "%YAML 9.9\n---\na: 1\n",
    "nothing": "",
}


def check_refused(result, code: int = 2) -> str:
    """One line of `error:` with nothing a terminal obeys; returns it."""
    assert result.exit_code == code, result.output
    said = result.stderr
    assert said.startswith("error: "), said
    assert "bug in Ingot" not in said
    assert not RAW.search(result.output + said), said
    assert all(line.startswith("  ") for line in said.splitlines()[1:]), said
    return said


@pytest.fixture
def work(tmp_path, monkeypatch):
    """An empty folder with a file of data, where commands run."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("some text\n")
    (tmp_path / "demo.yaml").write_text(GOOD % "")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ingot(*arguments: str):
    return CliRunner().invoke(main, list(arguments))


def test_the_recipe_that_the_hostile_ones_vary_is_good(work):
    assert ingot("plan", "demo.yaml").exit_code == 0


@pytest.mark.parametrize("text", RECIPES.values(), ids=RECIPES)
def test_a_recipe_that_is_none_is_refused(work, text):
    (work / "demo.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    check_refused(ingot("plan", "demo.yaml"))


BYTES = {
    "not_utf8": b"name: \xff\xfe\n",
    "utf16": "name: demo\n".encode("utf-16"),
    "gzip": b"\x1f\x8b\x08\x00" + bytes(range(64)),
    "zeros": bytes(100),
    "too_long": b"#" * 4_000_001,
    "c1": b"name: \xc2\x9b31m\n",
    "surrogate": b"name: \xed\xa0\x80\n",
}


@pytest.mark.parametrize("data", BYTES.values(), ids=BYTES)
def test_bytes_that_are_no_recipe_are_refused(work, data):
    (work / "demo.yaml").write_bytes(data)
    check_refused(ingot("plan", "demo.yaml"))


def make_special(kind: str, path: Path) -> None:
    """A name that is no regular file."""
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "zeros":
        path.symlink_to("/dev/zero")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(os.path.relpath(path))
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    else:
        path.symlink_to("nowhere")


SPECIAL = ("fifo", "zeros", "socket", "folder", "loop", "dangling")
USES = {
    "recipe": ("plan", "special.yaml"),
    "run": ("run", "special.yaml"),
    "profile": ("plan", "demo.yaml", "--profile", "special.yaml"),
    "config": ("stage", "ingest", "--config", "special.yaml"),
    "documents": ("forget", "--from", "special.yaml"),
    "report": ("account", "special.yaml"),
    "list": ("snapshot", "add", "crawl", "--paths", "special.yaml"),
}


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("arguments", USES.values(), ids=USES)
def test_what_is_no_regular_file_is_never_waited_for(work, kind, arguments):
    Store.open(str(work / "ingot-store"))
    make_special(kind, work / "special.yaml")
    check_refused(ingot(*arguments))


@pytest.mark.parametrize("kind", [kind for kind in SPECIAL if kind != "folder"])
@pytest.mark.parametrize("files", ["data/*", "data", "data/**/*.txt", "data/b.txt"])
def test_what_is_no_regular_file_in_a_snapshot_is_named(work, kind, files):
    make_special(kind, work / "data" / "b.txt")
    (work / "demo.yaml").write_text(snapshot(f'{{files: ["{files}"]}}'))
    assert "b.txt" in check_refused(ingot("plan", "demo.yaml"))


@pytest.mark.parametrize("files", ["data/*/*.txt", "data", "data/**", "data/**/b.txt", "data/*"])
def test_a_folder_that_cannot_be_listed_is_no_empty_one(work, files, monkeypatch):
    inner = work / "data" / "inner"
    inner.mkdir()
    (inner / "b.txt").write_text("text\n")
    scandir = os.scandir

    def refuse(path="."):
        if not isinstance(path, int) and Path(os.fsdecode(path)).name == "inner":
            raise PermissionError(13, "Permission denied", os.fsdecode(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    (work / "demo.yaml").write_text(snapshot(f'{{files: ["{files}"]}}'))
    assert "inner" in check_refused(ingot("plan", "demo.yaml"))


NAMES = {
    "escape": b"\x1b]0;pwned\x07.txt",
    "newline": b"a\nerror: none.txt",
    "return": b"a\rb.txt",
    "c1": "a\x9b31m.txt".encode(),
    "override": "a\u202egnp.txt".encode(),
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_file_name_never_reaches_the_terminal_raw(work, name):
    (work / "data" / os.fsdecode(name)).symlink_to("/dev/zero")
    check_refused(ingot("plan", "demo.yaml"))


def test_a_file_name_that_is_not_utf8_is_refused(work):
    (work / "data" / os.fsdecode(b"\xff\xfe.txt")).write_text("text\n")
    assert r"\udcff" in check_refused(ingot("plan", "demo.yaml"))


LONG = "x" * 5000
ARGUMENTS = {
    # Found by an outside trial.
    "int_of_5000_digits": ("plan", "demo.yaml", "--set", f"read.max_files={'9' * 5000}"),
    "store_of_5000_characters": ("plan", "demo.yaml", "--store", LONG),
    "store_that_is_not_utf8": ("plan", "demo.yaml", "--store", os.fsdecode(b"\xff")),
    "recipe_that_is_not_utf8": ("plan", os.fsdecode(b"\xff.yaml")),
    # Others.
    "recipe_of_5000_characters": ("plan", LONG),
    "recipe_path_of_5000_characters": ("plan", f"{LONG}.yaml"),
    "profile_of_5000_characters": ("plan", "demo.yaml", "--profile", LONG),
    "profile_path_of_5000_characters": ("plan", "demo.yaml", "--profile", f"./{LONG}"),
    "setting_that_is_no_path": ("plan", "demo.yaml", "--set", "a..b=1"),
    "setting_of_10000_names": ("plan", "demo.yaml", "--set", "read" + ".a" * 10_000 + "=1"),
    "setting_of_a_word": ("plan", "demo.yaml", "--set", "read.max_files=!!int abc"),
    "setting_of_a_bomb": ("plan", "demo.yaml", "--set", "read.source=&a [*a]"),
    "setting_nested_deeply": ("plan", "demo.yaml", "--set", "read.source=" + "[" * 3000),
    "setting_of_escape_codes": ("plan", "demo.yaml", "--set", "read.source=\x1b[2J"),
    "setting_of_lines": ("plan", "demo.yaml", "--set", "read.source=a\nb: c"),
    "step_of_escape_codes": ("plan", "demo.yaml", "--from", "\x1b]0;pwned\x07"),
    "command_of_escape_codes": ("\x1b[31mplan",),
    "option_of_escape_codes": ("plan", "--\x1b[31m"),
    "reference_of_escape_codes": ("show", "\x1b[31m"),
    "reference_of_a_direction": ("show", "\u202egnp"),
    "reference_of_5000_characters": ("show", LONG),
    "reference_that_climbs": ("show", "../../etc/passwd"),
    "reference_that_is_a_path": ("show", "/etc/passwd"),
    "document_of_escape_codes": ("why", "\x1b[2J\x07"),
    "document_of_5000_characters": ("why", LONG),
    "stage_of_escape_codes": ("stage", "\x1b[31m"),
    "config_of_5000_characters": ("stage", "ingest", "--config", LONG),
    "list_of_5000_characters": ("forget", "--from", LONG),
    "snapshot_of_5000_characters": ("snapshot", "add", "crawl", LONG),
    "snapshot_of_escape_codes": ("snapshot", "add", "\x1b[31m", "data"),
    "input_of_escape_codes": ("stage", "ingest", "--input", "snapshot=\x1b[31m"),
    "store_of_another_protocol": ("plan", "demo.yaml", "--store", "ftp://\x1b[31m"),
    "run_of_5000_characters": ("report", LONG),
    "store_in_a_loop": ("plan", "demo.yaml", "--store", "loop.yaml"),
    "file_in_a_loop": ("plan", "loop.yaml"),
}


@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS)
def test_a_command_line_that_means_nothing_is_refused(work, arguments):
    (work / "loop.yaml").symlink_to("loop.yaml")
    Store.open(str(work / "ingot-store"))
    check_refused(ingot(*arguments))


@pytest.mark.parametrize("store", ["demo.yaml", "demo.yaml/store", "data", "fifo"])
def test_a_store_that_cannot_be_one_is_refused(work, store):
    os.mkfifo(work / "fifo")
    check_refused(ingot("run", "demo.yaml", "--store", store), code=1)


def test_a_command_line_in_another_encoding_is_refused(work, monkeypatch):
    monkeypatch.setattr("sys.getfilesystemencoding", lambda: "ascii")
    assert "ascii" in check_refused(ingot("plan", "demo.yaml"))


def test_the_folder_and_the_environment_are_utf8_or_refused(work, monkeypatch):
    odd = work / os.fsdecode(b"\xff")
    odd.mkdir()
    monkeypatch.chdir(odd)
    check_refused(ingot("ls"))
    monkeypatch.chdir(work)
    monkeypatch.setenv("INGOT_STORE", os.fsdecode(b"\xff"))
    check_refused(ingot("ls"))
