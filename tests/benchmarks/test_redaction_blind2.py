"""The second blind set for redaction: enough texts of each kind, and labels that are right.

Nothing here runs the redaction. Expected shapes are what the services publish; cards, accounts
and IP addresses are checked by arithmetic, phone numbers by libphonenumber.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.benchmarks import redaction, redaction_blind
from tests.benchmarks.redaction_blind import NEWEST, SETS, blind_texts, find_set
from tests.benchmarks.redaction_cases import COUNT, KINDS, PERSONAL, SPLIT, Case, make_cases
from tests.benchmarks.redaction_values_blind2 import is_valid_phone
from tests.benchmarks.splits import SECOND_BLIND_SEED, seed_side

SEED = SECOND_BLIND_SEED + 900
SLOT = re.compile(r"\{([a-z][a-z0-9_]*)\}")
PUBLISHED_CARDS = {"4242424242424242", "4111111111111111", "4012888888881881", "5555555555554444"}
SPECIMEN_ACCOUNTS = {"DE89370400440532013000", "GB29NWBK60161331926819"}
SHAPES = {
    "aws_access_key": r"A[KS]IA[A-Z2-7]{16}|[A-Za-z0-9+/]{40}",
    "google_api_key": r"AIza[\w-]{35}",
    "google_oauth_secret": r"GOCSPX-[\w-]{28}",
    "github_token": r"gh[pos]_[A-Za-z0-9]{36}",
    "github_pat": r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
    "npm_token": r"npm_[A-Za-z0-9]{36}",
    "gitlab_token": r"gl(?:pat|rt)-[\w-]{20}",
    "slack_token": r"xoxb-\d{12}-\d{13}-[A-Za-z0-9]{24}|xoxp-(?:\d{12}-){3}[0-9a-f]{32}",
    "slack_webhook": r"T[A-Z0-9]{9}/B[A-Z0-9]{10}/[A-Za-z0-9]{24}",
    "stripe_key": r"[sr]k_(?:live|test)_(?:[A-Za-z0-9]{24}|51[A-Za-z0-9]{97})",
    "openai_key": r"sk-(?:[A-Za-z0-9]{20}|(?:proj|svcacct)-[\w-]{74})T3BlbkFJ[\w-]{20,74}",
    "anthropic_key": r"sk-ant-api03-[\w-]{93}AA",
    "hugging_face_token": r"hf_[A-Za-z]{34}",
    "sendgrid_key": r"SG\.[\w-]{22}\.[\w-]{43}",
    "pypi_token": r"pypi-AgEIcHlwaS5vcmc[\w-]{50,}",
    "private_key": r"[A-Za-z0-9+/=\s]{160,}|(?:[A-Za-z0-9+/=]|\\n){160,}",
    "azure_storage_key": r"[A-Za-z0-9+/]{86}==",
    "azure_client_secret": r"[\w~.-]{3}\dQ~[\w~.-]{34}|[A-Za-z0-9]{3}8Q~[\w~.-]{34}",
    "telegram_token": r"\d{8,10}:AA[\w-]{33}",
    "docker_token": r"dckr_pat_[\w-]{27}",
    "shopify_token": r"shp(?:at|ss|ca)_[0-9a-f]{32}",
    "twitter_bearer": r"A{22}[A-Za-z0-9%]{80,}",
    "twilio_key": r"SK[0-9a-f]{32}|[A-Za-z0-9]{32}",
    "digitalocean_token": r"dop_v1_[0-9a-f]{64}",
    "assigned": r"\S{15,128}",
    "password": r"[!-~]{8,24}",
    "chosen_password": r"[!-~]{5,40}",
    "url_password": r"[^@/\s]{5,64}",
}


@cache
def drawn(kind: str) -> list[Case]:
    return make_cases(kind, SEED)


def labels(kind: str) -> list[str]:
    """Labelled values of positives; one of another kind beside them is among them too."""
    return [case.text[start:end] for case in drawn(kind) for start, end in case.values]


def strings(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict | list):
        for part in node.values() if isinstance(node, dict) else node:
            yield from strings(part)


def shingles(texts: Any, size: int = 8) -> set[tuple[str, ...]]:
    """Runs of words of the templates; a slot is no word, nor is Azure's fixed connection string."""
    rows = (
        re.findall(r"\w+", re.sub(r"DefaultEndpointsProtocol=\S+|\{[^{} ]*\}", " ", text))
        for text in strings(texts)
    )
    return {tuple(row[i : i + size]) for row in rows for i in range(len(row) - size + 1)}


