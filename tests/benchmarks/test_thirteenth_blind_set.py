"""The thirteenth blind set holds what it says: checksums, lengths, labels. No rule runs here."""

from __future__ import annotations

import random
import re
from functools import partial

from stdnum.es import ccc

from tests.benchmarks.blind_set import values_of
from tests.benchmarks.blind_standards import crc_base62, der_end
from tests.benchmarks.splits import THIRTEENTH_BLIND_SEED
from tests.benchmarks.thirteenth_blind import SET
from tests.benchmarks.thirteenth_blind.keys import FORMS
from tests.benchmarks.thirteenth_blind.names import make_password
from tests.benchmarks.thirteenth_blind.personal import make_iban
from tests.benchmarks.thirteenth_blind.tokens import FORMED, SERVICES, cut, make_key

positives = partial(SET.positives, seed=THIRTEENTH_BLIND_SEED)
negatives = partial(SET.negatives, seed=THIRTEENTH_BLIND_SEED)


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
