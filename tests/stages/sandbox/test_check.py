"""Verdicts: what passes, what fails, and that a solution cannot decide it."""

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import IngotError
from stages.sandbox import sandbox
from stages.sandbox.check import check_program
from stages.sandbox.exchange import decode, encode
from stages.sandbox.sandbox import Limits, run_program

WRONG = "def double(x): return 3\n"
TESTS = """
def check(candidate):
    assert candidate(2) == 4
    assert not candidate(0)
check(double)
"""


def verdict(solution, tests=TESTS, isolation="namespaces", **limits):
    return check_program(
        solution, tests, limits=Limits(**{"wall_seconds": 60, **limits}), isolation=isolation
    )


@pytest.fixture(params=["namespaces", "limits"])
def isolation(request):
    if request.param == "namespaces":
        request.getfixturevalue("namespaces")
    return request.param


def test_a_right_solution_passes_and_a_wrong_one_fails(isolation):
    assert verdict("def double(x): return 2 * x", isolation=isolation).result == "passed"
    wrong = verdict(WRONG, isolation=isolation)
    assert (wrong.result, wrong.detail) == ("failed", "AssertionError")


def test_how_it_failed_is_kept(isolation):
    def result(solution, **limits):
        answer = verdict(solution, isolation=isolation, **limits)
        return answer.result, answer.detail

    assert result("def double(x): return [0] * 10**10") == ("memory", "MemoryError")
    assert result("def double(x):\n  while True: pass", cpu_seconds=1)[0] == "timeout"
    assert result("import time\ntime.sleep(600)", wall_seconds=2) == ("timeout", "2 s passed")
    assert result("def double(x): return") == ("failed", "AssertionError")
    assert result("double = 1 / 0") == ("failed", "ZeroDivisionError: division by zero")
    assert result("def double(x) return x")[1].startswith("SyntaxError")
    assert result("") == ("failed", "NameError: name 'double' is not defined")
    assert result("def double(x): raise KeyError(x)") == ("failed", "KeyError: '2'")
    segfault = "import ctypes\ndef double(x): ctypes.string_at(0)"
    assert result(segfault) == ("failed", "the solution ended with signal 11")


CHEATS = {
    "exit before the tests": "import sys\nsys.exit(0)",
    "exit within a test": "import sys\ndef double(x): sys.exit(0)",
    "exit without a trace": "import os\ndef double(x): os._exit(0)",
    "exit at exit": "import atexit, os\natexit.register(os._exit, 0)\n" + WRONG,
    "an assertion that is none": (
        "import builtins\nclass Quiet(BaseException):\n  def __new__(*_): raise SystemExit(0)\n"
        "builtins.AssertionError = Quiet\n" + WRONG
    ),
    "equal to everything": (
        "class Equal:\n  def __eq__(self, other): return True\n  def __bool__(self): return False\n"
        "def double(x): return Equal()"
    ),
    "a number that is equal to everything": (
        "class Equal(int):\n  def __eq__(self, other): return True\ndef double(x): return Equal(7)"
    ),
    "print what success prints": (
        "import os\nfor n in range(1, 64):\n"
        "  try: os.write(n, b'{\"passed\": true}\\n')\n  except OSError: pass\n" + WRONG
    ),
    "edit the harness": (
        "import exchange, glob\nfor path in [exchange.__file__, *glob.glob('/program/*')]:\n"
        "  try: open(path, 'w').write('')\n  except OSError: pass\n"
        "exchange.encode = lambda *_: {'int': '0x4'}\n" + WRONG
    ),
    "read the tests": (
        "import gc, glob, sys\nframe, text = sys._getframe(), ''\n"
        "while frame: text += repr(frame.f_locals) + repr(frame.f_globals); frame = frame.f_back\n"
        "for path in glob.glob('/program/*') + glob.glob('*'): text += open(path).read()\n"
        "text += ''.join(one for one in gc.get_objects() if isinstance(one, str))\n"
        "seen = 'candidate(2) == 4' in text.replace('candidate(2) == ' + '4\\' in', '')\n"
        "def double(x): return 2 * x if seen else 3"
    ),
    "replace what the tests use": (
        "class Any:\n  pass\ndef abs(x): return 0\ndef isinstance(*_): return True\n" + WRONG
    ),
    "other names for the tests": (
        "import json, os\n"
        "names = {'__builtins__': {'value': {'dict': []}}, 'check': {'value': {'object': 0}}}\n"
        "os.write(4, json.dumps({'names': names}).encode() + b'\\n')\n" + WRONG
    ),
    "no reply at all": "import os\nos.close(4)\n" + WRONG,
    "a reply that is nonsense": "import os\nos.write(4, b'[[[[\\n')\n" + WRONG,
    "a reply without an end": (
        "import os\ndef double(x):\n  os.write(4, b'{\"value\": ' + b'[' * 60_000 + b'\\n')"
    ),
}


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("name", CHEATS)
def test_a_wrong_solution_cannot_pass(name):
    answer = verdict(CHEATS[name])
    assert answer.result == "failed", answer


@pytest.mark.parametrize(
    "name",
    ["exit without a trace", "exit within a test", "exit at exit", "equal to everything"],
)
def test_these_cheats_work_where_solution_and_tests_share_a_process(name):
    """What the programs do is real: run as one file, as is usual, they end without an error."""
    solution = CHEATS[name]
    process = subprocess.run([sys.executable, "-c", f"{solution}\n{TESTS}"], capture_output=True)
    assert process.returncode == 0


