"""The sixteenth set's mail addresses, telephone numbers, IP addresses and cards. No rule runs here.

Oracles are phonenumbers, ipaddress and python-stdnum; the makers use the first two to draw.
"""

from __future__ import annotations

import ipaddress
import re
from functools import cache
from pathlib import Path

import phonenumbers
import pytest
from stdnum import luhn

from tests.benchmarks.blind_set import BlindSet, load, slots_of, values_of
from tests.benchmarks.redaction_cases import Case
from tests.benchmarks.sixteenth_blind.personal import MAKERS
from tests.benchmarks.sixteenth_blind.personal_words import TEST_CARDS

SEED = 45001
TEXTS = Path(__file__).parent / "sixteenth_blind" / "texts"
SET = BlindSet(
    "sixteenth",
    TEXTS,
    MAKERS,
    name_secret=lambda kind, scene: None,
    name_other=lambda kind, scene: None,
)
every_kind = pytest.mark.parametrize("kind", ["email", "phone", "ip", "card"])
QUAD = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]*\d)")


@cache
def cases(kind: str) -> tuple[Case, ...]:
    """The texts of a kind, positives first."""
    return tuple(SET.make_cases(kind, SEED))


def values(kind: str) -> list[str]:
    """All labelled values of a kind."""
    return [value for case in cases(kind) for value in values_of(case)]


@every_kind
def test_a_kind_has_150_different_templates_of_each_sign_in_three_weights(kind: str) -> None:
    for sign in "+-":
        templates = [one for one in load(kind, TEXTS) if one.sign == sign]
        assert len({one.text for one in templates}) == len(templates) >= 150
        assert {one.weight for one in templates} == {1, 0.5, 0.2}
        assert {one.register for one in templates} == {"any"}
        for template in templates:
            assert len(template.text.splitlines()) <= 6, template.text
            assert any(labelled for _, labelled in slots_of(template.text)) == (sign == "+")
            assert {name for name, _ in slots_of(template.text)} <= set(MAKERS), template.text


@every_kind
def test_every_template_can_be_drawn_and_its_label_lies_apart_from_word_characters(
    kind: str,
) -> None:
    whole = BlindSet("sixteenth", TEXTS, MAKERS, SET.name_secret, SET.name_other, in_turn=True)
    for case in whole.make_cases(kind, SEED):
        assert not re.search(r"[\x02\x03]|<<!?\w+(:[^<>]*)?>>|personal_", case.text), case.text
        for start, end in case.values:
            value = case.text[start:end]
            assert value == value.strip()
            assert case.text.count(value) == values_of(case).count(value), case.text
            around = case.text[max(0, start - 1) : start] + case.text[end : end + 1]
            assert not re.search(r"[0-9+]", around), case.text


@every_kind
def test_there_are_200_texts_of_each_sign_and_no_negative_holds_a_value(kind: str) -> None:
    assert [bool(case.values) for case in cases(kind)] == [True] * 200 + [False] * 200
    negatives = [case for case in cases(kind) if not case.values]
    assert not [case for case in negatives for value in values(kind) if value in case.text]


def test_mail_addresses_are_all_labelled_and_outside_the_reserved_domains() -> None:
    for case in cases("email")[:200]:
        assert len(re.findall(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", case.text)) == len(case.values)
        for value in values_of(case):
            assert re.fullmatch(r"[a-z0-9]+([._][a-z0-9]+)*@[a-z0-9-]+(\.[a-z-]+)+", value)
            assert not re.search(r"@(.*\.)?(example\.\w+|example|test|invalid)$", value)


def test_phone_numbers_are_numbers_of_a_plan_and_not_of_fiction() -> None:
    fiction = re.compile(r"^(\+?1[ .-]?)?\(?[2-9]\d\d\)?[ .-]?555|7700 900|7946 0|1632 960")
    for value in values("phone"):
        assert 7 <= len(re.sub(r"\D", "", value)) <= 15
        assert not fiction.search(value)
        if value.startswith("+"):
            assert phonenumbers.is_valid_number(phonenumbers.parse(value))


def test_ip_positives_are_public_and_negatives_hold_no_machine_of_the_public_network() -> None:
    addresses = [ipaddress.ip_address(value) for value in values("ip")]
    assert {address.version for address in addresses} == {4, 6}
    assert all(address.is_global and not address.is_multicast for address in addresses)
    for case in cases("ip"):
        for match in QUAD.finditer(case.text):
            try:
                address = ipaddress.ip_address(match[0])
            except ValueError:  # 256.300.1.1
                continue
            # Small first parts are versions, sections and networks of providers.
            if match.span() not in case.values and address.packed[0] >= 20:
                assert not address.is_global or address.is_multicast, case.text


def test_cards_pass_luhn_and_have_the_length_of_their_network() -> None:
    for value in values("card"):
        digits = re.sub(r"\D", "", value)
        assert luhn.is_valid(digits)
        assert len(digits) == {"34": 15, "37": 15, "36": 14}.get(digits[:2], 16)
        assert digits not in TEST_CARDS.split()


def test_no_card_negative_holds_a_valid_number_but_a_published_one_or_an_imei() -> None:
    for case in cases("card")[200:]:
        for run in re.findall(r"(?<![\w.])[2-6](?:[ -]?\d){12,18}(?![\w-])", case.text):
            digits = re.sub(r"\D", "", run)
            if digits not in TEST_CARDS.split() and not re.fullmatch(r"35\d{13}", digits):
                assert not luhn.is_valid(digits), case.text
