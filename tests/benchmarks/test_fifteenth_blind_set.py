"""The fifteenth blind set: as broad as it says, and values that its forms want. No rule runs here.

What a number is worth is the word of `phonenumbers`, `ipaddress` and python-stdnum; what holds of
every set is in `test_blind_sets.py` and `test_blind_values.py`.
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
from tests.benchmarks.blind_standards import crc_base62, decode_segment, der_end
from tests.benchmarks.fifteenth_blind import SET
from tests.benchmarks.fifteenth_blind.keys import SIGNATURE_BYTES
from tests.benchmarks.fifteenth_blind.keys_material import JOINTS
from tests.benchmarks.fifteenth_blind.keys_words import TOKENS
from tests.benchmarks.fifteenth_blind.personal import TEST_CARDS
from tests.benchmarks.redaction_cases import Case
from tests.benchmarks.splits import FIFTEENTH_BLIND_SEED

PUBLISHED_IBANS = {
    "DE89370400440532013000",
    "GB82WEST12345698765432",
    "GB29NWBK60161331926819",
    "CH9300762011623852957",
    "FR1420041010050500013M02606",
    "NL91ABNA0417164300",
}
"""Examples of the registry of IBANs and of articles about it."""
PUBLISHED_JWTS = ("SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r")
"""Signatures of the debugger's default token and of RFC 7515, A.1."""

PLACEHOLDER = re.compile(r"(?i)example|placeholder|x{6}|\*\*\*|\.\.\.|0{12}|123456789|[{}]")
CHECKED = re.compile(r"(?<!\w)(?:gh[opsu]|npm)_([0-9A-Za-z]{30})([0-9A-Za-z]{6})(?!\w)")
PEM_HEAD = re.compile(r"BEGIN (RSA |EC |DSA |ENCRYPTED |OPENSSH )?PRIVATE KEY---")
JOINT = re.compile(r'(?:\\+[nr]|\\$|&#10;|<br>|[\s">+#*/,.\'\\-])*')
every_kind = pytest.mark.parametrize("kind", KINDS)


@cache
def cases(kind: str) -> tuple[Case, ...]:
    """200 positives, then 200 hard negatives."""
    return tuple(SET.make_cases(kind, FIFTEENTH_BLIND_SEED))


def values(kind: str) -> list[str]:
    return [value for case in cases(kind) for value in values_of(case)]


def negatives(kind: str) -> list[str]:
    return [case.text for case in cases(kind) if not case.values]


@every_kind
def test_a_kind_has_140_different_templates_of_each_sign_and_weight_1(kind: str) -> None:
    templates = load(kind, SET.texts)
    for sign in "+-":
        texts = [one.text for one in templates if one.sign == sign]
        assert len(set(texts)) == len(texts) >= 140
    assert {(one.register, one.weight) for one in templates} == {("any", 1.0)}


@pytest.mark.parametrize(
    "kind", [one for one in KINDS if one not in ("email", "phone", "ip", "card")]
)
def test_values_are_no_placeholders_and_end_where_their_token_does(kind: str) -> None:
    assert not [value for value in values(kind) if PLACEHOLDER.search(value)]
    for case in cases(kind):
        for start, end in case.values:
            # `mysql -p`, quoted-printable, percent-encoding, `\n` and the address of a bot stand
            # right before, the currency of MT940 right after.
            assert re.search(r"(?: -p|=3D|%20|\\n|/bot|[\W_])\Z|\A\Z", case.text[:start]), case.text
            assert re.match(r"\W|EUR\n|\Z", case.text[end:]), case.text


def test_phone_numbers_are_valid_where_they_name_their_country() -> None:
    international = [value for value in values("phone") if value.startswith("+")]
    assert len(international) > 40
    for value in international:
        assert phonenumbers.is_valid_number(phonenumbers.parse(value.replace("(0)", ""))), value


def test_an_address_beside_a_public_one_is_none() -> None:
    for case in cases("ip")[:200]:
        numbers = re.findall(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?!\d)", case.text)
        public = [number for number in numbers if ipaddress.ip_address(number).is_global]
        assert public == [value for value in values_of(case) if "." in value], case.text


def test_no_negative_holds_a_card_but_a_published_test_number() -> None:
    like_card = re.compile(r"(?<![\w.])(?:2[2-7]|[3-6]\d)(?:[ -]?\d){11,17}(?![\w-])")
    published = {number for numbers in TEST_CARDS.values() for number in numbers}
    assert not published & {re.sub(r"\D", "", value) for value in values("card")}
    for text in negatives("card"):
        for digits in (re.sub(r"\D", "", run) for run in like_card.findall(text)):
            if luhn.is_valid(digits) and len(digits) in (14, 15, 16):
                assert digits in published or imei.is_valid(digits), text


def test_ibans_are_those_of_more_than_40_countries() -> None:
    accounts = [value.replace(".", "") for value in values("iban")]
    assert all(iban.is_valid(one, check_country=True) for one in accounts)
    assert len({one[:2].upper() for one in accounts}) > 40
    for text in negatives("iban"):
        for run in re.findall(r"\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]){11,30}", text):
            compact = re.sub(r"[ -]", "", run)
            for end in range(15, len(compact) + 1):
                is_right = iban.is_valid(compact[:end], check_country=False)
                assert not is_right or compact[:end] in PUBLISHED_IBANS, text


