"""Templates read fields and nothing else, within a budget."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.examples import templates
from stages.examples.templates import BadTemplate, Expression, RenderError, Template

ROW: dict[str, Any] = {
    "question": " Why? ",
    "choices": {"text": ["a", "b"], "label": ["A", "B"], "items": ["field"]},
    "answerKey": "B",
    "number": 3,
}


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{question.strip()}}\nAnswer:\n", "Why?\nAnswer:\n"),
        ("{% for c in choices.text %}{{'AB'[loop.index0]}}. {{c}}\n{% endfor %}", "A. a\nB. b\n"),
        ("{{question|replace('h', 'H')|trim}}", "WHy?"),
        ("{{'a b c'.split(' ')[:-1]|join(' ')}}", "a b"),
        ("{{{'B': 'because'}[answerKey]}}", "because"),
        ("{{'x [y] z'|regex_replace('\\\\[.*?\\\\]', '')}}", "x  z"),
        ("{% if number > 2 %}many{% else %}few{% endif %}", "many"),
        ("{{choices.items[0]}}", "field"),
        ("{{number - 1}} {{answerKey + '!'}}", "2 B!"),
        ("{{ {'k': [number, answerKey]}|tojson }}", '{"k": [3, "B"]}'),
    ],
)
def test_templates_render_as_jinja_does(source: str, text: str) -> None:
    assert Template(source).render(ROW) == text


def test_an_expression_keeps_the_type_of_its_value() -> None:
    assert Expression("{{choices.label.index(answerKey)}}").value(ROW) == 1
    assert Expression("{{choices.text}}").value(ROW) == ["a", "b"]
    assert Expression("{{[question, answerKey]}}").value(ROW) == [" Why? ", "B"]
    for source in ("{{question}} and more", "question", "{{question}}{{number}}", ""):
        with pytest.raises(BadTemplate):
            Expression(source)


@pytest.mark.parametrize(
    "source",
    [
        "{{question.__class__}}",
        "{{''['__class__']}}",
        "{{question.format(number)}}",
        "{{question.strip.__self__}}",
        "{{choices.items()}}",
        "{{question|attr('upper')}}",
        "{% for i in range(10) %}{% endfor %}",
        "{{'%s' % number}}",
        "{{'a' * 1000000000}}",
        "{{2 ** 1000000}}",
        "{{question ~ number}}",
        "{% set x = 1 %}",
        "{% include 'x' %}",
        "{% import 'x' as y %}",
        "{% macro x() %}{% endmacro %}",
        "{{self}}",
        "{{lipsum}}",
        "{{cycler('a')}}",
        "{{question is defined}}",
        "{{_each}}",
        "{{question|_each}}",
        "{% for a in choices.text recursive %}{{loop(a)}}{% endfor %}",
        "{% for a in choices.text %}{% for b in choices.text %}{% endfor %}{% endfor %}",
        "{{" + "(" * 3000 + "}}",
        "{{" + "9" * 6000 + "}}",
        "x" * 20_001,
        "{{choices}}",
        "{{missing}}",
        "{{missing.strip()}}",
        "{{choices.missing}}",
        "{{choices.text[7]}}",
        "{{''|int}}",
        "{{'1.5'|int}}",
        "{{1.5|int}}",
        "{{question|replace('', 'x')}}",
        "{{question|regex_replace('(', '')}}",
        "{{number + question}}",
    ],
)
def test_all_else_is_refused(source: str) -> None:
    with pytest.raises((BadTemplate, RenderError)):
        Template(source).render(ROW)


@pytest.mark.parametrize(
    "source",
    [
        "{{text" + "|replace('a', 'aa')" * 60 + "}}",
        "{% for part in parts %}{{text}}{{text}}{{text}}{% endfor %}",
        "{{parts|join(text)}}",
        "{% for part in many %}.{% endfor %}",
    ],
)
def test_a_short_template_cannot_ask_for_much(source: str) -> None:
    row = {"text": "a" * 30_000, "parts": ["b"] * 800, "many": ["c"] * 100_000}
    with pytest.raises(RenderError):
        Template(source).render(row)


def test_a_pattern_that_needs_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "PATTERN_SECONDS", 0.05)
    with pytest.raises(RenderError):
        Template("{{text|regex_replace('(a|aa)+$', '')}}").render({"text": "a" * 80 + "b"})


@given(st.text(), st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_text_of_a_row_is_never_a_template(text: str, choices: list[str]) -> None:
    source = "{{text}}|{% for choice in choices %}{{choice}};{% endfor %}"
    expected = f"{text}|" + "".join(f"{choice};" for choice in choices)
    assert Template(source).render({"text": text, "choices": choices}) == expected
