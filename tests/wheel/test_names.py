"""Ingot finds its own packages, whatever folders of the same names a project has."""

from __future__ import annotations

import json
import zipfile

import pytest

import ingot_entry

HOSTILE = 'raise SystemExit("the project\'s own package was imported")\n'
RECIPE = """\
name: demo
snapshots:
  notes: {root: data, files: ["*.jsonl"]}
steps:
  text: {stage: ingest, config: {source: text}, inputs: {snapshot: notes}}
"""


@pytest.fixture
def project(tmp_path):
    """A folder with a recipe over two files."""
    (tmp_path / "demo.yaml").write_text(RECIPE)
    (tmp_path / "data").mkdir()
    for name in "ab":
        rows = [{"text": f"Text {name} {n} of a few words. " * 9} for n in range(5)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "data" / f"{name}.jsonl").write_text(text)
    return tmp_path


def shadow(folder, form):
    """A package, a module or a plain folder for each name of Ingot's."""
    for name in ingot_entry.PACKAGES:
        if form == "module":
            (folder / f"{name}.py").write_text(HOSTILE)
            continue
        (folder / name).mkdir()
        (folder / name / ("__init__.py" if form == "package" else "code.py")).write_text(HOSTILE)


@pytest.mark.parametrize(
    "form",
    ["package", *(pytest.param(form, marks=pytest.mark.full) for form in ("module", "folder"))],
)
def test_names_in_pythonpath_and_in_the_current_folder_change_nothing(project, run_ingot, form):
    """The run imports in the command, in the child of its step and in that one's workers."""
    shadow(project, form)
    (project / "mine.py").write_text("x = 1\n")
    done = run_ingot("run", "demo.yaml", "--no-prefect", PYTHONPATH=str(project))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 in, 10 out" in done.stderr
    assert "own package" not in done.stderr + done.stdout


def test_without_a_conflict_the_path_stays_as_it_is(monkeypatch):
    """Else site-packages would come before the standard library."""
    import os
    import sys

    monkeypatch.delenv("PYTHONPATH", raising=False)
    before = list(sys.path)
    ingot_entry.prefer_own_packages()
    assert sys.path == before
    assert "PYTHONPATH" not in os.environ


def test_the_wheel_holds_its_packages_recipes_and_constraints_and_no_other_name(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert tops - {one for one in tops if one.endswith(".dist-info")} == {
        *ingot_entry.PACKAGES, "ingot_entry.py",
    }  # fmt: skip
    assert {"flows/recipes/base.yaml", "flows/constraints.txt"} <= set(names)


def test_constraints_are_named_before_any_dependency_is_there(environment, tmp_path):
    """By an interpreter that sees the packages of the standard library and Ingot's alone."""
    import subprocess
    import sys

    (site,) = environment.glob("lib/python*/site-packages")
    code = "import ingot_entry, sys; sys.argv[1:] = ['constraints']; ingot_entry.main()"
    bare = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({str(site)!r}); {code}"]
    path = subprocess.run(bare, capture_output=True, text=True, check=True).stdout.strip()
    assert path == str(site / "flows" / "constraints.txt")
    with open(path, encoding="utf-8") as file:
        assert any(line.startswith("torch==") for line in file)
