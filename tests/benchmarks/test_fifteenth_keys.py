"""What holds of the account numbers, web tokens and keys of the fifteenth blind set.

No rule runs here. Whether an account's number is right is python-stdnum's word; the encodings of
tokens and keys are decoded by the standard library.
"""

from __future__ import annotations

import base64
import json
import re
from functools import cache
from pathlib import Path

import pytest
from stdnum import iban

from tests.benchmarks import fifteenth_blind
from tests.benchmarks.blind_set import BlindSet, load, slots_of, values_of
from tests.benchmarks.blind_standards import crc_base62, decode_segment, der_end
from tests.benchmarks.fifteenth_blind.keys import MAKERS, SIGNATURE_BYTES
from tests.benchmarks.fifteenth_blind.keys_material import JOINTS
from tests.benchmarks.fifteenth_blind.keys_words import TOKENS
from tests.benchmarks.redaction_cases import Case

TEXTS = Path(fifteenth_blind.__file__).with_name("texts")
SEED = 42001
KINDS = ("iban", "jwt", "private_key", "provider_key")
SET = BlindSet(
    "fifteenth",
    TEXTS,
    MAKERS,
    name_secret=lambda kind, scene: None,
    name_other=lambda kind, scene: None,
    in_turn=True,
)
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

WORD_BEFORE = re.compile(r"(?<!\\)[A-Za-z0-9]\Z")
"""Not the `n` of an escaped line break."""

every_kind = pytest.mark.parametrize("kind", KINDS)


@cache
def cases(kind: str) -> tuple[Case, ...]:
    """200 positives of a kind, then 200 hard negatives."""
    return tuple(SET.make_cases(kind, SEED))


@every_kind
def test_a_kind_has_200_texts_a_sign_of_140_templates(kind: str) -> None:
    assert [bool(case.values) for case in cases(kind)] == [True] * 200 + [False] * 200
    for positive in (True, False):
        templates = SET.templates_of(kind, positive)
        assert len({one.text for one in templates}) == len(templates) >= 140
        assert {(one.register, one.weight) for one in templates} == {("any", 1.0)}


@every_kind
def test_templates_name_known_makers_and_label_positives_alone(kind: str) -> None:
    for template in load(kind, TEXTS):
        slots = slots_of(template.text)
        assert {maker for maker, _ in slots} <= set(MAKERS), template.text
        assert any(marked for _, marked in slots) == (template.sign == "+"), template.text
    assert all(name.startswith("keys_") for name in MAKERS)


@every_kind
def test_labels_lie_apart_without_blanks_or_placeholders(kind: str) -> None:
    for case in cases(kind):
        ends = [0, *(end for _, end in case.values)]
        assert all(end <= start for end, (start, _) in zip(ends, case.values, strict=False))
        assert ends[-1] <= len(case.text)
        assert not re.search(r"[\x02\x03§¤]|<<!?\w+(:[^<>]*)?>>", case.text), case.text
        for value in values_of(case):
            assert value == value.strip()
            assert not re.search(r"(?i)example|x{6}|\*\*|\.\.\.|0{12}|123456789|[{}$]", value)
            assert len(set(value)) > 5


@every_kind
def test_no_letter_or_digit_touches_a_label(kind: str) -> None:
    for case in cases(kind):
        for start, end in case.values:
            before, after = case.text[:start], case.text[end:]
            is_in_a_word = WORD_BEFORE.search(before) or re.match(r"[A-Za-z0-9]", after)
            # the address of Telegram's bots, the account field of MT940
            allowed = before.endswith("/bot") or after.startswith("EUR\n")
            assert allowed or not is_in_a_word, case.text


@every_kind
def test_no_negative_holds_a_value_of_a_positive(kind: str) -> None:
    values = {value for case in cases(kind) for value in values_of(case)}
    negatives = [case.text for case in cases(kind) if not case.values]
    assert not [text for text in negatives for value in values if value in text]


def test_ibans_are_those_of_their_country() -> None:
    seen = set()
    for case in cases("iban"):
        for value in values_of(case):
            assert iban.is_valid(value.replace(".", ""), check_country=True), value
            seen.add(value[:2].upper())
    assert len(seen) > 40


def test_no_negative_holds_an_iban_but_a_published_example() -> None:
    for case in cases("iban")[200:]:
        for run in re.findall(r"\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]){11,30}", case.text):
            compact = re.sub(r"[ -]", "", run)
            for end in range(15, len(compact) + 1):
                is_right = iban.is_valid(compact[:end], check_country=False)
                assert not is_right or compact[:end] in PUBLISHED_IBANS, case.text


