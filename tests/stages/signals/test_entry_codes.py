"""PINs, codes of doors, recovery codes, and passwords of words; the value is between ⟦ and ⟧."""

from __future__ import annotations

import re

import pytest

from stages.signals.credentials import find_secrets


def found(text: str) -> list[str]:
    return [text[span.start : span.end] for span in find_secrets(text)]


@pytest.mark.parametrize(
    "text",
    [
        "The gate code is ⟦5927#⟧ and the key is under the mat.",
        "The garage door code has been changed to ⟦7714⟧.",
        "The lockbox combination is ⟦4-8-1-7⟧.",
        "my debit card pin is ⟦6620⟧ by the way",
        "SIM PIN: ⟦4410⟧, PUK: ⟦73920184⟧",
        "Der Türcode lautet ⟦4713E⟧.",
        "Code d'entrée de l'immeuble : ⟦7A493⟧",
        "El código de la puerta es ⟦4519#⟧",
        "Il codice del cancello è ⟦8362⟧.",
        "Dørkode: ⟦6194⟧",
        "Kod do domofonu to ⟦2718⟧.",
        "Код от домофона: ⟦45К2719⟧",
        "Ο κωδικός της πόρτας είναι ⟦7026⟧",
        "הקוד לדלת הוא ⟦5823⟧",
        "大门密码是⟦4826#⟧",
        "キーボックスの暗証番号は⟦3816⟧です",
        "현관 비밀번호는 ⟦2907*⟧ 입니다",
        "提取码：⟦x8f2⟧",
        "Zoom passcode: ⟦mB4tQ9⟧",
        "Backup codes: ⟦8493 2019⟧, ⟦4410 7783⟧, ⟦9021 5540⟧",
        "Meine Wiederherstellungscodes:\n1. ⟦84hd-92kf⟧\n2. ⟦77sk-02md⟧\n3. ⟦19xq-55pp⟧",
    ],
)
def test_codes_that_people_type_are_found(text: str) -> None:
    assert found(text.replace("⟦", "").replace("⟧", "")) == re.findall("⟦(.*?)⟧", text)


@pytest.mark.parametrize(
    "text",
    [
        "PIN: 560034",
        "Pin 1024 of the FPGA is unused.",
        "const PIN = 4096",
        "The door code was introduced in 1987.",
        "The safe combination is 12-34-56",
        "The PIN was entered 3000 times.",
        "Alarm codes: 1001 overheating, 1002 overload",
        "The entry code 4012 is returned on error",
        "le code postal est 75011",
        "Код города 4722",
        "backup codes: 10 codes of 8 digits",
        "The gate code must have 4 digits.",
    ],
)
def test_other_numbers_and_codes_are_none(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Log into the NAS as admin with ⟦Tr0ut#River9⟧",
    ],
)
def test_words_and_sites_are_told_as_passwords(text: str) -> None:
    assert found(text.replace("⟦", "").replace("⟧", "")) == re.findall("⟦(.*?)⟧", text)


@pytest.mark.parametrize(
    "text",
    [
        "The wifi password is user_password",
        "The zip password is in readme.txt",
        "for archive.org password reset",
        "Login with google.com or facebook.com",
        "Parola este incorectă.",
    ],
)
def test_words_about_passwords_are_none(text: str) -> None:
    assert found(text) == []


def test_a_secret_is_found_over_a_soft_break_of_quoted_printable() -> None:
    text = "aws_secret_access_key =3D CT7CiMU8322JiiFZVYJf=\n4uj9NRphjlnPLi24VjYi\n"
    assert found(text) == ["CT7CiMU8322JiiFZVYJf=\n4uj9NRphjlnPLi24VjYi"]
    assert found("DB_PASSWORD=3DCanoe!River4471=\n\nthe next line") == ["Canoe!River4471"]


@pytest.mark.parametrize("unit", ["PIN door ", "the gate code 12", "recovery codes: ", "is PIN 4"])
def test_floods_hold_none_and_end(unit: str) -> None:
    assert find_secrets(unit * 20_000) == []
