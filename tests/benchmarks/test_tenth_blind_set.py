"""The tenth blind set holds what it says: forms, checksums, weights. No rule runs here."""

from __future__ import annotations

import base64
import ipaddress
import json
import random
import re
from functools import partial
from itertools import groupby
from pathlib import Path

import pytest

from tests.benchmarks import tenth_blind
from tests.benchmarks.blind_set import KINDS, load, values_of
from tests.benchmarks.splits import TENTH_BLIND_SEED
from tests.benchmarks.tenth_blind import SET
from tests.benchmarks.tenth_blind.keys import PRIVATE, PUBLIC, age_key, crc24, polymod
from tests.benchmarks.tenth_blind.personal import (
    IBANS,
    PLANS,
    PUBLISHED_IBANS,
    TEST_CARDS,
    luhn_digit,
    make_iban,
    make_phone,
)
from tests.benchmarks.tenth_blind.services import EVERY, crc_base62, make_key

positives = partial(SET.positives, seed=TENTH_BLIND_SEED)
negatives = partial(SET.negatives, seed=TENTH_BLIND_SEED)
FORMS = Path(tenth_blind.__file__).with_name("FORMS.md").read_text("utf-8")
# lengths of the IBAN registry (SWIFT, release 99)
IBAN_LENGTHS = {
    "NO": 15, "BE": 16, "NL": 18, "DK": 18, "FI": 18, "AT": 20, "LU": 20, "CH": 21, "HR": 21,
    "DE": 22, "GB": 22, "IE": 22, "AE": 23, "ES": 24, "SE": 24, "CZ": 24, "RO": 24, "SA": 24,
    "PT": 25, "TR": 26, "FR": 27, "IT": 27, "GR": 27, "PL": 28, "HU": 28,
}  # fmt: skip


def table_rows(columns: int) -> list[list[str]]:
    """Rows of the tables of FORMS.md that have so many columns, without their heads."""
    rows = [line.strip("|").split("|") for line in FORMS.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row] for row in rows]
    return [row for row in cells if len(row) == columns and re.fullmatch(r"[\d.]+", row[-1])]


