"""What the product's files are: size, definitions, and who imports whom.

    python -m tests.architecture.code_map

prints totals: they are reported, not tested, because features add to them. Imports count wherever
they stand: at module level, in a function, or for type checking.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
TREES = ("artifacts_schema", "stages", "flows", "deploy")
DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file of the product."""

    name: str
    path: Path

    @cached_property
    def text(self) -> str:
        """Its source."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax."""
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        """All its lines."""
        return self.text.count("\n")

    @property
    def code_lines(self) -> int:
        """Lines that hold code: no blanks, comments or docstrings."""
        skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT}
        skipped |= {tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        held = {
            line
            for token in tokens
            if token.type not in skipped
            for line in range(token.start[0], token.end[0] + 1)
        }
        return len(held - set(self._docstring_lines()))

    def _docstring_lines(self) -> Iterator[int]:
        for node in ast.walk(self.tree):
            body = getattr(node, "body", None)
            for child in body if isinstance(body, list) else ():
                if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                    yield from range(child.lineno, (child.end_lineno or child.lineno) + 1)

    @property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Every function and method."""
        return [node for node in ast.walk(self.tree) if isinstance(node, DEFINITIONS)]


def modules() -> dict[str, Module]:
    """The product's modules by dotted name; a package has the name of its folder."""
    found = {}
    for tree in TREES:
        for path in sorted((ROOT / tree).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = Module(name, path)
    return found


def imports(known: dict[str, Module]) -> dict[str, set[str]]:
    """The modules of the product that each module imports."""
    graph: dict[str, set[str]] = {name: set() for name in known}
    for module in known.values():
        for node in ast.walk(module.tree):
            for target in _targets(node, known):
                if target != module.name:
                    graph[module.name].add(target)
    return graph


def _targets(node: ast.AST, known: dict[str, Module]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in known)
    elif isinstance(node, ast.ImportFrom) and node.module is not None:
        for alias in node.names:
            name = f"{node.module}.{alias.name}"
            yield from [one for one in (name, node.module) if one in known][:1]


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for target in graph[name]:
            if target not in index:
                visit(target)
            if target in stack:
                low[name] = min(low[name], low[target])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in graph:
        if name not in index:
            visit(name)
    return found


def importers(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The modules that import each module."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, targets in graph.items():
        for target in targets:
            found[target].add(name)
    return found


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Parameters of a function, `self` and `cls` not counted."""
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def main() -> None:
    """Print the totals."""
    known = modules()
    functions = [one for module in known.values() for one in module.functions]
    graph = imports(known)
    print(f"product files           {len(known):>8,}")
    print(f"product lines           {sum(one.lines for one in known.values()):>8,}")
    print(f"lines of code alone     {sum(one.code_lines for one in known.values()):>8,}")
    print(f"functions               {len(functions):>8,}")
    print(f"with 8 parameters       {sum(parameters(one) >= 8 for one in functions):>8,}")
    print(f"import cycles           {len(cycles(graph)):>8,}")
    tests = list((ROOT / "tests").rglob("*.py"))
    print(f"test files              {len(tests):>8,}")
    print(f"test lines              {sum(one.read_text().count(chr(10)) for one in tests):>8,}")


if __name__ == "__main__":
    main()
