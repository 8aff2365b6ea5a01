"""The templates of secrets of the sixteenth blind set: counts, weights, labels, forms of values.

No rule runs here. Published checksums are those of `blind_standards.py`, which has its own test.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.benchmarks.blind_set import BlindSet, Scene, load, slots_of, values_of
from tests.benchmarks.blind_standards import SIGNATURES, crc_base62, decode_segment
from tests.benchmarks.redaction_cases import Case
from tests.benchmarks.sixteenth_blind.secrets import MAKERS, SMALLEST_PIECE, TOKENS

SEED = 45001
KINDS = ("connection", "password", "bearer", "broken_token")
TEXTS = Path(__file__).with_name("sixteenth_blind") / "texts"


def name_nothing(_kind: str, _scene: Scene) -> None:
    """Do nothing, as no carrier needs a name."""


SET = BlindSet("sixteenth", TEXTS, MAKERS, name_secret=name_nothing, name_other=name_nothing)
every_kind = pytest.mark.parametrize("kind", KINDS)


@cache
def cases(kind: str) -> tuple[Case, ...]:
    """200 positives and 200 hard negatives of a kind."""
    return tuple(SET.make_cases(kind, SEED))


@every_kind
def test_each_sign_has_150_different_templates_of_three_weights(kind: str) -> None:
    for sign in "+-":
        templates = [one for one in load(kind, TEXTS) if one.sign == sign]
        assert len({" ".join(one.text.split()) for one in templates}) == len(templates) >= 150
        weights = [one.weight for one in templates]
        assert set(weights) == {1.0, 0.5, 0.2}
        assert weights.count(1.0) >= 40
        assert weights.count(0.5) >= 45
    assert {one.sign + one.register for one in load(kind, TEXTS)} == {"+any", "-any"}


@every_kind
def test_templates_use_makers_of_this_file_and_label_positives_alone(kind: str) -> None:
    for template in load(kind, TEXTS):
        slots = slots_of(template.text)
        assert {name for name, _ in slots} <= set(MAKERS), template.text
        assert any(is_labelled for _, is_labelled in slots) == (template.sign == "+")


@every_kind
def test_labels_lie_apart_inside_the_text(kind: str) -> None:
    assert [bool(case.values) for case in cases(kind)] == [True] * 200 + [False] * 200
    for case in cases(kind):
        ends = [0, *(end for _, end in case.values)]
        assert all(end <= start for end, (start, _) in zip(ends, case.values, strict=False))
        assert ends[-1] <= len(case.text)
        assert all(value and value == value.strip() for value in values_of(case))
        assert not re.search(r"[\x02\x03]|<<!?secrets", case.text), case.text


@every_kind
def test_no_value_is_a_placeholder_or_stands_in_a_negative(kind: str) -> None:
    values = {value for case in cases(kind) for value in values_of(case)}
    placeholder = re.compile(
        r"(?i)passw|secret[^_]|example|changeme|xxxx|\*\*\*\*|your|[<>{}]|dummy"
    )
    assert not [value for value in values if placeholder.search(value)]
    negatives = [case for case in cases(kind) if not case.values]
    assert not [case for case in negatives if any(value in case.text for value in values)]


@every_kind
def test_no_text_holds_a_public_address(kind: str) -> None:
    for case in cases(kind):
        for match in re.finditer(r"(?<![\w.-])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]*\d)", case.text):
            assert not ipaddress.ip_address(match[0]).is_global, case.text


def check_jwt(token: str) -> None:
    head, claims, signature = map(decode_segment, token.split("."))
    assert json.loads(claims)["exp"] > json.loads(claims)["iat"]
    assert len(signature) == SIGNATURES[json.loads(head)["alg"]]


LENGTHS = {
    "glpat-": 26, "SG.": 69, "AIza": 39, "dop_v1_": 71, "hf_": 37, "dckr_pat_": 36, "shpat_": 38,
    "github_pat_": 93, "sk-ant-api03-": 108, "PMAK-": 64, "glsa_": 46, "lin_api_": 48,
}  # fmt: skip
"""Characters of tokens with these prefixes, as the scanners of secrets publish them."""


def check_form(token: str) -> str:
    """Check what is known of a token's form, and return its prefix."""
    if token.startswith("eyJ"):
        check_jwt(token)
        return "eyJ"
    if re.match(r"gh[pos]_|npm_", token):
        assert crc_base62(token[4:34]) == token[34:]
        return token[:4]
    prefix = next((one for one in LENGTHS if token.startswith(one)), "")
    assert len(token) == LENGTHS.get(prefix, len(token)), token
    return prefix


def test_pieces_are_long_and_make_whole_tokens() -> None:
    prefixes = set[str]()
    for case in cases("broken_token"):
        values = values_of(case)
        assert all(len(value) >= SMALLEST_PIECE for value in values), case.text
        if case.values:
            prefixes.add(check_form("".join(values)))
    assert {"eyJ", "ghp_"} <= prefixes


@pytest.mark.parametrize("form", TOKENS)
def test_every_form_of_a_token_has_its_length_and_checksum(form: str) -> None:
    for seed in range(20):
        check_form(TOKENS[form](random.Random(seed)))


@pytest.mark.parametrize("kind", ["bearer", "connection"])
def test_whole_tokens_have_their_checksums(kind: str) -> None:
    prefixes = {check_form(value) for case in cases(kind) for value in values_of(case)}
    assert "ghp_" in prefixes or "eyJ" in prefixes


def test_basic_credentials_decode_to_a_user_and_a_password() -> None:
    make: Callable[[Scene, str], str] = MAKERS["secrets_basic"]
    for seed in range(50):
        user, _, password = (
            base64.b64decode(make(Scene(random.Random(seed)), ""), validate=True)
            .decode()
            .partition(":")
        )
        assert user
        assert len(password) >= 6
