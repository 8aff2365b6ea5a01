"""The seventeenth set's secrets: labels lie right, values have their forms. No rule runs here."""

from __future__ import annotations

import base64
import ipaddress
import json
import re
from functools import cache
from pathlib import Path

import pytest

from tests.benchmarks.blind_set import BlindSet, Scene, load, slots_of, values_of
from tests.benchmarks.blind_standards import SIGNATURES, crc_base62, decode_segment
from tests.benchmarks.redaction_cases import Case
from tests.benchmarks.seventeenth_blind.secrets import MAKERS, PATTERNS, PIECE

KINDS = ("connection", "password", "bearer", "broken_token")
SEED = 48001
TEXTS = Path(__file__).with_name("seventeenth_blind") / "texts"
PLACEHOLDER = re.compile(r"x{4}|\*{3}|your|example|changeme|placeholder|[<>{}\s]", re.IGNORECASE)
every_kind = pytest.mark.parametrize("kind", KINDS)


def _nothing(kind: str, scene: Scene) -> None:
    """No carrier needs a name here."""


SET = BlindSet("seventeenth", TEXTS, MAKERS, name_secret=_nothing, name_other=_nothing)


@cache
def cases(kind: str) -> list[Case]:
    """200 positives and 200 hard negatives."""
    return SET.make_cases(kind, SEED)


def positives(kind: str) -> list[Case]:
    return [case for case in cases(kind) if case.values]


def negatives(kind: str) -> list[Case]:
    return [case for case in cases(kind) if not case.values]


@every_kind
def test_a_kind_has_150_templates_a_sign_in_three_weights(kind: str) -> None:
    for sign in "+-":
        templates = [one for one in load(kind, TEXTS) if one.sign == sign]
        assert len({one.text for one in templates}) == len(templates) >= 150
        assert {one.register for one in templates} == {"any"}
        counts = {w: sum(one.weight == w for one in templates) for w in (1.0, 0.5, 0.2)}
        assert sum(counts.values()) == len(templates)
        assert 40 <= counts[1.0] <= 50


@every_kind
def test_templates_name_known_makers_and_label_positives_alone(kind: str) -> None:
    for template in load(kind, TEXTS):
        slots = slots_of(template.text)
        assert {name for name, _ in slots} <= set(MAKERS)
        assert any(labelled for _, labelled in slots) == (template.sign == "+"), template.text
        assert len(template.text.splitlines()) <= 8
        left = re.sub(r"<<!?secrets_\w+(:[^<>@\n]*)?(@\d)?>>", "", template.text)
        assert "<<!" not in left, template.text
        assert "secrets_" not in left, template.text


@every_kind
def test_labels_lie_inside_the_text_on_one_line_and_hold_no_placeholder(kind: str) -> None:
    assert len({case.text for case in cases(kind)}) == 400
    assert len(positives(kind)) == len(negatives(kind)) == 200
    for case in positives(kind):
        ends = [0, *(end for _, end in case.values)]
        assert all(end <= start for end, (start, _) in zip(ends, case.values, strict=False))
        for value in values_of(case):
            assert len(value) >= 8
            assert not PLACEHOLDER.search(value) or len(value) > 40, value


@every_kind
def test_no_negative_holds_a_value_of_a_positive_or_a_public_address(kind: str) -> None:
    values = [value for case in positives(kind) for value in values_of(case)]
    for case in negatives(kind):
        assert not [value for value in values if value in case.text]
        for match in re.finditer(r"(?<![\w.])\d{1,3}(\.\d{1,3}){3}(?![\w.])", case.text):
            assert not ipaddress.ip_address(match[0]).is_global, case.text


def test_a_password_of_an_address_stands_between_colon_and_at() -> None:
    behind = re.compile(r"(:(//)?|/|(password|pwd|AccountKey|SharedAccessKey)=)\Z", re.IGNORECASE)
    for case in positives("connection"):
        for start, end in case.values:
            assert behind.search(case.text[:start]), case.text
            assert re.match(r"[@;&'\"\s,<)]|\Z", case.text[end:]), case.text


def _is_whole_token(text: str) -> bool:
    """Whether a text is a token of one of the forms, by their description."""
    alphabets = {"an": "[A-Za-z0-9]", "al": "[A-Za-z]", "n": r"\d", "url": r"[\w-]"}
    alphabets |= {"hex": "[0-9a-f]", "uphex": "[0-9A-F]", "up": "[A-Z0-9]"}
    for form in PATTERNS.values():
        pattern = ""
        for part in form.split():
            match = re.fullmatch(r"(an|al|hex|uphex|up|n|url)(\d+)", part)
            pattern += f"{alphabets[match[1]]}{{{match[2]}}}" if match else re.escape(part)
        if re.fullmatch(pattern, text):
            return True
    return False


def _check_web_token(token: str) -> None:
    head, claims, signature = map(decode_segment, token.split("."))
    assert json.loads(claims)["exp"] > json.loads(claims)["iat"]
    assert len(signature) == SIGNATURES[json.loads(head)["alg"]]


def test_bearer_tokens_decode_and_negatives_hold_no_signed_token() -> None:
    seen = set()
    for case in positives("bearer"):
        for start, end in case.values:
            value, before = case.text[start:end], case.text[:start]
            if value.startswith("eyJ"):
                _check_web_token(value)
                seen.add("web token")
            elif before.endswith("Basic "):
                assert re.fullmatch(r"[\w.]+:\S+", base64.b64decode(value, validate=True).decode())
                seen.add("basic")
            else:
                assert re.fullmatch(r"[\w.~+/-]{20,}=*", value), value
    assert seen == {"web token", "basic"}
    signed = re.compile(r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}")
    assert not [case for case in negatives("bearer") if signed.search(case.text)]


def test_pieces_make_one_token_of_a_known_form() -> None:
    for case in positives("broken_token"):
        pieces = values_of(case)
        assert len(pieces) >= 2
        assert all(len(piece) >= PIECE for piece in pieces)
        whole = "".join(pieces)
        if whole.startswith("eyJ"):
            _check_web_token(whole)
        elif re.match(r"gh[pos]_|npm_", whole):
            assert crc_base62(whole[4:34]) == whole[34:]
        else:
            assert _is_whole_token(whole), whole
