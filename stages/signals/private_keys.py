"""Private keys in a text: blocks with marks around them, and the forms that have none.

PEM, OpenPGP and SSH2 (RFC 4716) mark the begin and the end of a block. PuTTY's file names its
private lines (`Private-Lines: 8`), a JSON web key (RFC 7517) has its private part in the member
`d`, XML's RSAKeyValue in the element `D`; WireGuard's command prints its key below itself, and
Kubernetes has blocks in base64. Programs also take the base64 of a key without marks: then its DER
tells it from a public key and a certificate. Time is linear in the text: a block has a greatest
length.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

LONGEST_KEY_BLOCK = 20_000
"""Characters after the head of a private key within which it must end."""

_GAP = r"(?: |%20|\+)"
_HEAD = re.compile(
    rf"-----BEGIN{_GAP}(?:(?:[A-Z0-9]{{2,12}}{_GAP}){{0,3}}PRIVATE{_GAP}KEY(?:{_GAP}BLOCK)?"
    rf"|OpenVPN{_GAP}(?:tls-crypt-v2{_GAP}(?:client|server)|Static){_GAP}key(?:{_GAP}V[12])?)-----"
    r"|---- BEGIN SSH2 (?:ENCRYPTED )?PRIVATE KEY ----"
)
"""Also as an address or a form of HTTP encodes it."""

_OPEN_BLOCK = re.compile(
    r"(?:\r?\n[ \t>#*/]{0,12}[A-Za-z0-9+/]{60,76}={0,2}){3,200}+"
    r"(?:\r?\n[ \t>#*/]{0,12}[A-Za-z0-9+/]{1,76}={0,2})?(?=\s*\Z|[ \t]*\r?\n[ \t]*\r?\n)"
)
"""The lines of a block whose end is missing."""

_FILLER = re.compile(r"([^A\s*=-])\1{15}|\[[a-z .]{2,40}\]", re.IGNORECASE)
_PRINTED_KEY = "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp"
"""RFC 8410, 10.3."""

_LINE_WIDTHS = (64, 70, 76)
_INDENTED = re.compile(r"\n[ \t]+")
_KEY_CHARACTERS = re.compile(r"[A-Za-z0-9+/=]")
_PUTTY_LINES = re.compile(r"Private-Lines: [0-9]{1,3}[ \t]*((?:\r?\n|(?:\\r)?\\n)[ \t>]{0,12})")
_BASE64_LINE = re.compile(r"[A-Za-z0-9+/]{2,76}={0,2}(?![A-Za-z0-9+/=:-])")
_WEB_KEY = re.compile(
    r"\b(?:kty|crv)\\?[\"']?\s{0,4}:\s{0,4}\\?[\"']?(?:RSA|EC|OKP|P-\d{3}|secp256k1|Ed25519|(oct))\b"
)
_WEB_KEY_MEMBER, _WEB_KEY_OF_BYTES = (
    re.compile(
        rf"(?<![\w-]){name}\\?[\"']?\s{{0,4}}:\s{{0,4}}\\?[\"']?"
        r"([A-Za-z0-9_-]{20,1400}={0,2})(?![\w.-])"
    )
    for name in ("(?:d|p|q|dp|dq|qi)", "k")
)
_WEB_KEY_REACH, _WEB_KEY_LINES = 6_000, 600
_ENCODED_BEGIN = "LS0tLS1CRUdJTi"
_ENCODED = re.compile(
    rf"{_ENCODED_BEGIN}[A-Za-z0-9+/]{{40,{4 * LONGEST_KEY_BLOCK // 3}}}+"
    r"(?:\r?\n[ \t]{0,12}[A-Za-z0-9+/]{60,80}+){0,400}"
    r"(?:\r?\n[ \t]{0,12}[A-Za-z0-9+/]{1,80})?={0,2}"
)
_FOOT = re.compile(rb"-----END [A-Z ]{3,40}----?")
_ENCODED_HEAD = 64
"""A PEM block in base64, as Kubernetes keeps it and `base64` wraps it, and its characters that hold
its head."""

_WIREGUARD_KEY = re.compile(
    r"(?:wg genkey[ \t]*(?:[>|][^\n]{0,60}\n(?:\$ )?cat \S{0,40}priv\S{0,20})?"
    r"(?:\r?\n|\\n)[ \t]*|(?:private-key|privkey) <\(echo |\bprivkey[ \t]+"
    r"|(?:echo|printf) [\"']?(?=[A-Za-z0-9+/]{43}=[\"']? ?(?:\| ?wg pubkey|>{1,2} ?\S{0,60}priv)))"
    r"([A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)"
)
_WIREGUARD_HINTS = ("wg genkey", "wg pubkey", "private-key <", "privkey", "> /etc/wireguard")
"""What the command prints or reads: 32 bytes in base64."""

_BARE_BEGIN = re.compile(
    r"MII[A-Za-z0-9+/]{2}[AQgw]IBA[A-Za-f]|MI[E-H][A-Za-z0-9+/]AgE[AB]|M[A-H][A-Za-z0-9+/]CAQ"
)
"""A sequence in base64 whose first item is 0 or 1: with its length in three bytes, two and one."""

_ALGORITHMS = (
    bytes.fromhex("2a864886f70d010101"),  # rsaEncryption (RFC 8017)
    bytes.fromhex("2a8648ce3d0201"),  # ecPublicKey (RFC 5480)
    bytes.fromhex("2a8648ce380401"),  # dsa (RFC 3279)
    *(bytes((0x2B, 0x65, last)) for last in (0x6E, 0x6F, 0x70, 0x71)),  # X25519 to Ed448 (RFC 8410)
)
_BARE_HEAD = 64
"""Characters that hold what a key is of."""

_SHORTEST_HEAD = 12
_BARE_PIECE = re.compile(r"[A-Za-z0-9+/_-]{1,8000}")
_BARE_JOINT = re.compile(
    r"(?:\\r)?\\n|[\"'`]?[ \t]{0,4}[+.,&\\]?[ \t]{0,4}_?\r?\n(?:[ \t>*#|-]|// ){0,40}[\"'`]?"
    r"|[\"'`] ?[+.&,]? ?[\"'`]| "
)
_MOST_PIECES = 150
_MAGIC = "b3BlbnNzaC1rZXktdjE"
"""How a key of OpenSSH begins in base64: `openssh-key-v1`."""

_FEWEST_OF_OPENSSH = 100
_HEX_BEGIN = "0201003005"
_HEX_KEY = re.compile(
    r"(?<![0-9A-Fa-f])302[Ee]020100300506032[Bb]65[67][0-9A-Fa-f]04220420[0-9A-Fa-f]{64}"
)
_SIGNING_KEY = re.compile(
    r"untrusted comment: [^\n]{0,80}secret key\r?\n(RW[A-Za-z0-9+/]{100,300}={0,2})"
)
"""Of minisign and signify: a public key and a signature have fewer characters."""

_LEAST_RSA = 300
"""Bytes of an RSA key of 512 bits."""

_XML_KEY = re.compile(r"<(D|P|Q|DP|DQ|InverseQ)>\s{0,40}([A-Za-z0-9+/=\s]{20,1400})</\1>")


def find_private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Places of private keys; in strings, with line feeds as `\\n`, as well."""
    if "BEGIN" in text:
        yield from _find_blocks(text)
    if "Private-Lines" in text:
        yield from _find_putty(text)
    if "kty" in text or "crv" in text:
        yield from _find_web_keys(text)
    if _ENCODED_BEGIN in text:
        yield from _find_encoded(text)
    if any(hint in text for hint in _WIREGUARD_HINTS):
        yield from (match.span(1) for match in _WIREGUARD_KEY.finditer(text))
    if "untrusted comment" in text:
        yield from (match.span(1) for match in _SIGNING_KEY.finditer(text))
    if _HEX_BEGIN in text:
        yield from (match.span() for match in _HEX_KEY.finditer(text))
    if _MAGIC in text:
        yield from _find_openssh(text)
    if "<RSAKeyValue" in text:
        yield from (match.span(2) for match in _XML_KEY.finditer(text))


