"""The fourteenth blind set holds what it says: checksums, lengths, labels. No rule runs here."""

from __future__ import annotations

import base64
import ipaddress
import random
import re
from functools import partial

import pytest
from stdnum import iban, imei, luhn

from tests.benchmarks.blind_set import CARRIED, KINDS, load, values_of
from tests.benchmarks.blind_standards import crc24, crc_base62, der_end
from tests.benchmarks.fourteenth_blind import MAKERS, SET
from tests.benchmarks.fourteenth_blind.keys import ENCODINGS, make_body
from tests.benchmarks.fourteenth_blind.names import make_password
from tests.benchmarks.fourteenth_blind.personal import (
    BANK_PLANS,
    TEST_NUMBERS,
    make_iban,
    make_ip4,
    make_ip6,
)
from tests.benchmarks.fourteenth_blind.tokens import SERVICES, make_key, split_token
from tests.benchmarks.splits import FOURTEENTH_BLIND_SEED

positives = partial(SET.positives, seed=FOURTEENTH_BLIND_SEED)
negatives = partial(SET.negatives, seed=FOURTEENTH_BLIND_SEED)


def test_drawn_addresses_are_global() -> None:
    rng = random.Random(2)
    for make in (make_ip4, make_ip6):
        assert all(ipaddress.ip_address(make(rng)).is_global for _ in range(500))


@pytest.mark.parametrize("country", BANK_PLANS)
def test_account_numbers_have_right_check_digits_or_wrong_ones(country: str) -> None:
    rng = random.Random(3)
    for _ in range(50):
        assert iban.is_valid(make_iban(rng, country), check_country=False)
        assert not iban.is_valid(make_iban(rng, country, wrong=True), check_country=False)


def test_numbers_of_devices_and_published_test_cards_have_their_check_digit() -> None:
    for case in negatives("card"):
        assert all(imei.is_valid(one) for one in re.findall(r"IMEI:? (?:is )?(\d{15})", case.text))
    assert all(map(luhn.is_valid, TEST_NUMBERS))


@pytest.mark.parametrize(
    "form", sorted(ENCODINGS.keys() - {"ossh", "osshrsa", "pgp", "ppk", "ppkrsa"})
)
def test_a_key_is_one_whole_element_of_der(form: str) -> None:
    content = base64.b64decode(make_body(random.Random(4), form), validate=False)
    assert der_end(content) == len(content)


def test_a_pgp_key_ends_with_the_checksum_of_its_armor() -> None:
    body, _, check = make_body(random.Random(5), "pgp").rpartition("\n=")
    content = base64.b64decode(body)
    assert crc24(content) == int.from_bytes(base64.b64decode(check), "big")


def test_a_key_in_base64_once_more_is_a_whole_pem_file() -> None:
    values = [value for case in positives("private_key") for value in values_of(case)]
    wrapped = [value for value in values if value.startswith("LS0tLS1CRUdJTi")]
    assert wrapped
    for value in wrapped:
        pem = base64.b64decode(value).decode()
        assert re.fullmatch(
            r"-----BEGIN [A-Z ]*KEY-----\n[\w+/=\n]+-----END [A-Z ]*KEY-----\n", pem
        )


def test_keys_of_services_have_their_published_lengths_and_checksums() -> None:
    rng = random.Random(6)
    for name in ("github", "github_app", "github_oauth", "npm"):
        body = make_key(rng, name).partition("_")[2]
        assert crc_base62(body[:30]) == body[30:]
    lengths = {
        "github": 40, "github_fine": 93, "gitlab": 26, "npm": 40, "anthropic": 108, "openai": 51,
        "sendgrid": 69, "digitalocean": 71, "hf": 37, "google": 39, "google_oauth": 35,
        "notion": 50, "telegram": 46, "docker": 36, "new_relic": 32, "azure": 88, "aws": 20,
        "stripe": 32, "stripe_new": 107, "mailgun": 36, "shopify": 38, "databricks": 36,
        "linear": 48, "figma": 45, "postman": 64, "grafana": 46, "replicate": 40, "groq": 56,
    }  # fmt: skip
    assert {name: len(make_key(rng, name)) for name in lengths} == lengths


def test_at_least_25_services_are_drawn() -> None:
    labels = [value for case in positives("provider_key") for value in values_of(case)]
    rng = random.Random(7)
    heads = {make_key(rng, name)[:4] for name in SERVICES}
    assert len(heads & {value[:4] for value in labels}) >= 25


def test_every_piece_of_a_broken_token_is_labelled_and_long_enough() -> None:
    rng = random.Random(8)
    for name in SERVICES.keys() - {"aws"}:
        for _ in range(20):
            token = make_key(rng, name)
            pieces = split_token(rng, token)
            assert "".join(pieces) == token
            assert min(map(len, pieces)) >= 12 or len(token) < 26
    assert all(len(values_of(case)) >= 2 for case in positives("broken_token"))


@pytest.mark.parametrize("shape", ["", "url", "say", "quoted"])
def test_passwords_are_long_enough_and_fit_their_place(shape: str) -> None:
    rng = random.Random(9)
    values = [make_password(rng, shape) for _ in range(2000)]
    allowed = {"url": r"[\w.~-]+", "quoted": r"[^\s'\"\\]+"}.get(shape, r"[\w!*+?^%.-]+")
    assert all(re.fullmatch(allowed, value) for value in values)
    assert all(8 <= len(value) <= 26 and re.search(r"\d", value) for value in values)
    if shape in ("url", "say"):
        assert all(value[-1].isalnum() for value in values)


def test_every_maker_is_used_by_a_template_or_by_a_carrier() -> None:
    names = [*KINDS, "carriers", "frames"]
    text = "\n".join(template.text for name in names for template in load(name, SET.texts))
    used = set(re.findall(r"<<!?(\w+)", text))
    assert MAKERS.keys() <= used
    assert {"jwt", "provider_key", "password"} == CARRIED
