"""The sixth blind set holds what it says: counts, places, checksums. No rule runs here."""

from __future__ import annotations

import base64
import ipaddress
import json
import random
import re

import pytest

from tests.benchmarks.redaction import kinds_of, later_set
from tests.benchmarks.redaction_cases import Case
from tests.benchmarks.sixth_blind import CARRIED, KINDS, MAKERS, make_cases, templates_of
from tests.benchmarks.sixth_blind.personal import (
    COUNTRIES,
    iban_valid,
    luhn_valid,
    make_iban,
    make_phone,
)
from tests.benchmarks.sixth_blind.services import SERVICES, crc_base62, crc_hex
from tests.benchmarks.sixth_blind.templates import load, slots_of
from tests.benchmarks.splits import SIXTH_BLIND_SEED

SEED = SIXTH_BLIND_SEED


def values_of(case: Case) -> list[str]:
    return [case.text[start:end] for start, end in case.values]


def positives(kind: str) -> list[Case]:
    return [case for case in make_cases(kind, SEED) if case.values]


def test_runner_draws_from_this_set_by_its_seed() -> None:
    assert kinds_of(SEED) == KINDS
    assert later_set(SEED - 1).KINDS == KINDS
    assert later_set(SEED - 1).make_cases is not make_cases


@pytest.mark.parametrize("kind", KINDS)
def test_kind_has_200_positives_and_200_hard_negatives_of_40_templates_each(kind: str) -> None:
    cases = make_cases(kind, SEED)
    assert len({case.text for case in cases}) == 400
    assert [bool(case.values) for case in cases] == [True] * 200 + [False] * 200
    assert all(len(templates_of(kind, positive)) >= 40 for positive in (True, False))


@pytest.mark.parametrize("kind", KINDS)
def test_spans_lie_inside_the_text_apart_and_without_blanks_at_their_ends(kind: str) -> None:
    for case in positives(kind):
        ends = [0, *(end for _, end in case.values)]
        assert all(end <= start for end, (start, _) in zip(ends, case.values, strict=False))
        assert ends[-1] <= len(case.text)
        assert all(value and value == value.strip() for value in values_of(case))
        assert not re.search(r"[\x02\x03]|<<!?\w+(:[^<>]*)?>>", case.text)


@pytest.mark.parametrize("kind", KINDS)
def test_seed_gives_equal_bytes_and_another_seed_gives_others(kind: str) -> None:
    assert make_cases(kind, SEED) == make_cases(kind, SEED)
    assert make_cases(kind, SEED) != make_cases(kind, SEED + 1)


@pytest.mark.parametrize("kind", [*KINDS, "carriers"])
def test_templates_name_known_makers_and_label_positives_alone(kind: str) -> None:
    for template in load(kind):
        slots = slots_of(template.text)
        assert {name for name, _ in slots} <= set(MAKERS), template.text
        assert any(marked for _, marked in slots) == (template.sign != "-"), template.text


def test_unknown_kind_is_rejected() -> None:
    with pytest.raises(ValueError):
        make_cases("passport", SEED)


def test_emails_have_a_domain_outside_the_reserved_ones() -> None:
    reserved = re.compile(r"(^|\.)(example\.\w+|example|test|invalid|localhost)$")
    for case in positives("email"):
        for value in values_of(case):
            local, _, host = value.rpartition("@")
            assert local
            assert "." in host
            assert not reserved.search(host.lower())


def test_phones_avoid_the_ranges_kept_for_fiction() -> None:
    rng = random.Random(1)
    numbers = [make_phone(rng, country) for country in COUNTRIES for _ in range(50)]
    digits = [re.sub(r"\D", "", number) for number in numbers]
    assert all(7 <= len(number) <= 15 for number in digits)
    assert not [number for number in digits if re.search(r"55501\d\d$|2079460|01632960", number)]


def test_ip_positives_are_public_and_negatives_label_none() -> None:
    for case in positives("ip"):
        assert all(ipaddress.ip_address(value).is_global for value in values_of(case))


def test_cards_pass_luhn_with_the_length_of_their_brand() -> None:
    # 4111 1111 1111 1111 is the test number that networks publish; its last digit is a Luhn digit
    assert luhn_valid("4111111111111111")
    assert not luhn_valid("4111111111111112")
    for case in positives("card"):
        for value in values_of(case):
            digits = re.sub(r"\D", "", value)
            assert luhn_valid(digits)
            assert len(digits) == {"3": 15 if digits[1] in "47" else 14}.get(digits[0], 16) or (
                digits.startswith("35") and len(digits) == 16
            )


def test_ibans_pass_mod_97_with_the_length_of_their_country() -> None:
    # the registry's examples of Germany and of the United Kingdom
    assert iban_valid("DE89 3704 0044 0532 0130 00")
    assert not iban_valid("GB82 WEST 1234 5698 7654 33")
    lengths = {
        "DE": 22,
        "GB": 22,
        "FR": 27,
        "NL": 18,
        "ES": 24,
        "IT": 27,
        "BE": 16,
        "AT": 20,
        "NO": 15,
    }
    rng = random.Random(2)
    for country, length in lengths.items():
        assert len(make_iban(rng, country)) == length
    for case in positives("iban"):
        assert all(iban_valid(value) for value in values_of(case))


def test_jwts_decode_and_have_a_signature() -> None:
    for case in positives("jwt"):
        for value in values_of(case):
            header, payload, signature = (
                base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in value.split(".")
            )
            assert json.loads(header)["alg"][:2] in {"HS", "RS", "ES"}
            assert "sub" in json.loads(payload)
            assert len(signature) in {32, 64, 256}


def test_private_keys_in_pem_are_base64_of_a_der_sequence_or_of_openssh() -> None:
    bodies = [
        re.sub(r"\\n|[\s>]", "", value)
        for case in positives("private_key")
        for value in values_of(case)
        if re.search(r"BEGIN (RSA |EC |OPENSSH )?PRIVATE KEY", case.text)
        and "Proc-Type" not in case.text
    ]
    assert len(bodies) > 120
    for body in bodies:
        assert base64.b64decode(body, validate=True)[:1] in {b"\x30", b"o"}


def test_keys_of_services_carry_their_checksums() -> None:
    assert len(SERVICES) >= 30
    rng = random.Random(3)
    for name in ("github", "github_app", "npm"):
        body = SERVICES[name][1](rng).partition("_")[2]
        assert crc_base62(body[:30]) == body[30:]
    head, _, checksum = SERVICES["grafana"][1](rng).rpartition("_")
    assert crc_hex(head) == checksum
    # the CRC-32 of "123456789" that every table of checksums gives is cbf43926
    assert crc_hex("123456789") == "2639f4cb"


def test_carriers_as_negatives_hold_no_value_of_a_positive() -> None:
    for kind in sorted(CARRIED):
        cases = make_cases(kind, SEED)
        secrets = {value for case in cases for value in values_of(case)}
        assert not [case for case in cases[200:] for value in secrets if value in case.text]


def test_parts_of_broken_tokens_lie_on_several_lines_or_strings() -> None:
    for case in positives("broken_token"):
        assert len(case.values) >= 2
        assert all(len(value) >= 6 for value in values_of(case))
