"""How tests in one sandbox call a solution in another: only plain values pass between them.

This file is read as text by `check.py` and runs inside both sandboxes, with the standard library
alone. The solution's side (`serve`) runs its program and answers requests; the tests' side (`test`)
runs the test program, in whose globals the solution's functions are stand-ins.

A value arrives as an exact built-in (None, numbers, text, bytes, lists, tuples, dicts, sets,
ranges, Decimal, Fraction), made again from JSON: a result whose `__eq__` is always true arrives as
something else. Anything else stays where it is, as a numbered object that can be called, iterated,
and whose attributes can be read and set; it equals nothing but itself. Lists, dicts, sets and
bytearrays that a call changes are changed for the tests too.
"""

from __future__ import annotations

import builtins
import json
import os
import sys
from collections.abc import Callable
from typing import Any

FROM_TESTS, TO_TESTS = 3, 4
"""Descriptors of the solution's side."""
FROM_SOLUTION, TO_SOLUTION, VERDICT = 3, 4, 5
"""Descriptors of the tests' side."""
NUMBERS = {"Decimal": "decimal", "Fraction": "fractions"}
SEQUENCES: dict[str, type[Any]] = {
    "list": list, "tuple": tuple, "set": set, "frozenset": frozenset,
}  # fmt: skip


def encode(value: Any, keep: Callable[[Any], int]) -> Any:
    """JSON of a value; what is not plain as the number under which `keep` keeps it."""
    kind = type(value).__name__
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return {"int": hex(value)}  # In decimal, long ones are refused.
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, complex):
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if isinstance(value, bytes | bytearray):
        return {"bytes" if isinstance(value, bytes) else "bytearray": value.hex()}
    if isinstance(value, dict):
        return {"dict": [[encode(k, keep), encode(v, keep)] for k, v in value.items()]}
    for name, sequence in SEQUENCES.items():
        if isinstance(value, sequence):
            return {name: [encode(one, keep) for one in value]}
    if isinstance(value, range):
        return {"range": [hex(value.start), hex(value.stop), hex(value.step)]}
    if kind in NUMBERS and type(value).__module__ == NUMBERS[kind]:
        return {kind: str(value)}
    return {"object": keep(value)}


def decode(coded: Any, fetch: Callable[[int], Any]) -> Any:
    """The inverse of `encode`; ValueError for what it does not write."""
    if coded is None or isinstance(coded, bool | str):
        return coded
    if not isinstance(coded, dict) or len(coded) != 1:
        raise ValueError("not an encoded value")
    [(kind, value)] = coded.items()
    if kind == "int":
        return int(value, 16)
    if kind == "float":
        return float.fromhex(value)
    if kind == "complex":
        return complex(*map(float.fromhex, value))
    if kind in ("bytes", "bytearray"):
        return getattr(builtins, kind).fromhex(value)
    if kind == "dict":
        return {decode(k, fetch): decode(v, fetch) for k, v in value}
    if kind in SEQUENCES:
        return SEQUENCES[kind](decode(one, fetch) for one in value)
    if kind == "range":
        return range(*(int(one, 16) for one in value))
    if kind in NUMBERS:
        return getattr(__import__(NUMBERS[kind]), kind)(value)
    if kind == "object":
        return fetch(value)
    raise ValueError("not an encoded value")


# The solution's side


class _Objects(list):
    """What the tests hold, by number."""

    def keep(self, value: Any) -> int:
        """The number of an object, the same each time."""
        for number, one in enumerate(self):
            if one is value:
                return number
        self.append(value)
        return len(self) - 1


def serve(path: str) -> None:
    """Run the program at `path`, then answer requests until the tests end."""
    requests, replies = os.fdopen(FROM_TESTS), os.fdopen(TO_TESTS, "w")
    objects, namespace = _Objects(), {"__name__": "solution"}
    error: BaseException | None = None
    try:
        with open(path, encoding="utf-8") as file:
            exec(compile(file.read(), "solution.py", "exec"), namespace)
    except BaseException as caught:  # SystemExit too: what it defined until then can be tested.
        error = caught
    for line in requests:
        request = json.loads(line)
        try:
            if error is not None and not isinstance(error, SystemExit):
                raise error
            reply = _answer(request, namespace, objects)
        except BaseException as caught:
            reply = {"error": type(caught).__name__, "message": _message(caught)}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def _message(error: BaseException) -> str:
    return str(error)[:200]


def _answer(request: Any, namespace: dict[str, Any], objects: _Objects) -> dict[str, Any]:
    action = request["action"]
    if action == "names":
        return {"names": _names(request["names"], namespace, objects)}
    target = objects[request["target"]]
    if action == "call":
        arguments = [decode(one, objects.__getitem__) for one in request["arguments"]]
        keywords = {k: decode(v, objects.__getitem__) for k, v in request["keywords"].items()}
        value = target(*arguments, **keywords)
        after = [encode(one, objects.keep) for one in arguments]
        changed = {
            str(number): one
            for number, one in enumerate(after)
            if one != request["arguments"][number]
        }
        return {"value": encode(value, objects.keep), "changed": changed}
    if action == "get":
        return {"value": encode(getattr(target, request["name"]), objects.keep)}
    if action == "set":
        value = decode(request["value"], objects.__getitem__)
        setattr(target, request["name"], value)
        return {"value": None}
    return {"value": encode(iter(target) if action == "iter" else next(target), objects.keep)}