def test_tests_use_a_solution_as_if_it_were_there(isolation):
    solution = """
import math
from collections import Counter, namedtuple
SIZE = 3
Point = namedtuple("Point", "x y")
class Node:
    def __init__(self, value): self.value, self.next = value, None
    def total(self): return self.value + (self.next.total() if self.next else 0)
    def __len__(self): return 7
    def __str__(self): return f"<{self.value}>"
def count():
    number = 0
    while True:
        yield number
        number += 1
def sort(values): values.sort()
def kinds(): return [1, 2.5, -0.0, float("inf"), 1j, "é\\ud800", b"\\0", None, True,
                     (1, [2]), {1: {2}}, frozenset({3}), range(3), 10**5000,
                     Counter("aa"), Point(1, 2)]
def fail(): raise ValueError("no")
"""
    tests = """
assert SIZE == 3 and math.floor(2.5) == 2
node = Node(1)
node.next = Node(2)
assert node.total() == 3 and len(node) == 7 and str(node) == "<1>" and node.next.value == 2
assert node == node and node != Node(1) and isinstance(node.next.next, type(None))
numbers = count()
assert next(numbers) == 0 and next(numbers) == 1
assert [one for one, _ in zip(count(), range(3))] == [0, 1, 2]
values = [3, 1, 2]
assert sort(values) is None and values == [1, 2, 3]
expected = [1, 2.5, -0.0, float("inf"), 1j, "é\\ud800", b"\\0", None, True, (1, [2]), {1: {2}},
            frozenset({3}), range(3), 10**5000, {"a": 2}, (1, 2)]
assert kinds() == expected and [type(one) for one in kinds()] == [type(one) for one in expected]
try:
    fail()
except ValueError as error:
    assert str(error) == "no"
else:
    assert False
"""
    assert verdict(solution, tests, isolation).result == "passed"


@pytest.mark.usefixtures("namespaces")
def test_a_function_may_be_named_as_one_of_python_where_it_is_what_is_tested():
    solution = "def sum(a, b): return 6\ndef helper(): pass"
    assert verdict(solution, "assert sum(10, 15) == 6").result == "passed"


@pytest.mark.usefixtures("namespaces")
def test_tests_that_exit_have_not_passed():
    solution = "def double(x): return 2 * x"
    assert verdict(solution, "import sys\nsys.exit(0)").result == "failed"
    ended = verdict(solution, "import os\nos._exit(0)")
    assert (ended.result, ended.detail) == ("failed", "the tests ended with exit code 0")


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.fractions().map(Fraction)
    | st.complex_numbers(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=200)
@given(PLAIN)
def test_plain_values_pass_unchanged(value):
    def never(_):
        raise AssertionError("a plain value needs no stand-in")

    copy = decode(json.loads(json.dumps(encode(value, never))), never)
    assert repr(copy) == repr(value)


@pytest.mark.parametrize("bad", [3, [1], {}, {"eval": "1"}, {"int": "0x1", "float": "1"}])
def test_what_is_no_encoded_value_is_rejected(bad):
    with pytest.raises(ValueError, match="encoded value"):
        decode(bad, None)


def test_a_machine_without_namespaces_is_named_and_another_way_offered(monkeypatch, tmp_path):
    """As in a container whose filter forbids `unshare`: the first process says which step."""
    enter = tmp_path / "enter.py"
    text = sandbox.ENTER.read_text()
    enter.write_text(text.replace("_libc.unshare(CLONE_NEWUSER)", "_libc.unshare(1 << 5)"))
    monkeypatch.setattr(sandbox, "ENTER", enter)
    with pytest.raises(IngotError, match="new user namespace: Invalid argument") as caught:
        run_program("pass")
    assert "isolation: limits" in caught.value.hint
    enter.write_text("")
    with pytest.raises(IngotError, match="without a word"):
        check_program("", "")


def test_no_descriptor_and_no_folder_is_left(isolation, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    verdict("def double(x): return 2 * x", isolation=isolation)
    before = sorted(os.listdir("/proc/self/fd"))
    verdict("def double(x): return 2 * x", isolation=isolation)
    verdict("import time\ntime.sleep(600)", wall_seconds=1, isolation=isolation)
    run_program("print('x' * 10_000)", limits=Limits(output_bytes=10), isolation=isolation)
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
@pytest.mark.timeout(1_800)
@pytest.mark.usefixtures("namespaces")
def test_humaneval_passes_with_its_own_solutions_and_fails_without(shared_data: Path):
    import zstandard

    file = zstandard.open(shared_data / "bench" / "humaneval.jsonl.zst", "rt", encoding="utf-8")
    with file:
        rows = [json.loads(line) for line in file]
    assert len(rows) == 164
    results = {"right": set(), "empty": set()}
    for row in rows:
        tests = f"{row['test']}\ncheck({row['entry_point']})"
        right, empty = row["prompt"] + row["canonical_solution"], row["prompt"] + "    pass\n"
        results["right"] |= {(verdict(right, tests).result)}
        results["empty"] |= {(verdict(empty, tests).result)}
    assert results == {"right": {"passed"}, "empty": {"failed"}}
