"""The fifth blind set's labels and values are right; no rule of redaction runs here."""

from __future__ import annotations

import ipaddress
import json
import random
import re
import zlib
from base64 import b64decode, urlsafe_b64decode

import pytest

from tests.benchmarks.fifth_blind import CARRIED, KINDS, MAKERS, make_cases, templates_of
from tests.benchmarks.fifth_blind.credentials import BREAKS, JOINTS, break_token, key_der
from tests.benchmarks.fifth_blind.fillers import new_scene
from tests.benchmarks.fifth_blind.personal import BBAN, COUNTRIES, PERSONAL_MAKERS, make_phone
from tests.benchmarks.fifth_blind.services import SERVICES, checksum62
from tests.benchmarks.fifth_blind.templates import Scene, fill, load, slots_of
from tests.benchmarks.redaction import cases_of, kinds_of
from tests.benchmarks.splits import FIFTH_BLIND_SEED

SEEDS = (FIFTH_BLIND_SEED, FIFTH_BLIND_SEED + 1)


def values(kind: str, seed: int = FIFTH_BLIND_SEED) -> list[str]:
    return [case.text[a:b] for case in make_cases(kind, seed) for a, b in case.values]


def drawn(maker: str, argument: str = "", count: int = 200) -> list[str]:
    scenes = (new_scene(random.Random(f"{maker} {n}")) for n in range(count))
    return [MAKERS[maker](scene, argument) for scene in scenes]


