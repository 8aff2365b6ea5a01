"""Templates of task files: the part of Jinja that reads fields, and no more.

A task file may come from anybody, so what its templates can do is listed here, and all else is
refused before anything is rendered: fields, indices and slices, string methods and filters without
effects, `+`, conditions, and one level of loops over a list of the row. Attributes reach only the
keys of a row. Each rendering has a budget of characters, which bounds time and memory without a
clock.

What is allowed means the same in Jinja itself, so that lm-evaluation-harness renders such templates
to the same text.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

import regex
from jinja2 import StrictUndefined, Undefined, nodes
from jinja2.exceptions import TemplateError
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

BUDGET = 20_000_000
"""Characters that one rendering may read and write."""
MAX_TEMPLATE = 20_000
MAX_REPETITIONS = 1_000
"""Elements of the list that a loop goes over."""
PATTERN_SECONDS = 1.0
STRING_METHODS = (
    "strip", "lstrip", "rstrip", "lower", "upper", "capitalize", "split", "rsplit",
    "startswith", "endswith", "removeprefix", "removesuffix", "index",
)  # fmt: skip
LIST_METHODS = ("index",)
LOOP = ("index", "index0", "first", "last")
FILTERS = (
    "capitalize", "first", "int", "join", "last", "length", "lower", "regex_replace", "replace",
    "string", "tojson", "trim", "upper",
)  # fmt: skip
_EACH = "_each"
_RESULT = "_result"
_NODES = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.Getattr,
    nodes.Getitem, nodes.Slice, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair, nodes.Filter,
    nodes.Call, nodes.Compare, nodes.Operand, nodes.CondExpr, nodes.And, nodes.Or, nodes.Not,
    nodes.Neg, nodes.Add, nodes.Sub, nodes.If, nodes.For,
)  # fmt: skip


class BadTemplate(ValueError):
    """A template that does not parse, or uses more than is allowed."""


class RenderError(ValueError):
    """A row that a template cannot be rendered with."""


class Template:
    """A compiled template. `fields` are the names that it reads."""

    def __init__(self, source: str) -> None:
        self.source = source
        tree = _parse(source)
        self.fields = frozenset(find_undeclared_variables(tree))
        self._template = _environment().from_string(_bound_loops(tree))

    def render(self, row: Mapping[str, Any]) -> str:
        """The text. Raises RenderError."""
        return _attempt(lambda: self._template.render(row))


class Expression:
    """A compiled `{{expression}}`, whose value may be a list, a number or a text."""

    def __init__(self, source: str) -> None:
        self.source = source
        tree = _parse(source)
        self.fields = frozenset(find_undeclared_variables(tree))
        outputs = tree.body[0].nodes if tree.body and isinstance(tree.body[0], nodes.Output) else []
        if len(tree.body) != 1 or len(outputs) != 1 or isinstance(outputs[0], nodes.TemplateData):
            raise BadTemplate(f"one expression in double braces is needed, not {source[:100]!r}")
        assignment = nodes.Assign(nodes.Name(_RESULT, "store"), outputs[0], lineno=1)
        tree.body = [assignment]
        self._template = _environment().from_string(tree)

    def value(self, row: Mapping[str, Any]) -> Any:
        """Its value. Raises RenderError."""

        def evaluate() -> Any:
            context = self._template.new_context(dict(row))
            for _ in self._template.root_render_func(context):
                pass
            result = context.vars[_RESULT]
            if isinstance(result, Undefined):
                str(result)
            return result

        return _attempt(evaluate)


def _attempt(render: Callable[[], Any]) -> Any:
    _environment().spent = 0
    try:
        return render()
    except (
        TemplateError, ArithmeticError, AttributeError, LookupError, RecursionError, TimeoutError,
        TypeError, ValueError,
    ) as error:  # fmt: skip
        raise RenderError(str(error) or type(error).__name__) from None


def _parse(source: str) -> nodes.Template:
    """The tree of a template, all of whose nodes are allowed."""
    if len(source) > MAX_TEMPLATE:
        raise BadTemplate(f"more than {MAX_TEMPLATE:,} characters")
    _environment().spent = 0
    try:
        tree = _environment().parse(source)
    except (TemplateError, RecursionError, ValueError) as error:
        raise BadTemplate(f"{error or 'nested too deeply'} in {source[:100]!r}") from None
    for node in _walk(tree):
        _check(node)
    return tree


def _walk(tree: nodes.Node) -> Iterator[nodes.Node]:
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(node.iter_child_nodes())


def _check(node: nodes.Node) -> None:
    match node:
        case nodes.Filter() if node.name not in FILTERS:
            raise BadTemplate(f"no filter '{node.name}'; there are: {', '.join(FILTERS)}")
        case nodes.Filter() if node.dyn_args or node.dyn_kwargs or node.kwargs:
            raise BadTemplate(f"the filter '{node.name}' takes plain arguments")
        case nodes.Call():
            method = node.node
            known = (*STRING_METHODS, *LIST_METHODS)
            if not isinstance(method, nodes.Getattr) or method.attr not in known:
                raise BadTemplate(f"nothing can be called but {', '.join(STRING_METHODS)}")
            if node.kwargs or node.dyn_args or node.dyn_kwargs:
                raise BadTemplate(f"'{method.attr}' takes plain arguments")
        case nodes.Name() if node.name.startswith("_") or node.name == "self":
            raise BadTemplate(f"no field can be named '{node.name}'")
        case nodes.For():
            if node.test or node.recursive or not isinstance(node.target, nodes.Name):
                raise BadTemplate("a loop goes over one list, with one name and no condition")
            if any(isinstance(inner, nodes.For) for inner in _walk(node) if inner is not node):
                raise BadTemplate("a loop inside a loop")
        case _ if not isinstance(node, _NODES):
            raise BadTemplate(f"'{type(node).__name__.lower()}' is not allowed in a template")


def _bound_loops(tree: nodes.Template) -> nodes.Template:
    for node in _walk(tree):
        if isinstance(node, nodes.For):
            node.iter = nodes.Filter(node.iter, _EACH, [], [], None, None, lineno=node.lineno)
    return tree


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja whose attributes are keys, whose strings have a few methods, and which counts."""

    intercepted_binops = frozenset(("+", "-"))

    def __init__(self) -> None:
        super().__init__(
            undefined=StrictUndefined, keep_trailing_newline=True, finalize=self._written
        )
        self.spent = 0
        self.globals.clear()
        builtin = {name: self.filters[name] for name in FILTERS if name in self.filters}
        own = {
            "int": _whole_number,
            "join": self._join,
            "replace": self._replace,
            "regex_replace": self._regex_replace,
            "tojson": self._json,
            _EACH: self._each,
        }
        self.filters = {**builtin, **own}
        self.tests.clear()

    def charge(self, characters: int) -> None:
        """Count characters; RenderError beyond the budget."""
        self.spent += characters
        if self.spent > BUDGET:
            raise RenderError(f"a template that handles more than {BUDGET:,} characters")

    def getattr(self, obj: Any, attribute: str) -> Any:
        """A key of a mapping, or an allowed method."""
        if isinstance(obj, Mapping):
            return self.getitem(obj, attribute)
        if isinstance(obj, str) and attribute in STRING_METHODS:
            return self._method(obj, attribute)
        if isinstance(obj, list | tuple) and attribute in LIST_METHODS:
            return self._method(obj, attribute)
        if isinstance(obj, LoopContext) and attribute in LOOP:
            return getattr(obj, attribute)
        return self.undefined(obj=obj, name=attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """A key of a mapping, or an element of a list or a text."""
        if isinstance(obj, Undefined):
            str(obj)
        if isinstance(obj, Mapping | list | tuple | str):
            with suppress(LookupError, TypeError):
                return obj[argument]
        return self.undefined(obj=obj, name=argument)

    def call_binop(self, context: Any, operator_name: str, left: Any, right: Any) -> Any:
        """`+` of two texts, lists or numbers, `-` of numbers."""
        for value in (left, right):
            if isinstance(value, Undefined):
                str(value)
        if operator_name == "+" and type(left) is type(right) and isinstance(left, str | list):
            self.charge(len(left) + len(right))
            return left + right  # type: ignore[operator]
        if isinstance(left, int) and isinstance(right, int):
            return {"+": operator.add, "-": operator.sub}[operator_name](left, right)
        kinds = f"{type(left).__name__} and {type(right).__name__}"
        raise RenderError(f"'{operator_name}' of {kinds}")

    def _method(self, value: Any, name: str) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self.charge(len(value))
            return getattr(value, name)(*arguments)

        return call

    def _written(self, value: Any) -> Any:
        """What `{{value}}` writes: texts and numbers, never a null or a Python object."""
        if isinstance(value, Undefined):
            str(value)
        if not isinstance(value, str | int | float):
            raise RenderError(f"{type(value).__name__} where a text is needed")
        if isinstance(value, str):
            self.charge(len(value))
        return value

    def _each(self, values: Any) -> list[Any]:
        if isinstance(values, Undefined):
            str(values)
        if not isinstance(values, list | tuple) or len(values) > MAX_REPETITIONS:
            raise RenderError(f"a loop over no list of at most {MAX_REPETITIONS:,} elements")
        return list(values)

    def _join(self, values: Any, separator: str = "") -> str:
        texts = [_as_text(value) for value in values]
        self.charge(sum(map(len, texts)) + len(separator) * len(texts))
        return separator.join(texts)

    def _replace(self, text: Any, old: str, new: str) -> str:
        text = _as_text(text)
        if not old:
            raise RenderError("replace of an empty text")
        self.charge(len(text) + text.count(old) * len(new))
        return text.replace(old, new)

    def _regex_replace(self, text: Any, pattern: str, new: str) -> str:
        text = _as_text(text)
        self.charge(len(text) * (1 + len(new)))
        return str(_pattern(pattern).sub(new, text, timeout=PATTERN_SECONDS))

    def _json(self, value: Any) -> str:
        text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=_as_text)
        self.charge(len(text))
        return text


def _whole_number(value: Any) -> int:
    """Unlike Jinja's own, no default: what is no number must not become the answer 0."""
    if isinstance(value, str):
        value = value.strip()
    number = int(value)
    if isinstance(value, float) and number != value:
        raise RenderError(f"{value} is no whole number")
    return number


def _as_text(value: Any) -> str:
    if isinstance(value, Undefined):
        return str(value)
    if not isinstance(value, str | int | float):
        raise RenderError(f"{type(value).__name__} where a text is needed")
    return str(value)


@cache
def _pattern(source: str) -> regex.Pattern[str]:
    try:
        return regex.compile(source)
    except regex.error as error:
        raise RenderError(f"the pattern {source[:100]!r}: {error}") from None


@cache
def _environment() -> _Environment:
    """One for each process, since it keeps what it compiled."""
    return _Environment()
