"""Account numbers, web tokens, private keys and service keys of the sixteenth blind set.

Checksums of account numbers are python-stdnum's word. No rule runs here.
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

from tests.benchmarks.blind_set import BlindSet, load, values_of
from tests.benchmarks.blind_standards import (
    SIGNATURES,
    crc24,
    crc_base62,
    decode_segment,
    der_end,
)
from tests.benchmarks.redaction_cases import Case
from tests.benchmarks.sixteenth_blind.keys import MAKERS
from tests.benchmarks.sixteenth_blind.keys_words import FORMS, PUBLISHED_IBANS

TEXTS = Path(__file__).parent / "sixteenth_blind" / "texts"
SEED = 45001
KINDS = ("iban", "jwt", "private_key", "provider_key")
SET = BlindSet("sixteenth", TEXTS, MAKERS, name_secret=lambda *_: None, name_other=lambda *_: None)
every_kind = pytest.mark.parametrize("kind", KINDS)
# The tokens of jwt.io and of RFC 7519 are among the hard negatives, by the start of their claims.
PUBLISHED_TOKENS = ("eyJzdWIiOiIxMjM0NTY3ODkwIiwi", "eyJpc3MiOiJqb2UiLA0KICJleHAi")
PLACEHOLDER = re.compile(r"xxxxx|XXXXX|0{7}|1234567|EXAMPLE|example|YOUR_|changeme|\.\.\.")


@cache
def cases(kind: str) -> tuple[Case, ...]:
    """The texts of a kind, positives first."""
    return tuple(SET.make_cases(kind, SEED))


def negatives(kind: str) -> list[str]:
    return [case.text for case in cases(kind) if not case.values]


def all_values(kind: str) -> list[str]:
    return [value for case in cases(kind) for value in values_of(case)]


@every_kind
def test_each_sign_has_150_templates_of_three_weights(kind: str) -> None:
    for sign in "+-":
        templates = [one for one in load(kind, TEXTS) if one.sign == sign]
        assert len({one.text for one in templates}) == len(templates) >= 150
        weights = [one.weight for one in templates]
        assert {one.register for one in templates} == {"any"}
        assert set(weights) == {1.0, 0.5, 0.2}
        assert 40 <= weights.count(1.0) <= 50


@every_kind
def test_values_are_labelled_whole_and_are_no_placeholders(kind: str) -> None:
    drawn = cases(kind)
    assert [bool(case.values) for case in drawn] == [True] * 200 + [False] * 200
    for case in drawn:
        assert "<<keys_" not in case.text
        for start, end in case.values:
            value = case.text[start:end]
            assert value == value.strip()
            if kind != "iban" and len(value) < 500:
                assert not PLACEHOLDER.search(value), value


def test_account_numbers_are_right() -> None:
    for value in all_values("iban"):
        assert iban.is_valid(re.sub(r"[\s.-]", "", value), check_country=True), value


@every_kind
def test_negatives_hold_no_account_card_or_public_address_but_published_examples(kind: str) -> None:
    for text in negatives(kind):
        for run in re.findall(r"\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]){11,30}", text):
            compact = re.sub(r"[ -]", "", run)
            for end in range(15, len(compact) + 1):
                is_right = iban.is_valid(compact[:end], check_country=False)
                assert not is_right or compact[:end] in PUBLISHED_IBANS, text
            text = text.replace(run, "")
        for digits in re.findall(r"(?<![\w.])[3-6](?:[ -]?\d){14,15}(?![\w-])", text):
            assert digits.startswith("35") or not luhn.is_valid(re.sub(r"\D", "", digits)), text
        for address in re.findall(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])", text):
            assert not ipaddress.ip_address(address).is_global, text


def test_web_tokens_decode_and_negatives_hold_published_ones_alone() -> None:
    for value in all_values("jwt"):
        head, claims, signature = map(decode_segment, value.split("."))
        assert json.loads(claims)["exp"] > json.loads(claims)["iat"]
        assert len(signature) == SIGNATURES[json.loads(head)["alg"]]
    for text in negatives("jwt"):
        for match in re.finditer(r"eyJ[\w-]{10,}\.(eyJ[\w-]{10,})\.[\w-]{10,}", text):
            assert match[1].startswith(PUBLISHED_TOKENS), text


def _without_joints(value: str) -> str:
    """The base64 of a key without what its file puts between two lines."""
    lines = value.split("\n")
    for mark in (">", "#", "+", "-", " *", "//"):
        if len(lines) > 2 and all(line.startswith(mark) for line in lines[1:]):
            value = "".join([lines[0], *(line.removeprefix(mark) for line in lines[1:])])
    value = re.sub(r"""["'](\s[+.&\\] ?_?|,)?\s*\n\s*["']|<br>|\\+[rn]""", "", value)
    return re.sub(r"[\s\\]", "", value)


def test_private_keys_are_whole_between_their_lines() -> None:
    checked = 0
    for case in cases("private_key"):
        for start, end in case.values:
            head = re.search(r"BEGIN ([A-Z ]*PRIVATE KEY[A-Z ]*)-----", case.text[:start])
            body = _without_joints(case.text[start:end])
            if head and head[1] == "PGP PRIVATE KEY BLOCK":
                content = base64.b64decode(body[:-5], validate=True)
                assert base64.b64decode(body[-4:]) == crc24(content).to_bytes(3, "big")
                continue
            if body.startswith("AGE-SECRET-KEY-1"):
                continue
            content = base64.b64decode(body, validate=True)
            if head and "Proc-Type" not in case.text:
                ssh = content.startswith(b"openssh-key-v1\0")
                assert ssh or der_end(content) == len(content), case.text
                checked += 1
    assert checked > 100


def test_keys_are_of_40_services_and_have_their_checksums() -> None:
    used = {
        match[1]
        for template in load("provider_key", TEXTS)
        for match in re.finditer(r"<<!keys_key:(\w+)", template.text)
    }
    assert used <= set(FORMS)
    assert len(used) >= 40
    tokens = [one for one in all_values("provider_key") if re.match(r"gh[posu]_|npm_", one)]
    assert tokens
    assert all(crc_base62(token[4:34]) == token[34:] for token in tokens)