def luhn_sum(digits: str) -> int:
    doubled = {str(n): 2 * n - (9 if n > 4 else 0) for n in range(10)}
    return sum(doubled[d] if n % 2 else int(d) for n, d in enumerate(reversed(digits)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_kind_has_200_positives_and_200_hard_negatives(kind: str, seed: int) -> None:
    cases = make_cases(kind, seed)
    assert [bool(case.values) for case in cases] == [True] * 200 + [False] * 200
    assert len({case.text for case in cases}) == 400
    assert {case.kind for case in cases} == {kind}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_at_least_40_templates_of_each_sort(kind: str) -> None:
    for positive in (True, False):
        texts = [template.text for template in templates_of(kind, positive)]
        assert len(set(texts)) == len(texts) >= 40


@pytest.mark.parametrize("kind", KINDS)
def test_labels_lie_inside_their_text_in_order(kind: str) -> None:
    for case in make_cases(kind, FIFTH_BLIND_SEED):
        assert "⟦" not in case.text
        assert "⟨" not in case.text
        end = 0
        for start, stop in case.values:
            assert end <= start < stop <= len(case.text)
            assert case.text[start:stop] == case.text[start:stop].strip()
            end = stop


def test_a_seed_gives_equal_bytes_and_another_seed_others() -> None:
    for kind in KINDS:
        first, again, other = (make_cases(kind, seed) for seed in (12001, 12001, 12002))
        assert first == again
        assert first != other


def test_a_place_is_that_of_its_value() -> None:
    makers = {"one": lambda scene, argument: "12" + argument, "two": lambda scene, _: "a"}
    text, places = fill("x ⟦one:34⟧, ⟨two⟩⟦two⟧", makers, Scene(random.Random(1)), labelled=True)
    assert (text, places) == ("x 1234, aa", [(2, 6), (9, 10)])


def test_a_repeated_value_has_two_places() -> None:
    makers = {"n": lambda scene, _: str(scene.rng.random())}
    text, places = fill("⟦n#1⟧ ⟦n#1⟧", makers, Scene(random.Random(1)), labelled=True)
    assert len(places) == 2
    assert len({text[a:b] for a, b in places}) == 1


def test_a_webhook_is_labelled_without_its_host() -> None:
    url = "https://hooks.slack.com/services/T0/B0/x"
    text, places = fill("⟦u⟧", {"u": lambda scene, _: url}, Scene(random.Random(1)), labelled=True)
    assert [text[a:b] for a, b in places] == ["T0/B0/x"]


def test_templates_name_only_makers_and_hard_negatives_have_no_label() -> None:
    for kind in (*KINDS, "carriers", "surroundings"):
        for template in load(kind):
            assert set(slots_of(template.text)) <= set(MAKERS)
            if template.sign == "-" or kind == "surroundings":
                assert "⟦" not in template.text
            else:
                assert "⟦" in template.text


def test_carriers_are_filled_by_name() -> None:
    assert {slot for part in load("carriers") for slot in slots_of(part.text)} >= {"value", "name"}
    assert set(KINDS) >= CARRIED


def test_addresses_have_no_reserved_domain() -> None:
    for address in values("email"):
        local, at, domain = address.rpartition("@")
        assert local
        assert at
        assert not re.search(r"\.(test|invalid|example|localhost)$|^example\.", domain.lower())
        assert re.fullmatch(r"[\w-]+(\.[\w-]+)+", domain)


def test_numbers_are_dialled_by_the_plan_of_their_country() -> None:
    phonenumbers = pytest.importorskip("phonenumbers")
    for country in COUNTRIES:
        region = {"uk": "GB"}.get(country, country.upper())
        for n in range(100):
            number = make_phone(new_scene(random.Random(n)), country).replace("(0)", "")
            assert phonenumbers.is_valid_number(phonenumbers.parse(number, region)), number


def test_addresses_of_hosts_are_public_and_the_others_are_not() -> None:
    assert all(ipaddress.ip_address(value).is_global for value in values("ip"))
    for maker in ("docip", "privateip"):
        assert not any(ipaddress.ip_address(value).is_global for value in drawn(maker))


def test_cards_pass_luhn_and_their_near_misses_do_not() -> None:
    published = {"4242424242424242", "4111111111111111", "5555555555554444", "378282246310005"}
    for value in values("card"):
        digits = re.sub(r"\D", "", value)
        assert luhn_sum(digits) % 10 == 0
        assert len(digits) in (14, 15, 16)
        assert digits not in published
    assert all(luhn_sum(re.sub(r"\D", "", value)) % 10 for value in drawn("cardmiss", "spaces"))


def test_ibans_have_remainder_one_and_their_near_misses_do_not() -> None:
    def remainder(iban: str) -> int:
        moved = iban[4:] + iban[:4]
        return int("".join(str(int(sign, 36)) for sign in moved)) % 97

    sizes = {
        country: 4 + sum(map(int, re.findall(r"\d+", structure)))
        for country, structure in BBAN.items()
    }
    # Lengths by the registry of SWIFT.
    assert [sizes[c] for c in ("DE", "GB", "FR", "NO", "PL", "CH")] == [22, 22, 27, 15, 28, 21]
    for value in values("iban"):
        iban = re.sub(r"\s", "", value).upper()
        assert len(iban) == sizes[iban[:2]]
        assert remainder(iban) == 1
        assert 2 <= int(iban[2:4]) <= 98
    assert all(remainder(re.sub(r"\s", "", value)) != 1 for value in drawn("ibanmiss", "spaces"))
    assert all(remainder(value.replace(" ", "")) == 1 for value in drawn("creditor"))


def test_isbns_have_their_check_digit() -> None:
    for value in drawn("isbn", "dashes"):
        digits = value.replace("-", "")
        assert sum(int(d) * (3 if n % 2 else 1) for n, d in enumerate(digits)) % 10 == 0


def test_json_web_tokens_decode() -> None:
    for token in values("jwt"):
        head, claims, signature = token.split(".")
        decoded = [
            json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4))) for part in (head, claims)
        ]
        assert decoded[0]["typ"] == "JWT"
        assert decoded[0]["alg"] in {"HS256", "HS512", "RS256", "ES256"}
        assert decoded[1]["exp"] > decoded[1]["iat"]
        size = {"HS256": 32, "HS512": 64, "RS256": 256, "ES256": 64}[decoded[0]["alg"]]
        assert len(urlsafe_b64decode(signature + "=" * (-len(signature) % 4))) == size


