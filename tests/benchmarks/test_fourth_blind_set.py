"""The fourth blind set's labels and values are right; no rule of redaction runs here."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import random
import zlib
from collections.abc import Iterator

import phonenumbers
import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tests.benchmarks import redaction
from tests.benchmarks.fourth_blind import KINDS, MAKERS, make_cases
from tests.benchmarks.fourth_blind.personal import (
    INTERNATIONAL,
    NATIONAL,
    PERSONAL,
    PUBLISHED_CARDS,
    PUBLISHED_IBANS,
    mod97,
    phone,
)
from tests.benchmarks.fourth_blind.services import SERVICES, checksum62, service_key
from tests.benchmarks.fourth_blind.templates import fill, load
from tests.benchmarks.fourth_blind.tokens import BREAKS, TOKENS, broken, key_body
from tests.benchmarks.fourth_blind.words import WORDS
from tests.benchmarks.redaction_cases import Case
from tests.benchmarks.splits import FOURTH_BLIND_SEED

SEED = FOURTH_BLIND_SEED


def values(cases: list[Case]) -> Iterator[str]:
    for case in cases:
        for start, end in case.values:
            yield case.text[start:end]


def luhn_holds(digits: str) -> bool:
    """Luhn's check as ISO/IEC 7812-1 states it, over the whole number."""
    doubled = [int(c) * (1 + k % 2) for k, c in enumerate(reversed(digits))]
    return sum(n // 10 + n % 10 for n in doubled) % 10 == 0


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_positives_and_negatives_from_forty_templates_each(kind: str) -> None:
    cases = make_cases(kind, SEED)
    assert [bool(case.values) for case in cases] == [True] * 200 + [False] * 200
    assert len({case.text for case in cases[:200]}) == 200
    assert len({case.text for case in cases[200:]}) >= 120
    signs = [template.positive for template in load(kind)]
    assert signs.count(True) >= 40
    assert signs.count(False) >= 40
    assert len({template.text for template in load(kind)}) == len(signs)


@pytest.mark.parametrize("kind", KINDS)
def test_a_template_labels_a_value_where_it_is_positive_alone(kind: str) -> None:
    for template in load(kind):
        _, places = fill(template.text, MAKERS, random.Random(1))
        assert bool(places) == template.positive, template.text


@pytest.mark.parametrize("kind", KINDS)
def test_spans_lie_in_order_on_whole_values(kind: str) -> None:
    for case in make_cases(kind, SEED):
        end = 0
        for start, stop in case.values:
            assert end <= start < stop <= len(case.text)
            value = case.text[start:stop]
            assert value == value.strip()
            end = stop
        assert "<<" not in case.text.replace("<<EOT", "").replace("<<~PEM", "")


def test_a_span_holds_what_its_slot_drew() -> None:
    drawn = iter(("first", "second"))
    makers = {"a": lambda rng, form: next(drawn), "b": lambda rng, form: form * 2}
    text, places = fill("x <~b:qq> <<a>> < <<a>>>", makers, random.Random(0))
    assert text == "x qqqq first < second>"
    assert [text[a:b] for a, b in places] == ["first", "second"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_the_same_texts_and_another_seed_others(kind: str) -> None:
    assert make_cases(kind, SEED) == make_cases(kind, SEED)
    assert make_cases(kind, SEED) != make_cases(kind, SEED + 1)


def test_no_two_makers_share_a_name() -> None:
    assert len(MAKERS) == len(WORDS) + len(PERSONAL) + len(TOKENS)


def test_cards_hold_their_check_digit_and_near_misses_do_not() -> None:
    for value in values(make_cases("card", SEED)):
        assert luhn_holds("".join(filter(str.isdigit, value)))
    rng = random.Random(3)
    for _ in range(200):
        assert not luhn_holds("".join(filter(str.isdigit, PERSONAL["no_card"](rng, "-"))))
    for number in PUBLISHED_CARDS:
        assert luhn_holds("".join(filter(str.isdigit, number)))


def test_ibans_hold_their_check_digits_and_near_misses_do_not() -> None:
    def bare(text: str) -> str:
        return "".join(filter(str.isalnum, text)).upper()

    for value in values(make_cases("iban", SEED)):
        assert mod97(bare(value)) == 1
    rng = random.Random(3)
    for _ in range(200):
        assert mod97(bare(PERSONAL["no_iban"](rng, ""))) != 1
    assert all(mod97(bare(number)) == 1 for number in PUBLISHED_IBANS)


def test_jwts_decode_to_a_header_with_an_algorithm_and_to_claims() -> None:
    lengths = {"HS256": 32, "ES256": 64, "RS256": 256}
    for value in values(make_cases("jwt", SEED)):
        header, claims, signature = (
            base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in value.split(".")
        )
        assert {"iat", "exp", "sub"} <= json.loads(claims).keys()
        assert len(signature) == lengths[json.loads(header)["alg"]]


def test_addresses_are_routable_and_none_of_a_negative_is_labelled() -> None:
    for value in values(make_cases("ip", SEED)):
        assert ipaddress.ip_address(value).is_global


def test_mail_addresses_lie_at_no_reserved_domain() -> None:
    reserved = (".example", ".test", ".invalid", ".localhost", "example.com", "example.org")
    for value in values(make_cases("email", SEED)):
        assert "@" in value or " [at] " in value
        assert not value.lower().endswith(reserved)


def test_every_way_to_write_a_phone_number_gives_one_that_can_be_dialled() -> None:
    rng = random.Random(5)
    forms = [(region, form) for region, forms in NATIONAL.items() for form in forms]
    forms += [("ZZ", form) for form in INTERNATIONAL]
    for region, form in forms:
        text = "".join(str(rng.randint(0, 9)) if c == "#" else c for c in form)
        text = "+" + text[2:] if text.startswith("00") and region == "ZZ" else text
        number = phonenumbers.parse(text, None if region == "ZZ" else region)
        assert phonenumbers.is_valid_number(number), (region, text)
    assert phone(rng, "FR")[0] == "0"


@pytest.mark.parametrize("name", ["github", "github_oauth", "github_server", "npm"])
def test_tokens_of_github_and_npm_end_with_their_checksum(name: str) -> None:
    token = service_key(random.Random(2), name)
    body = token.partition("_")[2]
    assert len(body) == 36
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    total = 0
    for digit in body[30:]:
        total = total * 62 + digits.index(digit)
    assert total == binascii.crc32(body[:30].encode())
    assert checksum62(body[:30]) == body[30:]


def test_grafana_tokens_end_with_their_checksum() -> None:
    body, _, checksum = service_key(random.Random(2), "grafana").rpartition("_")
    assert int(checksum, 16) == zlib.crc32(body.encode())


def test_the_texts_hold_keys_of_at_least_25_services() -> None:
    text = "\n".join(template.text for template in load("provider_key"))
    named = {name for name in (*SERVICES, "azure", "aws_secret") if f"<<provider:{name}>>" in text}
    assert len(named) >= 25
    for name in SERVICES:
        assert "{" not in service_key(random.Random(1), name)


@pytest.mark.parametrize("kind", ["ec", "ed25519"])
def test_private_keys_of_curves_have_the_structure_of_their_format(kind: str) -> None:
    body = base64.b64decode(key_body(random.Random(4), kind))
    assert body[0] == 0x30
    assert body[1] == len(body) - 2
    if kind == "ed25519":
        text = f"-----BEGIN PRIVATE KEY-----\n{key_body(random.Random(4), kind)}"
        load_pem_private_key(f"{text}\n-----END PRIVATE KEY-----\n".encode(), password=None)


@pytest.mark.parametrize("joint", sorted(BREAKS))
def test_a_broken_token_is_whole_again_without_its_breaks(joint: str) -> None:
    token = broken(random.Random(6), f"{joint},github")
    assert "\n" in token
    whole = token.replace(BREAKS[joint], "")
    assert whole.startswith("ghp_")
    assert checksum62(whole[4:34]) == whole[34:]


def test_the_runner_takes_the_set_by_its_first_seed() -> None:
    assert redaction.kinds_of(SEED) == KINDS
    cases = redaction.cases_of("ip", SEED)
    assert {case.kind for case in cases} == {"ip_address"}
    assert [case.text for case in cases] == [case.text for case in make_cases("ip", SEED)]