def passes_luhn(digits: str) -> bool:
    doubled = [int(digit) * (1 + (place % 2 == 0)) for place, digit in enumerate(digits[::-1], 1)]
    return sum(number - 9 * (number > 9) for number in doubled) % 10 == 0


def is_account(text: str) -> bool:
    return int("".join(str(int(sign, 36)) for sign in text[4:] + text[:4])) % 97 == 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_200_labelled_texts_and_200_without_a_label(kind: str) -> None:
    cases = drawn(kind)
    assert len({case.text for case in cases}) == len(cases) == 2 * COUNT >= 400
    assert all(case.values for case in cases[:COUNT])
    assert not any(case.values for case in cases[COUNT:])
    assert cases == make_cases(kind, SEED)


@pytest.mark.parametrize("kind", KINDS)
def test_labels_lie_inside_the_text_without_blanks_at_their_ends(kind: str) -> None:
    for case in drawn(kind):
        places = [place for value in case.values for place in value]
        assert places == sorted(set(places))
        assert all(0 <= place <= len(case.text) for place in places)
        for start, end in case.values:
            assert case.text[start:end] == case.text[start:end].strip()


@pytest.mark.parametrize("kind", PERSONAL)
def test_labels_of_personal_data_do_not_end_inside_a_word(kind: str) -> None:
    for case in drawn(kind):
        for start, end in case.values:
            around = case.text[max(start - 1, 0) : start] + case.text[end : end + 1]
            assert not re.search(r"[A-Za-z0-9]", around), case


def test_labelled_addresses_cards_and_accounts_are_valid() -> None:
    mail = re.compile(
        r"[\w.+-]+(?:@| at |\(at\)| \[at\] | AT |&#64;)\w[\w.-]*(?:[.\w-]| \[dot\] | DOT )+"
    )
    assert [text for text in labels("email") if not mail.fullmatch(text)] == []
    hosts = [text for text in labels("ip_address") if "@" not in text]
    assert all(ipaddress.ip_address(text).is_global for text in hosts)
    assert {ipaddress.ip_address(text).version for text in hosts} == {4, 6}
    digits = [re.sub(r"\D", "", text) for text in labels("card")]
    assert {len(number) for number in digits} == {15, 16}
    assert all(passes_luhn(number) for number in digits)
    accounts = [re.sub(r"[\s-]", "", text) for text in labels("iban")]
    assert all(is_account(text) for text in accounts)
    assert len({text[:2] for text in accounts}) >= 30


def test_labelled_phone_numbers_are_valid_in_one_of_many_countries() -> None:
    countries = sorted(blind_texts("blind2")["phones"])
    numbers = [text for text in labels("phone") if "@" not in text]
    assert all(any(is_valid_phone(text, country) for country in countries) for text in numbers)
    templates = "\n".join(blind_texts("blind2")["positives"]["phone"])
    assert {country for country in countries if f"{{{country}}}" in templates} == set(countries)
    assert len(countries) >= 50


@pytest.mark.parametrize("kind", sorted(SHAPES))
def test_labelled_secrets_have_the_shape_of_their_service(kind: str) -> None:
    other = re.compile(r"[\w.+-]+@[\w.-]+")
    values = [text for text in labels(kind) if not other.fullmatch(text) or "assw" in kind]
    if "assw" in kind:
        values = [
            text for text in values if not re.fullmatch(r"[\w.+-]+@[\w-]+(?:\.[a-z]+)+", text)
        ]
    assert [text for text in values if not re.fullmatch(SHAPES[kind], text)] == []


