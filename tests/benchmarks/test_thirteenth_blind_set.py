"""The thirteenth blind set holds what it says: checksums, lengths, labels. No rule runs here."""

from __future__ import annotations

import ipaddress
import random
import re
from functools import partial

import pytest
from stdnum.es import ccc

from tests.benchmarks.blind_set import KINDS, load, values_of
from tests.benchmarks.blind_standards import crc_base62, der_end
from tests.benchmarks.splits import THIRTEENTH_BLIND_SEED
from tests.benchmarks.thirteenth_blind import SET
from tests.benchmarks.thirteenth_blind.keys import FORMS
from tests.benchmarks.thirteenth_blind.names import make_password
from tests.benchmarks.thirteenth_blind.personal import PLANS, make_iban, make_phone
from tests.benchmarks.thirteenth_blind.tokens import FORMED, SERVICES, cut, make_key

positives = partial(SET.positives, seed=THIRTEENTH_BLIND_SEED)
negatives = partial(SET.negatives, seed=THIRTEENTH_BLIND_SEED)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_40_templates_of_each_sign_of_its_own(kind: str) -> None:
    templates = load(kind, SET.texts)
    assert all(template.text.strip() for template in templates)
    signs = [template.sign for template in templates]
    assert min(signs.count("+"), signs.count("-")) >= 40
    assert len({template.text for template in templates}) == len(templates)


def test_phones_have_the_length_of_e164_and_avoid_the_ranges_kept_for_fiction() -> None:
    rng = random.Random(1)
    # 555; Ofcom's ranges for drama; ACMA's mobile one; Arcep's
    fiction = re.compile(
        r"555[-.]|\b020 7946 0|1632 960|0?161 496 0|7700 900|0491 570|"
        r"(\+33 |0)(1 99 00|2 61 91|3 53 01|4 65 71|5 36 49|6 39 98)"
    )
    numbers = [make_phone(rng, plan) for plan in PLANS for _ in range(200)]
    assert all(8 <= len(re.sub(r"\D", "", number)) <= 13 for number in numbers)
    assert not [number for number in numbers if fiction.search(number)]
    assert not [number for number in numbers if re.search(r"[#\[\]AN]", number)]


def test_public_addresses_are_all_labelled_and_in_no_negative() -> None:
    for case in positives("ip") + negatives("ip"):
        for match in re.finditer(r"(?<![\w.])\d{1,3}(\.\d{1,3}){3}(?![\w.]*\d)", case.text):
            try:
                address = ipaddress.ip_address(match[0])
            except ValueError:  # 256.300.1.1
                continue
            # versions and numbers of sections have a small first part
            if match.span() not in case.values and address.packed[0] >= 10:
                assert not address.is_global or address.is_multicast, case.text


def test_national_check_digits_of_accounts_are_right() -> None:
    rng = random.Random(2)
    for _ in range(50):
        assert ccc.is_valid(make_iban(rng, "ES plain")[4:])
        belgian = make_iban(rng, "BE plain")[4:]
        assert (int(belgian[:10]) - int(belgian[10:])) % 97 == 0
        french = make_iban(rng, "FR plain")[4:]
        # RIB: bank, branch, account and key together are a multiple of 97
        assert int(french) % 97 == 0
        # NIB: ISO 7064 mod 97-10
        assert int(make_iban(rng, "PT plain")[4:]) % 97 == 1


def test_forms_of_keys_are_whole() -> None:
    rng = random.Random(4)
    for name in FORMS.keys() - {"openssh"}:
        content = FORMS[name][1](rng)
        assert der_end(content) == len(content)


def test_keys_of_services_have_their_published_lengths_and_checksums() -> None:
    rng = random.Random(3)
    for name in ("github", "github_app", "npm"):
        body = make_key(rng, name).partition("_")[2]
        assert crc_base62(body[:30]) == body[30:]
    lengths = {
        "github": 40, "github_fine": 93, "gitlab": 26, "npm": 40, "openai": 164, "openai_old": 51,
        "anthropic": 108, "aws_id": 20, "aws": 40, "google": 39, "google_oauth": 35,
        "sendgrid": 69, "telegram": 46, "hugging_face": 37, "docker": 36, "digitalocean": 71,
        "shopify": 38, "databricks": 36, "notion": 50, "airtable": 82, "grafana": 46, "groq": 56,
        "replicate": 40, "azure": 88, "mailgun": 36, "new_relic": 32, "postman": 64,
    }  # fmt: skip
    assert {name: len(make_key(rng, name)) for name in lengths} == lengths
    assert set(FORMED) <= set(SERVICES)


def test_at_least_25_services_are_drawn() -> None:
    labels = [value for case in positives("provider_key") for value in values_of(case)]
    rng, count = random.Random(5), 0
    for name in SERVICES:
        keys = [make_key(rng, name) for _ in range(20)]
        head = "".join(one for one, *others in zip(*keys, strict=False) if {one} == set(others))
        # hexadecimal keys and the like have no prefix in common
        form = keys[0].startswith(head) and len(head) >= 3
        count += form and any(value.startswith(head) for value in labels)
    assert count >= 25


def test_safe_passwords_need_no_quotes_and_no_escapes() -> None:
    rng = random.Random(6)
    for _ in range(500):
        assert re.fullmatch(r"[\w-]{8,}", make_password(rng, "safe"))


def test_labels_of_a_broken_token_lie_on_several_pieces() -> None:
    assert all(len(case.values) >= 2 for case in positives("broken_token"))


def test_pieces_have_at_least_12_characters_and_make_the_token() -> None:
    rng = random.Random(7)
    for name in ("github", "github_fine", "openai", "sendgrid", "openrouter"):
        for glue in ("wrap", "plus"):
            for _ in range(200):
                token = make_key(rng, name)
                pieces = cut(rng, token, glue)
                assert "".join(pieces) == token
                assert len(pieces) > 1
                assert min(map(len, pieces)) >= 12
