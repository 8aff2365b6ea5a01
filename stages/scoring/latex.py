"""Answers in LaTeX that are the same, as MATH's and Minerva's evaluations decide it: by their text.

Two answers are equal if either of two published ways to write them alike makes them equal: that of
MATH (Hendrycks et al. 2021, arXiv 2103.03874) or that of Minerva (Lewkowycz et al. 2022, arXiv
2206.14858, appendix D) with the corrections of lm-evaluation-harness. Nothing is parsed or
computed, so `1/2` is `\\frac{1}{2}` but `2/4` is not. The harness's hendrycks_math has the first
way alone; its minerva_math the second, and sympy, whose time and memory nothing bounds.
"""

from __future__ import annotations

import re

_UNITS = (
    "square", "ways", "integers", "dollars", "mph", "inches", "ft", "hours", "km", "units", "sue",
    "points", "feet", "minutes", "digits", "cents", "degrees", "cm", "gm", "pounds", "meters",
    "meals", "edges", "students", "childrentickets", "multiples",
)  # fmt: skip
"""Words that Minerva leaves out, in its order."""
_MARKS_BEFORE = ("\\ldots",)
_MARKS = (
    "\\text{s}", "\\text{.}", "\\text{\ns}", "\\text{}^2", "\\text{}^3", "\\text{\n}", "\\text{}",
    "\\mathrm{th}", "^\\circ", "^{\\circ}", "\\;", ",\\!", "{,}", '"', "\\dots",
)  # fmt: skip
_REPLACED = (
    ("an ", ""), ("a ", ""), (".$", "$"), ("\\$", ""), ("\\ ", ""), (" ", ""), ("mbox", "text"),
    (",\\text{and}", ","), ("\\text{and}", ","), ("\\text{m}", "\\text{}"),
)  # fmt: skip
_COMMAND = re.compile(r"(\\[a-zA-Z]+)")


LONGEST = 1_000
"""Characters of a final answer; what is longer is none, and equal to nothing but itself."""


def same_latex(answer: str, reference: str) -> bool:
    """Whether two answers are written alike under either way."""
    if answer == reference:
        return True
    return max(len(answer), len(reference)) <= LONGEST and (
        normalise_minerva(answer) == normalise_minerva(reference)
        or normalise_math(answer) == normalise_math(reference)
    )


def last_boxed(text: str) -> str | None:
    """What the last `\\boxed{…}` (or `\\boxed …$`, else `\\fbox{…}`) holds; None without one."""
    if "\\boxed " in text:
        return text.rpartition("\\boxed ")[2].partition("$")[0]
    start = max(text.rfind("\\boxed{"), -1)
    command = "\\boxed{" if start >= 0 else "\\fbox{"
    start = start if start >= 0 else text.rfind(command)
    if start < 0:
        return None
    depth, first = 0, start + len(command)
    for place in range(first - 1, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[first:place]
    return None


def normalise_minerva(answer: str) -> str:
    """An answer without units, articles and markup, in Minerva's order of rules."""
    answer = answer.rpartition("=")[2]
    for unit in _UNITS:
        answer = re.sub(rf"(?<!\\)\b{unit}\b", "", answer)
    for before, after in _REPLACED:
        answer = answer.replace(before, after)
    for unit in (*_UNITS[:10], *_MARKS_BEFORE, *_UNITS[10:]):
        answer = _remove(answer, unit)
    for mark in _MARKS:
        answer = answer.replace(mark, "")
    answer = re.sub(r"(.*?)\$(.*?)\$(.*)", r"$\2$", answer)
    for command in ("text", "textbf", "overline"):
        answer = re.sub(rf"\\{command}\{{(.*?)\}}", r"\1", answer)
    answer = re.sub(r"\\boxed\{(.*)\}", r"\1", answer)
    answer = re.sub(r"frac([^{])(.)", r"frac{\1}{\2}", answer)
    answer = re.sub(r"(sqrt\[[^\]]*\])(\w)", r"\1{\2}", answer)
    answer = re.sub(r"sqrt(?!\[)([^{])", r"sqrt{\1}", answer)
    answer = answer.replace("$", "")
    if re.fullmatch(r"-?\d{1,3}(,\d{3})+", answer):
        answer = answer.replace(",", "")
    return answer


def _remove(answer: str, unit: str) -> str:
    """Without a unit, except within commands: `\\left` keeps its `ft`."""
    if unit.startswith("\\"):
        return answer.replace(unit, "")
    parts = _COMMAND.split(answer)
    return "".join(part if n % 2 else part.replace(unit, "") for n, part in enumerate(parts))


def normalise_math(answer: str) -> str:
    """An answer without space, sizes, units and degrees, and with braces, as MATH compares it."""
    answer = answer.replace("\n", "").replace("\\!", "").replace("\\\\", "\\")
    answer = answer.replace("tfrac", "frac").replace("dfrac", "frac")
    for removed in ("\\left", "\\right", "^{\\circ}", "^\\circ", "\\$"):
        answer = answer.replace(removed, "")
    if answer.count("\\text{ ") == 1:
        answer = answer.partition("\\text{ ")[0]
    answer = answer.replace("\\%", "")
    answer = answer.replace(" .", " 0.").replace("{.", "{0.")
    if answer.startswith("."):
        answer = f"0{answer}"
    name, equals, value = answer.partition("=")
    if equals and "=" not in value and len(name) <= 2:
        answer = value
    answer = re.sub(r"\\sqrt([^{])", r"\\sqrt{\1}", answer).replace(" ", "")
    answer = _brace_fractions(answer)
    if answer == "0.5":
        return "\\frac{1}{2}"
    halves = re.fullmatch(r"(0|-?[1-9]\d*)/(0|-?[1-9]\d*)", answer, re.ASCII)
    return f"\\frac{{{halves[1]}}}{{{halves[2]}}}" if halves else answer


def _brace_fractions(answer: str) -> str:
    """`\\frac12` as `\\frac{1}{2}`, `\\frac1{7}` as `\\frac{1}{7}`; unchanged if one is cut off."""
    first, *rest = answer.split("\\frac")
    whole = first
    for part in rest:
        if part.startswith("{"):
            whole += f"\\frac{part}"
        elif len(part) < 2:
            return answer
        elif part[1] == "{":
            whole += f"\\frac{{{part[0]}}}{part[1:]}"
        else:
            whole += f"\\frac{{{part[0]}}}{{{part[1]}}}{part[2:]}"
    return whole