def assert_is_web_token(token: str) -> None:
    head, claims, signature = map(decode_segment, token.split("."))
    assert json.loads(claims).get("exp", 2e9) > json.loads(claims)["iat"]
    assert len(signature) == SIGNATURE_BYTES[json.loads(head)["alg"]]


def test_web_tokens_decode_and_negatives_hold_published_ones_alone() -> None:
    for token in values("jwt"):
        assert_is_web_token(token)
    for token in values("bearer"):
        if token.startswith("eyJ"):
            assert_is_web_token(token)
    signed = re.compile(r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.([\w-]{10,})")
    for kind in ("jwt", "bearer", "broken_token"):
        for text in negatives(kind):
            assert all(one.startswith(PUBLISHED_JWTS) for one in signed.findall(text)), text


def test_checksums_of_tokens_are_right_and_those_of_negatives_are_not() -> None:
    tokens = [CHECKED.fullmatch(value) for value in values("provider_key") + values("bearer")]
    checked = [match for match in tokens if match]
    assert len(checked) > 8
    assert all(crc_base62(match[1]) == match[2] for match in checked)
    for kind in ("bearer", "broken_token"):
        for text in negatives(kind):
            assert not any(crc_base62(match[1]) == match[2] for match in CHECKED.finditer(text))


def test_keys_are_of_more_than_40_services() -> None:
    texts = [template.text for template in load("provider_key", SET.texts)]
    slots = [slot for text in texts for slot in re.findall(r"<<!\w+:(\w+)", text)]
    assert len({slot.split("_")[0] for slot in slots}) > 40
    assert set(TOKENS) <= set(slots)


def content_of(value: str) -> bytes:
    """The decoded base64 of a key, whatever stands between its lines."""
    for joint in sorted(JOINTS.values(), key=len, reverse=True):
        lines = value.split(joint) if joint else [value]
        if all(re.fullmatch(r"[A-Za-z0-9+/]+=*", line) for line in lines):
            return base64.b64decode("".join(lines), validate=True)
    raise ValueError(f"not base64 in lines: {value[:200]!r}")


def test_private_keys_are_whole_in_the_form_that_they_have() -> None:
    marked = wrapped = 0
    for case in cases("private_key"):
        for start, end in case.values:
            value = case.text[start:end]
            if PEM_HEAD.search(case.text[:start]):
                joint = case.text[end:].partition("-----END")[0]
                assert JOINT.fullmatch(joint), joint
                content = content_of(value)
                assert content.startswith(b"openssh-key-v1\0") or der_end(content) == len(content)
                marked += 1
            elif value.startswith("LS0t"):
                text = content_of(value).decode()
                assert re.match(r"-----BEGIN [A-Z ]*PRIVATE KEY-----\n", text)
                assert text.endswith(" PRIVATE KEY-----\n")
                wrapped += 1
            elif value.startswith("AGE"):
                assert re.fullmatch(r"AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}", value)
            elif "PGP PRIVATE KEY BLOCK" in case.text:
                body, _, check = re.sub(r"\\n|\s", "", value).rpartition("=")
                assert base64.b64decode(body).startswith(b"\x94\x58\x04")
                assert len(base64.b64decode(check)) == 3
    assert marked > 120
    assert wrapped >= 10
    secret = re.compile(
        r"PRIVATE KEY( BLOCK)?-----[\s\\n]*[A-Za-z0-9+/]{30}|AGE-SECRET-KEY-1\w{50}"
        r"|Private-Lines|PrivateKey ?= ?[A-Za-z0-9+/]{40}"
    )
    assert not [text for text in negatives("private_key") if secret.search(text)]


def test_passwords_in_addresses_end_at_the_host_and_decode() -> None:
    checked = 0
    for case in cases("connection"):
        for start, end in case.values:
            if case.text[end : end + 1] == "@" and case.text[start - 1] == ":":
                value = case.text[start:end]
                assert re.fullmatch(r"(?:[\w.~!*-]|%[0-9A-F]{2})+", value), case.text
                assert "%" not in unquote(value)
                checked += 1
    assert checked > 120


def test_credentials_of_the_basic_scheme_are_a_user_and_a_password() -> None:
    logins = [
        base64.b64decode(case.text[start:end]).decode()
        for case in cases("bearer")
        for start, end in case.values
        if case.text[:start].endswith("Basic ")
    ]
    assert len(logins) > 5
    assert all(re.fullmatch(r"[^:]+:.{6,}", login) for login in logins)


def test_parts_of_a_broken_token_make_one_token() -> None:
    forms = set()
    for case in cases("broken_token")[:200]:
        parts = values_of(case)
        whole = "".join(parts)
        assert len(parts) > 1, case.text
        assert all(len(part) >= 12 for part in parts)
        assert whole not in case.text
        if whole.startswith("eyJ"):
            assert_is_web_token(whole)
        elif match := CHECKED.fullmatch(whole):
            assert crc_base62(match[1]) == match[2]
        forms.add(re.split(r"[^A-Za-z]", whole)[0][:4])
    assert {"eyJh", "ghp", "npm"} <= forms
    assert len(forms) >= 25
