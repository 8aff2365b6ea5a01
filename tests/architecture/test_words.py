"""Names are nouns, verbs and terms of the field: some words are no names."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.code_map import Module, modules

NOT_NAMES = {
    "told": "message, rows, reported",
    "said": "message, text",
    "asked": "request, wanted",
    "found": "matches, anomalies, or what they are",
    "given": "value, settings, arguments",
    "shown": "rows, lines",
    "listed": "entries, lines",
    "noted": "occurrences, counts",
    "gone": "missing, deleted",
    "left_out": "excluded, skipped",
    "beside": "sidecar",
    "stands": "exists",
    "standing": "existing, status",
    "onward": "continued",
    "anew": "again, from scratch",
    "of": "a noun",
    "trouble": "anomaly",
    "strikes": "skips",
    "mates": "exact_duplicates",
    "firsts": "first_occurrences",
    "turns": "rotations, quota",
    "refusals": "permission_errors, rejections",
}
"""Words that are not to be used as names, each with what to write in its place."""

WRITTEN = {("stages.training.config", "strikes")}
"""Fields of configs that users' recipes name."""


def names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every name that a module defines, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node.lineno
            case ast.arg():
                yield node.arg, node.lineno
            case ast.Name(ctx=ast.Store()):
                yield node.id, node.lineno
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr, node.lineno


@pytest.fixture(scope="module")
def known() -> dict[str, Module]:
    return modules()


def test_no_participle_or_preposition_is_a_name(known: dict[str, Module]) -> None:
    used = [
        f"{module.path}:{line}: {name}: use {NOT_NAMES[word]}"
        for module in known.values()
        for name, line in names(module.tree)
        if (word := name.strip("_").lower()) in NOT_NAMES and (module.name, word) not in WRITTEN
    ]
    assert used == []
