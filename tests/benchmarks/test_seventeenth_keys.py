"""Accounts, web tokens and keys of the seventeenth blind set: labels and checksums. No rule runs.

The oracles are python-stdnum for accounts and cards, `base64` and `json` for tokens and keys.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import re
from functools import cache
from pathlib import Path

import pytest
from stdnum import iban, luhn

from tests.benchmarks.blind_set import BlindSet, load, slots_of, values_of
from tests.benchmarks.blind_standards import SIGNATURES, crc24, crc_base62, decode_segment, der_end
from tests.benchmarks.redaction_cases import Case
from tests.benchmarks.seventeenth_blind.keys import MAKERS

SEED = 48001
OWN_KINDS = ("iban", "jwt", "private_key", "provider_key")
every_kind = pytest.mark.parametrize("kind", OWN_KINDS)
TEXTS = Path(__file__).with_name("seventeenth_blind") / "texts"
SET = BlindSet("seventeenth", TEXTS, MAKERS, lambda kind, scene: None, lambda kind, scene: None)


@cache
def cases(kind: str) -> list[Case]:
    """200 positives, then 200 hard negatives."""
    return SET.make_cases(kind, SEED)


def negatives(kind: str) -> list[Case]:
    return cases(kind)[200:]


def all_values(kind: str) -> list[str]:
    return [value for case in cases(kind) for value in values_of(case)]


@every_kind
def test_a_kind_has_150_templates_a_sign_of_three_weights(kind: str) -> None:
    for sign in "+-":
        templates = [one for one in load(kind, SET.texts) if one.sign == sign]
        assert len({one.text.strip() for one in templates} - {""}) >= 150
        assert {one.register for one in templates} == {"any"}
        assert {one.weight for one in templates} == {1, 0.5, 0.2}
        for one in templates:
            assert any(labelled for _, labelled in slots_of(one.text)) == (sign == "+"), one.text


@every_kind
def test_labels_are_whole_values_inside_their_texts(kind: str) -> None:
    assert len({case.text for case in cases(kind)}) == 400
    assert [bool(case.values) for case in cases(kind)] == [True] * 200 + [False] * 200
    for case in cases(kind)[:200]:
        assert not re.search(r"[\x02\x03]|<<!?\w+(:[^<>]*)?(@\d)?>>|\{[hHdaluUtbs]\d", case.text)
        for start, end in case.values:
            assert case.text[start:end] == case.text[start:end].strip()
            joined = re.search(r"(\\[nr]|%0A|\?31|/bot)\Z", case.text[:start])
            assert joined or not re.match(r"[A-Za-z0-9]", case.text[start - 1 : start]), case.text
            assert not re.match(r"[A-Za-z0-9]", case.text[end : end + 1]), case.text


@every_kind
def test_values_are_no_placeholders(kind: str) -> None:
    for value in all_values(kind):
        assert not re.search(r"(?i)example|xxxxxx|your[_-]|placeholder|\.\.\.|\*\*", value), value
        assert len(set(value)) >= 8
    text = "\n".join(case.text for case in negatives(kind))
    assert not [value for value in all_values(kind) if value in text]


def test_accounts_are_right_and_none_in_negatives_but_published_ones() -> None:
    assert all(iban.is_valid(value, check_country=False) for value in all_values("iban"))
    assert len({value[:2].upper() for value in all_values("iban")}) >= 20
    written = {one.text for one in load("iban", SET.texts) if one.sign == "-"}
    for case in negatives("iban"):
        for run in re.findall(r"\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]){11,30}", case.text):
            compact = re.sub(r"[ -]", "", run)
            for end in range(15, len(compact) + 1):
                # a right number may be a published example, which its template writes out
                right = iban.is_valid(compact[:end], check_country=False)
                assert not right or case.text in written, case.text


@every_kind
def test_negatives_hold_no_card_and_no_public_address(kind: str) -> None:
    for case in negatives(kind):
        for run in re.findall(r"(?<![\w.+/-])[3-6](?:[ -]?\d){14,15}(?![\w+/-])", case.text):
            assert not luhn.is_valid(re.sub(r"\D", "", run)), case.text
        for run in re.findall(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])", case.text):
            assert not ipaddress.ip_address(run).is_global, case.text


def test_web_tokens_decode_and_have_the_signature_of_their_algorithm() -> None:
    for value in all_values("jwt"):
        head, claims, signature = map(decode_segment, value.split("."))
        assert json.loads(claims)["exp"] > json.loads(claims)["iat"]
        assert len(signature) == SIGNATURES[json.loads(head)["alg"]]
    published = re.compile(r"jwt\.io|RFC 7519")
    signed = re.compile(r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}")
    for case in negatives("jwt"):
        assert not signed.search(case.text) or published.search(case.text)


def _without_joints(value: str) -> str:
    """The base64 of a key whose lines are joined by breaks, escapes, quotes or marks of a diff."""
    lines = re.split(r'(?:\\+[rn])+(?:" \+)?\\?\n?|\r?\n|%0A', value)
    for mark in ("+", "-", "> ", "# "):
        if len(lines) > 1 and all(line.startswith(mark) for line in lines[1:]):
            lines[1:] = [line.removeprefix(mark) for line in lines[1:]]
    return re.sub(r"[\s\"]", "", "".join(lines))


def test_private_keys_are_whole_between_their_lines() -> None:
    kinds = set()
    for body in map(_without_joints, all_values("private_key")):
        if armor := re.fullmatch(r"([A-Za-z0-9+/]+=*)=(.{4})", body):
            raw = base64.b64decode(armor[1], validate=True)
            assert base64.b64decode(armor[2]) == crc24(raw).to_bytes(3, "big")
            kinds.add("pgp")
        elif not body.startswith("AGE-SECRET-KEY-1"):
            raw = base64.b64decode(body, validate=True)
            kinds.add(raw[:2])
            # DER of a whole key; the bytes of other keys are random
            assert not re.match(rb"0[\x82\x81]", raw) or der_end(raw) == len(raw)
    assert kinds >= {"pgp", b"0\x82", b"0\x81", b"op", b"--"}


def test_tokens_with_a_checksum_have_the_right_one() -> None:
    marked = [value for value in all_values("provider_key") if re.match(r"gh[opsur]_|npm_", value)]
    assert marked
    assert all(crc_base62(value[4:34]) == value[34:] for value in marked)


def test_keys_are_of_40_services() -> None:
    slots = {
        match
        for one in load("provider_key", SET.texts)
        for match in re.findall(r"<<!keys_\w+:([^<>]*?)(?=\{|>>)", one.text)
    }
    assert len(slots) >= 40, slots
