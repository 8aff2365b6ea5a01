"""Hosts and registered domains: what browsers and the public suffix list say of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.signals.urls import find_registered_domain, measure_urls, parse_host


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://news.bbc.co.uk/x", "news.bbc.co.uk"),
        ("http://user:pw@Www.Example.COM.:80/a?b@c", "www.example.com"),
        ("HTTP://[2001:db8::1]:80/", "[2001:db8::1]"),
        ("http://8.8.8.8", "8.8.8.8"),
        ("http://evil.com\\@good.com/", "evil.com"),  # as browsers read a backslash
        ("https://bücher.example/", "xn--bcher-kva.example"),
        ("ftp://a_b.example.com#x", "a_b.example.com"),
        ("src/main.py", None),
        ("C:\\x\\y.py", None),
        ("file:///etc/passwd", None),
        ("javascript:alert(1)//x.com", None),
        ("mailto:a@b.example", None),
        ("http:///x", None),
        ("http://exa mple.com/", None),
        ("http://[é.pa/", None),
        ("http://a\x00.com/", None),
        ("https://" + "a." * 200 + "com/", None),
        ("", None),
        (None, None),
    ],
)
def test_the_host_of_an_address(url: str | None, found: str | None) -> None:
    assert parse_host(url) == found


@pytest.mark.parametrize(
    ("name", "domain"),
    [
        # From the list's own test vectors (publicsuffix.org, tests/test_psl.txt), ICANN's part.
        ("example.com", "example.com"),
        ("a.b.example.com", "example.com"),
        ("com", None),
        ("b.c.uk.com", "uk.com"),
        ("test.ac", "test.ac"),
        ("c.mm", None),
        ("b.c.mm", "b.c.mm"),
        ("a.b.c.mm", "b.c.mm"),
        ("test.ac.jp", "test.ac.jp"),
        ("b.c.kobe.jp", "b.c.kobe.jp"),
        ("city.kobe.jp", "city.kobe.jp"),
        ("www.city.kobe.jp", "city.kobe.jp"),
        ("b.test.ck", "b.test.ck"),
        ("www.www.ck", "www.ck"),
        ("a.b.test.k12.ak.us", "test.k12.ak.us"),
        ("xn--85x722f.com.cn", "xn--85x722f.com.cn"),
        ("foo.github.io", "github.io"),  # private part: not what was registered
        ("8.8.8.8", None),
        ("[2001:db8::1]", None),
        ("localhost", None),
        (".com", None),
    ],
)
def test_the_registered_domain_of_a_host(name: str, domain: str | None) -> None:
    assert find_registered_domain(name) == domain


@given(st.text(alphabet=st.sampled_from("ahtps:/.@[]?#\\ é\x00\ud800-1%"), max_size=30) | st.text())
@settings(deadline=None, max_examples=1000)
def test_any_string_is_taken(tail: str) -> None:
    for url in (tail, f"https://{tail}"):
        columns: dict[str, Any] = measure_urls([url])
        (name,), (domain,) = columns["host"], columns["registered_domain"]
        assert name is None or (name == name.lower() and name)
        if domain is not None:
            assert name is not None
            assert f".{name}".endswith(f".{domain}")
        if name is not None:
            name.encode("utf-8")
