"""Private keys in base64 without marks, as `cryptography` writes them and people put them."""

from __future__ import annotations

import base64
import textwrap

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa, x25519
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from stages.signals.credentials import find_secrets

PKCS8, OLDER = PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL
RSA = rsa.generate_private_key(public_exponent=65537, key_size=1024)
CURVE = ec.generate_private_key(ec.SECP384R1())
PRIVATE = {
    name: base64.b64encode(key.private_bytes(Encoding.DER, form, NoEncryption())).decode()
    for name, key, form in (
        ("RSA", RSA, PKCS8),
        ("RSA of PKCS#1", RSA, OLDER),
        ("P-384", CURVE, PKCS8),
        ("P-384 of SEC 1", CURVE, OLDER),
        ("P-256 of SEC 1", ec.generate_private_key(ec.SECP256R1()), OLDER),
        ("DSA", dsa.generate_private_key(1024), PKCS8),
        ("Ed25519", ed25519.Ed25519PrivateKey.generate(), PKCS8),
        ("X25519", x25519.X25519PrivateKey.generate(), PKCS8),
    )
}
PUBLIC = {
    name: base64.b64encode(key.public_bytes(Encoding.DER, form)).decode()
    for name, key, form in (
        ("RSA", RSA.public_key(), PublicFormat.SubjectPublicKeyInfo),
        ("RSA of PKCS#1", RSA.public_key(), PublicFormat.PKCS1),
        ("P-384", CURVE.public_key(), PublicFormat.SubjectPublicKeyInfo),
    )
}
FRAMES = (
    "alipay.merchant_private_key={}",
    'String RSA_PRIVATE = "{}";',
    "app_private_key: {}\nnext: 1",
    "<key>{}</key>",
    "{}",
)
LINES = ("\n", "\n    ", "\\n", '" +\n    "', '"\n    "', "\n> ", "\n// ")


@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.parametrize("frame", FRAMES)
def test_a_key_in_one_line_is_found_whole(name: str, frame: str) -> None:
    text = frame.format(PRIVATE[name])
    (span,) = find_secrets(text)
    assert text[span.start : span.end] == PRIVATE[name]


@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.parametrize("joint", LINES)
def test_a_key_in_lines_of_64_characters_is_found_whole(name: str, joint: str) -> None:
    written = joint.join(textwrap.wrap(PRIVATE[name], 64))
    text = f'key = "{written}"; done'
    (span,) = find_secrets(text)
    assert text[span.start : span.end] == written


@pytest.mark.parametrize("name", PRIVATE)
def test_a_key_that_was_cut_short_or_changed_is_none_of_these(name: str) -> None:
    key = PRIVATE[name]
    for text in (key[:60], f"{key[:40]}...", f"{key[:20]}\nand so on\n{key[20:]}"):
        assert "private_key" not in [span.label for span in find_secrets(f"see {text}")]


@pytest.mark.parametrize("name", PUBLIC)
@pytest.mark.parametrize("frame", ["key={}", "<key>{}</key>", 'const KEY = "{}";', "{}"])
def test_a_public_key_is_no_secret(name: str, frame: str) -> None:
    assert find_secrets(frame.format(PUBLIC[name])) == []


@pytest.mark.parametrize("size", [48, 64, 300, 301, 302])
@pytest.mark.parametrize("width", [64, 76, 10_000])
def test_a_block_in_base64_is_found_whole_in_its_lines(size: int, width: int) -> None:
    body = base64.b64encode(bytes(number * 7 % 256 for number in range(size))).decode()
    lines = ["-----BEGIN PRIVATE KEY-----", *textwrap.wrap(body, 64), "-----END PRIVATE KEY-----"]
    encoded = base64.b64encode("\n".join(lines).encode()).decode()
    written = "\n".join(textwrap.wrap(encoded, width))
    for text in (written, f"$ base64 key.pem\n{written}\n\nls", f"{written}\nfile: b"):
        (span,) = find_secrets(text)
        assert text[span.start : span.end].rstrip("=") == written.rstrip("=")
    certificate = base64.b64encode("\n".join(lines).replace("PRIVATE KEY", "CERTIFICATE").encode())
    assert find_secrets("\n".join(textwrap.wrap(certificate.decode(), width))) == []


def test_a_key_in_the_alphabet_of_addresses_is_one() -> None:
    raw = base64.b64decode(PRIVATE["Ed25519"])
    value = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    text = f"KEY={value}\n"
    assert [text[span.start : span.end] for span in find_secrets(text)] == [value]
    assert find_secrets("MC4CAQ_" + "-_" * 20 + "a1") == []


OPENSSH = "b3BlbnNzaC1r" + "ZXktdjEAAAAA" + PRIVATE["RSA"][:600]


@pytest.mark.parametrize(
    "form",
    [
        "id: {}",
        "-----BEGIN%20PRIVATE%20KEY-----%0A{}%0A-----END%20PRIVATE%20KEY-----",
        "untrusted comment: minisign encrypted secret key\nRW{}",
    ],
)
def test_keys_in_other_wrappings_are_redacted(form: str) -> None:
    text = form.format(OPENSSH)
    assert any(OPENSSH in text[span.start : span.end] for span in find_secrets(text)) or (
        "RW" in form and find_secrets(form.format(PRIVATE["P-256 of SEC 1"][:150]))
    )


def test_a_block_without_an_end_is_one_if_nothing_is_cut() -> None:
    lines = textwrap.wrap(PRIVATE["RSA"], 64)
    head = "-----BEGIN RSA " + "PRIVATE KEY-----\n"
    (span,) = find_secrets(head + "\n".join(lines) + "\n\nnext")
    assert span.end == len(head) + len("\n".join(lines))
    assert find_secrets(head + "x" * 64 + "\n" + "x" * 40 + head.replace("BEGIN", "END")) == []


@pytest.mark.parametrize(
    "form",
    [
        "{{'kty': 'OKP', 'crv': 'X25519', 'd': '{}'}}",
        "kty: EC\ncrv: P-256\nd: {}\n",
        '{{"kty":"oct","k":"{}","alg":"HS256"}}',
    ],
)
def test_a_web_key_is_one_in_any_quotes(form: str) -> None:
    value = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"
    text = form.format(value)
    assert [text[span.start : span.end] for span in find_secrets(text)] == [value]
