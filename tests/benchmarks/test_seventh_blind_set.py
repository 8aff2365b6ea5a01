"""The seventh blind set holds what it says: forms and checksums. No rule runs here."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import random
import re
from functools import partial

from tests.benchmarks.blind_set import values_of
from tests.benchmarks.seventh_blind import SET
from tests.benchmarks.seventh_blind.credentials import (
    KEY_BYTES,
    bech32_checksum,
    crc24,
    make_age,
    make_wif,
)
from tests.benchmarks.seventh_blind.personal import (
    IBANS,
    PHONES,
    iban_valid,
    luhn_valid,
    make_iban,
    make_phone,
)
from tests.benchmarks.seventh_blind.services import (
    SERVICES,
    crc_base62,
    crc_hex,
    make_key,
)
from tests.benchmarks.splits import SEVENTH_BLIND_SEED

positives = partial(SET.positives, seed=SEVENTH_BLIND_SEED)
negatives = partial(SET.negatives, seed=SEVENTH_BLIND_SEED)

# test numbers that Stripe and the networks publish, and examples of the IBAN registry and of banks
PUBLISHED_CARDS = {
    *("4242424242424242", "4000002500003155", "5555555555554444", "378282246310005"),
    *("6011111111111117", "4111111111111111", "5105105105105100", "4012888888881881"),
}
PUBLISHED_IBANS = {
    *("DE89370400440532013000", "GB29NWBK60161331926819", "FR1420041010050500013M02606"),
    *("NL91ABNA0417164300", "BE68539007547034", "CH9300762011623852957"),
}
# lengths of the IBAN registry (SWIFT, release 99)
_COUNTRIES = {
    15: "NO",
    16: "BE",
    18: "NL DK FI",
    19: "SI",
    20: "AT LU EE LT KZ",
    21: "CH HR LV",
    22: "DE GB IE BG GE",
    23: "IL AE",
    24: "ES SE CZ SK RO SA",
    25: "PT",
    26: "TR",
    27: "FR IT GR",
    28: "PL HU",
    29: "UA",
    31: "MT",
}
IBAN_LENGTHS = {c: length for length, codes in _COUNTRIES.items() for c in codes.split()}


def test_emails_are_all_labelled_and_outside_the_reserved_domains() -> None:
    reserved = re.compile(r"(^|\.)(example\.\w+|example|test|invalid|localhost)$")
    for case in positives("email"):
        for value in values_of(case):
            local, _, host = value.rpartition("@")
            assert local
            assert "." in host
            assert not reserved.search(host.lower())
        assert len(re.findall(r"[\w.+-]+@[\w-]+(\.[\w-]+)+", case.text)) == len(case.values)


def test_phones_avoid_the_ranges_kept_for_fiction() -> None:
    rng = random.Random(1)
    numbers = {country: [make_phone(rng, country) for _ in range(300)] for country in PHONES}
    for written in numbers.values():
        assert all(7 <= len(re.sub(r"\D", "", number)) <= 14 for number in written)
        assert not [number for number in written if re.search(r"[A-Z\[\]]", number)]
    fiction = {
        **dict.fromkeys(("US", "CA"), r"555\D?\d{4}$"),
        "GB": r"20 7946|1632 960|161 496|7700 900",
        "FR": r"(0|33 )(1 99 00|2 61 91|3 53 01|4 65 71|5 36 49|6 39 98)",
        "SE": r"8-465 004|70-1740605",
        "AU": r"5550|7010|0491 57",
    }
    assert not [
        n for country, range_ in fiction.items() for n in numbers[country] if re.search(range_, n)
    ]


def test_ip_negatives_hold_no_public_ipv6_address() -> None:
    for case in negatives("ip"):
        for word in re.findall(r"(?<![\w:.])[0-9a-f]{1,4}(?::{1,2}[0-9a-f]{1,4}){3,7}", case.text):
            try:
                address = ipaddress.ip_address(word)
            except ValueError:
                continue
            assert not address.is_global or case.text.startswith("wwn"), case.text


def card_length(digits: str) -> int:
    """The length of a card number by its first digits, 0 if they are of no brand."""
    if not re.match(r"4|5[1-5]|2[2-7]|3[4-7]|6", digits):
        return 0
    return {"34": 15, "37": 15, "36": 14}.get(digits[:2], 16)


def card_like(text: str) -> list[str]:
    """Runs of 13 to 19 digits, alone or in groups of a line, with a length that a brand has."""
    runs = re.findall(r"(?<![\w.])\d(?:[ -]?\d){12,18}(?!\w)", text)
    numbers = [re.sub(r"\D", "", run) for run in runs]
    return [number for number in numbers if len(number) == card_length(number)]


def test_cards_pass_luhn_with_the_length_of_their_brand() -> None:
    # 4111 1111 1111 1111 is the test number that networks publish; its last digit is a Luhn digit
    assert luhn_valid("4111111111111111")
    assert not luhn_valid("4111111111111112")
    for case in positives("card"):
        for value in values_of(case):
            digits = re.sub(r"\D", "", value)
            assert luhn_valid(digits)
            assert digits not in PUBLISHED_CARDS
            assert len(digits) == card_length(digits)


def test_card_negatives_hold_only_published_test_numbers_or_wrong_luhn_digits() -> None:
    numbers = [number for case in negatives("card") for number in card_like(case.text)]
    wrong = [number for number in numbers if not luhn_valid(number)]
    assert len(wrong) >= 20
    assert set(numbers) - set(wrong) <= PUBLISHED_CARDS


def test_ibans_pass_mod_97_with_the_length_of_their_country() -> None:
    # the registry's example of Germany, and that of the United Kingdom with other check digits
    assert iban_valid("DE89 3704 0044 0532 0130 00")
    assert not iban_valid("GB82 WEST 1234 5698 7654 33")
    rng = random.Random(2)
    assert {country: len(make_iban(rng, country)) for country in IBANS} == IBAN_LENGTHS
    assert not [
        1 for country in IBANS for _ in range(50) if iban_valid(make_iban(rng, country, True))
    ]
    for case in positives("iban"):
        assert all(iban_valid(value) for value in values_of(case))


def test_iban_negatives_hold_only_published_examples_or_wrong_check_digits() -> None:
    for case in negatives("iban"):
        for start in re.finditer(r"\b[A-Z]{2}\d{2}(?= ?\w)", case.text):
            length = IBAN_LENGTHS.get(start[0][:2], 0)
            compact = re.sub(r"[ -]", "", case.text[start.start() :])[:length]
            if length and compact.isalnum() and len(compact) == length:
                assert compact in PUBLISHED_IBANS or not iban_valid(compact.upper()), case.text


def test_jwts_decode_and_have_a_signature() -> None:
    for case in positives("jwt"):
        for value in values_of(case):
            header, payload, signature = (
                base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in value.split(".")
            )
            assert json.loads(header)["alg"][:2] in {"HS", "RS", "ES"}
            assert "sub" in json.loads(payload)
            assert len(signature) in {32, 64, 256}


def der_ends(content: bytes) -> int:
    """Where the first element of a DER text ends."""
    if content[1] < 128:
        return 2 + content[1]
    count = content[1] & 127
    assert content[2], "a length in DER has no leading zero"
    return 2 + count + int.from_bytes(content[2 : 2 + count], "big")


def test_private_keys_in_pem_are_whole_der_sequences_or_openssh_keys() -> None:
    bodies = [
        re.sub(r"\\[rn]|[\s>]", "", value)
        for case in positives("private_key")
        for value in values_of(case)
        if re.search(r"BEGIN (RSA |EC |DSA |OPENSSH |ENCRYPTED )?PRIVATE KEY", case.text)
        and "Proc-Type" not in case.text
        and "\n+" not in case.text
    ]
    assert len(bodies) > 100
    for body in bodies:
        content = base64.b64decode(body, validate=True)
        assert content.startswith(b"openssh-key-v1\0") or der_ends(content) == len(content)


def test_forms_of_private_keys_are_whole() -> None:
    rng = random.Random(4)
    for form in KEY_BYTES.keys() - {"openssh", "cipher", "sshsig"}:
        content = KEY_BYTES[form](rng)
        assert content[0] == 0x30
        assert der_ends(content) == len(content)


def test_checksums_of_keys_agree_with_published_examples() -> None:
    # BIP 173: the checksum of the empty Bech32 text "A12UEL5L"
    assert bech32_checksum("a", []) == [
        "qpzry9x8gf2tvdw0s3jn54khce6mua7l".index(c) for c in "2uel5l"
    ]
    # the CRC-24 of "123456789" that catalogues of checksums give for OpenPGP
    assert crc24(b"123456789") == 0x21CF02
    rng = random.Random(5)
    assert re.fullmatch(r"AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}", make_age(rng, "age-secret-key-"))
    assert re.fullmatch(r"age1[02-9ac-hj-np-z]{58}", make_age(rng, "age"))
    wif, number = make_wif(rng), 0
    for character in wif:
        number = number * 58 + "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz".index(
            character
        )
    content = number.to_bytes(38, "big")
    assert wif[0] in "KL"
    assert hashlib.sha256(hashlib.sha256(content[:34]).digest()).digest()[:4] == content[34:]


def test_keys_of_services_carry_their_checksums() -> None:
    assert len(SERVICES) >= 50
    rng = random.Random(3)
    for name in ("github", "github_app", "github_oauth", "npm"):
        body = make_key(rng, name).partition("_")[2]
        assert len(body) == 36
        assert crc_base62(body[:30]) == body[30:]
    # the revoked token that articles on GitHub's token format take apart
    assert crc_base62("zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ") == "0mLq17"
    head, _, checksum = make_key(rng, "grafana").rpartition("_")
    assert crc_hex(head) == checksum
    # the CRC-32 of "123456789" that every table of checksums gives is cbf43926
    assert crc_hex("123456789") == "2639f4cb"
    macaroon = make_key(rng, "pypi").removeprefix("pypi-")
    assert base64.urlsafe_b64decode(macaroon + "=" * (-len(macaroon) % 4))[3:11] == b"pypi.org"


def test_keys_of_many_services_are_drawn() -> None:
    values = [value for case in positives("provider_key") for value in values_of(case)]
    heads = {value[:3] for value in values}
    assert len(heads & {key[:3] for key in (make_key(random.Random(0), s) for s in SERVICES)}) >= 30


def test_parts_of_broken_tokens_lie_apart_and_make_one_token() -> None:
    for case in positives("broken_token"):
        assert len(case.values) in (2, 3)
        assert all(len(value) >= 8 for value in values_of(case))
        assert not re.search(r"[\s'\"\\]", "".join(values_of(case)))