def test_jwts_decode_and_have_the_signature_of_their_algorithm() -> None:
    for case in cases("jwt"):
        for value in values_of(case):
            head, claims, signature = map(decode_segment, value.split("."))
            assert json.loads(claims).get("exp", 2e9) > json.loads(claims)["iat"]
            assert len(signature) == SIGNATURE_BYTES[json.loads(head)["alg"]]


def test_no_negative_holds_a_signed_token_but_a_published_example() -> None:
    signed = re.compile(r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.([\w-]{10,})")
    for case in cases("jwt")[200:]:
        for signature in signed.findall(case.text):
            assert signature.startswith(PUBLISHED_JWTS), case.text


PEM_HEAD = re.compile(r"BEGIN (RSA |EC |DSA |ENCRYPTED |OPENSSH )?PRIVATE KEY---")
JOINT = re.compile(r'(?:\\+[nr]|\\$|&#10;|<br>|[\s">+#*/,.\'\\-])*')


def content_of(value: str) -> bytes:
    """The decoded base64 of a key, whatever stands between its lines."""
    for joint in sorted(JOINTS.values(), key=len, reverse=True):
        lines = value.split(joint) if joint else [value]
        if all(re.fullmatch(r"[A-Za-z0-9+/]+=*", line) for line in lines):
            return base64.b64decode("".join(lines), validate=True)
    raise ValueError(f"not base64 in lines: {value[:200]!r}")


def test_private_keys_are_whole_between_their_lines() -> None:
    checked = 0
    for case in cases("private_key"):
        for start, end in case.values:
            value, before = case.text[start:end], case.text[:start]
            head = PEM_HEAD.search(before)
            if not head:
                continue
            assert "-----END" not in value
            joint = case.text[end:].partition("-----END")[0]
            assert JOINT.fullmatch(joint), joint
            content = content_of(value)
            assert content.startswith(b"openssh-key-v1\0") or der_end(content) == len(content)
            checked += 1
    assert checked > 120


def test_other_private_keys_are_base64_of_their_form() -> None:
    checked = 0
    for case in cases("private_key"):
        for value in values_of(case):
            if value.startswith("LS0t"):
                text = content_of(value).decode()
                assert re.match(r"-----BEGIN [A-Z ]*PRIVATE KEY-----\n", text)
                assert text.endswith(" PRIVATE KEY-----\n")
                checked += 1
            elif value.startswith("AGE"):
                assert re.fullmatch(r"AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}", value)
            elif "PGP PRIVATE KEY BLOCK" in case.text:
                body, _, check = re.sub(r"\\n|\s", "", value).rpartition("=")
                assert base64.b64decode(body).startswith(b"\x94\x58\x04")
                assert len(base64.b64decode(check)) == 3
    assert checked >= 10


def test_no_negative_holds_private_key_material() -> None:
    secret = re.compile(
        r"PRIVATE KEY( BLOCK)?-----[\s\\n]*[A-Za-z0-9+/]{30}|AGE-SECRET-KEY-1\w{50}"
        r"|Private-Lines|PrivateKey ?= ?[A-Za-z0-9+/]{40}"
    )
    assert not [case for case in cases("private_key")[200:] if secret.search(case.text)]


def test_provider_keys_are_of_more_than_40_services_and_checked_where_they_can_be() -> None:
    texts = [template.text for template in load("provider_key", TEXTS)]
    slots = [slot for text in texts for slot in re.findall(r"<<!\w+:(\w+)", text)]
    assert len({slot.split("_")[0] for slot in slots}) > 40
    assert set(TOKENS) <= set(slots)
    tokens = [value for case in cases("provider_key") for value in values_of(case)]
    checked = [value for value in tokens if re.match(r"(gh[opsu]|npm)_", value)]
    assert len(checked) > 8
    assert all(crc_base62(value[4:34]) == value[34:] for value in checked)
    assert all(re.fullmatch(r"[\w.:/+=~-]{16,}", value, re.ASCII) for value in tokens)


@every_kind
def test_a_seed_gives_equal_texts_and_another_seed_gives_others(kind: str) -> None:
    assert tuple(SET.make_cases(kind, SEED)) == cases(kind)
    assert tuple(SET.make_cases(kind, SEED + 1)) != cases(kind)
