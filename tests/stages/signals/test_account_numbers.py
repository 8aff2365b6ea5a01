"""Bank account and card numbers: check digits by the published examples, and what only looks so."""

from __future__ import annotations

import random

import pytest

from stages.signals.card_networks import is_card
from stages.signals.personal_data import find_personal_data


def found(text: str) -> list[tuple[str, str]]:
    return [(text[span.start : span.end], span.label) for span in find_personal_data(text)]


# Accounts that organisations publish for donations.
IBANS = [
    "DE54 5205 0353 0002 0650 69",
    "CH56 0900 0000 8952 1766 7",
    "AT90 3636 2000 0018 5009",
    "DE66480501610002129799",
    "IT07N0306909217100000046985",
]
# Examples of the registry of ISO 13616, one of each shape: letters at either end, the longest.
PRINTED = [
    "NO93 8601 1117 947",
    "BE68 5390 0754 7034",
    "MT84 MALT 0110 0001 2345 MTLC AST0 01S",
    "LC55 HEMM 0001 0001 0012 0012 0002 3015",
    "BR18 0036 0305 0000 1000 9795 493C 1",
    "SA03 8000 0000 6080 1016 7519",
    "GI75 NWBK 0000 0000 7099 453",
    "ES91 2100 0418 4502 0005 1332",
    "NL91 ABNA 0417 1643 00",
    "CR05 0152 0200 1026 2840 66",
]


def next_account(iban: str) -> str:
    """The account whose first figure is one higher, with the check digits of ISO 7064 MOD 97-10."""
    compact = iban.replace(" ", "")
    place = next(i for i in range(4, len(compact)) if compact[i].isdigit())
    body = compact[4:place] + str((int(compact[place]) + 1) % 10) + compact[place + 1 :]
    number = int("".join(str(int(c, 36)) for c in body + compact[:2] + "00"))
    whole = f"{compact[:2]}{98 - number % 97:02d}{body}"
    return " ".join(whole[i : i + 4] for i in range(0, len(whole), 4))


REGISTRY = [next_account(iban) for iban in PRINTED]


@pytest.mark.parametrize("iban", [*IBANS, *REGISTRY])
@pytest.mark.parametrize("frame", ["IBAN: {}", "{}\nBIC: X", "({}),", "an {}."])
def test_an_iban_is_found_whole(iban: str, frame: str) -> None:
    assert found(frame.format(iban)) == [(iban, "iban")]
    assert found(frame.format(iban.replace(" ", ""))) == [(iban.replace(" ", ""), "iban")]
    assert found(frame.format(iban.lower())) == [(iban.lower(), "iban")]


@pytest.mark.parametrize("iban", REGISTRY)
def test_a_currency_or_the_next_field_may_follow_an_account(iban: str) -> None:
    account = iban.replace(" ", "")
    assert found(f":25:{account}EUR") == [(account, "iban")]
    assert found(f"IBAN:{account}BIC:X") == found(f"iban%3D{account}&") == [(account, "iban")]
    assert found(f":25:{account}EURO") == []


@pytest.mark.parametrize("iban", PRINTED)
def test_what_the_standard_prints_is_nobodys_account(iban: str) -> None:
    for text in (iban, iban.replace(" ", ""), iban.lower()):
        assert found(f"IBAN: {text}") == []


@pytest.mark.parametrize("iban", [*IBANS, *REGISTRY])
def test_any_wrong_digit_of_an_iban_is_seen(iban: str) -> None:
    """Modulo 97 sees every change of one character: ISO 7064."""
    compact = iban.replace(" ", "")
    for place in range(4, len(compact)):
        if compact[place].isdigit():
            wrong = compact[:place] + str((int(compact[place]) + 1) % 10) + compact[place + 1 :]
            assert ("iban" in dict(map(reversed, found(wrong)))) is False  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "DE54 5205 0353 0002 0650 6",  # too short
        "DE5452050353000206506912",  # too long
        "XDE54520503530002065069",
        "XX54 5205 0353 0002 0650 69",  # no country
        "DE66480501610002129799A",
    ],
)
def test_what_is_no_iban_is_left(text: str) -> None:
    assert [label for _, label in found(text) if label == "iban"] == []


