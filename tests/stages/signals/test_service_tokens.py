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
    "glpat-" + chars(ALNUM, 27) + ".01." + chars("abcdef0123456789", 9),
    "pat-na1-3bca8b86-8f98-4202-9656-8ba477e7425f",
    chars(HEX, 32) + "-us16",
    chars(HEX, 32) + "-" + chars(HEX, 8) + "-" + chars(HEX[::-1], 8),
    "live_" + chars(ALNUM, 30),
    "AAAA" + chars(ALNUM, 7) + ":APA91b" + chars(ALNUM, 134),
    "1/" + chars("23456789", 16) + ":" + chars(HEX, 32),
    "access_token$production$" + chars("abcdefgh23456789", 16) + "$" + chars(HEX, 32),
    "dp.st.prd." + chars(ALNUM, 40),
    "snyk_uat.37a954bf." + chars(ALNUM, 80),
    chars(ALNUM, 6) + "_" + chars(ALNUM, 29) + "_mmk",
    "PVEAPIToken=root@pam!mon=3bca8b86-8f98-4202-9656-8ba477e7425f",
    "perm:cm9vdA==.NDYtMQ==." + chars(ALNUM, 42),
    "signkey-prod-" + chars(HEX, 64),
    "cmVmdGtuOj" + chars(ALNUM, 54),
    "sha256~" + chars(ALNUM, 43),
    "mdb_sa_sk_" + chars(ALNUM, 40),
    "pk_" + chars(HEX, 34),
    "KEY0" + chars("0123456789ABCDEF", 31) + "_" + chars(ALNUM, 22),
    "token-9fo2k:" + chars("abcdefgh23456789", 54),
    "ATATT3" + chars(ALNUM, 180) + "=1A2B3C4D",
    "api-3bca8b86-8f98-4202-9656-8ba477e7425f",
    "2/" + chars("23456789", 16) + "/" + chars("98765432", 16) + ":" + chars(HEX, 32),
    "bce-v3/ALTAK-" + chars(ALNUM, 21) + "/" + chars(HEX, 40),
    "SWMTKN-1-" + chars("abcdefgh23456789", 50) + "-" + chars("abcdefgh23456789", 25),
    "K10" + chars(HEX, 64) + "::server:" + chars(HEX, 32),
    "ory_pat_" + chars(ALNUM, 32),
    "llx-" + chars(ALNUM, 48),
    "https://discord.com/api/webhooks/" + chars("23456789", 18) + "/" + chars(ALNUM, 68),
]


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("frame", ["see {} there", '"{}"', "T=3D{}", "k%3D{}&x=1", "请用{}。"])
def test_a_token_is_found_without_a_name(token: str, frame: str) -> None:
    (span,) = find_secrets(frame.format(token))
    assert span.label in ("service_token", "gitlab_token")
    assert frame.format(token)[span.start : span.end] == token


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


@pytest.mark.parametrize(
    "frame", ["POSTHOG_KEY=phc_{}", 'analytics.load("{}"); // write key of the site']
)
def test_what_a_site_gives_to_its_analytics_is_public(frame: str) -> None:
    assert find_secrets(frame.format(chars(ALNUM, 32))) == []


def test_hexadecimal_keys_of_paystack_and_workflows_of_slack_are_found() -> None:
    for value in (
        "sk_live_" + chars(HEX, 40),
        "https://hooks.slack.com/workflows/T04QX7ZB1/A05RK2MWC/"
        + "4821" * 4
        + "/"
        + chars(ALNUM, 24),
    ):
        (span,) = find_secrets(f"see {value} there")
        assert span.end - span.start == len(value)


def test_each_kind_is_looked_up_by_a_literal_that_its_shape_begins_with() -> None:
    for kind in SERVICE_TOKENS:
        if kind.lead is not None:
            continue
        shape = kind.shape.pattern.removeprefix(WORD_BEGIN)
        assert shape.replace("\\", "").startswith(kind.literal)
