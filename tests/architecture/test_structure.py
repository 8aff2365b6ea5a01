"""How large modules are, and who imports whom."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.code_map import Module, cycles, importers, imports, modules

MOST_LINES = 500
"""Of a file; about 400 is usual, more only where a split would cut one idea."""
FEW_LINES = 60
"""A smaller module with a single importer belongs to its importer."""
OWN_FILES = ("stage", "page", "config", "__main__")
"""Names of modules that may be small: one per stage, found by name."""


@pytest.fixture(scope="module")
def known() -> dict[str, Module]:
    return modules()


@pytest.fixture(scope="module")
def graph(known: dict[str, Module]) -> dict[str, set[str]]:
    return imports(known)


def test_no_file_is_longer_than_one_idea(known: dict[str, Module]) -> None:
    assert {one.name: one.lines for one in known.values() if one.lines > MOST_LINES} == {}


def test_no_module_imports_itself_by_way_of_others(graph: dict[str, set[str]]) -> None:
    """Imports for type checking and in functions included."""
    assert cycles(graph) == []


def test_a_small_module_with_one_importer_belongs_to_it(
    known: dict[str, Module], graph: dict[str, set[str]]
) -> None:
    users = importers(graph)
    small = [
        one.name
        for one in known.values()
        if one.lines < FEW_LINES
        and len(users[one.name]) == 1
        and one.path.stem not in (*OWN_FILES, "__init__")
        and not one.name.startswith("flows.cli.")  # A registry: one module per command.
    ]
    assert small == []


def test_a_config_is_never_defined_in_stage_py(known: dict[str, Module]) -> None:
    """Tools and other modules read a config without the stage."""
    defined = [
        f"{one.name}.{node.name}"
        for one in known.values()
        if one.path.name == "stage.py"
        for node in one.tree.body
        if isinstance(node, ast.ClassDef) and node.name.endswith(("Config", "Execution"))
    ]
    assert defined == []


def test_the_engine_imports_nothing_of_text(graph: dict[str, set[str]]) -> None:
    upward = {
        (name, target)
        for name, targets in graph.items()
        if name.startswith("stages.engine")
        for target in targets
        if target.startswith("stages.text")
    }
    assert upward == set()
