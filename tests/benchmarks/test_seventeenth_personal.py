"""Emails, phones, addresses and cards of the seventeenth set are right. No rule runs here."""

from __future__ import annotations

import ipaddress
import re
from functools import cache
from pathlib import Path

import phonenumbers
import pytest
from stdnum import luhn

from tests.benchmarks.blind_set import BlindSet, Scene, load, slots_of, values_of
from tests.benchmarks.redaction_cases import Case
from tests.benchmarks.seventeenth_blind.personal import MAKERS

TEXTS = Path(__file__).parent / "seventeenth_blind" / "texts"
SEED = 48001
TEST_CARDS = {
    *("4111111111111111", "4242424242424242", "5555555555554444", "378282246310005"),
    *("4000002500003155", "4012888888881881", "5105105105105100", "4000000000000002"),
    *("4000000000009995", "2223003122003222", "6011111111111117", "3530111333300000"),
    *("371449635398431", "4548810000000003", "4970100000000000"),
}
"""Numbers that Stripe, PayPal, Adyen, Redsys and PayZen print for tests."""


def _nothing(kind: str, scene: Scene) -> None: ...


SET = BlindSet("seventeenth", TEXTS, MAKERS, name_secret=_nothing, name_other=_nothing)
every_kind = pytest.mark.parametrize("kind", ["email", "phone", "ip", "card"])


@cache
def cases(kind: str) -> tuple[Case, ...]:
    """200 positives of a kind, then 200 hard negatives."""
    return tuple(SET.make_cases(kind, SEED))


def positive_values(kind: str) -> list[str]:
    return [value for case in cases(kind) for value in values_of(case)]


def negatives(kind: str) -> list[Case]:
    return list(cases(kind)[200:])


@every_kind
def test_a_kind_has_150_templates_of_each_sign_in_three_weights(kind: str) -> None:
    for sign in "+-":
        templates = [one for one in load(kind, TEXTS) if one.sign == sign]
        assert len({one.text for one in templates}) == len(templates) >= 150
        weights = [one.weight for one in templates]
        assert set(weights) == {1, 0.5, 0.2}
        assert 40 <= weights.count(1) <= 50 <= weights.count(0.5) + 5 <= 60
    assert {(one.sign, one.register) for one in load(kind, TEXTS)} == {("+", "any"), ("-", "any")}


@every_kind
def test_templates_name_known_makers_and_label_positives_alone(kind: str) -> None:
    for template in load(kind, TEXTS):
        slots = slots_of(template.text)
        assert {name for name, _ in slots} <= set(MAKERS), template.text
        assert any(marked for _, marked in slots) == (template.sign == "+"), template.text
        assert template.text.count("\n") < 6


@every_kind
def test_labels_lie_inside_their_texts_without_blanks_or_slots(kind: str) -> None:
    drawn = cases(kind)
    assert [bool(case.values) for case in drawn] == [True] * 200 + [False] * 200
    values = set(positive_values(kind))
    for case in drawn:
        ends = [0, *(end for _, end in case.values)]
        assert all(end <= start for end, (start, _) in zip(ends, case.values, strict=False))
        assert all(value and value == value.strip() for value in values_of(case))
        assert not re.search(r"<<!?personal|[\x02\x03]", case.text), case.text
    for case in negatives(kind):
        assert not [value for value in values if value in case.text], case.text


def test_every_address_of_an_email_text_is_labelled_and_none_is_reserved() -> None:
    for case in cases("email")[:200]:
        assert len(re.findall(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", case.text)) == len(case.values)
    for value in positive_values("email"):
        assert re.fullmatch(r"[a-z0-9]+([._][a-z0-9]+)*@[a-z0-9-]+(\.[a-z-]+)+", value)
        assert not re.search(r"[@.](example\.\w+|example|test|invalid|localhost)$", value)


def test_phones_have_6_to_15_digits_and_no_digit_beside_them() -> None:
    for case in cases("phone")[:200]:
        for start, end in case.values:
            assert 6 <= len(re.sub(r"\D", "", case.text[start:end])) <= 15
            assert not re.search(r"[\d+]", case.text[max(0, start - 1) : start])
            assert not re.match(r"\d", case.text[end:])


def test_international_phones_are_possible_numbers_and_most_are_valid() -> None:
    written = [re.sub(r"\(0\)|[^\d+]", "", value) for value in positive_values("phone")]
    numbers = [phonenumbers.parse(number) for number in written if number.startswith("+")]
    assert len(numbers) >= 30
    assert all(phonenumbers.is_possible_number(number) for number in numbers)
    assert sum(map(phonenumbers.is_valid_number, numbers)) >= 0.9 * len(numbers)


def test_no_phone_is_of_north_americas_555_exchange_or_of_britains_drama_ranges() -> None:
    fiction = re.compile(r"555\D?\d{4}\b|7946 ?0\d{3}|7700 ?900|1632 ?960")
    assert not [value for value in positive_values("phone") if fiction.search(value)]
    assert not [case for case in negatives("phone") if re.search(r"\b555-\d{4}", case.text)]


def test_ip_positives_are_public_addresses_of_one_machine() -> None:
    addresses = [ipaddress.ip_address(value) for value in positive_values("ip")]
    assert {address.version for address in addresses} == {4, 6}
    assert all(address.is_global and not address.is_multicast for address in addresses)


def test_public_addresses_are_all_labelled_and_in_no_negative() -> None:
    for case in cases("ip"):
        for match in re.finditer(r"(?<![\w.])\d{1,3}(\.\d{1,3}){3}(?![\w.]*\d)", case.text):
            try:
                address = ipaddress.ip_address(match[0])
            except ValueError:  # 256.256.256.256
                continue
            # A first part below 20 is a version or a section, or a network with its length.
            browser = case.text[: match.start()].endswith("Chrome/")
            if match.span() not in case.values and address.packed[0] >= 20 and not browser:
                assert not address.is_global or address.is_multicast, case.text
    for case in negatives("ip"):
        for run in re.findall(r"(?<![\w:])2[0-9a-f]{3}:[\da-f:]*::[\da-f:]*(?:/\d+)?", case.text):
            assert "/" in run or not ipaddress.ip_address(run).is_global, case.text


def test_cards_pass_luhn_and_have_the_length_of_their_network() -> None:
    sizes = {"34": 15, "37": 15, "36": 14}
    for digits in (re.sub(r"\D", "", value) for value in positive_values("card")):
        assert luhn.is_valid(digits)
        assert len(digits) == sizes.get(digits[:2], 16)
        assert not re.search(r"(\d)\1{3}|1234|4321", digits)  # as the test numbers have


def test_no_negative_holds_a_card_but_a_published_test_number() -> None:
    for case in negatives("card"):
        for run in re.findall(r"(?<![\w.])[2-6](?:[ -]?\d){12,18}(?![\w-])", case.text):
            digits = re.sub(r"\D", "", run)
            is_card_or_imei = len(digits) in (15, 16) and luhn.is_valid(digits)
            is_known = digits in TEST_CARDS or re.match(r"35\d{13}\Z", digits)
            assert not is_card_or_imei or is_known, case.text
