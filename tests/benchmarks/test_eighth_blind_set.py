"""The eighth blind set holds what it says: forms and checksums. No rule runs here."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import random
import re
from functools import partial

from tests.benchmarks.blind_set import values_of
from tests.benchmarks.eighth_blind import SET
from tests.benchmarks.eighth_blind.keys import (
    KEY_BYTES,
    bech32_checksum,
    crc24,
    make_age,
    make_armor,
    make_wif,
)
from tests.benchmarks.eighth_blind.personal import (
    IBANS,
    PHONES,
    PUBLISHED_IBANS,
    TEST_CARDS,
    make_iban,
    make_phone,
)
from tests.benchmarks.eighth_blind.services import NAMED_ONLY, SERVICES, crc_base62, make_key
from tests.benchmarks.splits import EIGHTH_BLIND_SEED

positives = partial(SET.positives, seed=EIGHTH_BLIND_SEED)
negatives = partial(SET.negatives, seed=EIGHTH_BLIND_SEED)
# lengths of the IBAN registry (SWIFT, release 99)
_BY_LENGTH = {
    15: "NO", 16: "BE", 18: "NL DK FI", 19: "SI", 20: "AT LU EE LT", 21: "CH HR LV",
    22: "DE GB IE BG", 24: "CZ ES RO SE SK", 25: "PT", 26: "TR", 27: "FR GR IT", 28: "HU PL CY",
    31: "MT",
}  # fmt: skip
IBAN_LENGTHS = {country: size for size, names in _BY_LENGTH.items() for country in names.split()}


def luhn_valid(digits: str) -> bool:
    """Whether the sum of ISO/IEC 7812-1 ends with zero, computed with doubled digits as a table."""
    doubled = [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]
    numbers = [int(digit) for digit in reversed(digits)]
    return (sum(numbers[::2]) + sum(doubled[number] for number in numbers[1::2])) % 10 == 0


def iban_valid(text: str) -> bool:
    """Whether an IBAN has the length of its country and the remainder of ISO 13616."""
    compact = re.sub(r"\s", "", text)
    moved = compact[4:] + compact[:4]
    remainder = 0
    for character in moved:
        value = str(int(character, 36))
        remainder = (remainder * 10 ** len(value) + int(value)) % 97
    return len(compact) == IBAN_LENGTHS.get(compact[:2]) and remainder == 1


def test_emails_are_all_labelled_and_outside_the_reserved_domains() -> None:
    reserved = re.compile(r"(^|\.)(example\.\w+|example|test|invalid|localhost)$")
    for case in positives("email"):
        for value in values_of(case):
            local, _, host = value.rpartition("@")
            assert re.fullmatch(r"[A-Za-z0-9]+([._+-][A-Za-z0-9]+)*", local)
            assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", host)
            assert not reserved.search(host)
        assert len(re.findall(r"[\w.+-]+@[\w-]+(\.[\w-]+)+", case.text)) == len(case.values)


def test_phones_are_labelled_whole_and_avoid_the_ranges_kept_for_fiction() -> None:
    rng = random.Random(1)
    numbers = {country: [make_phone(rng, country) for _ in range(300)] for country in PHONES}
    for written in numbers.values():
        assert all(7 <= len(re.sub(r"\D", "", number)) <= 14 for number in written)
        assert not [number for number in written if re.search(r"[^\d+() ./-]", number)]
    fiction = {
        **dict.fromkeys(("US", "CA"), r"555\D?\d{4}$"),
        "GB": r"20 7946|1632 960|161 496|7700 900",
        "FR": r"(0|33 )(1 99 00|2 61 91|3 53 01|4 65 71|5 36 49|6 39 98)",
        "SE": r"8-465 004|70-1740605",
        "AU": r"5550|7010|0491 57|491 57",
        "IE": r"20 91\d",
    }
    assert not [
        n for country, range_ in fiction.items() for n in numbers[country] if re.search(range_, n)
    ]
    for case in positives("phone"):
        for start, end in case.values:
            around = case.text[max(0, start - 1) : start] + case.text[end : end + 1]
            assert not re.search(r"\d", around)


def test_addresses_beside_an_ip_value_are_labelled_too() -> None:
    for case in positives("ip"):
        for match in re.finditer(r"(?<![\w.])\d{1,3}(\.\d{1,3}){3}(?![\w.]*\d)", case.text):
            if match.span() not in case.values:
                assert not ipaddress.ip_address(match[0]).is_global, case.text


def test_ip_negatives_hold_no_public_ipv6_address() -> None:
    for case in negatives("ip"):
        for word in re.findall(
            r"(?<![\w:.])[0-9a-f]{1,4}(?::{1,2}[0-9a-f]{1,4}){3,7}(?![\w:])", case.text
        ):
            try:
                address = ipaddress.ip_address(word)
            except ValueError:
                continue
            assert not address.is_global or "WWN " in case.text, case.text


def card_length(digits: str) -> int:
    """The length of a card number by its first digits, 0 if they are of no brand."""
    if not re.match(r"4|5[1-5]|2[2-7]|3[4-7]|6", digits):
        return 0
    return {"34": 15, "37": 15, "36": 14}.get(digits[:2], 16)


def card_like(text: str) -> list[str]:
    """Runs of 13 to 19 digits, alone or in groups of a line, with a length that a brand has."""
    runs = re.findall(r"(?<![\w.])(?<!\d )\d(?:[ -]?\d){12,18}(?![\w-]| \d)", text)
    numbers = [re.sub(r"\D", "", run) for run in runs]
    return [number for number in numbers if len(number) == card_length(number)]


def test_cards_pass_luhn_with_the_length_of_their_brand() -> None:
    # 4111 1111 1111 1111 is a test number that networks publish; its last digit is a Luhn digit
    assert luhn_valid("4111111111111111")
    assert not luhn_valid("4111111111111112")
    assert all(luhn_valid(number) for number in TEST_CARDS)
    lengths = set()
    for case in positives("card"):
        for value in values_of(case):
            digits = re.sub(r"\D", "", value)
            lengths.add(len(digits))
            assert luhn_valid(digits)
            assert digits not in TEST_CARDS
            assert len(digits) == card_length(digits)
    assert lengths == {14, 15, 16}


def test_card_negatives_hold_only_published_test_numbers_or_wrong_luhn_digits() -> None:
    numbers = [number for case in negatives("card") for number in card_like(case.text)]
    wrong = [number for number in numbers if not luhn_valid(number)]
    assert len(wrong) >= 20
    assert set(numbers) - set(wrong) <= set(TEST_CARDS)


def test_ibans_pass_mod_97_with_the_length_of_their_country() -> None:
    # the registry's examples, and that of the United Kingdom with other check digits
    assert all(iban_valid(iban) for iban in PUBLISHED_IBANS)
    assert not iban_valid("GB82 WEST 1234 5698 7654 33")
    rng = random.Random(2)
    assert {country: len(make_iban(rng, country)) for country in IBANS} == IBAN_LENGTHS
    assert not [
        1 for country in IBANS for _ in range(50) if iban_valid(make_iban(rng, country, wrong=True))
    ]
    for case in positives("iban"):
        assert all(iban_valid(value) for value in values_of(case))
        assert not {value.replace(" ", "") for value in values_of(case)} & set(PUBLISHED_IBANS)


def test_iban_negatives_hold_only_published_examples_or_wrong_check_digits() -> None:
    for case in negatives("iban"):
        for start in re.finditer(r"\b[A-Z]{2}\d{2}(?= ?\w)", case.text):
            length = IBAN_LENGTHS.get(start[0][:2], 0)
            compact = re.sub(r"[ -]", "", case.text[start.start() :])[:length]
            if length and re.fullmatch(r"[A-Z0-9]+", compact) and len(compact) == length:
                assert compact in PUBLISHED_IBANS or not iban_valid(compact), case.text


def test_jwts_decode_and_have_a_signature() -> None:
    for case in positives("jwt"):
        for value in values_of(case):
            header, payload, signature = (
                base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in value.split(".")
            )
            algorithm = json.loads(header)["alg"]
            assert "sub" in json.loads(payload)
            assert len(signature) == {"HS256": 32, "RS256": 256}.get(algorithm, 64)


def test_jwt_negatives_hold_no_signed_token() -> None:
    signed = re.compile(r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}")
    assert not [case for case in negatives("jwt") if signed.search(case.text)]


def der_ends(content: bytes) -> int:
    """Where the first element of a DER text ends."""
    if content[1] < 128:
        return 2 + content[1]
    count = content[1] & 127
    assert content[2], "a length in DER has no leading zero"
    return 2 + count + int.from_bytes(content[2 : 2 + count], "big")


def test_private_keys_in_pem_are_whole_der_sequences_or_openssh_keys() -> None:
    bodies = [
        re.sub(r"\\n|\n[+]" if case.text.startswith("diff") else r"\\n|[\s>*]", "", value)
        for case in positives("private_key")
        for value in values_of(case)
        if re.search(r"BEGIN (RSA |EC |DSA |OPENSSH |ENCRYPTED )?PRIVATE KEY", case.text)
    ]
    assert len(bodies) > 100
    for body in bodies:
        content = base64.b64decode(body, validate=True)
        assert content.startswith(b"openssh-key-v1\0") or der_ends(content) == len(content)


def test_labels_of_pem_keys_lie_between_their_lines() -> None:
    for case in positives("private_key"):
        for start, end in case.values:
            before, after = case.text[:start].rstrip(), case.text[end:].lstrip()
            if "PRIVATE KEY-----" in after:
                assert re.search(r"KEY-----[\\n\s>+*]*$|DEK-Info: AES-256-CBC,\w+$", before)
                assert re.match(r"(\\n|[\s>+*])*-----END", after)


def test_forms_of_keys_are_whole_der() -> None:
    rng = random.Random(4)
    for form in KEY_BYTES.keys() - {"OPENSSH PRIVATE KEY", "SSH SIGNATURE"}:
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
    *lines, checksum = make_armor(rng, 5).split("\n")
    content = base64.b64decode("".join(lines))
    assert base64.b64decode(checksum[1:]) == crc24(content).to_bytes(3, "big")
    assert int.from_bytes(content[1:3], "big") == len(content) - 3
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
    rng = random.Random(3)
    for name in ("github", "github_app", "github_oauth", "npm"):
        body = make_key(rng, name).partition("_")[2]
        assert len(body) == 36
        assert crc_base62(body[:30]) == body[30:]
    # the revoked token that articles on GitHub's token format take apart
    assert crc_base62("zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ") == "0mLq17"
    macaroon = make_key(rng, "pypi").removeprefix("pypi-")
    assert macaroon.startswith("AgEIcHlwaS5vcmcCJ")


def test_forms_of_services_have_their_published_lengths() -> None:
    # lengths that the services document or that the rules of secret scanners quote
    lengths = {
        "github": 40, "github_fine": 93, "gitlab": 26, "slack_bot": 56, "anthropic": 108,
        "sendgrid": 69, "digitalocean": 71, "hugging_face": 37, "shopify": 38, "google": 39,
        "google_oauth": 35, "databricks": 36, "artifactory": 73, "neon": 69, "groq": 56,
        "dynatrace": 96, "terraform": 90, "aws_secret": 40, "grafana": 46, "replicate": 40,
        "notion": 50, "airtable": 82, "linear": 48, "postman": 64, "telegram": 46,
    }  # fmt: skip
    rng = random.Random(6)
    assert {name: len(make_key(rng, name)) for name in lengths} == lengths
    assert len(SERVICES) >= 80


def test_keys_of_many_services_are_drawn() -> None:
    values = [value for case in positives("provider_key") for value in values_of(case)]
    heads = {make_key(random.Random(0), name)[:3] for name in SERVICES if name not in NAMED_ONLY}
    assert len(heads & {value[:3] for value in values}) >= 30


def test_parts_of_broken_tokens_lie_apart_and_make_one_token() -> None:
    checked = set()
    for case in positives("broken_token"):
        assert len(case.values) in (2, 3)
        assert all(len(value) >= 8 for value in values_of(case))
        whole = "".join(values_of(case))
        assert re.fullmatch(r"[\w.-]{34,}", whole)
        if whole.startswith("eyJ"):
            checked.add("jwt")
            assert len(base64.urlsafe_b64decode(whole.split(".")[2] + "==")) in {32, 64, 256}
        elif re.match(r"gh[pso]_|npm_", whole):
            checked.add("crc")
            assert crc_base62(whole[4:34]) == whole[34:]
        else:
            assert re.match(r"[A-Za-z0-9]+[_.-]|oy2|dapi|AKCp8|AIza|pat|EZAK", whole)
    assert checked == {"jwt", "crc"}
