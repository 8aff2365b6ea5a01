"""Passwords and assigned secrets in the ways to write them that `secret_forms.yaml` lists.

Values are made when the test runs, by a seeded generator.
"""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from stages.signals.credentials import find_secrets

LETTERS = string.ascii_letters + string.digits
FORMS: dict[str, str] = yaml.safe_load(
    Path(__file__).with_name("secret_forms.yaml").read_text(encoding="utf-8")
)


def forms(name: str) -> list[str]:
    lines = FORMS[name].splitlines()
    return [line.replace("\\n", "\n").replace("\\t", "\t") for line in lines]


def missed(name: str, values: list[str]) -> list[str]:
    """The texts in which no span is exactly the value."""
    texts = [(form.replace("⟦⟧", value), value) for form in forms(name) for value in values]
    return [
        text
        for text, value in texts
        if value not in [text[span.start : span.end] for span in find_secrets(text)]
    ]


def chosen(rng: random.Random) -> str:
    return rng.choice(["Kestrel", "marmalade", "Orchidee"]) + str(rng.randrange(10, 2030))


def drawn(rng: random.Random) -> str:
    """Twelve characters, of each class two or more, in any order."""
    classes = (string.ascii_lowercase, string.ascii_uppercase, string.digits, "!#*+")
    letters = [rng.choice(one) for one in classes for _ in range(3)]
    rng.shuffle(letters)
    return "a" + "".join(letters) + "Z"


@pytest.mark.parametrize("make", [chosen, drawn])
def test_passwords_are_found_beside_their_names(make: Callable[[random.Random], str]) -> None:
    """A word with a number may look like a name in code; three in a hundred are allowed to."""
    rng = random.Random(11)
    left = missed("passwords", [make(rng) for _ in range(2)])
    assert len(left) <= 0.03 * 2 * len(forms("passwords")), left


def test_random_values_are_found_beside_their_names() -> None:
    rng = random.Random(12)
    values = [
        rng.randbytes(16).hex(),
        "".join(rng.choices(LETTERS, k=40)),
        base64.b64encode(rng.randbytes(32)).decode(),
    ]
    assert missed("assigned", values) == []


def test_a_key_of_base64_for_addresses_is_found_whole() -> None:
    value = "OtGywLL5R72_Qk395KTn1Kse2_fZAjsX3cNcTv4-G_tx"
    text = f"SESSION_SECRET={value}\n"
    assert [text[span.start : span.end] for span in find_secrets(text)] == [value]


@pytest.mark.parametrize("text", forms("none"))
def test_placeholders_code_and_prose_hold_none(text: str) -> None:
    assert find_secrets(text) == []


def test_a_password_at_development_hosts_must_look_like_one() -> None:
    for host in ("localhost:5432", "host:22", "db.corp.example"):
        found = find_secrets(f"postgres://app:Kestrel2031@{host}/x")
        assert [span.label for span in found] == ["url_password"]
        for word in ("password", "app", "postgrespw", "p4ssw0rd99"):
            assert find_secrets(f"postgres://app:{word}@{host}/x") == []


def test_the_secret_below_its_head_and_beside_its_key() -> None:
    secret = "".join(random.Random(5).choices(LETTERS + "+/", k=40))
    for text in (
        f"name,id,api_key\nann,7,{secret}\n",
        f"User,Access key ID,Secret\nann,AKIA{'QLORNMJJLDH4JGBX'},{secret}",
        f"| Client | Token |\n|---|---|\n| ann | `{secret}` |",
        f'Client("{secret}")  # api key',
    ):
        assert secret in [text[span.start : span.end] for span in find_secrets(text)], text
    assert find_secrets(f"name,id,digest\nann,7,{secret}\n") == []


@pytest.mark.parametrize("between", ["\n", "\n    ", "\\\n", '" +\n   "', "\r\n"])
@pytest.mark.parametrize("cut", [20, 44, 76])
def test_an_azure_key_over_lines_is_one_secret(between: str, cut: int) -> None:
    key = base64.b64encode(random.Random(5).randbytes(64)).decode()
    text = f'"AccountName=a;AccountKey={key[:cut]}{between}{key[cut:]};EndpointSuffix=x"'
    (span,) = find_secrets(text)
    assert (span.label, span.start, span.end - span.start) == (
        "azure_storage_key",
        text.index(key[:cut]),
        len(key) + len(between),
    )
