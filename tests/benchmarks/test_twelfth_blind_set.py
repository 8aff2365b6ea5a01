"""The twelfth blind set holds what it says: checksums, lengths, labels. No rule runs here."""

from __future__ import annotations

import random
from functools import partial

from tests.benchmarks.blind_set import values_of
from tests.benchmarks.blind_standards import crc_base62, der_end
from tests.benchmarks.splits import TWELFTH_BLIND_SEED
from tests.benchmarks.twelfth_blind import SET
from tests.benchmarks.twelfth_blind.keys import ENCODINGS
from tests.benchmarks.twelfth_blind.tokens import SERVICES, make_key

positives = partial(SET.positives, seed=TWELFTH_BLIND_SEED)
negatives = partial(SET.negatives, seed=TWELFTH_BLIND_SEED)


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
