"""The console examples: what the script runs, which lines it keeps, and that each page says how."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
from docs_pages import DOCS, PAGES, ROOT

SPEC = importlib.util.spec_from_file_location("docs_console", ROOT / "docs" / "console.py")
assert SPEC is not None
assert SPEC.loader is not None
console = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(console)

_MARK = re.compile(r"<!-- (console|by hand: \w.*) -->")
HOW_TOS = [page for page in PAGES if page.parent.name == "how-to"]


@pytest.mark.parametrize("page", HOW_TOS, ids=lambda page: page.stem)
def test_every_console_block_is_run_by_the_script_or_says_why_not(page):
    text = page.read_text(encoding="utf-8")
    before = re.findall(r"(.*)\n```console$", text, flags=re.M)
    assert all(
        line == "-->" or re.match(r"<!-- (console|by hand: \w.*) -->", line) for line in before
    )
    for block in console._BLOCK.finditer(text):
        lines = [*block["before"].strip().splitlines()]
        for command in (*lines, *(command for command, _ in console.commands(block["text"]))):
            assert shlex.split(command)[0] == "ingot", command


def test_some_blocks_are_run():
    assert sum(len(console._BLOCK.findall(page.read_text())) for page in HOW_TOS) >= 9


@pytest.mark.parametrize(
    ("page", "printed", "expected"),
    [
        # Numbers and keys change, the selection stays.
        (["step", "…", "dedup 0389"], ["step", "a", "dedup 77ab"], ["step", "…", "dedup 77ab"]),
        # A new line between two that are shown is shown; one that is gone goes.
        (["a 1", "b 2"], ["a 1", "c 3", "b 2"], ["a 1", "c 3", "b 2"]),
        (["a 1", "b 2"], ["a 1"], ["a 1"]),
        # Nothing is skipped any more.
        (["a", "…", "b"], ["a", "b"], ["a", "b"]),
        (["a", "…"], ["a", "b", "c"], ["a", "…"]),
        (["…"], ["a"], ["…"]),
        ([], ["a", "b"], ["a", "b"]),
        # Indented lines differ from others of the same word.
        (["a", "  a 1"], ["a", "x", "  a 2"], ["a", "x", "  a 2"]),
        # Ids of runs are no part of what identifies a line.
        (["quickstart@20261121T18-d6b4 done"], ["quickstart@20270101T09-0c11 done"],
         ["quickstart@20270101T09-0c11 done"]),
    ],
)  # fmt: skip
def test_a_page_keeps_its_selection_of_lines(page, printed, expected):
    assert console.select_lines(page, printed) == expected


def test_a_page_gets_what_the_commands_print(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n')
    page = (
        "# Page\n\n<!-- console\ningot snapshot add hidden a.jsonl\n-->\n```console\n"
        "$ ingot snapshot add notes a.jsonl\nsnapshots/notes 000000000000: old\n"
        "$ ingot ls snapshot\nstage\n…\n```\n\nA block by hand:\n```console\n$ rm x\n```\n"
    )
    new = console.rewrite_page(page, console.run_in(tmp_path))
    assert re.search(r"snapshots/notes [0-9a-f]{12}: 1 file, 14 B, digest", new)
    assert re.search(r"^stage +key.*\n…\n```$", new, flags=re.M)
    assert new.endswith("```console\n$ rm x\n```\n")
    assert str(tmp_path) not in new
    assert console.rewrite_page(new, console.run_in(tmp_path)) == new


def test_only_ingot_is_run(tmp_path):
    with pytest.raises(ValueError, match="rm -r"):
        console.run_in(tmp_path)("rm -r x")


def test_the_pages_are_those_of_docs():
    assert Path(console.PAGES) == DOCS
