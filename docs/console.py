"""Run the console examples of these pages again: `python docs/console.py STORE [PAGE …]`.

STORE is a store in which quickstart has run; each page gets a copy of it as `ingot-store`. Above a
block that can be run stands `<!-- console -->`, or `<!-- console` with commands that are run before
it and not shown. Other blocks say why they are written by hand: `<!-- by hand: REASON -->`.

A page keeps its selection of lines: a line is recognised by its first word, digits and keys aside,
and `…` stands for lines that the page skips. `run` is called with --no-prefect.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

PAGES = Path(__file__).parent
SKIPPED = "…"
_BLOCK = re.compile(
    r"(?P<mark><!-- console(?P<before>.*?)-->\n)```console\n(?P<text>.*?)^```$", re.DOTALL | re.M
)
_VARIABLE = re.compile(r"[0-9a-f]{8,}|\d+")

Run = Callable[[str], list[str]]
"""Runs one command line and returns the lines that it prints."""


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines that the page shows of its output."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, *lines = part.rstrip("\n").split("\n")
        yield command, lines


def select_lines(page: Sequence[str], printed: Sequence[str]) -> list[str]:
    """The printed lines that a page shows: those that it showed before, and new ones in between.

    Skipped lines are `…`. Lines of the page that are not printed any more are dropped.
    """
    if not any(line != SKIPPED for line in page):
        return [SKIPPED] if page and printed else list(printed)
    selected: list[str] = []
    position, skips = 0, False
    for line in page:
        if line == SKIPPED:
            skips = True
            continue
        match = next(
            (i for i in range(position, len(printed)) if _key(printed[i]) == _key(line)), None
        )
        if match is None:
            continue
        selected += _between(printed[position:match], skips)
        selected.append(printed[match])
        position, skips = match + 1, False
    return selected + _between(printed[position:], skips)


def _between(lines: Sequence[str], skips: bool) -> list[str]:
    return list(lines) if not skips else [SKIPPED] if lines else []


def _key(line: str) -> str:
    """What identifies a line: its indent and first word, without numbers and keys."""
    return _VARIABLE.sub("#", re.match(r"\s*\S*", line)[0])  # type: ignore[index]


def rewrite_page(text: str, run: Run) -> str:
    """A page with the current output of its commands."""

    def block(match: re.Match[str]) -> str:
        for line in match["before"].strip().splitlines():
            run(line)
        lines = []
        for command, page in commands(match["text"]):
            lines += [f"$ {command}", *select_lines(page, run(command))]
        return f"{match['mark']}```console\n" + "".join(f"{line}\n" for line in lines) + "```"

    return _BLOCK.sub(block, text)


def run_in(folder: Path) -> Run:
    """A function that runs commands of `ingot` in a folder, whose path is printed as `…`."""

    def run(command: str) -> list[str]:
        name, *words = shlex.split(command)
        if name != "ingot":
            raise ValueError(f"not a command of ingot: {command}")
        if words[0] == "run":
            words.append("--no-prefect")
        environment = {k: v for k, v in os.environ.items() if k != "INGOT_STORE"}
        output = subprocess.run(
            [sys.executable, "-P", "-c", "from flows.cli.main import main; main()", *words],
            cwd=folder, env={**environment, "INGOT_HOME": str(folder / ".ingot")},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        ).stdout  # fmt: skip
        lines = output.replace(os.path.realpath(folder), SKIPPED).rstrip("\n").split("\n")
        return [line.rstrip() for line in lines]

    return run


def main(arguments: Sequence[str]) -> int:
    """Rewrite the pages (all that have a marked block by default) and name those that changed."""
    store, *names = map(Path, arguments)
    for page in names or sorted(PAGES.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if not _BLOCK.search(text):
            continue
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(store, Path(folder, "ingot-store"))
            new = rewrite_page(text, run_in(Path(folder)))
        if new != text:
            page.write_text(new, encoding="utf-8")
            print(f"wrote {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
