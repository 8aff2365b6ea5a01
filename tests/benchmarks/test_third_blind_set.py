"""The third blind set is what its policy says: counts, places of labels, check digits, forms.

The checks are written against published formats (ISO 13616 lengths, RFC 7519, the token of GitHub's
documentation), not against the generator, and no redaction rule runs here.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import random
import re
from collections import Counter
from functools import cache
from typing import Any

import phonenumbers
import pytest

from tests.benchmarks import redaction_blind, redaction_cases
from tests.benchmarks.third_blind_people import (
    ACCOUNTS,
    FREE_MAIL,
    PHONES,
    luhn_digit,
    make_iban,
    make_phone,
    remainder_97,
)
from tests.benchmarks.third_blind_secrets import PROVIDERS, checksum
from tests.benchmarks.third_blind_set import (
    COUNT,
    KINDS,
    PROSE,
    SECRETS,
    SEED,
    TEXTS,
    Example,
    Writer,
    main,
    make_cases,
    make_examples,
    read_neighbours,
    read_templates,
)

IBAN_LENGTHS = {"AT": 20, "BE": 16, "CH": 21, "CZ": 24, "DE": 22, "DK": 18, "ES": 24, "FR": 27}
IBAN_LENGTHS |= {"GB": 22, "IE": 22, "IT": 27, "LU": 20, "NL": 18, "NO": 15, "PL": 28, "PT": 25}
IBAN_LENGTHS |= {"SE": 24, "TR": 26}
"""From the registry of ISO 13616 (SWIFT, release 99)."""

RESERVED = re.compile(
    r"(^|\.)(example(\.(com|org|net))?|test|invalid|localhost)$"
)  # RFC 2606, 6761


@cache
def drawn(kind: str, positive: bool = True) -> list[Example]:
    return make_examples(kind, positive=positive)


def values(kind: str) -> list[str]:
    return [label.value for one in drawn(kind) for label in one.labels if label.kind == kind]


def digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def unlabelled(example: Example) -> str:
    """The text without its labels."""
    text, last = "", 0
    for label in example.labels:
        text += example.text[last : label.start] + "\0"
        last = label.end
    return text + example.text[last:]


@cache
def other_texts() -> tuple[str, ...]:
    """All that the earlier sets draw at their first seeds, which this author never read."""
    seeds = {redaction_blind.FIRST_BLIND_SEED, redaction_blind.SECOND_BLIND_SEED, 1, 2}
    kinds = redaction_cases.KINDS
    cases = (redaction_cases.make_cases(kind, seed) for kind in kinds for seed in sorted(seeds))
    return tuple(case.text for group in cases for case in group)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_200_different_texts_with_labels_and_200_without(kind: str) -> None:
    cases = make_cases(kind)
    assert len({case.text for case in cases}) == 2 * COUNT == 400
    assert all(case.values for case in cases[:COUNT])
    assert not any(case.values for case in cases[COUNT:])
    assert not any(one.labels for one in drawn(kind, False))


@pytest.mark.parametrize("kind", KINDS)
def test_no_template_carries_more_than_a_twentieth_of_a_side(kind: str) -> None:
    for positive in (True, False):
        uses = Counter(one.template for one in drawn(kind, positive))
        assert len(uses) >= 30
        assert max(uses.values()) <= COUNT // 20


@pytest.mark.parametrize("kind", KINDS)
def test_labels_are_in_order_and_equal_their_text(kind: str) -> None:
    for one in drawn(kind):
        last = 0
        for label in one.labels:
            assert last <= label.start < label.end <= len(one.text)
            assert one.text[label.start : label.end] == label.value == label.value.strip()
            last = label.end


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_of_one_to_sixty_lines(kind: str) -> None:
    sizes = [one.text.count("\n") + 1 for side in (True, False) for one in drawn(kind, side)]
    assert max(sizes) <= 60
    assert len(set(sizes)) > 10


@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_other_kinds_are_of_mail_telephone_and_network_only(kind: str) -> None:
    kinds = {label.kind for one in drawn(kind) for label in one.labels}
    assert kinds <= {kind, "email", "phone", "ip"}
    assert kind in kinds


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_draws_the_same_texts_again_and_another_seed_others(kind: str) -> None:
    assert make_examples(kind, positive=True, count=30) == drawn(kind)[:30]
    others = {one.text for one in make_examples(kind, positive=True, seed=SEED + 1)}
    assert len(others & {one.text for one in drawn(kind)}) < COUNT // 10


def test_all_slots_are_filled_and_all_kinds_of_document_have_neighbours() -> None:
    for path in TEXTS.glob("*.txt"):
        text = path.read_text(encoding="utf-8")
        assert text.count("⟦") == text.count("⟧")
        assert "\t\n" not in text
    documents = {
        template.document
        for kind in KINDS
        for templates in read_templates(kind).values()
        for template in templates
    }
    assert documents - {"none"} == set(read_neighbours())
    for kind in KINDS:
        assert not any("⟦" in one.text for side in (True, False) for one in drawn(kind, side))


def test_a_person_of_one_number_is_the_same_in_all_slots() -> None:
    writer = Writer(random.Random(3))
    writer.write("⟦email:de#1⟧ ⟦email:de#1⟧ ⟦name:de#1⟧ ⟦name:de#1⟧ ⟦name:de#2⟧")
    first, second, rest = "".join(writer.parts).split(" ", 2)
    assert first == second
    assert [label.start for label in writer.labels] == [0, len(first) + 1]
    words = rest.split()
    assert words[:2] == words[2:4] != words[4:]


def test_mail_addresses_are_of_real_or_invented_domains_but_of_no_reserved_one() -> None:
    plain = [value for value in values("email") if "@" in value]
    spelled = [value for value in values("email") if "@" not in value]
    assert 3 <= len(spelled) <= 10
    assert all(re.search(r" \(?\[?(at|AT)\]?\)? ", value) for value in spelled)
    for value in plain:
        local, _, domain = value.partition("@")
        assert re.fullmatch(r"[\w.+-]+", local)
        assert re.fullmatch(r"([a-z0-9-]+\.)+[a-z]{2,}", domain)
        assert not RESERVED.search(domain)
    assert any(not value.isascii() for value in plain)  # RFC 6531


def test_no_text_without_labels_holds_the_address_of_a_person() -> None:
    machines = re.compile(
        r"^git@|@\dx\.|\.(service|internal|local|sentry\.io)$|^PASSWORD@|^Task@[0-9a-f]{7}\.run$"
    )
    for kind in KINDS:
        for positive in (True, False):
            for one in drawn(kind, positive):
                for text in re.findall(r"[\w.+-]+@[\w-]+(?:\.\w+)*\.[a-z]{2,}", unlabelled(one)):
                    domain = text.partition("@")[2]
                    handle = domain == "fosstodon.org"
                    assert RESERVED.search(domain) or machines.search(text) or handle, text


def test_telephones_exist_in_numbering_plans_of_many_countries() -> None:
    for place in (*PHONES, "intl", "e164"):
        rng = random.Random(place)
        for _ in range(200 if place in ("intl", "e164") else 30):
            country = PHONES.get(place) and place
            text = make_phone(rng, place)
            number = phonenumbers.parse(re.sub(r"^00", "+", text), country)
            assert phonenumbers.is_valid_number(number), text
    abroad = [value for value in values("phone") if value.startswith("+")]
    codes = {phonenumbers.parse(value, None).country_code for value in abroad}
    assert len(codes) >= 15
    assert len(values("phone")) - len(abroad) > COUNT // 2  # most are as a country writes them


def test_an_extension_belongs_to_a_telephone() -> None:
    extensions = [value for value in values("phone") if "x" in value]
    assert extensions
    assert all(phonenumbers.parse(value, "US").extension for value in extensions)


def test_network_addresses_are_public_with_both_versions_and_versions_in_the_negatives() -> None:
    addresses = [ipaddress.ip_address(value) for value in values("ip")]
    assert all(address.is_global for address in addresses)
    assert min(Counter(address.version for address in addresses).values()) >= 20
    quads = [
        text for one in drawn("ip", False) for text in re.findall(r"\d+(?:\.\d+){3}", one.text)
    ]
    assert len(quads) > 100


def test_cards_pass_luhn_and_are_of_many_networks() -> None:
    numbers = [digits(value) for value in values("card")]
    assert all(luhn_digit(number[:-1]) == number[-1] for number in numbers)
    assert {len(number) for number in numbers} == {14, 15, 16}
    assert {"2", "3", "4", "5", "6"} == {number[0] for number in numbers}
    # ISO/IEC 7812-1, annex B: the check digit of 7992739871 is 3.
    assert luhn_digit("7992739871") == "3"
    assert {" ", "-", "\N{NO-BREAK SPACE}", ""} <= {
        re.sub(r"\d", "", one)[:1] for one in values("card")
    }


def test_accounts_have_the_length_of_their_country_and_remainder_one() -> None:
    numbers = [re.sub(r"\s", "", value) for value in values("iban")]
    for number in numbers:
        assert len(number) == IBAN_LENGTHS[number[:2]]
        assert remainder_97(number[4:] + number[:4]) == 1
    assert len({number[:2] for number in numbers}) == len(IBAN_LENGTHS)


def test_national_check_digits_of_accounts_are_right() -> None:
    def bodies(country: str) -> list[str]:
        rng = random.Random(country)
        return [make_iban(rng, f"{country}-solid")[4:] for _ in range(400)]

    # Belgium: the last two digits are the first ten modulo 97, and 97 for 0.
    belgian = bodies("BE")
    assert all(int(body[10:]) == (int(body[:10]) % 97 or 97) for body in belgian)
    assert any(body.endswith("97") for body in belgian)
    # France: 89 × bank + 15 × branch + 3 × account + key is divisible by 97.
    for body in bodies("FR"):
        weighted = 89 * int(body[:5]) + 15 * int(body[5:10]) + 3 * int(body[10:21])
        assert (weighted + int(body[21:])) % 97 == 0
    # The Netherlands: weights 10 to 1 on ten digits give a multiple of 11.
    for body in bodies("NL"):
        assert sum((10 - at) * int(digit) for at, digit in enumerate(body[4:])) % 11 == 0
    # Portugal: the 21 digits are 1 modulo 97.
    assert all(int(body) % 97 == 1 for body in bodies("PT"))
    # Published accounts of the countries' own documentation, with their national check digits.
    assert published_check("ES", "00120345030000067890") == "03"
    assert published_check("IT", "X0542811101000000123456") == "X"
    assert published_check("NO", "86011117947") == "7"


def published_check(country: str, body: str) -> str:
    """The check digits that the generator computes for a published account."""

    class Fixed(random.Random):
        """Draws the digits of an account in turn."""

        def choice(self, options: Any) -> Any:
            return next(digits_left)

    if country == "ES":
        digits_left = iter(body[1:8] + body[10:])
        return ACCOUNTS["ES"](Fixed())[8:10]
    if country == "IT":
        digits_left = iter(body[2:])
        return ACCOUNTS["IT"](Fixed())[0]
    digits_left = iter(body[:10])
    return ACCOUNTS["NO"](Fixed())[-1]


def test_negatives_of_accounts_hold_none() -> None:
    for one in drawn("iban", False):
        for text in re.findall(r"\b([A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30})\b", one.text):
            solid = text.replace(" ", "")
            size = IBAN_LENGTHS.get(solid[:2], 0)
            if size and len(solid) >= size:
                account = solid[:size]
                assert remainder_97(account[4:] + account[:4]) != 1, one.text


def test_web_tokens_are_signed_claims() -> None:
    sizes = {"HS256": 32, "RS256": 256, "ES256": 64, "HS512": 64}
    for value in values("jwt"):
        header, claims, signature = (
            base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in value.split(".")
        )
        assert isinstance(json.loads(claims), dict)
        assert len(signature) == sizes[json.loads(header)["alg"]]
    for one in drawn("jwt", False):
        assert not re.search(r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{20,}", one.text)


def test_private_keys_are_whole_blocks_and_negatives_hold_no_body_of_one() -> None:
    for value in values("private_key"):
        begin = re.match(r"-----BEGIN ([A-Z ]*PRIVATE KEY(?: BLOCK)?)-----", value)
        assert begin
        assert value.endswith(f"-----END {begin[1]}-----")
        assert value.count("-----BEGIN") == 1
    labels = Counter(value.split("-----")[1] for value in values("private_key"))
    assert len(labels) >= 7
    rsa = [value for value in values("private_key") if "RSA" in value and "DEK-Info" not in value]
    body = digits_of_pem(rsa[0])
    assert body[:4] == bytes.fromhex("308204a4")  # RFC 8017: a sequence of 1,188 bytes
    assert len(body) == 1192
    for one in drawn("private_key", False):
        assert not re.search(r"PRIVATE KEY-----(\\n|\s)+[A-Za-z0-9+/=]{40}", one.text)


def digits_of_pem(block: str) -> bytes:
    lines = block.replace("\\n", "\n").split("\n")
    return base64.b64decode("".join(line.strip() for line in lines[1:-1]))


FORMS = {
    "aws_id": r"A(KIA|SIA)[A-Z2-7]{16}",
    "aws_secret": r"[A-Za-z0-9/+]{40}",
    "github": r"gh[pous]_[A-Za-z0-9]{36}",
    "github_fine": r"github_pat_\w{22}_\w{59}",
    "gitlab": r"glpat-[\w-]{20}",
    "slack_hook": r"https://hooks\.slack\.com/services/T\w+/B\w+/\w{24}",
    "stripe": r"[sr]k_(live|test)_[A-Za-z0-9]{24,99}",
    "google_key": r"AIza[\w-]{35}",
    "google_secret": r"GOCSPX-[\w-]{28}",
    "azure_client": r"\w{3}\dQ~[\w.~-]{34}",
    "azure_storage": r"[A-Za-z0-9+/]{86}==",
    "azure_devops": r"[a-z2-7]{52}",
    "telegram": r"\d{8,10}:AA[\w-]{33}",
    "docker": r"dckr_pat_[\w-]{27}",
    "shopify": r"shp(at|ss|ca|pa)_[0-9a-f]{32}",
    "twilio_key": r"SK[0-9a-f]{32}",
    "digitalocean": r"do[op]_v1_[0-9a-f]{64}",
    "npm": r"npm_[A-Za-z0-9]{36}",
    "pypi": r"pypi-AgEIcHlwaS5vcmc[\w-]{50,}",
    "sendgrid": r"SG\.[\w-]{22}\.[\w-]{43}",
    "huggingface": r"hf_[A-Za-z]{34}",
    "openai": r"sk-(proj-)?[\w-]+T3BlbkFJ[\w-]+",
    "anthropic": r"sk-ant-api03-[\w-]{93}AA",
}
"""What the services and their scanners publish, apart from what is drawn."""


@pytest.mark.parametrize("name", FORMS)
def test_keys_have_the_form_that_their_service_publishes(name: str) -> None:
    rng = random.Random(name)
    for _ in range(50):
        assert re.fullmatch(FORMS[name], PROVIDERS[name](rng, ""))
    assert any(re.fullmatch(FORMS[name], value) for value in values("provider_key"))


def test_tokens_of_github_and_npm_end_in_their_checksum() -> None:
    # The token in "Behind GitHub's new authentication token formats" and its known checksum.
    assert checksum("zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ") == "0mLq17"
    tokens = [value for value in values("provider_key") if re.match(r"(gh._|npm_)", value)]
    assert len(tokens) >= 15
    assert all(checksum(token[4:34]) == token[34:] for token in tokens)


def test_negatives_of_keys_hold_no_token_of_a_known_form() -> None:
    names = [name for name in FORMS if name not in ("aws_secret", "azure_devops", "azure_storage")]
    for one in drawn("provider_key", False):
        for name in names:
            for match in re.finditer(rf"(?<!\w){FORMS[name]}(?!\w)", one.text):
                assert "xxxxxxxx" in match[0].lower(), one.text  # a placeholder


def test_a_broken_token_holds_a_line_end_and_joins_to_a_token() -> None:
    joined = [
        re.sub(r'=?\\?"?(?: \+)?\r?\n(?:> )?\s*"?', "", value) for value in values("broken_token")
    ]
    assert all("\n" in value for value in values("broken_token"))
    known = [*FORMS.values(), r"eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+", r"xox[bp]-[\w-]+", r"xapp-[\w-]+"]
    known += [r"ya29\.[\w-]+"]
    assert all(any(re.fullmatch(form, token) for form in known) for token in joined)


def test_passwords_are_drawn_by_people_and_by_programs_and_are_no_placeholder() -> None:
    common = {"password", "changeme", "secret", "postgres", "guest", "root", "admin", "test"}
    for kind in ("password", "connection"):
        assert not common & {value.lower() for value in values(kind)}
        words = [value for value in values(kind) if re.match(r"[A-Z]?[a-z034]{5,}", value)]
        assert COUNT // 10 < len(words) < COUNT
        assert len(set(values(kind))) > len(values(kind)) - 5  # people's may coincide


@pytest.mark.full
def test_no_invented_domain_and_no_run_of_eight_words_of_prose_is_in_an_earlier_set() -> None:
    def domains(texts: list[str] | tuple[str, ...]) -> set[str]:
        names = {name.lower() for text in texts for name in re.findall(r"@([\w.-]+\.\w{2,})", text)}
        free = {name for group in FREE_MAIL.values() for name in group.split()}
        return {name for name in names if name not in free and not RESERVED.search(name)}

    def runs(texts: list[str] | tuple[str, ...]) -> set[tuple[str, ...]]:
        words = (re.findall(r"\w+", text) for text in texts)
        parts = (tuple(one[at : at + 8]) for one in words for at in range(len(one) - 7))
        return {part for part in parts if sum(map(str.isalpha, part)) > 4}

    def is_prose(one: Example, positive: bool) -> bool:
        side = "positive" if positive else "negative"
        return read_templates(one.kind)[side][one.template].document in (*PROSE, "forum", "chat")

    groups = [(kind, side) for kind in KINDS for side in (True, False)]
    mine = [one.text for group in groups for one in drawn(*group)]
    prose = [one.text for group in groups for one in drawn(*group) if is_prose(one, group[1])]
    invented = {value.partition("@")[2].lower() for value in values("email")} & domains(mine)
    assert invented
    shared = [invented & domains(other_texts()), runs(prose) & runs(other_texts())]
    assert shared == [set(), set()]  # a failure prints nothing of the other sets


def test_the_program_prints_counts_and_texts(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--show", "iban", "--count", "5"])
    printed = capsys.readouterr().out
    assert printed.count(f"{'=' * 20} iban") == 10
    assert "iban             5 with labels" in printed
    main(["--count", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(KINDS) + 1
    assert lines[-1].startswith(f"seed {SEED}: sha256 ")
    assert set(SECRETS) < set(KINDS)
