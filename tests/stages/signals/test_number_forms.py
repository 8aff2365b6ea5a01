"""Phone, card and account numbers in the ways to write them that `number_forms.yaml` lists."""

from __future__ import annotations

import random
import re
import string
from pathlib import Path

import pytest
import yaml
from stdnum import iban, numdb

from stages.signals.personal_data import find_personal_data

FORMS: dict[str, str] = yaml.safe_load(
    Path(__file__).with_name("number_forms.yaml").read_text(encoding="utf-8")
)


def found(text: str, label: str) -> list[str]:
    spans = find_personal_data(text)
    return [text[span.start : span.end] for span in spans if span.label == label]


def forms(name: str) -> list[str]:
    return [line.replace("\\n", "\n") for line in FORMS[name].splitlines()]


@pytest.mark.parametrize("label", ["phone", "card"])
def test_numbers_are_found_whole_in_every_form(label: str) -> None:
    for form in forms(label):
        plain = form.replace("⟦", "").replace("⟧", "")
        assert found(plain, label) == re.findall("⟦(.*?)⟧", form), plain


@pytest.mark.parametrize("label", ["phone", "card"])
def test_numbers_of_other_kinds_are_left(label: str) -> None:
    assert [text for text in forms(f"no_{label}") if found(text, label)] == []


def made_ibans() -> dict[str, str]:
    """One of each country of the registry: its shape drawn, check digits by MOD 97-10."""
    drawn = random.Random(4)
    alphabets = {"n": string.digits, "a": string.ascii_uppercase}
    made = {}
    for one in string.ascii_uppercase:
        for other in string.ascii_uppercase:
            ((_, entry),) = numdb.get("iban").info(one + other)
            if not entry:
                continue
            body = "".join(
                "".join(drawn.choices(alphabets.get(kind, string.digits + "XYZ"), k=int(size)))
                for size, kind in re.findall(r"([0-9]+)!?([nac])", entry["bban"])
            )
            plain = "".join(str(int(letter, 36)) for letter in f"{body}{one}{other}00")
            made[one + other] = f"{one}{other}{98 - int(plain) % 97:02d}{body}"
    return made


SEPARATORS = [" ", "\u00a0", "\u2009", "\u202f", "-", ".", "", "  "]
FRAMES = ["IBAN {}", "konto {} bitte", '"iban":"{}"', "iban={};x", "a,{},EUR", "|{}|", "IBAN{}"]


@pytest.mark.parametrize("separator", SEPARATORS)
def test_an_account_of_every_country_is_found_with_any_separator(separator: str) -> None:
    ibans = {c: n for c, n in made_ibans().items() if iban.is_valid(n, check_country=False)}
    assert len(ibans) > 80
    for place, number in enumerate(ibans.values()):
        written = separator.join(re.findall(".{1,4}", number))
        text = FRAMES[place % len(FRAMES)].format(written)
        assert found(text, "iban") == [written], text


def test_an_account_may_go_on_in_the_next_line() -> None:
    number = made_ibans()["DE"]
    for written in (f"{number[:12]}\n    {number[12:]}", f"{number[:2]} {number[2:]}"):
        assert found(f"IBAN: {written}", "iban") == [written]