def _names(wanted: list[str], namespace: dict[str, Any], objects: _Objects) -> dict[str, Any]:
    """What the solution defines of `wanted`: values, or names of modules."""
    module = type(sys)
    return {
        name: {"module": namespace[name].__name__}
        if isinstance(namespace[name], module)
        else {"value": encode(namespace[name], objects.keep)}
        for name in wanted
        if name in namespace and not name.startswith("__")
    }


# The tests' side


class Remote:
    """An object of the solution, which stays there."""

    def __init__(self, number: int) -> None:
        object.__setattr__(self, "_number", number)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        coded = [encode(one, _number) for one in arguments]
        named = {name: encode(one, _number) for name, one in keywords.items()}
        reply = _ask("call", self, arguments=coded, keywords=named)
        for place, value in reply["changed"].items():
            _replace(arguments[int(place)], decode(value, Remote))
        return decode(reply["value"], Remote)

    def __getattr__(self, name: str) -> Any:
        return decode(_ask("get", self, name=name)["value"], Remote)

    def __setattr__(self, name: str, value: Any) -> None:
        _ask("set", self, name=name, value=encode(value, _number))

    def __iter__(self) -> Any:
        return decode(_ask("iter", self)["value"], Remote)

    def __next__(self) -> Any:
        return decode(_ask("next", self)["value"], Remote)

    def __len__(self) -> int:
        return self.__getattr__("__len__")()

    def __getitem__(self, key: Any) -> Any:
        return self.__getattr__("__getitem__")(key)

    def __str__(self) -> str:
        return self.__getattr__("__str__")()

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Remote) and _number(other) == _number(self)

    def __hash__(self) -> int:
        return hash(_number(self))


def _number(value: Any) -> int:
    """Of a stand-in; TypeError for an object of the tests, which the solution cannot have."""
    if type(value) is not Remote:
        raise TypeError(f"tests cannot hand over a {type(value).__name__}")
    number: int = object.__getattribute__(value, "_number")
    return number


def _replace(value: Any, after: Any) -> None:
    """Change a mutable argument in place, as the call did."""
    if isinstance(value, list | bytearray):
        value[:] = after
    elif isinstance(value, dict | set):
        value.clear()
        value.update(after)


class SolutionEnded(Exception):
    """Its process closed the pipes."""


class _Line:
    """The two pipes to the solution; made once."""

    requests: Any = None
    replies: Any = None


def _ask(action: str, target: Any = None, **values: Any) -> dict[str, Any]:
    number = None if target is None else _number(target)
    try:
        _Line.requests.write(json.dumps({"action": action, "target": number, **values}) + "\n")
        _Line.requests.flush()
    except BrokenPipeError:
        raise SolutionEnded from None
    line = _Line.replies.readline()
    if not line.endswith("\n"):
        raise SolutionEnded
    reply: dict[str, Any] = json.loads(line)
    if "error" in reply:
        name, message = str(reply["error"]), str(reply["message"])
        kind = getattr(builtins, name, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            raise kind(message)
        raise RuntimeError(f"{name}: {message}")
    return reply


def test(path: str) -> None:
    """Run the tests at `path` and write what came of them to `VERDICT`."""
    _Line.replies, _Line.requests = os.fdopen(FROM_SOLUTION), os.fdopen(TO_SOLUTION, "w")
    try:
        with open(path, encoding="utf-8") as file:
            program = file.read()
        namespace = {"__name__": "tests", **_solution_names(program)}
        exec(compile(program, "tests.py", "exec"), namespace)
        verdict: dict[str, Any] = {"passed": True}
    except BaseException as error:  # SystemExit is no success.
        verdict = {"passed": False, "error": type(error).__name__, "message": _message(error)}
    os.write(VERDICT, json.dumps(verdict).encode())


def _solution_names(program: str) -> dict[str, Any]:
    """Of the names that the tests read, those of the solution.

    It may not replace what Python has itself (an `abs` that is always 0 would satisfy many tests),
    unless it is all that the tests read of it: some tasks ask for a function named `sum`.
    """
    import ast

    read = {node.id for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Name)}
    reply = _ask("names", names=sorted(read))["names"]
    names = {n: value for n, value in reply.items() if n in read and not n.startswith("__")}
    own = {name: value for name, value in names.items() if not hasattr(builtins, name)}
    has_objects = any("object" in (value.get("value") or ()) for value in own.values())
    return {
        name: __import__(value["module"]) if "module" in value else decode(value["value"], Remote)
        for name, value in (own if has_objects else names).items()
        if "module" not in value or value["module"] in sys.stdlib_module_names
    }
