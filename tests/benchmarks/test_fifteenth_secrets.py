"""Secrets of the fifteenth blind set: templates, labels, checksums and forms. No rule runs here."""

from __future__ import annotations

import base64
import json
import re
import zlib
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.benchmarks.blind_set import BlindSet, Scene, load, slots_of, values_of
from tests.benchmarks.blind_standards import SIGNATURES, decode_segment
from tests.benchmarks.fifteenth_blind.secrets import MAKERS
from tests.benchmarks.redaction_cases import Case

SEED = 42_001
KINDS = ("connection", "password", "bearer", "broken_token")
TEXTS = Path(__file__).with_name("fifteenth_blind") / "texts"
BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PLACEHOLDER = re.compile(
    r"change|your|example|placeholder|password|secret$|xxxx|\*\*\*|<|>|[{}$]|\b(test|todo)\b", re.I
)
JWT = re.compile(r"eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+")
CHECKED = re.compile(r"(?<!\w)(?:gh[pos]|npm)_([0-9A-Za-z]{36})(?!\w)")
every_kind = pytest.mark.parametrize("kind", KINDS)


def no_name(kind: str, scene: Scene) -> None:
    """The set has no carriers, so nothing is named."""


SET = BlindSet("fifteenth", TEXTS, MAKERS, name_secret=no_name, name_other=no_name, in_turn=True)


@cache
def cases(kind: str) -> tuple[Case, ...]:
    """200 positives, then 200 hard negatives."""
    return tuple(SET.make_cases(kind, SEED))


def values(kind: str) -> list[str]:
    return [value for case in cases(kind) for value in values_of(case)]


def assert_is_web_token(token: str) -> None:
    head, claims, signature = map(decode_segment, token.split("."))
    assert json.loads(claims)["exp"] > json.loads(claims)["iat"]
    assert len(signature) == SIGNATURES[json.loads(head)["alg"]]


def checksum_is_right(body: str) -> bool:
    """Whether the last six of 36 characters are the CRC-32 of the others in base 62."""
    number = 0
    for digit in body[30:]:
        number = number * 62 + BASE62.index(digit)
    return number == zlib.crc32(body[:30].encode())


@every_kind
def test_a_kind_has_140_different_templates_of_each_sign(kind: str) -> None:
    templates = load(kind, TEXTS)
    for sign in "+-":
        texts = [part.text for part in templates if part.sign == sign]
        assert len(set(texts)) == len(texts) >= 140
    assert {part.sign for part in templates} == {"+", "-"}
    assert {(part.register, part.weight) for part in templates} == {("any", 1.0)}


@every_kind
def test_templates_name_makers_of_the_group_and_label_positives_alone(kind: str) -> None:
    assert all(name.startswith("secrets_") for name in MAKERS)
    for template in load(kind, TEXTS):
        slots = slots_of(template.text)
        assert {name for name, _ in slots} <= set(MAKERS), template.text
        assert any(marked for _, marked in slots) == (template.sign == "+"), template.text
        assert len(template.text.splitlines()) <= 8, template.text


@every_kind
def test_200_texts_of_each_sign_are_drawn_and_their_labels_lie_right(kind: str) -> None:
    assert len({case.text for case in cases(kind)}) == 400
    assert [bool(case.values) for case in cases(kind)] == [True] * 200 + [False] * 200
    for case in cases(kind):
        ends = [0, *(end for _, end in case.values)]
        assert all(end <= start for end, (start, _) in zip(ends, case.values, strict=False))
        assert ends[-1] <= len(case.text)
        assert not re.search(r"<<!?secrets_|[\x02\x03]", case.text), case.text
        assert all(re.fullmatch(r"[!-~]{6,}", value) for value in values_of(case)), case.text


@every_kind
def test_no_value_is_a_placeholder_or_stands_in_a_negative(kind: str) -> None:
    negatives = [case.text for case in cases(kind) if not case.values]
    for value in values(kind):
        assert not PLACEHOLDER.search(value), value
        assert not [text for text in negatives if value in text]


@every_kind
def test_another_seed_gives_other_texts(kind: str) -> None:
    assert tuple(SET.make_cases(kind, SEED)) == cases(kind)
    assert tuple(SET.make_cases(kind, SEED + 1)) != cases(kind)


def test_passwords_in_addresses_end_at_the_host_and_decode() -> None:
    checked = 0
    for case in cases("connection"):
        for start, end in case.values:
            value = case.text[start:end]
            if case.text[end : end + 1] == "@" and case.text[start - 1] == ":":
                assert re.fullmatch(r"(?:[\w.~!*-]|%[0-9A-F]{2})+", value), case.text
                assert "%" not in unquote(value)
                checked += 1
    assert checked > 120


@every_kind
def test_labels_start_and_end_at_the_edges_of_their_tokens(kind: str) -> None:
    for case in cases(kind):
        for start, end in case.values:
            before, after = case.text[:start], case.text[end:]
            # `mysql -p`, quoted-printable and percent-encoding put a letter or digit in front.
            assert re.search(r"(?: -p|=3D|%20|[\W_])\Z", before), case.text
            assert re.match(r"\W|\Z", after), case.text


def test_web_tokens_of_headers_decode_and_their_checksums_are_right() -> None:
    tokens = [value for value in values("bearer") if value.startswith("eyJ")]
    for token in tokens:
        assert_is_web_token(token)
    assert len(tokens) > 50
    for value in values("bearer") + values("connection"):
        if match := CHECKED.fullmatch(value):
            assert checksum_is_right(match[1]), value


def test_credentials_of_the_basic_scheme_are_a_user_and_a_password() -> None:
    checked = 0
    for case in cases("bearer"):
        for start, end in case.values:
            if case.text[:start].endswith("Basic "):
                user, _, password = base64.b64decode(case.text[start:end]).decode().partition(":")
                assert user
                assert len(password) >= 6
                checked += 1
    assert checked > 5


def test_parts_of_a_broken_token_make_one_token() -> None:
    forms = set()
    for case in cases("broken_token"):
        parts = values_of(case)
        whole = "".join(parts)
        assert not case.values or len(parts) > 1, case.text
        assert all(len(part) >= 12 for part in parts)
        assert not case.values or whole not in case.text
        if whole.startswith("eyJ"):
            assert_is_web_token(whole)
        elif match := CHECKED.fullmatch(whole):
            assert checksum_is_right(match[1]), whole
        forms.add(re.match(r"[A-Za-z]*", whole)[0][:4])  # type: ignore[index]
    assert {"eyJh", "ghp", "npm"} <= forms
    assert len(forms) >= 25


@every_kind
def test_no_negative_holds_a_signed_token_or_one_with_a_right_checksum(kind: str) -> None:
    for case in cases(kind):
        if not case.values:
            assert not JWT.search(case.text)
            assert not any(checksum_is_right(match[1]) for match in CHECKED.finditer(case.text))
