"""Tokens of services: each form is found, and names that begin alike are not."""

import random
import string

import pytest

from stages.signals.credentials import find_secrets
from stages.signals.secret_kinds import WORD_BEGIN
from stages.signals.service_tokens import SERVICE_TOKENS

HEX, ALNUM = "0123456789abcdef", string.ascii_letters + string.digits


def chars(alphabet: str, number: int) -> str:
    return "".join(random.Random(f"{alphabet} {number}").choices(alphabet, k=number))


# As the services document them: prefix, alphabet and length.
TOKENS = [
    "glrt-" + chars(ALNUM, 20),
    "dapi" + chars(HEX, 32),
    "sk-or-v1-" + chars(HEX, 64),
    "gsk_" + chars(ALNUM, 52),
    "figd_" + chars(ALNUM, 40),
    "PMAK-" + chars(HEX, 24) + "-" + chars(HEX, 34),
    "glsa_" + chars(ALNUM, 32) + "_" + chars(HEX, 8),
    "xkeysib-" + chars(HEX, 64) + "-" + chars(ALNUM, 16),
    "https://discord.com/api/webhooks/" + chars("23456789", 18) + "/" + chars(ALNUM, 68),
]


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("frame", ["see {} there", '"{}"', "T=3D{}", "k%3D{}&x=1", "请用{}。"])
def test_a_token_is_found_without_a_name(token: str, frame: str) -> None:
    (span,) = find_secrets(frame.format(token))
    assert span.label == "service_token"
    assert frame.format(token)[span.start : span.end] == token.removeprefix("https://")


@pytest.mark.parametrize(
    "text",
    [
        "glrt-xxxxxxxxxxxxxxxxxxxx",
        "key-value-store-of-the-first-version",
        "secret_name_of_the_production_database_cluster",
        "sk_learn_pipeline_with_many_transformers_inside",
        "pk_live_" + chars(ALNUM, 24),
        "phc_" + chars(ALNUM, 43),
        "dapi" + "0" * 32,
    ],
)
def test_names_filler_and_public_keys_are_left(text: str) -> None:
    assert find_secrets(f"see {text} there") == []


def test_each_kind_is_looked_up_by_a_literal_that_its_shape_begins_with() -> None:
    for kind in SERVICE_TOKENS:
        shape = kind.shape.pattern.removeprefix(WORD_BEGIN)
        assert shape.replace("\\", "").startswith(kind.literal)
