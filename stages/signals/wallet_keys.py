"""Private keys of wallets: by their checksum, or as the argument of a call that takes such a key.

Bitcoin and its kin write a key in base58 with four bytes of a double SHA-256 (WIF, BIP 32's `xprv`,
BIP 38), Nostr in bech32 (NIP 19), Stellar in base32 with a CRC-16 (SEP 23). Ethereum's have 64
hexadecimal digits, as hashes of transactions have: only their place tells them, as it does of a
key in an array of 64 bytes (Solana) and of the words of BIP 39. Seeds of NATS end as Stellar's do.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from hashlib import sha256

from stages.signals.secret_values import is_random

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_IN_BASE58 = re.compile(
    rf"(?:[{_BASE58}]{{51,52}}|6P[{_BASE58}]{{56}}|[tuvxyz]prv[{_BASE58}]{{107}})\Z"
)
_NOSTR = re.compile(rf"nsec1[{_BECH32}]{{58}}\Z")
_STELLAR = re.compile(r"S(?:[A-Z2-7]{55}|[UAOXNC][A-Z2-7]{56})\Z")
_LENGTHS = frozenset((51, 52, 56, 58, 63, 64, 66, 111))
_CHECKSUM, _KEY, _VERSION = 4, 32, 1
"""Bytes of the checksum, of a private key and of what stands before it."""

_HEX = re.compile(r"(?:0x)?[0-9a-fA-F]{64}\Z")
_PRIVATE_KEYS = (
    *("私[钥鑰]", "秘密鍵", "プライベートキー", "개인 ?키", "비밀 ?키", "निजी कुंजी"),
    *(
        "المفتاح الخاص",
        "کلید خصوصی",
        "מפתח פרטי",
        "กุญแจส่วนตัว",
        "kh[oó][aá] (?:riêng tư|bí mật|cá nhân)",
    ),
    *("chei[ae]a? privat[aă]", "kunci (?:privat|pribadi|rahasia)", "özel anahtar\\w{0,4}"),
    *("clave privada", "chave privada", "chiave privata", "cl[ée] priv[ée]e", "klucz prywatny"),
    *(
        "privat(?:er|en)? ?schlüssel",
        "приватн\\w{2} ключ",
        "закрыт\\w{2} ключ",
        "секретн\\w{2} ключ",
    ),
    *(
        "soukrom\\w klíč",
        "súkromn\\w kľúč",
        "priv[aá]t ?kulcs",
        "yksityinen avain",
        "privat\\w{0,2} ?n[yø][ck]kel",
    ),
    *("priv[ée]-?sleutel", "ιδιωτικό κλειδί", "приватний ключ", "частен ключ", "privatni ključ"),
)
"""A private key in other languages."""

_TAKES_KEY = re.compile(
    r"(?:wallet|import_?(?:raw_?|priv(?:ate)?_?)?key|private_?key_?to_?\w{0,24}"
    r"|(?:from|load|set|add)_?(?:private|priv|secret)?_?(?:key|private|seed)|key_?pair[\w.]{0,24}"
    r"|(?:signing_?|private_?)key(?:\.from_?\w{2,8})?|account\.(?:from|create)\w{0,12}"
    r"|hex_?to_?ecdsa|credentials\.create|hdwallet_?provider)\s?\(\s{0,20}"
    r"(?:\{\s?)?(?:(?:Buffer\.from|(?:bytes|bytearray)\.fromhex|(?:un)?hex(?:lify)?)\()?[\"'`]\Z"
    r"|start_?broadcast\(\Z"
    r"|(?:sign_?transaction\(\w{1,20}|tron_?web\([^()\n]{1,60}),\s?[\"'`]\Z"
    r"|import(?:priv|private|raw)key[ \"']{1,3}\Z"
    r"|--?(?:private-?key|priv-?key|secret-?key|nodekeyhex)[ =][\"']?\Z",
    re.IGNORECASE,
)
_NAMED = re.compile(
    rf"(?:(?<![a-z])(?:priv(?:ate)?|secret|node|signer|owner|deployer)[_ -]?key(?:[_ -]?hex)?"
    r"|(?<![^\W_])(?-i:PK(?==)|(?<=[A-Z]_)PK|(?<=uint256 )pk|sk|SK|priv(?=:)|PRIV)(?:[_ ]?hex)?"
    r"|(?:ed25519|signing)[_ -]?seed"
    r"|key[_ -]?share"
    rf"|{'|'.join(_PRIVATE_KEYS)})"
    r"(?:[_-]?[0-9]{1,2}(?![0-9]))?[ ]?(?:[\[(（](?!sha|md5|hash|finger)[^\[\]()\n]{1,20}[)\]）])?"
    r"[\"'`*\])]{0,3}\s?(?:[:=：]|=>|:=|->|is|ist|est|es|è|é|jest|to|är|er|on|là|是|は|это)\s{0,3}"
    r"[\"'`]{0,2}\Z",
    re.IGNORECASE,
)
"""The name of a private key, assigned to the digits; `pk` alone is as often a public key."""

_KEY_LINES = re.compile(
    r"Private Keys\s{1,3}=+\s(?:\([0-9]{1,2}\) (?:0x)?[0-9a-f]{64}\s{1,3}){0,9}\([0-9]{1,2}\) \Z"
)
"""The keys that Ganache prints."""

_IN_ACCOUNTS = re.compile(r"\baccounts[\"']?\s?[:=]\s?\[[\"'`,\s0-9A-Fa-fx]{0,400}\Z")
"""The accounts of a network in the config of Hardhat or Truffle: addresses have 40 digits."""

_ARRAY = re.compile(r"\[\s{0,9}(?:[0-9]{1,3},\s{0,9}){63}[0-9]{1,3}\s{0,9}\]")
_NAMES_ARRAY = re.compile(
    r"(?:secret|private|signer|sender)_?key|(?<![a-z])secret(?![a-z])|key_?pair|Uint8Array\.from"
    r"|solana|wallet|payer|(?<![a-z])id\.json"
    rf"|schl[üu]ssel|{'|'.join(_PRIVATE_KEYS)}",
    re.IGNORECASE,
)
_SIGNATURE = re.compile(r"signature|(?<![a-z])(?:sig|hash|digest|sha-?512)(?![a-z])", re.IGNORECASE)
_ALONE = re.compile(r"\[(?:[0-9]{1,3},){63}[0-9]{1,3}\](?=[ \t]*(?:\r?\n|\Z))")
"""The file that Solana's tools write: in one line, without blanks."""