def test_labelled_web_tokens_are_signed_claims() -> None:
    for text in labels("json_web_token"):
        header, claims, signature = text.split(".")
        parts = [json.loads(base64.urlsafe_b64decode(part + "==")) for part in (header, claims)]
        assert parts[0]["typ"] == "JWT"
        assert "iat" in parts[1]
        assert len(signature) >= 43


def test_a_token_split_over_lines_holds_exactly_one_end_of_a_line() -> None:
    assert all(len(text.splitlines()) == 2 for text in labels(SPLIT))


def test_texts_without_a_label_hold_no_valid_card_or_account() -> None:
    for case in (case for kind in KINDS for case in drawn(kind) if not case.values):
        runs = re.findall(r"(?<!\d[ -])(?<![\w.,/-])\d(?:[ -]?\d){15}(?![ -]?\d)", case.text)
        numbers = {re.sub(r"\D", "", run) for run in runs} - PUBLISHED_CARDS
        issued = [number for number in numbers if re.match(r"4|5[1-5]", number)]
        assert not any(map(passes_luhn, issued)), case
        runs = re.findall(
            r"\b(?:DE|AT|BE|ES|PL|FI)\d\d(?:[ ]?\d{4}){2,6}(?:[ ]?\d{1,4})?\b", case.text
        )
        accounts = {run.replace(" ", "") for run in runs} - SPECIMEN_ACCOUNTS
        sizes = {"DE": 22, "AT": 20, "BE": 16, "ES": 24, "PL": 28, "FI": 18}
        assert not any(is_account(text) for text in accounts if len(text) == sizes[text[:2]]), case


def test_no_run_of_eight_words_is_in_another_set() -> None:
    folder = Path(redaction_blind.__file__).parent
    own = shingles([blind_texts("blind2")[group] for group in ("positives", "negatives")])
    assert len(own) > 1000
    for name in ("redaction_texts.yaml", "redaction_texts_blind.yaml"):
        other = yaml.safe_load((folder / name).read_text(encoding="utf-8"))
        assert own & shingles(other) == set(), name


def test_only_braces_of_source_code_remain_as_unknown_slots() -> None:
    texts = [blind_texts("blind2")[group] for group in ("positives", "negatives")]
    fillers = set(SETS["blind2"].fillers)
    unknown = {name for text in strings(texts) for name in SLOT.findall(text)} - fillers
    unknown = {name for name in unknown if not re.fullmatch(r"[dhxaAnb]\d+|esc|ind\d", name)}
    assert unknown == {"access_token", "key", "pass", "rcpt", "token"} & unknown


def test_a_seed_draws_from_the_set_that_began_last() -> None:
    assert [find_set(seed).name for seed in (2000, 2999, 3000, 3999)] == ["blind"] * 2 + [
        "blind2"
    ] * 2
    with pytest.raises(ValueError, match="1999"):
        find_set(1999)
    assert NEWEST == "blind2"
    assert seed_side(SECOND_BLIND_SEED) == "test"


@pytest.mark.parametrize(
    ("arguments", "seed"),
    [([], "3000"), (["--set", "blind"], "2000"), (["--set", "blind2", "--seed", "3007"], "3007")],
)
def test_the_program_runs_a_seed_of_the_chosen_set(
    arguments: list[str], seed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr("sys.argv", ["redaction_blind.py"])
    monkeypatch.setattr(redaction, "main", lambda: seen.extend(sys.argv))
    redaction_blind.main([*arguments, "--kinds", "card"])
    assert seen == ["redaction.py", "--seed", seed, "--kinds", "card"]


def test_a_seed_of_another_set_is_a_usage_error() -> None:
    with pytest.raises(SystemExit) as error:
        redaction_blind.main(["--set", "blind2", "--seed", "2000"])
    assert error.value.code == 2
