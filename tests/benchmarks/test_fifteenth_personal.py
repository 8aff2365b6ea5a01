"""The personal kinds of the fifteenth blind set: email, phone, ip, card. No rule runs here.

What a value is worth is the word of `phonenumbers`, `ipaddress` and python-stdnum.
"""

from __future__ import annotations

import ipaddress
import re
from functools import cache
from pathlib import Path

import phonenumbers
import pytest
from stdnum import imei, luhn

from tests.benchmarks import fifteenth_blind
from tests.benchmarks.blind_set import BlindSet, Scene, load, slots_of, values_of
from tests.benchmarks.fifteenth_blind.personal import MAKERS, TEST_CARDS
from tests.benchmarks.redaction_cases import Case

SEED = 42001
PERSONAL = ("email", "phone", "ip", "card")


def _name_nothing(kind: str, scene: Scene) -> None:
    """The personal kinds use no carriers."""


SET = BlindSet(
    "fifteenth",
    Path(fifteenth_blind.__file__).with_name("texts"),
    MAKERS,
    name_secret=_name_nothing,
    name_other=_name_nothing,
    in_turn=True,
)
every_kind = pytest.mark.parametrize("kind", PERSONAL)


@cache
def cases(kind: str) -> tuple[Case, ...]:
    """The texts of a kind, positives first."""
    return tuple(SET.make_cases(kind, SEED))


def positives(kind: str) -> list[Case]:
    return [case for case in cases(kind) if case.values]


def negatives(kind: str) -> list[Case]:
    return [case for case in cases(kind) if not case.values]


def all_values(kind: str) -> list[str]:
    return [value for case in positives(kind) for value in values_of(case)]


@every_kind
def test_each_sign_has_140_different_templates_of_weight_1_and_200_texts(kind: str) -> None:
    drawn = cases(kind)
    assert len({case.text for case in drawn}) == 400
    assert [bool(case.values) for case in drawn] == [True] * 200 + [False] * 200
    for positive in (True, False):
        templates = SET.templates_of(kind, positive)
        assert len({_skeleton(one.text) for one in templates}) == len(templates) >= 140
        assert {(one.register, one.weight) for one in templates} == {("any", 1.0)}


def _skeleton(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<<.*?>>", "<<>>", text)).strip().lower()


@every_kind
def test_templates_name_makers_of_their_own_and_label_positives_alone(kind: str) -> None:
    assert all(name.startswith("personal_") for name in MAKERS)
    for template in load(kind, SET.texts):
        slots = slots_of(template.text)
        assert {maker for maker, _ in slots} <= set(MAKERS), template.text
        assert any(marked for _, marked in slots) == (template.sign == "+"), template.text


@every_kind
def test_labels_lie_inside_the_text_apart_and_without_blanks_at_their_ends(kind: str) -> None:
    for case in cases(kind):
        ends = [0, *(end for _, end in case.values)]
        assert all(end <= start for end, (start, _) in zip(ends, case.values, strict=False))
        assert ends[-1] <= len(case.text)
        assert all(value and value == value.strip() for value in values_of(case))
        assert not re.search(r"[\x02\x03§]|<<!?\w+(:[^<>]*)?>>", case.text), case.text


@every_kind
def test_texts_of_both_signs_are_in_many_languages(kind: str) -> None:
    for positive in (True, False):
        templates = [re.sub(r"<<.*?>>", "", one.text) for one in SET.templates_of(kind, positive)]
        # letters that English does not have; texts in plain ASCII of other languages come on top
        foreign = [text for text in templates if re.search(r"[^\W\d_a-zA-Z]", text)]
        assert len(foreign) >= 20


@every_kind
def test_no_negative_holds_a_value_of_a_positive(kind: str) -> None:
    values = set(all_values(kind))
    assert not [case for case in negatives(kind) for value in values if value in case.text]


def test_every_address_of_an_email_text_is_labelled_whole_and_outside_reserved_domains() -> None:
    reserved = re.compile(r"(^|\.)(example\.\w+|example|test|invalid|localhost|domain\.\w+)$")
    for case in positives("email"):
        assert len(re.findall(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", case.text)) == len(case.values)
        for value in values_of(case):
            assert re.fullmatch(r"[a-z0-9]+([._][a-z0-9]+)*@[a-z0-9-]+(\.[a-z-]+)+", value)
            assert not reserved.search(value.rpartition("@")[2])


def test_phone_numbers_are_whole_and_valid_where_they_name_their_country() -> None:
    international = 0
    for case in positives("phone"):
        for (start, end), value in zip(case.values, values_of(case), strict=True):
            around = case.text[max(0, start - 1) : start] + case.text[end : end + 1]
            assert not re.search(r"[\d+]", around), case.text
            assert 6 <= len(re.sub(r"\D", "", value)) <= 15
            assert not re.search(r"555[ -]?01\d\d|7700[ ]?900|1234567|(\d)\1{6}", value)
            if value.startswith("+"):
                number = phonenumbers.parse(value.replace("(0)", ""))
                assert phonenumbers.is_valid_number(number), value
                international += 1
    assert international > 40


def test_ip_positives_are_public_addresses_of_one_machine() -> None:
    addresses = [ipaddress.ip_address(value) for value in all_values("ip")]
    assert {address.version for address in addresses} == {4, 6}
    assert all(address.is_global and not address.is_multicast for address in addresses)
    for case in positives("ip"):
        numbers = re.findall(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?!\d)", case.text)
        public = [number for number in numbers if ipaddress.ip_address(number).is_global]
        assert public == [value for value in values_of(case) if "." in value], case.text
        for start, end in case.values:
            around = case.text[max(0, start - 1) : start] + " " + case.text[end : end + 1]
            assert not re.search(r"\w", around), case.text


def test_cards_pass_luhn_have_the_length_of_their_network_and_are_no_test_numbers() -> None:
    sizes = {"34": 15, "37": 15, "36": 14}
    published = {number for numbers in TEST_CARDS.values() for number in numbers}
    for value in all_values("card"):
        digits = re.sub(r"\D", "", value)
        assert luhn.is_valid(digits), value
        assert len(digits) == sizes.get(digits[:2], 16)
        assert digits not in published


def test_no_negative_holds_a_card_but_a_published_test_number() -> None:
    like_card = re.compile(r"(?<![\w.])(?:2[2-7]|[3-6]\d)(?:[ -]?\d){11,17}(?![\w-])")
    published = {number for numbers in TEST_CARDS.values() for number in numbers}
    for case in negatives("card"):
        for run in like_card.findall(case.text):
            digits = re.sub(r"\D", "", run)
            if luhn.is_valid(digits) and len(digits) in (14, 15, 16):
                assert digits in published or imei.is_valid(digits), case.text
