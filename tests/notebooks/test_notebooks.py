"""The notebooks as they are committed, and run on a store that they were not written on."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nbformat
import pytest

from flows.cli.main import COMMANDS

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_BYTES = 300_000
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
PLACES = re.compile(r"/(?:tmp|home|work|root|Users|var|mnt|private)/|\b[A-Z]:\\\\")
"""Where things lie on one machine."""
SHOWN = {"text/plain", "image/png"}
"""Forms of output in which nothing from a document can run."""
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def text_of(output: Any) -> str:
    return output.text if output.output_type == "stream" else output.data.get("text/plain", "")


def assert_harmless(notebook: Any) -> None:
    """Outputs are plain text without control characters, and pictures; none tells of an error."""
    for cell in code(notebook):
        for output in cell.outputs:
            assert output.output_type in {"stream", "display_data", "execute_result"}, output
            if output.output_type == "stream":
                assert output.name == "stdout", output.text
            else:
                assert set(output.data) <= SHOWN
            assert not CONTROL.search(text_of(output)), text_of(output)


def test_there_are_six_and_the_readme_links_each() -> None:
    readme = (FOLDER / "README.md").read_text()
    assert len(NOTEBOOKS) == 6
    for path in NOTEBOOKS:
        assert f"({path.name})" in readme


@each
def test_is_valid_small_and_free_of_the_metadata_of_a_machine(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    assert path.stat().st_size < MOST_BYTES
    assert notebook.metadata == METADATA
    for cell in notebook.cells:
        assert cell.metadata in ({}, {"tags": ["parameters"]})


@each
def test_names_no_place_of_one_machine(path: Path) -> None:
    notebook = read(path)
    for cell in notebook.cells:
        assert not PLACES.search(cell.source), cell.source
        for output in cell.get("outputs", []):
            assert not PLACES.search(text_of(output)), text_of(output)


@each
def test_outputs_are_of_one_run_from_top_to_bottom_and_harmless(path: Path) -> None:
    notebook = read(path)
    cells = code(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert any("image/png" in out.get("data", {}) for cell in cells for out in cell.outputs)
    assert_harmless(notebook)


@each
def test_opens_what_the_quickstart_made_unless_the_environment_says_otherwise(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tagged = [cell for cell in code(read(path)) if "parameters" in cell.metadata.get("tags", [])]
    monkeypatch.delenv("INGOT_STORE", raising=False)
    monkeypatch.delenv("INGOT_RECIPE", raising=False)
    assert _run(tagged[0].source) == ("../ingot-store", "quickstart")
    monkeypatch.setenv("INGOT_STORE", "s3://bucket/store")
    monkeypatch.setenv("INGOT_RECIPE", "web")
    assert _run(tagged[0].source) == ("s3://bucket/store", "web")


def _run(source: str) -> tuple[str, str]:
    names: dict[str, Any] = {}
    exec(source, names)
    return names["STORE"], names["RECIPE"]


@each
def test_every_name_that_is_imported_is_there(path: Path) -> None:
    for cell in code(read(path)):
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.Import):
                assert all(find_spec(alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                module = import_module(str(node.module))
                for alias in node.names:
                    assert hasattr(module, alias.name), f"{node.module}.{alias.name}"


@each
def test_needs_only_what_ingot_installs(path: Path) -> None:
    allowed = {
        "artifacts_schema", "flows", "stages", "duckdb", "matplotlib", "numpy", "pyarrow", "scipy",
        "tokenizers",
    }  # fmt: skip
    for cell in code(read(path)):
        for node in ast.walk(ast.parse(cell.source)):
            modules = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [str(node.module)]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            for module in modules:
                top = module.split(".")[0]
                standard = getattr(find_spec(top), "origin", None) or ""
                assert top in allowed or "site-packages" not in standard, module


@each
def test_commands_and_flags_that_the_words_name_exist(path: Path) -> None:
    words = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    for line in re.findall(r"`ingot ([^`]+)`", words):
        name, *rest = line.split()
        assert name in COMMANDS, line
        command = getattr(import_module(COMMANDS[name][0]), name.replace("-", "_"))
        known = {flag for parameter in command.params for flag in parameter.opts}
        assert {word for word in rest if word.startswith("--")} <= known, line


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.timeout(900)
@each
def test_runs_on_another_store_from_another_folder(
    path: Path, tiny_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nbclient import NotebookClient

    monkeypatch.setenv("INGOT_STORE", str(tiny_store))
    monkeypatch.setenv("INGOT_RECIPE", "tiny")
    if path.stem.endswith("tokenizer"):
        monkeypatch.setenv("INGOT_PARALLEL_TEXT", str(_parallel_text(tmp_path)))
    notebook = read(path)
    NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()
    assert_harmless(notebook)


@pytest.mark.full
@pytest.mark.slow
def test_the_words_for_a_missing_store_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    monkeypatch.setenv("INGOT_STORE", str(tmp_path / "nowhere"))
    client = NotebookClient(read(NOTEBOOKS[0]), timeout=120, kernel_name="python3")
    with pytest.raises(CellExecutionError, match="no store here"):
        client.execute()


def _parallel_text(folder: Path) -> Path:
    """Three sentences in English and Greek: whatever is cheap in one is dear in the other."""
    path = folder / "parallel.jsonl"
    lines = [
        f'{{"id": "{number}", "lang": "{language}", "text": "{text} {number}"}}\n'
        for language, text in (
            ("en", "The return value of the class"),
            ("el", "Η τιμή που επιστρέφει"),
        )
        for number in range(3)
    ]
    path.write_text("".join(lines), encoding="utf-8")
    return path
