"""A user's first hour: from a folder of files to an answer of a model, by an installed `ingot`.

    python tests/wheel/first_hour.py PATH/TO/ingot FOLDER [--form jsonl|parquet|html] [--chats]

writes files of texts into FOLDER/data (docstrings of the running Python's standard library), and
runs what the README says: `ingot init`, `plan`, `run`, then `chat` or `complete`. It prints each
command with its seconds, and the recipe. `--set` values shorten a run for tests.
"""

from __future__ import annotations

import argparse
import ast
import html
import itertools
import json
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

ROWS, PAGES, CHATS = 2_000, 40, 200


def docstrings() -> Iterator[tuple[str, str]]:
    """(name, docstring) of modules, classes and functions of the standard library, by file."""
    library = Path(sysconfig.get_path("stdlib"))
    for path in sorted(library.rglob("*.py")):
        if {"site-packages", "test", "tests", "lib2to3"} & set(path.parts):
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
        for node in ast.walk(tree):
            text = ast.get_docstring(node) if isinstance(node, kinds) else None
            if text and len(text) > 80:
                yield f"{path.stem}.{getattr(node, 'name', '__doc__')}", text


def write_data(folder: Path, form: str, chats: bool) -> None:
    """The files; 2,000 rows, or 40 pages, and 200 conversations."""
    folder.mkdir(parents=True)
    texts = list(itertools.islice(docstrings(), ROWS + CHATS))
    rows = [{"name": name, "body": text} for name, text in texts[:ROWS]]
    if form == "jsonl":
        _write_rows(folder / "texts.jsonl", rows)
    elif form == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows), folder / "texts.parquet")
    else:
        for number in range(PAGES):
            part = rows[number::PAGES]
            body = "".join(
                f"<h2>{html.escape(row['name'])}</h2><p>{html.escape(row['body'])}</p>"
                for row in part
            )
            page = f"<!doctype html><html><title>Page {number}</title><body>{body}</body></html>"
            (folder / f"{number:02}.html").write_text(page, encoding="utf-8")
    if chats:
        _write_rows(
            folder / "chats.jsonl",
            [
                {"messages": [{"role": "user", "content": f"What is {name}?"},
                              {"role": "assistant", "content": text.split("\n\n")[0]}]}
                for name, text in texts[ROWS:]
            ],
        )  # fmt: skip


def _write_rows(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def run_hour(
    ingot: str, folder: Path, form: str, chats: bool, minutes: str, overrides: list[str]
) -> subprocess.CompletedProcess[str]:
    """Every command in turn; the last one's output. CalledProcessError for one that fails."""
    write_data(folder / "data", form, chats)
    changes = [word for value in overrides for word in ("--set", value)]
    last = (
        ["chat", "data/export", "--message", "What is json.dumps?", "--max-tokens", "20"]
        if chats
        else ["complete", "data/export", "Return a ", "--max-tokens", "20"]
    )
    commands = [
        ["init", "data", "--minutes", minutes],
        ["plan", "data.yaml", *changes],
        ["run", "data.yaml", "--no-prefect", *changes],
        *(
            []
            if chats
            else [["chat", "data/export", "--message", "Return a ", "--max-tokens", "9"]]
        ),
        last,
    ]
    for command in commands:
        began = time.monotonic()
        done = subprocess.run(
            [ingot, *command], cwd=folder, capture_output=True, text=True, check=False
        )
        print(f"{time.monotonic() - began:7.1f} s  ingot {' '.join(command)}", flush=True)
        if done.returncode:
            print(done.stdout + done.stderr, file=sys.stderr)
            done.check_returncode()
        if command[0] in ("init", "chat", "complete"):
            print(done.stdout + done.stderr)
    return done


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("ingot")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--form", choices=("jsonl", "parquet", "html"), default="jsonl")
    parser.add_argument("--chats", action="store_true")
    parser.add_argument("--minutes", default="30")
    parser.add_argument("--set", dest="overrides", action="append", default=[])
    options = parser.parse_args()
    run_hour(
        options.ingot, options.folder, options.form, options.chats, options.minutes,
        options.overrides,
    )  # fmt: skip
    recipe = (options.folder / "data.yaml").read_text(encoding="utf-8")
    print(f"the recipe, {len(recipe.splitlines())} lines:\n{recipe}")


if __name__ == "__main__":
    main()
