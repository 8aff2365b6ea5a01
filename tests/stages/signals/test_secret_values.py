"""What values look like: entropy by arithmetic, placeholders, mixtures of classes of characters."""

from __future__ import annotations

import random
import string

import pytest

from stages.signals.secret_values import (
    is_mixed,
    is_password,
    is_placeholder,
    is_random,
    is_strong_password,
    looks_secret,
)

LETTERS = string.ascii_letters + string.digits


def test_entropy_by_arithmetic() -> None:
    """Four different characters: 2 bits each; "aab": log2(3) - 2/3 = 0.918."""
    assert is_random("abcd", 200)
    assert not is_random("abcd", 201)
    assert is_random("aab", 91)
    assert not is_random("aab", 92)
    assert not is_random("", 1)


def test_placeholders_of_tutorials_are_none() -> None:
    for value in ("changeme", "Admin123", "your_password", "${PASSWORD}", "<password>", "xxxxxxxx"):
        assert is_placeholder(value), value
    for value in ("Kestrel2031!", "winter79", "".join(random.Random(7).choices(LETTERS, k=30))):
        assert not is_placeholder(value), value


def test_a_generator_changes_the_class_of_characters_more_often_than_a_programmer() -> None:
    """`kX9q4Zt7w` has nine runs in nine characters; `requestFormValue1` eight in seventeen."""
    assert is_mixed("kX9q4Zt7w")
    assert not is_mixed("requestFormValue1")
    assert not is_mixed("kx9q4zt7w")  # One case.
    assert not is_mixed("kX9q4Z")  # Too short.
    drawn = random.Random(3)
    made = ["".join(drawn.choices(LETTERS + "!*+-", k=14)) for _ in range(500)]
    assert sum(map(is_mixed, made)) > 450


@pytest.mark.parametrize("value", ["Kestrel2031!", "winter79", "a1b2c3d4", "zQ7#(mW2pLx9v"])
def test_what_people_choose_and_generators_make_is_a_password(value: str) -> None:
    assert is_password(value)


@pytest.mark.parametrize(
    "value",
    [
        *("sunshine", "12345678", "abc1", "P4ssw0rd99", "args.pw1", "pw[1]", "f(x1)", "sha256"),
        *("$2b$12$KIXQe1vYk3J8xw3v", "vault:x/y1", "20px!important", "md5-hash1", "8-char"),
    ],
)
def test_code_hashes_and_references_are_no_passwords(value: str) -> None:
    assert not is_password(value)


def test_only_some_passwords_stand_out_of_prose() -> None:
    for value in ("Kestrel2031!", "tortuga-Kaktus-742", "marmalade88", "kX9q4Zt7w"):
        assert is_strong_password(value), value
    for value in ("v2.0beta", "8-char", "abc123", "user's1", "RFC2617"):
        assert not is_strong_password(value), value


def test_random_letters_are_told_from_names_of_programs() -> None:
    for name in (
        "tokenFromRequest2Header",
        "base64EncodedPrivateKey",
        "login.corp.net/abc123DEF45",
    ):
        assert not looks_secret(name), name
    drawn = random.Random(9)
    made = ["".join(drawn.choices(LETTERS, k=40)) for _ in range(300)]
    assert sum(map(looks_secret, made)) > 295
