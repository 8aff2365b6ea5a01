"""The ninth blind set holds what it says: forms and checksums. No rule runs here."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import random
import re
from functools import partial

from tests.benchmarks.blind_set import values_of
from tests.benchmarks.ninth_blind import SET
from tests.benchmarks.ninth_blind.keys import PRIVATE, PUBLIC, bech32_checksum, crc24, make_wif
from tests.benchmarks.ninth_blind.personal import (
    IBANS,
    PHONES,
    PUBLISHED_IBANS,
    TEST_CARDS,
    luhn_digit,
    make_iban,
    make_phone,
)
from tests.benchmarks.ninth_blind.services import SERVICES, crc_base62, make_key
from tests.benchmarks.splits import NINTH_BLIND_SEED

positives = partial(SET.positives, seed=NINTH_BLIND_SEED)
negatives = partial(SET.negatives, seed=NINTH_BLIND_SEED)
# lengths of the IBAN registry (SWIFT, release 99)
_BY_LENGTH = {
    15: "NO", 16: "BE", 18: "NL DK FI", 19: "SI", 20: "AT LU EE LT", 21: "CH HR LV",
    22: "DE GB IE BG GE RS", 23: "AE", 24: "CZ ES RO SE SK SA", 25: "PT", 26: "TR IS",
    27: "FR GR IT", 28: "HU PL CY", 31: "MT",
}  # fmt: skip
IBAN_LENGTHS = {country: size for size, names in _BY_LENGTH.items() for country in names.split()}


def luhn_valid(digits: str) -> bool:
    """Whether the sum of ISO/IEC 7812-1 ends with zero; a doubled digit counts by its digits."""
    spread = "".join(
        str(int(digit) * (1 + place % 2)) for place, digit in enumerate(reversed(digits))
    )
    return sum(map(int, spread)) % 10 == 0


def iban_valid(text: str) -> bool:
    """Whether an IBAN has the length of its country and remainder 1, taken letter by letter."""
    compact = re.sub(r"\s", "", text)
    remainder = 0
    for character in compact[4:] + compact[:4]:
        value = int(character, 36)
        remainder = (remainder * (100 if value > 9 else 10) + value) % 97
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
    # 555-01xx; Ofcom's, Arcep's and ACMA's numbers for drama
    fiction = {
        "US": r"555\D?01\d\d$",
        "GB": r"20 7946|1632 960|161 496|7700 900",
        "FR": r"(0|33 )(1 99 00|2 61 91|3 53 01|4 65 71|5 36 49|6 39 98)",
        "AU": r"5550|7010|0491 57|491 57",
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
            assert not address.is_global or '"wwn"' in case.text, case.text


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
    assert all(luhn_valid(number) for number in TEST_CARDS)
    # the example of ISO/IEC 7812-1 that articles on Luhn's formula quote: 7992739871 takes a 3
    assert luhn_digit("7992739871") == "3"
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
    assert all(iban_valid(iban) for iban in PUBLISHED_IBANS)
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
    sizes = {"HS256": 32, "RS256": 256, "PS256": 256}
    for case in positives("jwt"):
        for value in values_of(case):
            header, payload, signature = (
                base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in value.split(".")
            )
            assert "sub" in json.loads(payload)
            assert len(signature) == sizes.get(json.loads(header)["alg"], 64)


def test_jwt_negatives_hold_no_signed_token() -> None:
    signed = re.compile(r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}")
    assert not [case for case in negatives("jwt") if signed.search(case.text)]


def der_end(content: bytes) -> int:
    """Where the first element of a DER text ends."""
    if content[1] < 128:
        return 2 + content[1]
    count = content[1] & 127
    length = int.from_bytes(content[2 : 2 + count], "big")
    assert content[2], "a length in DER has no leading zero"
    assert length > 127, "a short length in DER takes one byte"
    return 2 + count + length


def test_private_keys_in_pem_are_whole_der_sequences_or_openssh_keys() -> None:
    pem = re.compile(r"BEGIN (RSA |EC |DSA |OPENSSH |ENCRYPTED )?PRIVATE KEY")
    contents = [
        base64.b64decode(
            re.sub(r"\\n|\n[+]" if case.text[0] == "+" else r"\\n|[\s>#]", "", value), validate=True
        )
        for case in positives("private_key")
        for value in values_of(case)
        if pem.search(case.text) and "DEK-Info" not in case.text
    ]
    assert len(contents) > 80
    for content in contents:
        assert content.startswith(b"openssh-key-v1\0") or der_end(content) == len(content)


def test_labels_of_pem_keys_lie_between_their_lines() -> None:
    for case in positives("private_key"):
        for start, end in case.values:
            before, after = case.text[:start], case.text[end:]
            if "PRIVATE KEY-----" in after:
                assert re.search(r"KEY-----[\\n\s>+#]*$|DEK-Info: AES-128-CBC,\w+\s*$", before)
                assert re.match(r"(\\n|[\s>+#])*-----END", after)


def test_private_key_negatives_hold_no_body_of_a_private_key() -> None:
    body = re.compile(r"PRIVATE KEY( BLOCK)?-----[\s\\n]*[A-Za-z0-9+/]{30}|AGE-SECRET-KEY-1\w{50}")
    assert not [case for case in negatives("private_key") if body.search(case.text)]
    assert any(body.search(case.text) for case in positives("private_key"))


def test_forms_of_keys_are_whole_der() -> None:
    rng = random.Random(4)
    forms = {**PRIVATE, **PUBLIC}
    for form in forms.keys() - {"OPENSSH PRIVATE KEY", "SSH SIGNATURE"}:
        content = forms[form](rng)
        assert content[0] == 0x30
        assert der_end(content) == len(content)


def test_checksums_of_keys_agree_with_published_examples() -> None:
    # BIP 173: the checksum of the empty Bech32 text "A12UEL5L"
    alphabet = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
    assert "".join(alphabet[value] for value in bech32_checksum("a", [])) == "2uel5l"
    # the CRC-24 of "123456789" that catalogues of checksums give for OpenPGP
    assert crc24(b"123456789") == 0x21CF02
    wif, number = make_wif(random.Random(5)), 0
    for character in wif:
        number = number * 58 + "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz".index(
            character
        )
    content = number.to_bytes(38, "big")
    assert wif[0] in "KL"
    assert hashlib.sha256(hashlib.sha256(content[:34]).digest()).digest()[:4] == content[34:]


def test_keys_of_services_carry_their_checksums() -> None:
    rng = random.Random(3)
    for name in ("github", "github_oauth", "github_server", "github_user", "npm"):
        body = make_key(rng, name).partition("_")[2]
        assert len(body) == 36
        assert crc_base62(body[:30]) == body[30:]
    # the revoked token that articles on GitHub's token format take apart
    assert crc_base62("zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ") == "0mLq17"
    assert make_key(rng, "pypi").startswith("pypi-AgEIcHlwaS5vcmcCJ")


def test_forms_of_services_have_their_published_lengths() -> None:
    # lengths that the services document or that the rules of secret scanners quote
    lengths = {
        "github": 40, "github_fine": 93, "gitlab": 26, "anthropic": 108, "sendgrid": 69,
        "digitalocean": 71, "hugging_face": 37, "shopify": 38, "google": 39, "google_secret": 35,
        "databricks": 36, "artifactory": 73, "neon": 69, "groq": 56, "dynatrace": 96,
        "terraform": 90, "grafana": 46, "replicate": 40, "notion": 50, "airtable": 82,
        "linear": 48, "postman": 64, "telegram": 46, "npm": 40, "docker": 36, "rubygems": 57,
    }  # fmt: skip
    rng = random.Random(6)
    assert {name: len(make_key(rng, name)) for name in lengths} == lengths
    assert len(SERVICES) >= 80


def test_keys_of_many_services_are_drawn() -> None:
    values = [value for case in positives("provider_key") for value in values_of(case)]
    heads = {make_key(random.Random(0), name)[:3] for name in SERVICES}
    assert len(heads & {value[:3] for value in values}) >= 30


def test_parts_of_broken_tokens_lie_apart_and_make_one_token() -> None:
    checked = set()
    for case in positives("broken_token"):
        assert len(case.values) in (2, 3)
        assert all(len(value) >= 12 for value in values_of(case))
        whole = "".join(values_of(case))
        assert re.fullmatch(r"[\w.-]{34,}", whole)
        if whole.startswith("eyJ"):
            checked.add("jwt")
            signature = whole.split(".")[2]
            decoded = base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4))
            assert len(decoded) in {32, 64, 256}
        elif re.match(r"gh[pso]_|npm_", whole):
            checked.add("crc")
            assert crc_base62(whole[4:34]) == whole[34:]
    assert checked == {"jwt", "crc"}
