"""The eleventh blind set holds what it says: checksums, lengths, labels. No rule runs here."""

from __future__ import annotations

import random
from functools import partial

from tests.benchmarks.blind_set import values_of
from tests.benchmarks.blind_standards import crc_base62, der_end
from tests.benchmarks.eleventh_blind import SET
from tests.benchmarks.eleventh_blind.keys import PRIVATE, PUBLIC
from tests.benchmarks.eleventh_blind.tokens import CHECKED, EVERY, make_key
from tests.benchmarks.splits import ELEVENTH_BLIND_SEED

positives = partial(SET.positives, seed=ELEVENTH_BLIND_SEED)
negatives = partial(SET.negatives, seed=ELEVENTH_BLIND_SEED)


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
