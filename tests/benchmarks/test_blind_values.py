"""Values of the newest blind sets are what standards say, and labelled whole. No rule runs here.

Whether an account's or a card's number is right is python-stdnum's word, which no set's maker uses.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import re
from functools import cache

import pytest
from stdnum import iban, luhn

from tests.benchmarks.blind_set import KINDS, BlindSet, values_of
from tests.benchmarks.blind_standards import (
    SIGNATURES,
    bech32,
    crc24,
    crc_base62,
    decode_segment,
    der,
    der_end,
    luhn_digit,
    segment,
)
from tests.benchmarks.redaction import LATER_SETS
from tests.benchmarks.redaction_cases import Case
from tests.benchmarks.splits import FIFTEENTH_BLIND_SEED, TENTH_BLIND_SEED
from tests.benchmarks.tenth_blind.personal import PUBLISHED_IBANS, TEST_CARDS

SETS = {
    one.ordinal: (one, first)
    for first, one in LATER_SETS
    if isinstance(one, BlindSet) and first >= TENTH_BLIND_SEED
}
every_set = pytest.mark.parametrize("name", SETS)
older_set = pytest.mark.parametrize(
    "name", [name for name, (_, first) in SETS.items() if first < FIFTEENTH_BLIND_SEED]
)
"""Later ones have further forms, and published examples among their negatives: see their test."""


@cache
def positives(name: str, kind: str) -> list[Case]:
    """Texts of a kind with values."""
    one, seed = SETS[name]
    return one.positives(kind, seed)


@cache
def negatives(name: str, kind: str) -> list[Case]:
    """Texts of a kind without a value."""
    one, seed = SETS[name]
    return one.negatives(kind, seed)


def test_checksums_are_those_of_published_examples() -> None:
    # the example of ISO/IEC 7812-1 that articles on Luhn's formula quote: 7992739871 takes a 3
    assert luhn_digit("7992739871") == "3"
    # the CRC-24 of "123456789" that catalogues of checksums give for OpenPGP
    assert crc24(b"123456789") == 0x21CF02
    # BIP 173: the empty Bech32 text of prefix "a" is "a12uel5l"
    assert bech32("a", b"") == "a12uel5l"
    # the revoked token that articles on GitHub's token format take apart
    assert crc_base62("zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ") == "0mLq17"


@pytest.mark.parametrize("size", [0, 127, 128, 255, 256, 70_000])
def test_an_element_of_der_ends_where_its_length_says(size: int) -> None:
    element = der(4, b"x" * size)
    assert der_end(element + b"more") == len(element)
    assert element.endswith(b"x" * size)


def test_a_segment_of_a_web_token_is_decoded_to_its_bytes() -> None:
    for content in (b"", b"a", b"ab", b"abc", b"\xff\xfe"):
        assert decode_segment(segment(content)) == content


@every_set
def test_every_address_of_an_email_text_is_labelled_and_whole(name: str) -> None:
    for case in positives(name, "email"):
        assert len(re.findall(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", case.text)) == len(case.values)
        for value in values_of(case):
            assert re.fullmatch(r"[a-z0-9]+([._][a-z0-9]+)*@[a-z0-9-]+(\.[a-z-]+)+", value)


FICTION = re.compile(
    r"^(\+?1[ .-]?)?\(?[2-9]\d\d\)?[ .-]?555[ .-]?\d{4}$|\b020 7946 0|1632 960|7700 900|"
    r"\b0?1\d1 496 0|0491 57|\+61 [278] ?5550|"
    r"(\+33 |\b0)(1 99 00|2 61 91|3 53 01|4 65 71|5 36 49|6 39 98)"
)
"""Ranges that North America, Ofcom, ACMA and Arcep keep for drama."""


@every_set
def test_phones_avoid_the_ranges_kept_for_fiction(name: str) -> None:
    for case in positives(name, "phone"):
        for value in values_of(case):
            assert 6 <= len(re.sub(r"\D", "", value)) <= 15
            assert not FICTION.search(value), value


@older_set
def test_public_addresses_are_all_labelled_and_in_no_negative(name: str) -> None:
    for case in positives(name, "ip") + negatives(name, "ip"):
        for match in re.finditer(r"(?<![\w.])\d{1,3}(\.\d{1,3}){3}(?![\w.]*\d)", case.text):
            try:
                address = ipaddress.ip_address(match[0])
            except ValueError:  # 256.300.1.1
                continue
            # What is drawn as a version or a section has a small first part, or says what it is.
            version = re.search(r"([vV]ersion=\"|Chrome/)\Z", case.text[: match.start()])
            if match.span() not in case.values and address.packed[0] >= 20 and not version:
                assert not address.is_global or address.is_multicast, case.text


@every_set
@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_30_templates_of_each_sign(name: str, kind: str) -> None:
    for positive in (True, False):
        templates = SETS[name][0].templates_of(kind, positive)
        assert len({template.text.strip() for template in templates} - {""}) >= 30


@every_set
def test_no_digit_touches_a_labelled_phone_number(name: str) -> None:
    for case in positives(name, "phone"):
        for start, end in case.values:
            around = case.text[max(0, start - 1) : start] + case.text[end : end + 1]
            assert not re.search(r"[\d+]", around), case.text


@every_set
def test_cards_pass_luhn_and_have_the_length_of_their_network(name: str) -> None:
    sizes = {"34": 15, "37": 15, "36": 14}
    for case in positives(name, "card"):
        for digits in (re.sub(r"\D", "", value) for value in values_of(case)):
            assert luhn.is_valid(digits)
            assert len(digits) == sizes.get(digits[:2], 16)


@every_set
def test_ibans_are_those_of_their_country(name: str) -> None:
    for case in positives(name, "iban"):
        assert all(iban.is_valid(value, check_country=False) for value in values_of(case))


@older_set
def test_no_negative_holds_a_card_but_a_published_test_number(name: str) -> None:
    for case in negatives(name, "card"):
        for run in re.findall(r"(?<![\w.])[3-6](?:[ -]?\d){12,18}(?![\w-])", case.text):
            digits = re.sub(r"\D", "", run)
            # An IMEI has Luhn's digit as well; other lengths are of articles and accounts.
            may_be_card = len(digits) in (15, 16) and not re.match(r"35\d{13}\Z", digits)
            if may_be_card and digits not in TEST_CARDS:
                assert not luhn.is_valid(digits), case.text


@older_set
def test_no_negative_holds_an_iban_but_a_published_example(name: str) -> None:
    for case in negatives(name, "iban"):
        for run in re.findall(r"\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]){11,30}", case.text):
            compact = re.sub(r"[ -]", "", run)
            for end in range(15, len(compact) + 1):
                is_right = iban.is_valid(compact[:end], check_country=False)
                assert not is_right or compact[:end] in PUBLISHED_IBANS, case.text


@older_set
def test_jwts_decode_and_negatives_hold_no_signed_token(name: str) -> None:
    for case in positives(name, "jwt"):
        for value in values_of(case):
            head, claims, signature = map(decode_segment, value.split("."))
            assert json.loads(claims)["exp"] > json.loads(claims)["iat"]
            assert len(signature) == SIGNATURES[json.loads(head)["alg"]]
    signed = re.compile(r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}")
    for kind in ("jwt", "bearer"):
        assert not [case for case in negatives(name, kind) if signed.search(case.text)]


@older_set
def test_private_keys_are_whole_and_labelled_between_their_lines(name: str) -> None:
    checked = 0
    for case in positives(name, "private_key"):
        for start, end in case.values:
            before, after = case.text[:start], case.text[end:]
            if not re.search(r"BEGIN (RSA |EC |OPENSSH )?PRIVATE KEY-----\W*[nr]?\W*$", before):
                continue
            joint = after.partition("-----END")[0]
            assert re.fullmatch(r"(\\[rn]|[\s>+#\"-])*", joint), joint
            value = case.text[start:end].replace(joint, "") if joint else case.text[start:end]
            body = re.sub(r"\\n\" \+\n {4}\"|\\[rn]|\n[>#] |\s", "", value)
            content = base64.b64decode(body, validate=True)
            assert content.startswith(b"openssh-key-v1\0") or der_end(content) == len(content)
            checked += 1
    assert checked > 100
    secret = re.compile(
        r"PRIVATE KEY( BLOCK)?-----[\s\\n]*[A-Za-z0-9+/]{30}|AGE-SECRET-KEY-1\w{50}"
    )
    assert not [case for case in negatives(name, "private_key") if secret.search(case.text)]


@older_set
def test_parts_of_broken_tokens_make_one_token(name: str) -> None:
    checked = set()
    for case in positives(name, "broken_token"):
        assert all(len(value) >= 12 for value in values_of(case))
        whole = "".join(values_of(case))
        if whole.startswith("eyJ"):
            checked.add("jwt")
            assert len(decode_segment(whole.split(".")[2])) in SIGNATURES.values()
        elif re.match(r"ghp_|npm_", whole):
            checked.add("crc")
            assert crc_base62(whole[4:34]) == whole[34:]
    assert checked == {"jwt", "crc"}
