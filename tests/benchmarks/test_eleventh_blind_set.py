"""The eleventh blind set holds what it says: checksums, lengths, labels. No rule runs here."""

from __future__ import annotations

import ipaddress
import random
import re
from functools import partial

import pytest

from tests.benchmarks.blind_set import KINDS, load, values_of
from tests.benchmarks.blind_standards import crc_base62, der_end
from tests.benchmarks.eleventh_blind import SET
from tests.benchmarks.eleventh_blind.keys import PRIVATE, PUBLIC
from tests.benchmarks.eleventh_blind.personal import PLANS, make_phone
from tests.benchmarks.eleventh_blind.tokens import CHECKED, EVERY, make_key
from tests.benchmarks.splits import ELEVENTH_BLIND_SEED

positives = partial(SET.positives, seed=ELEVENTH_BLIND_SEED)
negatives = partial(SET.negatives, seed=ELEVENTH_BLIND_SEED)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_40_templates_of_each_sign_of_its_own(kind: str) -> None:
    signs = [template.sign for template in load(kind, SET.texts)]
    assert min(signs.count("+"), signs.count("-")) >= 40


def test_phones_avoid_the_ranges_kept_for_fiction() -> None:
    rng = random.Random(1)
    # 555; Ofcom's ranges for drama; Arcep's; ACMA's mobile one
    fiction = re.compile(
        r"555|\+44 (20 7946 0|1632 960|1\d1 496 0|7700 900)|"
        r"\+33 (1 99 00|2 61 91|3 53 01|4 65 71|5 36 49|6 39 98)|0491 570"
    )
    numbers = [make_phone(rng, plan) for plan in PLANS for _ in range(200)]
    assert all(8 <= len(re.sub(r"\D", "", number)) <= 13 for number in numbers)
    assert not [number for number in numbers if fiction.search(number)]


def test_public_addresses_are_all_labelled_and_in_no_negative() -> None:
    for case in positives("ip") + negatives("ip"):
        for match in re.finditer(r"(?<![\w.])\d{1,3}(\.\d{1,3}){3}(?![\w.]*\d)", case.text):
            address = ipaddress.ip_address(match[0])
            # the versions and sections that are drawn have small parts
            is_version = max(address.packed) < 20 or case.text[: match.start()].endswith("Chrome/")
            if match.span() not in case.values and not is_version:
                assert address.is_multicast or not address.is_global, case.text


def test_forms_of_keys_are_whole() -> None:
    rng = random.Random(4)
    for form in {**PRIVATE, **PUBLIC}.keys() - {"OPENSSH PRIVATE KEY"}:
        content = {**PRIVATE, **PUBLIC}[form](rng)
        assert der_end(content) == len(content)


def test_keys_of_services_have_their_published_lengths_and_checksums() -> None:
    rng = random.Random(3)
    for name in CHECKED:
        body = make_key(rng, name).partition("_")[2]
        assert crc_base62(body[:30]) == body[30:]
    lengths = {
        "github": 40, "github_fine": 93, "gitlab": 26, "npm": 40, "anthropic": 108, "openai": 164,
        "openai_old": 51, "sendgrid": 69, "digitalocean": 71, "hugging_face": 37, "shopify": 38,
        "gemini": 39, "google_client": 35, "databricks": 36, "groq": 56, "replicate": 40,
        "notion": 50, "airtable": 82, "linear": 48, "postman": 64, "telegram": 46, "docker": 36,
        "new_relic": 32, "azure": 88, "aws_secret": 40, "twilio": 32,
    }  # fmt: skip
    assert {name: len(make_key(rng, name)) for name in lengths} == lengths
    heads = {make_key(rng, name)[:4] for name in EVERY}
    values = [value for case in positives("provider_key") for value in values_of(case)]
    assert len(heads & {value[:4] for value in values}) >= 20