@pytest.mark.parametrize("form", ["rsa", "ec", "pkcs8", "ed25519", "dsa", "encrypted"])
def test_a_private_key_is_one_sequence_of_der(form: str) -> None:
    data = key_der(random.Random(4), form)
    count = data[1] & 127 if data[1] > 127 else 0
    size = int.from_bytes(data[2 : 2 + count]) if count else data[1]
    assert data[0] == 0x30
    assert len(data) == 2 + count + size


def test_pem_bodies_decode_when_their_joints_are_removed() -> None:
    for name, joint in JOINTS.items():
        for form in ("rsa", "openssh"):
            scene = new_scene(random.Random(name))
            body = MAKERS["keybody"](scene, f"{form},{name}")
            text = body.replace(joint, "") if joint else body
            data = b64decode(text, validate=True)
            assert data.startswith(b"\x30" if form == "rsa" else b"openssh-key-v1\0")


def test_at_least_30_services_and_their_checksums() -> None:
    assert len(SERVICES) >= 30
    for name in ("github", "github_oauth", "github_app", "npm"):
        token = SERVICES[name].make(random.Random(name))
        prefix, body, check = token[:4], token[4:34], token[34:]
        assert prefix.endswith("_")
        assert checksum62(body) == check
    head, _, check = SERVICES["grafana"].make(random.Random(3)).rpartition("_")
    assert zlib.crc32(head.encode()).to_bytes(4, "little").hex() == check
    macaroon = SERVICES["pypi"].make(random.Random(3)).removeprefix("pypi-")
    assert macaroon.startswith("AgEIcHlwaS5vcmc")  # As PyPI's documentation shows it.


def test_base_62_is_that_of_githubs_checksum() -> None:
    # CRC-32 of "123456789" is 0xCBF43926 (the check value of the standard): 3421780262.
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    number = 0
    for digit in checksum62("123456789"):
        number = number * 62 + digits.index(digit)
    assert number == 0xCBF43926


def test_many_services_are_in_one_set() -> None:
    keys = values("provider_key")
    prefixes = ("ghp_", "glpat-", "xoxb-", "sk_live_", "AKIA", "AIza", "SG.", "npm_", "hf_")
    assert all(any(key.startswith(prefix) for key in keys) for prefix in prefixes)


def test_no_password_is_a_placeholder() -> None:
    words = re.compile(r"password|changeme|change-me|secret|xxxx|\*\*\*|your|example|[${}<>]", re.I)
    for kind in ("password", "connection"):
        assert not [value for value in values(kind) if words.search(value)]


def test_basic_credentials_decode_to_a_user_and_a_password() -> None:
    for value in drawn("basic"):
        user, _, password = b64decode(value, validate=True).decode().partition(":")
        assert user
        assert password


@pytest.mark.parametrize("joint", sorted(BREAKS))
def test_a_broken_token_is_whole_without_its_breaks(joint: str) -> None:
    token = "".join(random.Random(joint).choices("abcdefgh0123", k=150))
    broken = break_token(random.Random(1), token, BREAKS[joint], 64)
    assert broken.count(BREAKS[joint]) >= 1
    assert broken.replace(BREAKS[joint], "") == token


def test_every_broken_token_has_a_line_end() -> None:
    assert all("\n" in value for value in values("broken_token"))


def test_a_personal_maker_is_named_once() -> None:
    assert all(MAKERS[name] is maker for name, maker in PERSONAL_MAKERS.items())


def test_a_seed_from_12001_on_selects_the_set() -> None:
    assert kinds_of(FIFTH_BLIND_SEED) == KINDS
    assert [case.text for case in cases_of("ip", FIFTH_BLIND_SEED)] == [
        case.text for case in make_cases("ip", FIFTH_BLIND_SEED)
    ]
    assert cases_of("ip", FIFTH_BLIND_SEED)[0].kind == "ip_address"
    assert cases_of("email", FIFTH_BLIND_SEED - 1) != cases_of("email", FIFTH_BLIND_SEED)


def test_an_unknown_kind_is_rejected() -> None:
    with pytest.raises(ValueError, match="no kind"):
        make_cases("passport", FIFTH_BLIND_SEED)
