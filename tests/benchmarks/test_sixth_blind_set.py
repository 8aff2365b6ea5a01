"""The sixth blind set holds what it says: forms and checksums. No rule runs here."""

from __future__ import annotations

import base64
import json
import random
import re
from functools import partial

from tests.benchmarks.blind_set import values_of
from tests.benchmarks.sixth_blind import SET
from tests.benchmarks.sixth_blind.personal import (
    COUNTRIES,
    iban_valid,
    luhn_valid,
    make_iban,
    make_phone,
)
from tests.benchmarks.sixth_blind.services import SERVICES, crc_base62, crc_hex
from tests.benchmarks.splits import SIXTH_BLIND_SEED

positives = partial(SET.positives, seed=SIXTH_BLIND_SEED)
negatives = partial(SET.negatives, seed=SIXTH_BLIND_SEED)


def test_phones_avoid_the_ranges_kept_for_fiction() -> None:
    rng = random.Random(1)
    numbers = [make_phone(rng, country) for country in COUNTRIES for _ in range(50)]
    digits = [re.sub(r"\D", "", number) for number in numbers]
    assert all(7 <= len(number) <= 15 for number in digits)
    assert not [number for number in digits if re.search(r"55501\d\d$|2079460|01632960", number)]


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


def test_parts_of_broken_tokens_lie_on_several_lines_or_strings() -> None:
    for case in positives("broken_token"):
        assert len(case.values) >= 2
        assert all(len(value) >= 6 for value in values_of(case))
