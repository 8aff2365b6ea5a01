"""Personal data: shapes and verdicts in line with datatrove's PII formatter and its test."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.signals.personal_data import REPLACEMENTS, personal_data
from stages.signals.spans import replaced


def labels(text: str) -> list[tuple[str, str]]:
    return [(text[span.start : span.end], span.label) for span in personal_data(text)]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("write to jane@corp.com.", "jane@corp.com"),
        ("<first.last+tag@sub.corp-one.co.uk>", "first.last+tag@sub.corp-one.co.uk"),
        ("_____@corp.museum", "_____@corp.museum"),
        ("12345@corp.com", "12345@corp.com"),
        ("NAME@SITE.COM (Joe)", "NAME@SITE.COM"),
        ("who@[8.8.8.8]", "who@[8.8.8.8]"),
        ("who@8.8.8.8", "who@8.8.8.8"),
        ("a@b@corp.com", "b@corp.com"),
        (".lead@corp.com", "lead@corp.com"),
        ("dots..last@corp.com", "last@corp.com"),
        ("-x@corp.com", "x@corp.com"),
        ("é-x@corp.com", "-x@corp.com"),
        ("8.8.8.8@corp.com", "8.8.8.8@corp.com"),
        ("”right@corp.com", "right@corp.com"),
        ("someone@example.com", "someone@example.com"),
    ],
)
def test_email_is_found_whole_and_once(text: str, address: str) -> None:
    assert labels(text) == [(address, "email")]


@pytest.mark.parametrize(
    "text",
    [
        "plainaddress",
        "@corp.com",
        "name@corp",
        "name@-corp.com",
        "name.@corp.com",
        "name@corp..com",
        "あいう@corp.com",
        "éx@corp.com",
        '"quoted"@corp.com',
        "@decorator",
        "a @ b.com",
        "email@example.com",
    ],
)
def test_what_is_no_email_is_left(text: str) -> None:
    assert labels(text) == []


PUBLIC = ["163.36.107.25", "8.8.8.8", "57.120.21.121", "35.88.121.75", "2001:4860:4860::8888"]
OTHER = [
    *("172.16.0.9", "127.0.0.2", "10.0.0.1", "192.168.1.2", "0.1.2.3", "192.0.2.1"),
    *("999.999.999.999", "108.0.0.01", "00.0000.00.00", "912.456.123.123", "192.168.l.1"),
    *("1.2.3.4.5", "v8.8.8.8", "8.8.8.8a", "8.8.8.1234", "12345.8.8.8"),
    *("2001:db8::1", "fe80::1", "2001:zz::1", "std::3000::x", "2024:11", "a::b"),
]


@pytest.mark.parametrize("address", PUBLIC)
@pytest.mark.parametrize("frame", ["{}", "from {}.", "({})", ".{}", "{}:80", "_{}_"])
def test_public_address_is_found(address: str, frame: str) -> None:
    if ":" in address and frame in (".{}", "{}:80", "_{}_"):
        pytest.skip("not a way to write an IPv6 address")
    assert labels(frame.format(address)) == [(address, "ip_address")]


@pytest.mark.parametrize("address", OTHER)
def test_other_numbers_are_left(address: str) -> None:
    assert labels(f"at {address}, then") == []


def test_addresses_are_replaced_by_reserved_examples() -> None:
    text = "Mail a.b@corp.com or 8.8.8.8, 2001:4860:4860::8888; not 10.0.0.1."
    spans = personal_data(text)
    assert (
        replaced(text, spans) == "Mail email@example.com or 192.0.2.1, 2001:db8::1; not 10.0.0.1."
    )
    assert [span.label for span in spans] == ["email", "ip_address", "ip_address"]


PIECES = st.sampled_from(
    [
        *("a", "b.c", "@", ".", "..", " ", "-", "8.8.8.8", "corp.com", "[", "]", "é", "_", "+"),
        *("2001:4860::1", "1", ":", "x@y.org", *REPLACEMENTS.values()),
    ]
)


@given(st.lists(PIECES, max_size=12).map("".join))
@settings(deadline=None, max_examples=400)
def test_spans_are_in_order_and_apart(text: str) -> None:
    spans = personal_data(text)
    borders = [border for span in spans for border in (span.start, span.end)]
    assert borders == sorted(borders)
    assert all(span.start < span.end for span in spans)


@given(st.lists(PIECES, max_size=12).map(" ".join))
@settings(deadline=None, max_examples=200)
def test_replacing_twice_is_replacing_once(text: str) -> None:
    once = replaced(text, personal_data(text))
    assert personal_data(once) == []


EMAIL_TEXTS = st.lists(
    st.sampled_from(["a", "b.c", "@", ".", " ", "-", "corp.com", "é", "_", "x@y.org", "+", "9"]),
    max_size=12,
).map("".join)


@given(EMAIL_TEXTS)
@settings(deadline=None, max_examples=300)
def test_emails_equal_datatroves(text: str) -> None:
    pii = pytest.importorskip("datatrove.pipeline.formatters.pii")
    formatter = pii.PIIFormatter(remove_ips=False, email_replacement=REPLACEMENTS["email"])
    emails = [span for span in personal_data(text) if span.label == "email"]
    assert replaced(text, emails) == formatter.format(text)


@pytest.mark.parametrize("unit", ["@", "a@", "a-", "a.", "1.", "1.2.3.", "2001:", "a@b-", "[1."])
def test_long_floods_take_linear_time(unit: str) -> None:
    # A quadratic scan of these 600,000 characters would take minutes; the test has a time limit.
    assert isinstance(personal_data(unit * (600_000 // len(unit))), list)
