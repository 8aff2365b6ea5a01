"""Blind sets hold as many forms as they say, and right values. No rule runs here.

What a number is worth is the word of `phonenumbers`, `ipaddress` and python-stdnum, which no set's
maker uses; how texts are drawn and labelled is in `test_blind_sets.py`. A right value in a hard
negative is a published example: it stands in the set's files, where no drawn one does.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import re
from functools import cache
from urllib.parse import unquote

import phonenumbers
import pytest
from stdnum import iban, imei, luhn

from tests.benchmarks.blind_set import KINDS, load, values_of
from tests.benchmarks.blind_standards import (
    SIGNATURES,
    bech32,
    crc24,
    crc_base62,
    decode_segment,
    der,
    der_end,
    luhn_digit,
    segment,
)
from tests.benchmarks.redaction import BLIND_SETS
from tests.benchmarks.redaction_cases import Case

SETS = {one.ordinal: one for one in BLIND_SETS}
LEAST = 150
"""Templates of each kind and sign."""

PLACEHOLDER = re.compile(r"(?i)example|placeholder|x{6}|\*\*\*|\.\.\.|0{12}|changeme|[{}]")
CHECKED = re.compile(r"(?<!\w)(?:gh[opsu]|npm)_([0-9A-Za-z]{30})([0-9A-Za-z]{6})(?!\w)")
SIGNED = re.compile(r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.([\w-]{10,})")
every_set = pytest.mark.parametrize(
    "name", [name for name, one in SETS.items() if one.kinds == KINDS]
)
every_kind = pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, one in SETS.items() for kind in one.kinds]
)


@cache
def cases(name: str, kind: str) -> list[Case]:
    """200 positives, then 200 hard negatives."""
    return SETS[name].make_cases(kind, SETS[name].first_seed)


def values(name: str, kind: str) -> list[str]:
    return [value for case in cases(name, kind) for value in values_of(case)]


def negatives(name: str, kind: str) -> list[str]:
    return [case.text for case in cases(name, kind) if not case.values]


@cache
def written(name: str) -> str:
    """The files of a set, without blanks and hyphens."""
    folder = SETS[name].texts.parent
    files = [*folder.glob("*.py"), *folder.glob("texts/*.txt")]
    return re.sub(r"[\s\"-]", "", "".join(file.read_text("utf-8") for file in files))


def test_checksums_are_those_of_published_examples() -> None:
    # the example of ISO/IEC 7812-1 that articles on Luhn's formula quote: 7992739871 takes a 3
    assert luhn_digit("7992739871") == "3"
    # the CRC-24 of "123456789" that catalogues of checksums give for OpenPGP
    assert crc24(b"123456789") == 0x21CF02
    # BIP 173: the empty Bech32 text of prefix "a" is "a12uel5l"
    assert bech32("a", b"") == "a12uel5l"
    # the revoked token that articles on GitHub's token format take apart
    assert crc_base62("zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ") == "0mLq17"


@pytest.mark.parametrize("size", [0, 127, 128, 255, 256, 70_000])
def test_an_element_of_der_ends_where_its_length_says(size: int) -> None:
    element = der(4, b"x" * size)
    assert der_end(element + b"more") == len(element)
    assert element.endswith(b"x" * size)


def test_a_segment_of_a_web_token_is_decoded_to_its_bytes() -> None:
    for content in (b"", b"a", b"ab", b"abc", b"\xff\xfe"):
        assert decode_segment(segment(content)) == content


FICTION = re.compile(
    r"^(\+?1[ .-]?)?\(?[2-9]\d\d\)?[ .-]?555[ .-]?\d{4}$|\b020 7946 0|1632 960|7700 900|"
    r"\b0?1\d1 496 0|0491 57|\+61 [278] ?5550|"
    r"(\+33 |\b0)(1 99 00|2 61 91|3 53 01|4 65 71|5 36 49|6 39 98)"
)
"""Ranges that North America, Ofcom, ACMA and Arcep keep for drama."""


@every_set
def test_phone_numbers_have_a_number_s_length_and_touch_no_digit(name: str) -> None:
    for case in cases(name, "phone")[:200]:
        for start, end in case.values:
            around = case.text[max(0, start - 1) : start] + case.text[end : end + 1]
            assert not re.search(r"[\d+]", around), case.text
            assert 6 <= len(re.sub(r"\D", "", case.text[start:end])) <= 15
            assert not FICTION.search(case.text[start:end]), case.text


@every_kind
def test_a_kind_has_so_many_different_templates_of_each_sign(name: str, kind: str) -> None:
    templates = load(kind, SETS[name].texts)
    for sign in "+-":
        texts = [one.text for one in templates if one.sign == sign]
        assert len(set(texts)) == len(texts) >= LEAST
    # The forms of the twenty-second come as often as pages have them.
    assert {one.weight for one in templates} == ({1} if name == "twenty-second" else {1, 0.5, 0.2})


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name, one in SETS.items() for kind in one.kinds if kind in KINDS[4:]],
)
def test_values_are_no_placeholders_and_end_where_their_token_does(name: str, kind: str) -> None:
    assert not [value for value in values(name, kind) if PLACEHOLDER.search(value)]
    for case in cases(name, kind):
        for start, end in case.values:
            # `mysql -p`, quoted-printable, percent-encoding, `\n`, the address of a bot and a field
            # of MT940 stand right before, the currency of MT940 right after.
            before = r"(?: -p|=3D|%20|%0A|\\[nr]|/bot|\?31|[\W_])\Z|\A\Z"
            assert re.search(before, case.text[:start]), case.text
            assert re.match(r"\W|EUR\n|_|\Z", case.text[end:]), case.text


@every_set
def test_phone_numbers_are_valid_where_they_name_their_country(name: str) -> None:
    international = [value for value in values(name, "phone") if value.startswith("+")]
    assert len(international) > 30
    for value in international:
        assert phonenumbers.is_valid_number(phonenumbers.parse(value.replace("(0)", ""))), value


@every_set
def test_an_address_beside_a_public_one_is_none(name: str) -> None:
    for case in cases(name, "ip")[:200]:
        numbers = re.findall(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?!\d)", case.text)
        public = [number for number in numbers if ipaddress.ip_address(number).is_global]
        assert public == [value for value in values_of(case) if "." in value], case.text


@every_set
def test_cards_in_negatives_are_published_and_none_of_the_positives_is(name: str) -> None:
    drawn = [re.sub(r"\D", "", one) for one in values(name, "card")]
    assert all(luhn.is_valid(digits) and 12 <= len(digits) <= 19 for digits in drawn)
    assert not [digits for digits in drawn if digits in written(name)]
    like_card = re.compile(r"(?<![\w.])(?:2[2-7]|[3-6]\d)(?:[ -]?\d){11,17}(?![\w-])")
    for text in negatives(name, "card"):
        for digits in (re.sub(r"\D", "", run) for run in like_card.findall(text)):
            if luhn.is_valid(digits) and len(digits) in (15, 16):
                assert digits in written(name) or imei.is_valid(digits), text


@every_set
def test_ibans_are_those_of_many_countries_and_in_negatives_published(name: str) -> None:
    accounts = [re.sub(r"[\s.-]", "", value) for value in values(name, "iban")]
    assert all(iban.is_valid(one, check_country=False) for one in accounts)
    assert len({one[:2].upper() for one in accounts}) >= 20
    for text in negatives(name, "iban"):
        for run in re.findall(r"\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]){11,30}", text):
            compact = re.sub(r"[ -]", "", run)
            for end in range(15, len(compact) + 1):
                is_right = iban.is_valid(compact[:end], check_country=False)
                assert not is_right or compact[:end] in written(name), text


def check_web_token(token: str) -> None:
    head, claims, signature = map(decode_segment, token.split("."))
    assert json.loads(claims).get("exp", 2e9) > json.loads(claims)["iat"]
    assert len(signature) == {**SIGNATURES, "EdDSA": 64, "PS256": 256}[json.loads(head)["alg"]]


@every_set
def test_web_tokens_decode_and_negatives_hold_published_ones_alone(name: str) -> None:
    for token in values(name, "jwt"):
        check_web_token(token)
    for token in (one for one in values(name, "bearer") if one.startswith("eyJ")):
        check_web_token(token)
    for kind in ("jwt", "bearer", "broken_token"):
        for text in negatives(name, kind):
            for signature in SIGNED.findall(text):
                assert re.sub("-", "", signature) in written(name), text


@every_set
def test_checksums_of_tokens_are_right_and_those_of_negatives_are_not(name: str) -> None:
    kinds = ("provider_key", "bearer", "connection", "broken_token")
    tokens = [CHECKED.fullmatch(value) for kind in kinds for value in values(name, kind)]
    checked = [match for match in tokens if match]
    assert len(checked) > 8
    assert all(crc_base62(match[1]) == match[2] for match in checked)
    for kind in ("bearer", "broken_token"):
        for text in negatives(name, kind):
            assert not any(crc_base62(match[1]) == match[2] for match in CHECKED.finditer(text))


@every_set
def test_keys_are_of_more_than_40_services(name: str) -> None:
    texts = [template.text for template in load("provider_key", SETS[name].texts)]
    slots = [slot for text in texts for slot in re.findall(r"<<!\w+:([^<>@{]+)", text)]
    assert len({slot.split("_")[0] for slot in slots}) > 40


def content_of(value: str) -> bytes:
    """The decoded base64 of a key, whatever stands between its lines."""
    lines = re.split(r"\n|\\+[rn]|%0[DA]|&#10;|<br>", value)
    lines = value.split(" ") if len(lines) == 1 else lines
    for mark in ("+", "-", "//", " *", ">", "#"):
        if len(lines) > 2 and all(line.startswith(mark) for line in lines[1:] if line.strip()):
            lines = [lines[0], *(line.removeprefix(mark) for line in lines[1:])]
    runs = [re.findall(r"(?:[A-Za-z0-9+/]|%2[BF])+={0,2}", line) for line in lines]
    longest = [max(run, key=len) for run in runs if run]
    joined = unquote("".join(run for run in longest if run.strip("+/")))
    return base64.b64decode(joined, validate=True)


@every_set
def test_private_keys_are_whole_in_the_form_that_they_have(name: str) -> None:
    marked = wrapped = 0
    for case in cases(name, "private_key"):
        for start, end in case.values:
            value, before = case.text[start:end], case.text[:start]
            if value.startswith("AGE"):
                assert re.fullmatch(r"AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}", value)
            elif "BEGIN PGP PRIVATE" in before:
                body, check = re.fullmatch(r"(.*)=(.{4})", value, re.DOTALL).groups()  # type: ignore[union-attr]
                content = content_of(body)
                assert content.startswith(b"\x94\x58\x04") or content[0] & 0x80
                assert base64.b64decode(check) == crc24(content).to_bytes(3)
            elif value.startswith("LS0t"):
                text = content_of(value).decode()
                assert re.match(r"-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----\n", text)
                wrapped += 1
            elif re.search(r"BEGIN [A-Z ]*PRIVATE", before) and "Proc-Type" not in before:
                content = content_of(value)
                is_openssh = content.startswith(b"openssh-key-v1\0")
                assert is_openssh or der_end(content) == len(content), case.text
                marked += 1
    assert marked > 100
    assert wrapped >= 5


@every_set
def test_passwords_in_addresses_end_at_the_host_and_decode(name: str) -> None:
    checked = 0
    for case in cases(name, "connection"):
        for start, end in case.values:
            if case.text[end : end + 1] == "@" and case.text[start - 1] == ":":
                value = case.text[start:end]
                assert re.fullmatch(r"(?:[\w.~!*$^+-]|%[0-9A-F]{2})+", value), case.text
                assert "%" not in unquote(value)
                checked += 1
    assert checked > 100


@every_set
def test_credentials_of_the_basic_scheme_are_a_user_and_a_password(name: str) -> None:
    logins = [
        base64.b64decode(case.text[start:end]).decode()
        for case in cases(name, "bearer")
        for start, end in case.values
        if case.text[:start].endswith("Basic ")
    ]
    assert len(logins) > 5
    assert all(re.fullmatch(r"[^:]+:.{6,}", login) for login in logins)


@every_set
def test_parts_of_a_broken_token_make_one_token(name: str) -> None:
    forms = set()
    for case in cases(name, "broken_token")[:200]:
        parts = values_of(case)
        whole = "".join(parts)
        assert len(parts) > 1, case.text
        assert all(len(part) >= 12 for part in parts)
        assert whole not in case.text
        if whole.startswith("eyJ"):
            check_web_token(whole)
        forms.add(re.split(r"[^A-Za-z]", whole)[0][:4])
    assert {"eyJh", "ghp"} <= forms
    assert len(forms) >= 12
