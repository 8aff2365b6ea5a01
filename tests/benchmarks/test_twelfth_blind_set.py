"""The twelfth blind set holds what it says: checksums, lengths, labels. No rule runs here."""

from __future__ import annotations

import base64
import ipaddress
import json
import random
import re
from functools import partial

import pytest

from tests.benchmarks.blind_set import KINDS, load, values_of
from tests.benchmarks.splits import TWELFTH_BLIND_SEED
from tests.benchmarks.twelfth_blind import SET
from tests.benchmarks.twelfth_blind.keys import ENCODINGS, bech32, crc24
from tests.benchmarks.twelfth_blind.personal import IBANS, PLANS, luhn_digit, make_iban, make_phone
from tests.benchmarks.twelfth_blind.tokens import SERVICES, SIGNATURES, crc_base62, make_key

positives = partial(SET.positives, seed=TWELFTH_BLIND_SEED)
negatives = partial(SET.negatives, seed=TWELFTH_BLIND_SEED)
# lengths of the IBAN registry (SWIFT, release 99)
IBAN_LENGTHS = {
    "BE": 16, "NL": 18, "DK": 18, "FI": 18, "AT": 20, "LU": 20, "CH": 21, "DE": 22, "GB": 22,
    "IE": 22, "ES": 24, "SE": 24, "CZ": 24, "PT": 25, "FR": 27, "IT": 27, "PL": 28,
}  # fmt: skip


def luhn_valid(digits: str) -> bool:
    """Whether the sum of ISO/IEC 7812-1 ends with zero; a doubled digit counts by its digits."""
    spread = "".join(str(int(d) * (1 + at % 2)) for at, d in enumerate(reversed(digits)))
    return sum(map(int, spread)) % 10 == 0


def iban_valid(compact: str) -> bool:
    """Whether an IBAN has the length of its country and remainder 1 by 97 (ISO 13616)."""
    digits = "".join(str(int(character, 36)) for character in compact[4:] + compact[:4])
    return len(compact) == IBAN_LENGTHS.get(compact[:2]) and int(digits) % 97 == 1


def decode(part: str) -> bytes:
    """The bytes of a segment of a token."""
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_40_templates_of_each_sign_of_its_own(kind: str) -> None:
    templates = load(kind, SET.texts)
    assert all(template.text.strip() for template in templates)
    signs = [template.sign for template in templates]
    assert min(signs.count("+"), signs.count("-")) >= 40
    assert len({template.text for template in templates}) == len(templates)