_PHRASE = re.compile(
    r"(?:mnemonic|(?:seed|recovery|secret|backup)[ _-]?(?:phrase|words)|wallet_?seed)\w{0,12}"
    r"[\"'`\])]{0,2}(?:\s?(?:[:=(]|=>|is|ist|est)){0,2}\s{0,4}[\"'`]?"
    r"(?P<words>[a-z]{3,8}(?:[ ]{1,2}[a-z]{3,8}){11,23})(?![ ]?[\w])",
    re.IGNORECASE,
)
_PHRASE_HINTS = ("hrase", "HRASE", "nemonic", "NEMONIC")
_PHRASES_HAVE = (12, 15, 18, 21, 24)
_PUBLISHED_WORDS = ("abandon abandon", "test test", "candy maple", "myth like", "legal winner")
"""How the phrases of BIP 39's test vectors and of test chains begin."""

_REACH = 80
_FEWEST_BYTES = 44
"""Different ones of 64 bytes: chance makes 57, 44 and fewer in 8 of ten million."""

_PUBLISHED = frozenset(
    (
        "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
        "4f3edf983ac636a65a842ce7c78d9aa706d3b113bce9c46f30d7d21715b23b1d",
    )
)
"""The first accounts of Hardhat's and Ganache's test chains: everybody's."""


def find_wallet_key(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The place of the key that fills the run of letters and digits in [start, end)."""
    if end - start not in _LENGTHS:
        return
    value = text[start:end]
    if (
        (_IN_BASE58.match(value) is not None and _is_base58_key(value))
        or (_NOSTR.match(value) is not None and _is_bech32(value))
        or (_STELLAR.match(value) is not None and _is_stellar_seed(value))
        or (_HEX.match(value) is not None and _takes_key(text, start, value))
    ):
        yield start, end


def find_key_arrays(text: str) -> Iterator[tuple[int, int]]:
    """Places of keys as arrays of bytes, and of phrases of words that make one."""
    for match in _ARRAY.finditer(text):
        before = text[max(0, match.start() - _REACH) : match.start()]
        numbers = [int(number) for number in match[0].strip("[]").split(",")]
        is_named = _NAMES_ARRAY.search(before) is not None and not _SIGNATURE.search(before[-24:])
        is_alone = before[-1:] in ("", "\n") and bool(_ALONE.match(text, match.start()))
        if (
            (is_named or is_alone)
            and 200 < max(numbers) < 256
            and len(set(numbers)) > _FEWEST_BYTES
        ):
            yield match.span()
    for match in _PHRASE.finditer(text) if any(hint in text for hint in _PHRASE_HINTS) else ():
        words = match["words"].split()
        if (
            len(words) in _PHRASES_HAVE
            and match["words"].islower()
            and not match["words"].startswith(_PUBLISHED_WORDS)
        ):
            yield match.span("words")


def _is_base58_key(value: str) -> bool:
    """Whether the checksum of a key in base58 is right, and what it holds as long as a key."""
    number = 0
    for character in value:
        number = number * 58 + _BASE58.index(character)
    content = number.to_bytes(-(-number.bit_length() // 8), "big")
    body, checksum = content[:-_CHECKSUM], content[-_CHECKSUM:]
    if sha256(sha256(body).digest()).digest()[:_CHECKSUM] != checksum:
        return False
    if len(value) in (51, 52):  # A byte of 1 follows where the public key is compressed.
        return len(body) == _VERSION + _KEY or (len(body) == _VERSION + _KEY + 1 and body[-1] == 1)
    return True


def _is_bech32(value: str) -> bool:
    """Whether the checksum of BIP 173 is right."""
    prefix, _, data = value.rpartition("1")
    values = [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix]
    values += map(_BECH32.index, data)
    generator = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
    check = 1
    for one in values:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ one
        for bit, term in enumerate(generator):
            check ^= term if top >> bit & 1 else 0
    return check == 1


def _is_stellar_seed(value: str) -> bool:
    """Whether the CRC-16 at the end is that of the bytes before it."""
    content = base64.b32decode(value + "=" * (-len(value) % 8))
    return binascii.crc_hqx(content[:-2], 0).to_bytes(2, "little") == content[-2:]


def _takes_key(text: str, start: int, value: str) -> bool:
    """Whether what stands before 64 hexadecimal digits takes a private key."""
    digits = value.lower().removeprefix("0x")
    if digits in _PUBLISHED or not is_random(digits, 300):
        return False
    if _TAKES_KEY.search(text, max(0, start - _REACH), start):
        return True
    near = text[max(0, start - _REACH) : start]
    if _NAMED.search(near):
        return True
    if near.endswith(") ") and _KEY_LINES.search(text, max(0, start - 10 * _REACH), start):
        return True
    is_long = text.rfind("accounts", max(0, start - 6 * _REACH), start) >= 0
    return is_long and _IN_ACCOUNTS.search(text, max(0, start - 6 * _REACH), start) is not None
