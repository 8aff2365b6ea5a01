"""The twelfth blind set holds what it says: checksums, lengths, labels. No rule runs here."""

from __future__ import annotations

import ipaddress
import random
import re
from functools import partial

import pytest

from tests.benchmarks.blind_set import KINDS, load, values_of
from tests.benchmarks.blind_standards import crc_base62, der_end
from tests.benchmarks.splits import TWELFTH_BLIND_SEED
from tests.benchmarks.twelfth_blind import SET
from tests.benchmarks.twelfth_blind.keys import ENCODINGS
from tests.benchmarks.twelfth_blind.personal import PLANS, make_phone
from tests.benchmarks.twelfth_blind.tokens import SERVICES, make_key

positives = partial(SET.positives, seed=TWELFTH_BLIND_SEED)
negatives = partial(SET.negatives, seed=TWELFTH_BLIND_SEED)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_40_templates_of_each_sign_of_its_own(kind: str) -> None:
    templates = load(kind, SET.texts)
    assert all(template.text.strip() for template in templates)
    signs = [template.sign for template in templates]
    assert min(signs.count("+"), signs.count("-")) >= 40
    assert len({template.text for template in templates}) == len(templates)


def test_phones_avoid_the_ranges_kept_for_fiction() -> None:
    rng = random.Random(1)
    # 555; Ofcom's ranges for drama; Arcep's; ACMA's mobile one
    fiction = re.compile(
        r"555[-.]|\b020 7946 0|1632 960|0?1\d1 496 0|7700 900|0491 570|"
        r"(\+33 |0)(1 99 00|2 61 91|3 53 01|4 65 71|5 36 49|6 39 98)"
    )
    numbers = [make_phone(rng, plan) for plan in PLANS for _ in range(200)]
    assert all(8 <= len(re.sub(r"\D", "", number)) <= 13 for number in numbers)
    assert not [number for number in numbers if fiction.search(number)]


def test_public_addresses_are_all_labelled_and_in_no_negative() -> None:
    for case in positives("ip") + negatives("ip"):
        for match in re.finditer(r"(?<![\w.])\d{1,3}(\.\d{1,3}){3}(?![\w.]*\d)", case.text):
            address = ipaddress.ip_address(match[0])
            # versions and numbers of sections have a small first part
            if match.span() not in case.values and address.packed[0] >= 10:
                assert not address.is_global, case.text


def test_forms_of_keys_are_whole() -> None:
    rng = random.Random(4)
    for form in ENCODINGS.keys() - {"ossh"}:
        content = ENCODINGS[form](rng)
        assert der_end(content) == len(content)


def test_keys_of_services_have_their_published_lengths_and_checksums() -> None:
    rng = random.Random(3)
    for name in ("github", "npm"):
        body = make_key(rng, name).partition("_")[2]
        assert crc_base62(body[:30]) == body[30:]
    lengths = {
        "github": 40, "gitlab": 26, "npm": 40, "anthropic": 108, "openai": 164, "sendgrid": 69,
        "digitalocean": 71, "hf": 37, "google": 39, "notion": 50, "telegram": 46, "docker": 36,
        "new_relic": 32, "azure": 88, "azure_bus": 44, "aws": 40, "hex32": 32, "entra": 40,
    }  # fmt: skip
    assert {name: len(make_key(rng, name)) for name in lengths} == lengths
    labels = [value for case in positives("provider_key") for value in values_of(case)]
    heads = {make_key(rng, name)[:4] for name in SERVICES}
    assert len(heads & {value[:4] for value in labels}) >= 12