def test_every_address_of_an_email_text_is_labelled_and_whole() -> None:
    for case in positives("email"):
        assert len(re.findall(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", case.text)) == len(case.values)
        for value in values_of(case):
            assert re.fullmatch(r"[a-z0-9]+([._][a-z0-9]+)*@[a-z0-9-]+(\.[a-z-]+)+", value)


def test_phones_are_whole_and_avoid_the_ranges_kept_for_fiction() -> None:
    rng = random.Random(1)
    # 555; Ofcom's ranges for drama; Arcep's; ACMA's mobile one
    fiction = re.compile(
        r"555[-.]|\b020 7946 0|1632 960|0?1\d1 496 0|7700 900|0491 570|"
        r"(\+33 |0)(1 99 00|2 61 91|3 53 01|4 65 71|5 36 49|6 39 98)"
    )
    numbers = [make_phone(rng, plan) for plan in PLANS for _ in range(200)]
    assert all(8 <= len(re.sub(r"\D", "", number)) <= 13 for number in numbers)
    assert not [number for number in numbers if fiction.search(number)]
    for case in positives("phone"):
        for start, end in case.values:
            around = case.text[max(0, start - 1) : start] + case.text[end : end + 1]
            assert not re.search(r"[\d+]", around), case.text


def test_public_addresses_are_all_labelled_and_in_no_negative() -> None:
    for case in positives("ip") + negatives("ip"):
        for match in re.finditer(r"(?<![\w.])\d{1,3}(\.\d{1,3}){3}(?![\w.]*\d)", case.text):
            address = ipaddress.ip_address(match[0])
            # versions and numbers of sections have a small first part
            if match.span() not in case.values and address.packed[0] >= 10:
                assert not address.is_global, case.text


def test_cards_pass_luhn_and_no_negative_holds_one() -> None:
    # the example of ISO/IEC 7812-1 that articles on Luhn's formula quote: 7992739871 takes a 3
    assert luhn_digit("7992739871") == "3"
    sizes = {"34": 15, "37": 15}
    for case in positives("card"):
        for digits in (re.sub(r"\D", "", value) for value in values_of(case)):
            assert luhn_valid(digits)
            assert len(digits) == sizes.get(digits[:2], 16)
    for case in negatives("card"):
        for run in re.findall(r"(?<![\w.])[3-6](?:[ -]?\d){14,15}(?![\w-])", case.text):
            digits = re.sub(r"\D", "", run)
            # an IMEI has 15 digits and passes the same check
            assert digits.startswith("35") or not luhn_valid(digits), case.text


def test_ibans_pass_mod_97_and_no_negative_holds_one() -> None:
    rng = random.Random(2)
    # the example of ISO 13616 for Germany, to check the check
    assert iban_valid("DE89370400440532013000")
    assert {country: len(make_iban(rng, country)) for country in IBANS} == IBAN_LENGTHS
    for case in positives("iban"):
        assert all(iban_valid(value.replace(" ", "")) for value in values_of(case))
    for case in negatives("iban"):
        for start in re.finditer(r"\b[A-Z]{2}\d{2}", case.text):
            length = IBAN_LENGTHS.get(start[0][:2], 0)
            compact = re.sub(r"[ -]", "", case.text[start.start() :])[:length]
            assert not re.fullmatch(r"[A-Z0-9]{15,}", compact) or not iban_valid(compact)


def test_jwts_decode_and_negatives_hold_no_signed_token() -> None:
    for case in positives("jwt"):
        for value in values_of(case):
            head, claims, signature = map(decode, value.split("."))
            assert json.loads(claims)["exp"] > json.loads(claims)["iat"]
            assert len(signature) == SIGNATURES[json.loads(head)["alg"]]
    signed = re.compile(r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}")
    for kind in ("jwt", "bearer", "password", "provider_key", "broken_token"):
        assert not [case for case in negatives(kind) if signed.search(case.text)]


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
            if not re.search(r"BEGIN (RSA |EC |OPENSSH )?PRIVATE KEY-----\W*n?\W*$", before):
                continue
            assert re.fullmatch(r"(\\n|[\s>])*", after.partition("-----END")[0])
            body = re.sub(r"\\n|\n> |\s", "", case.text[start:end])
            content = base64.b64decode(body, validate=True)
            assert content.startswith(b"openssh-key-v1\0") or der_end(content) == len(content)
            checked += 1
    assert checked > 100
    secret = re.compile(r"PRIVATE KEY( BLOCK)?-----[\s\\n]*[A-Za-z0-9+/]{30}|AGE-SECRET-KEY-1\w{9}")
    assert not [case for case in negatives("private_key") if secret.search(case.text)]


def test_forms_of_keys_are_whole_and_their_checksums_agree_with_published_examples() -> None:
    rng = random.Random(4)
    for form in ENCODINGS.keys() - {"ossh"}:
        content = ENCODINGS[form](rng)
        assert der_end(content) == len(content)
    # the CRC-24 of "123456789" that catalogues of checksums give for OpenPGP
    assert crc24(b"123456789") == 0x21CF02
    # BIP 173: the empty Bech32 text of prefix "a" is "a12uel5l"
    assert bech32("a", b"") == "a12uel5l"
    assert len(bech32("age-secret-key-", rng.randbytes(32))) == 74


def test_keys_of_services_have_their_published_lengths_and_checksums() -> None:
    rng = random.Random(3)
    for name in ("github", "npm"):
        body = make_key(rng, name).partition("_")[2]
        assert crc_base62(body[:30]) == body[30:]
    # the revoked token that articles on GitHub's token format take apart
    assert crc_base62("zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ") == "0mLq17"
    lengths = {
        "github": 40, "gitlab": 26, "npm": 40, "anthropic": 108, "openai": 164, "sendgrid": 69,
        "digitalocean": 71, "hf": 37, "google": 39, "notion": 50, "telegram": 46, "docker": 36,
        "new_relic": 32, "azure": 88, "azure_bus": 44, "aws": 40, "hex32": 32, "entra": 40,
    }  # fmt: skip
    assert {name: len(make_key(rng, name)) for name in lengths} == lengths
    labels = [value for case in positives("provider_key") for value in values_of(case)]
    heads = {make_key(rng, name)[:4] for name in SERVICES}
    assert len(heads & {value[:4] for value in labels}) >= 12


def test_parts_of_broken_tokens_make_one_token() -> None:
    checked = set()
    for case in positives("broken_token"):
        parts = values_of(case)
        assert len(parts) == 2
        assert all(len(part) >= 12 for part in parts)
        whole = "".join(parts)
        if whole.startswith("eyJ"):
            checked.add("jwt")
            assert len(decode(whole.split(".")[2])) in SIGNATURES.values()
        elif re.match(r"ghp_|npm_", whole):
            checked.add("crc")
            assert crc_base62(whole[4:34]) == whole[34:]
    assert checked == {"jwt", "crc"}
