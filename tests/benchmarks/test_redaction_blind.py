"""The blind set for redaction: its size, its labels, and that it shares nothing with the others.

Nothing here runs the rules: what they do on these texts is measured once (docs/figures.md).
"""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path

import phonenumbers
import pytest
import yaml

from tests.benchmarks.redaction_blind import SPLIT, blind_texts
from tests.benchmarks.redaction_cases import COUNT, KINDS, Case, make_cases
from tests.benchmarks.redaction_values import luhn_digit
from tests.benchmarks.splits import FIRST_BLIND_SEED, seed_side

SEED = FIRST_BLIND_SEED + 900
"""Not the seed of a figure."""

PREFIXES = {
    "aws_access_key": "AKIA ASIA",
    "google_api_key": "AIza",
    "google_oauth_secret": "GOCSPX-",
    "github_token": "ghp_ ghs_ ghu_ gho_",
    "github_pat": "github_pat_",
    "npm_token": "npm_",
    "gitlab_token": "glpat-",
    "slack_token": "xoxb- xoxp-",
    "slack_webhook": "hooks.slack.com/services/T",
    "stripe_key": "sk_live_",
    "openai_key": "sk-",
    "anthropic_key": "sk-ant-",
    "hugging_face_token": "hf_",
    "sendgrid_key": "SG.",
    "pypi_token": "pypi-",
    "json_web_token": "eyJ",
    "private_key": "-----BEGIN",
    "docker_token": "dckr_",
    "shopify_token": "shp",
    "twitter_bearer": "AAAAAAAAAAAAAAAAAAAAA",
    "twilio_key": "SK",
    "digitalocean_token": "dop_v1_ doo_v1_",
}
"""How the token of a service begins, by the service's own pages."""


def luhn(number: str) -> bool:
    return luhn_digit(number[:-1]) == number[-1]


def mod_97(number: str) -> int:
    return int("".join(str(int(c, 36)) for c in number[4:] + number[:4])) % 97


def labelled(kind: str) -> list[str]:
    return [case.text[a:b] for case in make_cases(kind, SEED) for a, b in case.values]


def sentences(texts: dict) -> set[str]:
    """Every sentence without its slots, case and blanks."""
    return {
        " ".join(re.sub(r"\{[^{} ]*\}", "{}", text).casefold().split())
        for group in ("positives", "negatives")
        for sets in texts[group].values()
        for part in (sets.values() if isinstance(sets, dict) else [sets])
        for text in part
    }


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_its_positives_and_hard_negatives(kind: str) -> None:
    cases = make_cases(kind, SEED)
    assert len({case.text for case in cases}) == 2 * COUNT
    assert [bool(case.values) for case in cases] == [True] * COUNT + [False] * COUNT
    assert cases == make_cases(kind, SEED)


def test_no_sentence_is_in_another_set() -> None:
    older = yaml.safe_load(Path(__file__).with_name("redaction_texts.yaml").read_text())
    wordless = {text for text in sentences(blind_texts()) if not re.search(r"\w", text)}
    assert sorted((sentences(blind_texts()) - wordless) & sentences(older)) == []


def test_seeds_of_the_other_sets_draw_none_of_it() -> None:
    assert seed_side(FIRST_BLIND_SEED) == seed_side(FIRST_BLIND_SEED - 1) == "test"
    texts = [
        {case.text for case in make_cases("password", seed) if not case.values}
        for seed in (FIRST_BLIND_SEED - 1, FIRST_BLIND_SEED)
    ]
    assert texts[0].isdisjoint(texts[1])


@pytest.mark.parametrize("kind", KINDS)
def test_labels_do_not_overlap_and_hold_no_blank_at_an_end(kind: str) -> None:
    for case in make_cases(kind, SEED):
        end = 0
        for start, stop in case.values:
            assert end <= start < stop <= len(case.text)
            assert case.text[start:stop].strip() == case.text[start:stop]
            end = stop


@pytest.mark.parametrize("kind", ["email", "phone", "ip_address", "card", "iban"])
def test_labels_of_personal_data_end_where_the_value_ends(kind: str) -> None:
    def cut(case: Case, start: int, stop: int) -> bool:
        around = case.text[max(start - 1, 0) : start], case.text[stop : stop + 1]
        return any(char.isascii() and char.isalnum() for char in around)

    cases = make_cases(kind, SEED)
    assert [case.text for case in cases for place in case.values if cut(case, *place)] == []


def test_labelled_addresses_cards_and_accounts_are_valid() -> None:
    assert all(re.fullmatch(r"[^\s@<>]+@[^\s@<>]+\.\w+", value) for value in labelled("email"))
    assert all(ipaddress.ip_address(value).is_global for value in labelled("ip_address"))
    assert all(luhn(re.sub(r"\D", "", value)) for value in labelled("card"))
    assert all(mod_97(re.sub(r"\W", "", value)) == 1 for value in labelled("iban"))


def test_labelled_phone_numbers_are_of_many_countries() -> None:
    assert len(blind_texts()["phones"]) >= 25
    numbers = labelled("phone")
    assert all(re.fullmatch(r"[+0-9()/. -]+", number) for number in numbers)
    assert all(6 <= len(re.sub(r"\D", "", number)) <= 15 for number in numbers)
    abroad = [number for number in numbers if number.startswith(("+", "(+"))]
    assert len(abroad) > COUNT // 10
    plain = [phonenumbers.parse(number.replace("(0)", "")) for number in abroad]
    assert all(phonenumbers.is_valid_number(number) for number in plain)


@pytest.mark.parametrize("kind", PREFIXES)
def test_labelled_tokens_begin_as_their_service_says(kind: str) -> None:
    prefixes = tuple(PREFIXES[kind].split())
    firsts = [case.text[slice(*case.values[0])] for case in make_cases(kind, SEED)[:COUNT]]
    assert [value for value in firsts if not value.startswith(prefixes)] == []


def test_a_broken_token_holds_one_end_of_a_line() -> None:
    assert all(value.count("\n") == 1 for value in labelled(SPLIT))


def test_hard_negatives_hold_no_valid_card_or_account() -> None:
    """By chance a fraction passes Luhn's sum, and a masked account or a creditor's id MOD 97-10."""
    forms = {
        "card": r"(?<![\w.])\d{14,19}\b",
        "iban": r"\b[A-Z]{2}\d\d(?!XXX|ZZZ)[A-Z0-9]{11,30}\b",
    }
    cards, accounts = (
        [
            number
            for case in make_cases(kind, SEED)[COUNT:]
            for number in re.findall(form, case.text)
        ]
        for kind, form in forms.items()
    )
    assert cards
    assert [number for number in cards if luhn(number)] == []
    assert [number for number in accounts if mod_97(number) == 1] == []


def test_no_template_keeps_an_unknown_slot() -> None:
    slots = re.compile(r"(?<![${])\{(?:[a-z0-9_]+:|[dhxAanb][0-9]+|=|NAME|[0-9]+\.\.)[^{}]*\}")
    for kind in KINDS:
        assert [case.text for case in make_cases(kind, SEED) if slots.search(case.text)] == []