def weights_of(kind: str, sign: str) -> list[float]:
    """The weight of each template in the order of FORMS.md, by its rule."""
    forms = [
        (float(number), int(count))
        for name, side, _, number, count in (row for row in table_rows(5) if row[1] in "+-")
        if name == kind and side == sign
    ]
    largest = max(number / count for number, count in forms)
    return [
        round(max(0.03, number / count / largest), 2)
        for number, count in forms
        for _ in range(count)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_weights_follow_the_counted_forms(kind: str) -> None:
    templates = load(kind, SET.texts)
    for sign in "+-":
        written = [template.weight for template in templates if template.sign == sign]
        assert written == pytest.approx(weights_of(kind, sign), abs=0.006)


def test_counts_of_forms_add_up() -> None:
    summary = {row[0]: list(map(int, row[1:])) for row in table_rows(5) if row[1] not in "+-"}
    total = summary.pop("all")
    assert total == [sum(column) for column in zip(*summary.values(), strict=True)]
    assert all(row[0] == sum(row[1:]) for row in summary.values())
    forms = [row for row in table_rows(5) if row[1] in "+-"]
    for kind in ("email", "phone", "ip", "card", "iban"):
        counted = {
            sign: sum(int(row[3]) for row in rows)
            for sign, rows in groupby((row for row in forms if row[0] == kind), lambda row: row[1])
        }
        assert counted["-"] == summary[kind][2]
        # cards and IBANs: the surroundings of published numbers, one of them without a positive
        assert counted["+"] == (summary[kind][1] or {"card": 23, "iban": 24}[kind])
    counted = re.findall(r"`[^`]+` (\d+)[,.]", FORMS.replace("\n", " "))
    assert sum(map(int, counted)) == summary["references to credentials"][0]


def luhn_valid(digits: str) -> bool:
    """Whether the sum of ISO/IEC 7812-1 ends with zero; a doubled digit counts by its digits."""
    spread = "".join(str(int(d) * (1 + place % 2)) for place, d in enumerate(reversed(digits)))
    return sum(map(int, spread)) % 10 == 0


def iban_valid(compact: str) -> bool:
    """Whether an IBAN has the length of its country and remainder 1 by 97 (ISO 13616)."""
    digits = "".join(str(int(character, 36)) for character in compact[4:] + compact[:4])
    return len(compact) == IBAN_LENGTHS.get(compact[:2]) and int(digits) % 97 == 1


def test_every_address_of_an_email_text_is_labelled() -> None:
    for case in positives("email"):
        assert len(re.findall(r"[\w.+-]+@[\w-]+(\.[\w-]+)+", case.text)) == len(case.values)
        for value in values_of(case):
            assert re.fullmatch(r"[a-z0-9]+([._][a-z0-9]+)*@[a-z0-9-]+(\.[a-z]+)+", value)


def test_phones_are_whole_and_avoid_the_ranges_kept_for_fiction() -> None:
    rng = random.Random(1)
    # 555-01xx; ranges of Ofcom, Arcep and ACMA for drama
    fiction = re.compile(
        r"^\+1 \d{3} 555|^\+44 (20 7946 0|1632 960|161 496 0|7700 900)|^\+61 [278] ?5550|"
        r"^\+33 (1 99 00|2 61 91|3 53 01|4 65 71|5 36 49|6 39 98)"
    )
    numbers = [make_phone(rng, country, "intl") for country in PLANS for _ in range(300)]
    assert all(8 <= len(re.sub(r"\D", "", number)) <= 13 for number in numbers)
    assert not [number for number in numbers if fiction.search(number)]
    for case in positives("phone"):
        for start, end in case.values:
            around = case.text[max(0, start - 1) : start] + case.text[end : end + 1]
            assert not re.search(r"[\d+]", around), case.text


def test_public_addresses_are_all_labelled_and_in_no_negative() -> None:
    for case in positives("ip") + negatives("ip"):
        for match in re.finditer(r"(?<![\w.])\d{1,3}(\.\d{1,3}){3}(?![\w.]*\d)", case.text):
            is_version = re.search(r"([vV]ersion=\"|Chrome/)$", case.text[: match.start()])
            if match.span() not in case.values and not is_version:
                assert not ipaddress.ip_address(match[0]).is_global, case.text


def test_cards_pass_luhn_and_negatives_hold_test_numbers_or_wrong_digits() -> None:
    # the example of ISO/IEC 7812-1 that articles on Luhn's formula quote: 7992739871 takes a 3
    assert luhn_digit("7992739871") == "3"
    assert all(luhn_valid(number) for number in TEST_CARDS)
    sizes = {"34": 15, "37": 15, "36": 14}
    for case in positives("card"):
        for digits in (re.sub(r"\D", "", value) for value in values_of(case)):
            assert luhn_valid(digits)
            assert digits not in TEST_CARDS
            assert len(digits) == sizes.get(digits[:2], 16)
    grouped = re.compile(r"(?<![\w.])\d{4}[ -]?\d{4,6}[ -]?\d{4,5}(?:[ -]?\d{4})?(?![\w-])")
    numbers = [
        re.sub(r"\D", "", n) for case in negatives("card") for n in grouped.findall(case.text)
    ]
    valid = {n for n in numbers if n[0] in "3456" and luhn_valid(n)}
    assert len(numbers) > 30
    assert valid <= set(TEST_CARDS)


def test_ibans_pass_mod_97_and_negatives_hold_examples_or_wrong_digits() -> None:
    rng = random.Random(2)
    assert all(iban_valid(number) for number in PUBLISHED_IBANS)
    assert {country: len(make_iban(rng, country)) for country in IBANS} == IBAN_LENGTHS
    for case in positives("iban"):
        for compact in (value.replace(" ", "") for value in values_of(case)):
            assert iban_valid(compact)
            assert compact not in PUBLISHED_IBANS
    for case in negatives("iban"):
        for start in re.finditer(r"\b[A-Z]{2}\d{2}(?= ?\w)", case.text):
            length = IBAN_LENGTHS.get(start[0][:2], 0)
            compact = re.sub(r"[ -]", "", case.text[start.start() :])[:length]
            if length and re.fullmatch(r"[A-Z0-9]+", compact) and len(compact) == length:
                assert compact in PUBLISHED_IBANS or not iban_valid(compact), case.text


def decode(part: str) -> bytes:
    """The bytes of a segment of a token."""
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def test_jwts_decode_and_negatives_hold_no_signed_token() -> None:
    sizes = {"HS256": 32, "RS256": 256, "ES256": 64, "HS512": 64}
    for case in positives("jwt"):
        for value in values_of(case):
            head, claims, signature = map(decode, value.split("."))
            assert "sub" in json.loads(claims)
            assert len(signature) == sizes[json.loads(head)["alg"]]
    signed = re.compile(r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}")
    assert not [
        case for kind in ("jwt", "bearer") for case in negatives(kind) if signed.search(case.text)
    ]


def der_end(content: bytes) -> int:
    """Where the first element of a DER text ends."""
    if content[1] < 128:
        return 2 + content[1]
    count = content[1] & 127
    return 2 + count + int.from_bytes(content[2 : 2 + count], "big")


def test_private_keys_are_whole_and_labelled_between_their_lines() -> None:
    checked = 0
    for case in positives("private_key"):
        for start, end in case.values:
            before, after = case.text[:start], case.text[end:]
            if not re.search(r"BEGIN (RSA |EC |OPENSSH )?PRIVATE KEY-----\W*\w?\W*$", before):
                continue
            joint = after.partition("-----END")[0]
            assert re.fullmatch(r"(\\[rn]|[\s>+#\"-])*", joint), joint
            content = base64.b64decode(case.text[start:end].replace(joint, ""), validate=True)
            assert content.startswith(b"openssh-key-v1\0") or der_end(content) == len(content)
            checked += 1
    assert checked > 100
    body = re.compile(r"PRIVATE KEY( BLOCK)?-----[\s\\n]*[A-Za-z0-9+/]{30}|AGE-SECRET-KEY-1\w{50}")
    assert not [case for case in negatives("private_key") if body.search(case.text)]


def test_forms_of_keys_are_whole_and_their_checksums_agree_with_published_examples() -> None:
    rng = random.Random(4)
    for form in {**PRIVATE, **PUBLIC}.keys() - {"OPENSSH PRIVATE KEY"}:
        content = {**PRIVATE, **PUBLIC}[form](rng)
        assert der_end(content) == len(content)
    # the CRC-24 of "123456789" that catalogues of checksums give for OpenPGP
    assert crc24(b"123456789") == 0x21CF02
    # BIP 173: the empty Bech32 text of prefix "a" ends with the checksum "2uel5l"
    values = ["qpzry9x8gf2tvdw0s3jn54khce6mua7l".index(character) for character in "2uel5l"]
    assert polymod([ord("a") >> 5, 0, ord("a") & 31, *values]) == 1
    assert len(age_key(rng)) == 74


def test_keys_of_services_have_their_published_lengths_and_checksums() -> None:
    rng = random.Random(3)
    for name in ("github", "github_oauth", "npm"):
        body = make_key(rng, name).partition("_")[2]
        assert crc_base62(body[:30]) == body[30:]
    # the revoked token that articles on GitHub's token format take apart
    assert crc_base62("zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ") == "0mLq17"
    lengths = {
        "github": 40, "github_fine": 93, "gitlab": 26, "anthropic": 108, "sendgrid": 69,
        "digitalocean": 71, "hugging_face": 37, "shopify": 38, "google": 39, "google_client": 35,
        "databricks": 36, "groq": 56, "replicate": 40, "notion": 50, "airtable": 82, "linear": 48,
        "postman": 64, "telegram": 46, "npm": 40, "docker": 36, "openai": 51, "circleci": 70,
    }  # fmt: skip
    assert {name: len(make_key(rng, name)) for name in lengths} == lengths
    heads = {make_key(rng, name)[:3] for name in EVERY}
    values = [value for case in positives("provider_key") for value in values_of(case)]
    assert len(heads & {value[:3] for value in values}) >= 20


def test_parts_of_broken_tokens_make_one_token() -> None:
    checked = set()
    for case in positives("broken_token"):
        assert len(case.values) == 2
        assert all(len(value) >= 12 for value in values_of(case))
        whole = "".join(values_of(case))
        if whole.startswith("eyJ"):
            checked.add("jwt")
            assert len(decode(whole.split(".")[2])) in {32, 64, 256}
        elif re.match(r"ghp_|npm_", whole):
            checked.add("crc")
            assert crc_base62(whole[4:34]) == whole[34:]
    assert checked == {"jwt", "crc"}