# Numbers that payment services publish for tests, and one of each network's lengths.
CARDS = {
    "4012888818881886": "Visa",
    "4222222252229": "Visa of 13 digits",
    "5105105135105104": "Mastercard",
    "2223003152003225": "Mastercard, second series",
    "371449638398438": "American Express",
    "30569309325908": "Diners Club",
    "6011000920139429": "Discover",
    "3530111363300003": "JCB",
    "6200410030720003": "UnionPay",
    "6759649826438461": "Maestro",
    "4917610050800300004": "Visa of 19 digits",
}


@pytest.mark.parametrize("number", CARDS)
def test_the_numbers_of_networks_are_found_where_a_word_speaks_of_cards(number: str) -> None:
    """Those of 15 and 16 digits without one as well, but not where they are named otherwise."""
    assert is_card(number), CARDS[number]
    assert found(f"my card {number}, please") == [(number, "card")]
    is_bare = len(number) in (15, 16)
    for text in (f"they took {number}, please", f'"Ann","{number}","67.00"'):
        assert ("card" in [label for _, label in found(text)]) is is_bare
    assert ("card" in [label for _, label in found(f"curl -d number={number} u")]) is is_bare
    for text in (f"order {number}, please", f"id={number}", f"total = {number} + 1"):
        assert "card" not in [label for _, label in found(text)]


@pytest.mark.parametrize(
    "written", ["4012 8888 1888 1886", "4012-8888-1888-1886", "3714 496383 98438"]
)
def test_the_groups_of_a_card_need_no_word(written: str) -> None:
    assert found(f"paid {written} then") == [(written, "card")]
    wrong = written[:-1] + str((int(written[-1]) + 1) % 10)
    assert [label for _, label in found(f"paid {wrong} then") if label == "card"] == []


def test_one_in_ten_numbers_passes_luhn_and_no_change_of_a_digit_does() -> None:
    drawn = random.Random(5)
    numbers = ["4" + "".join(drawn.choices("0123456789", k=15)) for _ in range(4000)]
    passing = [number for number in numbers if is_card(number)]
    assert 330 < len(passing) < 470  # 400 expected, deviation 19
    for number in passing[:20]:
        for place in range(1, 16):
            other = number[:place] + str((int(number[place]) + 3) % 10) + number[place + 1 :]
            assert not is_card(other)


@pytest.mark.parametrize(
    "text",
    [
        "1234 5678 9012 3452",  # Luhn, no network
        "card 0604260700110000",  # no network begins with 0
        "4012 8888 1888 1886 4012",  # a row of a table
        "4012.8888.8888.1881",
        "card id=4012888818881886",
        "card 4012888818881886.jpg",
        "0x4012888818881886",
        "memory card EAN 4006381333931",  # Visa of 13 digits by length, but Luhn is wrong
        "$4012888818881886",
    ],
)
def test_what_is_no_card_is_left(text: str) -> None:
    assert [label for _, label in found(text) if label == "card"] == []


@pytest.mark.parametrize(
    "separator", ["_", "+", "~", "\t", "&nbsp;", "%20", "\\,", " - ", "\u200b", "\u00b7"]
)
def test_an_account_is_found_with_escaped_and_other_gaps(separator: str) -> None:
    written = separator.join(("CH56", "0900", "0000", "8952", "1766", "7"))
    assert (written, "iban") in found(f"Konto: {written}, danke")


@pytest.mark.parametrize(
    "frame", ["IBAN%20{}", "IBAN\\n{}\\nBIC", ":86:166?30DANOJWDE?31{}?32Lohse", "iban=3D{}"]
)
def test_an_account_is_found_behind_an_escape_or_a_field_of_mt940(frame: str) -> None:
    assert ("CH5609000000089521766", "iban") not in found(frame.format("CH5609000000089521766"))
    assert found(frame.format("CH5609000000895217667")) == [("CH5609000000895217667", "iban")]


def test_accounts_of_countries_outside_the_registry_need_right_check_digits() -> None:
    body = "0170000000346532109871"  # By ISO 7064: 98 - (body + "1827" + "00") mod 97.
    check = 98 - int(body + "182700") % 97  # I = 18, R = 27
    assert found(f"Sheba IR{check:02}{body}")[0] == (f"IR{check:02}{body}", "iban")
    wrong = found(f"Sheba IR{(check + 1) % 97:02}{body}")
    assert [label for _, label in wrong if label == "iban"] == []


def test_digits_in_their_order_are_an_account_that_somebody_made_up() -> None:
    check = 98 - int("37040044" + "1234567890" + "131400") % 97  # D = 13, E = 14
    assert found(f"IBAN DE{check:02}370400441234567890") == []