def find_bare_key(text: str, start: int) -> tuple[int, int] | None:
    """The place of a private key in base64 that begins at `start`, without marks around it.

    PKCS#8 (RFC 5958), an RSA key (RFC 8017) or one of elliptic curves (RFC 5915), in one line or
    several, whole.
    """
    if _BARE_BEGIN.match(text, start) is None or text.startswith(_PRINTED_KEY, start):
        return None
    head = _BARE_PIECE.match(text, start, start + _BARE_HEAD)
    size = _key_bytes(head[0]) if head else 0
    wanted, end = -(-8 * size // 6), start
    for _ in range(_MOST_PIECES if size else 0):
        piece = _BARE_PIECE.match(text, end)
        if piece is None:
            return None
        wanted, end = wanted - len(piece[0]), piece.end()
        if wanted <= 0:
            return None if wanted else (start, _pad(text, end, size))
        joint = _BARE_JOINT.match(text, end)
        if joint is None:
            return None
        end = joint.end()
    return None


def _pad(text: str, end: int, size: int) -> int:
    """Where base64 of so many bytes ends, with its padding if it has one."""
    signs = "=" * (-size % 3)
    return end + len(signs) if text.startswith(signs, end) else end


def _key_bytes(head: str) -> int:
    """The bytes of the private key that begins so; 0 for anything else."""
    begin = base64.urlsafe_b64decode(head.replace("+", "-").replace("/", "_")[: len(head) & ~3])
    if len(begin) < _SHORTEST_HEAD:
        return 0
    lengths = begin[1] - 0x80 if begin[1] > 0x80 else 0
    version = 2 + lengths
    size = version + (int.from_bytes(begin[2:version]) if lengths else begin[1])
    tag, rest = begin[version + 3], begin[version + 3 :]
    if begin[version : version + 2] != b"\x02\x01":
        return 0
    is_rsa = tag == 0x02 and not begin[version + 2] and size > _LEAST_RSA
    is_curve = tag == 0x04 and begin[version + 2] == 1 and 16 <= rest[1] <= 66
    is_named = tag == 0x30 and any(name in rest for name in _ALGORITHMS)
    return size if is_rsa or is_curve or is_named else 0


def _find_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Blocks from their BEGIN to their END line."""
    feet: dict[str, int] = {}
    for head in _HEAD.finditer(text):
        mark = head[0].replace("BEGIN", "END", 1)
        foot = feet.get(mark, 0)
        if 0 <= foot < head.end():
            foot = feet[mark] = text.find(mark, head.end())
        if foot < 0 or foot > head.end() + LONGEST_KEY_BLOCK:
            lines = _OPEN_BLOCK.match(text, head.end())
            if lines is not None and _is_key(lines[0]):
                yield head.start(), lines.end()
            continue
        if _is_key(text[head.end() : foot]):
            yield head.start(), foot + len(mark)


def _is_key(body: str) -> bool:
    """Whether the text between the marks is base64 and enough of it, not prose about keys.

    30 bytes are the least that a private key (Ed25519) takes.
    """
    body = _INDENTED.sub("\n", body)
    letters = len(_KEY_CHARACTERS.findall(body))
    return (
        letters >= 40
        and "..." not in body
        and body.count(" ") * 8 < len(body)
        and not _FILLER.search(body)
        and _PRINTED_KEY not in body
    )


def _find_openssh(text: str) -> Iterator[tuple[int, int]]:
    """Keys of OpenSSH without marks; their format is of private keys alone."""
    start = text.find(_MAGIC)
    while start >= 0:
        end, letters = start, 0
        piece = _BARE_PIECE.match(text, end)
        while piece is not None and end - start < LONGEST_KEY_BLOCK:
            end, letters = piece.end(), letters + len(piece[0])
            joint = _BARE_JOINT.match(text, end) if len(piece[0]) in _LINE_WIDTHS else None
            piece = _BARE_PIECE.match(text, joint.end()) if joint else None
        if letters >= _FEWEST_OF_OPENSSH:
            yield start, end + len(text[end : end + 2]) - len(text[end : end + 2].lstrip("="))
        start = text.find(_MAGIC, end)


def _find_encoded(text: str) -> Iterator[tuple[int, int]]:
    """Base64 of a block with a private key, not of a certificate."""
    for match in _ENCODED.finditer(text):
        if b"PRIVATE KEY" not in _decode(match[0][:_ENCODED_HEAD]):
            continue
        last = match[0].rfind("\n")
        is_last = last < 0 or bool(
            _FOOT.search(_decode(match[0])) and not _FOOT.search(_decode(match[0][:last]))
        )
        # Else the line below is of something else, or the block is cut.
        yield match.start(), match.end() if is_last else match.start() + last


def _decode(encoded: str) -> bytes:
    """The bytes of base64 in lines, without those of an incomplete group at its end."""
    letters = "".join(encoded.split()).rstrip("=")
    return base64.b64decode(letters[: len(letters) // 4 * 4])


def _find_putty(text: str) -> Iterator[tuple[int, int]]:
    """The lines after the head in a file of PuTTY."""
    for head in _PUTTY_LINES.finditer(text):
        end = head.end()
        line = _BASE64_LINE.match(text, end)
        while line is not None and line.end() < head.end() + LONGEST_KEY_BLOCK:
            end = line.end()
            following = text.startswith(head[1], end)
            line = _BASE64_LINE.match(text, end + len(head[1])) if following else None
        if end > head.end():
            yield head.end(), end


def _find_web_keys(text: str) -> Iterator[tuple[int, int]]:
    """The private members of JSON web keys; `\"k\"` of a symmetric key is assigned like others."""
    free = 0
    for head in _WEB_KEY.finditer(text):
        first = text.rfind("{", max(0, head.start() - _WEB_KEY_REACH), head.start())
        first = max(free, first if first >= 0 else head.start() - _WEB_KEY_LINES)
        last = text.find("}", head.end(), head.end() + _WEB_KEY_REACH)
        free = last if last >= 0 else min(len(text), head.end() + _WEB_KEY_REACH)
        shape = _WEB_KEY_OF_BYTES if head[1] else _WEB_KEY_MEMBER
        yield from (member.span(1) for member in shape.finditer(text, first, free))
