"""Private keys of wallets: the test vectors of their standards, and calls that take such a key."""

from __future__ import annotations

import base64
import binascii
import random
import string

import pytest

from stages.signals.credentials import find_secrets

PUBLISHED = {
    "Bitcoin wiki, Wallet import format": "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ",
    "the same, compressed": "KwdMAjGmerYanjeui5SHS7JkmpZvVipYvB2LJGU1ZxJwYvP98617",
    "BIP 32, test vector 1": "xprv9s21ZrQH143K3QTDL4LXw2F7HEK3wJUD2nW2nRk4stbPy6cq3jPPqjiChkVvv"
    "NKmPGJxWUtg6LnF5kejMRNNU3TGtRBeJgk33yuGBxrMPHi",
    "BIP 38, no compression, no EC multiply": "6PRVWUbkzzsbcVac2qwfssoUJAN1Xhrg6bNk8J7Nz"
    "m5H7kxEbn2Nh2ZoGg",
    "NIP 19": "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5",
    "Stellar's documentation": "SDJHRQF4GCMIIKAAAQ6IHY42X73FQFLHUULAPSKKD4DFDM7UXWWCRHBE",
}
PUBLIC = (
    "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJoCu1Rupje8YtGqsefD265TMg7u"
    "sUDFdp6W1EGMcet8",
    "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg",
    "GCZHXL5HXQX5ABDM26LHYRCQZ5OJFHLOPLZX47WEBP3V2PF5AVFK2A5D",
    "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
)


def keys(text: str) -> list[str]:
    return [text[s.start : s.end] for s in find_secrets(text) if s.label == "private_key"]


@pytest.mark.parametrize("source", PUBLISHED)
def test_a_checksum_tells_a_key(source: str) -> None:
    key = PUBLISHED[source]
    assert keys(f"we use {key} here") == [key]
    for place in (3, len(key) // 2, len(key) - 2):  # One letter is another: the sum is wrong.
        other = next(c for c in ("QP" if key.isupper() else "qp") if c != key[place])
        assert keys(f"we use {key[:place]}{other}{key[place + 1 :]} here") == []


@pytest.mark.parametrize("key", PUBLIC)
def test_public_keys_and_addresses_are_left(key: str) -> None:
    assert keys(f"send it to {key}") == []


HEX = "".join(random.Random(5).choices("0123456789abcdef", k=64))


@pytest.mark.parametrize(
    "form",
    [
        'new ethers.Wallet("0x{}", provider)',
        "web3.eth.accounts.privateKeyToAccount('0x{}')",
        'Account.from_key("0x{}")',
        "new SigningKey('0x{}')",
        'accounts: ["0x{}"], // deployer',
        '"accounts": [\n  "0x{}"\n]',
        "cast send --private-key 0x{} 0xabc",
        'importprivkey "{}"',
        "DEPLOYER_PK=0x{}",
        'priv_key = "{}"',
        '"privKey": "{}"',
        "Private Key (hex): {}",
        "clé privée : {}",
        "приватный ключ: {}",
        "私钥(hex): {}",
        "ключ: закрытый ключ: {}",
        'crypto.HexToECDSA("{}")',
        'new HDWalletProvider("{}", url)',
        'ec.keyFromPrivate("{}", "hex")',
        "geth --nodekeyhex {}",
        "Private Keys\n==================\n(0) 0x{}",
    ],
)
def test_a_place_that_takes_a_key_tells_64_digits(form: str) -> None:
    text = form.format(HEX)
    (span,) = find_secrets(text)
    assert text[span.start : span.end].removeprefix("0x") == HEX


@pytest.mark.parametrize(
    "text",
    [
        f'eth.getTransaction("0x{HEX}")',
        f"block 0x{HEX} was mined",
        f'hashes: ["0x{HEX}"]',
        f'new ethers.Wallet("0x{"1" * 64}")',
        'new Wallet("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")',
        'accounts: ["0x52908400098527886E0F7030069857D2E4169EE7"]',
        f"pk: {HEX}",
        f"private key (sha256): {HEX}",
        f"aptos move run --account 0x{HEX}",
        f"transfer(0x{HEX})",
    ],
)
def test_hashes_addresses_and_keys_of_test_chains_are_left(text: str) -> None:
    assert keys(text) == []


def bytes_of(count: int) -> str:
    rng = random.Random(4)
    return ",".join(str(rng.randrange(256)) for _ in range(count))


def test_the_file_of_a_key_of_solana_is_an_array_alone_in_its_line() -> None:
    array = f"[{bytes_of(64)}]"
    assert keys(array) == [array]
    assert keys(f"cat id.json\n{array}\n") == [array]


@pytest.mark.parametrize(
    "text",
    [
        f"[{bytes_of(63)}]",
        f"x = [{bytes_of(64)}]",
        f"wallet signature: [{bytes_of(64)}]",
        str(list(range(192, 256))).replace(" ", "")[:-1] + ",9]",
        "[" + ",".join(["7", "255"] * 32) + "]",
    ],
)
def test_other_arrays_of_bytes_are_left(text: str) -> None:
    assert keys(text) == []


def test_the_checksum_tells_a_seed_of_nats() -> None:
    body = bytes((0x95, 0x00)) + random.Random(1).randbytes(32)  # `SU`, a user's seed.
    seed = base64.b32encode(body + binascii.crc_hqx(body, 0).to_bytes(2, "little")).decode()
    seed = seed.rstrip("=")
    assert keys(f"seed {seed}\n") == [seed]
    assert keys(f"seed {seed[:-1]}{'A' if seed[-1] != 'A' else 'B'}\n") == []


WORDS = "gravity machine north sort system female filter attitude volume fold club stay"


@pytest.mark.parametrize(
    ("form", "inner"),
    [
        ("const secretKey = Uint8Array.from({});", "[{}]"),
        ('{{"keypair": {}}}', "[{}]"),
        ("let payer = {};", "[{}]"),
        ("solana-keygen recovered: {}", "[{}]"),
        ("MNEMONIC='{}'", ""),
        ("My seed phrase is {}.", ""),
        ("recovery phrase: {}\n", ""),
    ],
)
def test_arrays_and_words_are_found_by_their_names(form: str, inner: str) -> None:
    rng = random.Random(4)
    numbers = ", ".join(str(rng.randrange(256)) for _ in range(64))
    value = inner.format(numbers) if inner else WORDS
    assert keys(form.format(value)) == [value]


@pytest.mark.parametrize(
    "text",
    [
        f"They sang: {WORDS}",
        "mnemonic: " + "test " * 11 + "junk",
        "A mnemonic phrase is twelve words long and must be kept where nobody finds it again",
        f"seed phrase: {WORDS} north",
        "pixels = " + str(list(range(64))),
    ],
)
def test_other_words_and_arrays_are_left(text: str) -> None:
    assert keys(text) == []


@pytest.mark.parametrize(
    "unit", ["accounts: [", '"0x' + "a1" * 32 + '", ', "wallet(", "1" * 52 + " "]
)
def test_floods_take_linear_time(unit: str) -> None:
    find_secrets(unit * (300_000 // len(unit)))


def test_any_word_of_the_length_of_a_key_is_none() -> None:
    rng = random.Random(8)
    for length in (51, 52, 56, 58, 63, 111):
        words = [
            "".join(rng.choices(string.ascii_letters + string.digits, k=length)) for _ in range(50)
        ]
        assert keys(" ".join(words)) == []
