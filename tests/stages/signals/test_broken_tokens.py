"""Tokens in parts: over lines that begin alike, in cells, appended to a variable, in lists."""

from __future__ import annotations

import random
import string

import pytest

from stages.signals.credentials import find_secrets

LETTERS = string.ascii_letters + string.digits


def chars(number: int, seed: int, alphabet: str = LETTERS) -> str:
    return "".join(random.Random(f"{seed} {number}").choices(alphabet, k=number))


TOKENS = {
    "GitLab": "glpat-" + chars(20, 3),
    "PyPI": "pypi-AgEIcHlwaS5vcmc" + chars(60, 4) + "x",
    "SendGrid": f"SG.{chars(22, 5)}.{chars(43, 5)}",
    "Doppler": "dop_v1_" + chars(64, 6, "0123456789abcdef"),
}
FORMS = (
    'const key = ["{}", "{}"].join("");',
    'token = "".join(["{}", "{}"])',
    "$key = implode('', ['{}','{}']);",
    'key = "{}" + "{}";',
    "$key = '{}' . '{}';",
    'char *key = "{}" "{}";',
    'TOKEN="{}"\nTOKEN+="{}"\n',
    "TOKEN={}\nTOKEN+={}\n",
    "$key = '{}';\n$key .= '{}';",
    'let key = "{}";\nkey = key + "{}";',
    "| token | {}<br>{} |",
    "| token | {} <br/>{} |",
    '-    token = "{}"\n-            "{}"\n',
    "+API_KEY={}\\\n+{}\n+NEXT=1",
    "auth | token {}\nauth | {}\nauth | ready",
    "<td>{}<wbr>{}</td>",
    "<code>{}&shy;{}</code>",
    "copied: {}\u200b{}",
    "<code>{}&#x200B;{}</code>",
    "<code>{}&NewLine;{}</code>",
    r"\texttt{{{}\-{}}}",
    r"\texttt{{{}\allowbreak {}}}",
    '{{"key": "{}\\n{}"}}',
    "<!-- {} -->\n<!-- {} -->",
    "/* {} */\n/* {} */",
    "| token | {} |\n|       | {} |\n",
    "PART_1={}\nPART_2={}\n",
    "token: {}=0D=0A=\n{}=0D=0A",
    "10:15:01 worker[7]: {}\n10:15:02 worker[7]: {}\n10:15:02 worker[7]: ready",
)


@pytest.mark.parametrize("service", TOKENS)
@pytest.mark.parametrize("form", FORMS)
def test_a_token_in_parts_is_one_secret(form: str, service: str) -> None:
    token = TOKENS[service]
    for cut in (14, len(token) // 2 + 3):
        text = form.format(token[:cut], token[cut:])
        (span,) = find_secrets(text)
        inner = form[form.index("{}") : form.rindex("{}") + 2]
        assert text[span.start : span.end] == inner.format(token[:cut], token[cut:])


@pytest.mark.parametrize("form", FORMS)
def test_words_in_parts_are_none(form: str) -> None:
    for one, two in (("glpat-tokens", "are described"), ("nothing", "of the sort"), ("abc", "def")):
        assert find_secrets(form.format(one, two)) == []


@pytest.mark.parametrize("between", ["\n", "=\n", '" +\n  "', "\n> ", "\\\n"])
def test_a_token_that_only_its_end_tells_is_joined(between: str) -> None:
    digits = chars(32, 9, "0123456789abcdef")
    for cut in (12, 18, 28):
        text = f'key: "{digits[:cut]}{between}{digits[cut:]}-us7"'
        (span,) = find_secrets(text)
        assert text[span.start : span.end] == f"{digits[:cut]}{between}{digits[cut:]}-us7"
    assert find_secrets(f"sha {digits[:18]}\nof {digits[18:]}-us7 and more") == []


def test_a_whole_token_is_not_joined_to_what_is_below_or_beside() -> None:
    """`glpat-` may have up to 300 characters, so a word right behind it would fit its shape."""
    token = TOKENS["GitLab"]
    for text in (
        f"auth | token {token}\nauth | starting\n",
        f'["{token}", "production", "eu-west-1"]',
        f'-  a = "{token}"\n-  b = "other"\n',
        f"10:15:01 got {token}\n10:15:02 ready\n",
    ):
        (span,) = find_secrets(text)
        assert text[span.start : span.end] == token


@pytest.mark.parametrize(
    "unit",
    [
        '"glpat-ab12", ',
        "glpat-ab12<br>",
        "auth | glpat-ab12CD34\n",
        '";\n',
        '"sk-proj-aaaaaaaa";\nk += ',
        "deadbeef12\n-us7",
    ],
)
def test_floods_take_linear_time(unit: str) -> None:
    find_secrets(unit * (300_000 // len(unit)))
