"""Passwords that a model tells beside the rules; in a text with marks between ⟦ and ⟧."""

from __future__ import annotations

import re

import pytest

from stages.signals import password_model
from stages.signals.credentials import find_secrets
from stages.signals.password_features import SIZE, hash_features
from stages.signals.password_model import (
    find_candidates,
    find_modelled_passwords,
    may_be_chosen,
    read_weights,
    weigh_value,
)
from stages.signals.password_names import find_names
from stages.signals.password_shapes import NONE, SURE, WEAK, WORDY, rate


def found(text: str) -> list[str]:
    return [text[span.start : span.end] for span in find_secrets(text)]


@pytest.mark.parametrize(
    "text",
    [
        "Das Root-Passwort haben wir gestern auf ⟦Gr4sh0f&38⟧ geändert",
        "We rotated the admin password in March, now: ⟦Maple*Lantern*31⟧",
        "het wachtwoord van de camera is gewijzigd in ⟦zeehond1974⟧",
        "Yung password ng wifi ⟦mangga-dagat58⟧ ha",
        "Sal na heslo: ⟦Krtek+Hory17⟧",
        "Koden til wifi er ⟦fjordlys4471⟧",
        "Zaporka: ⟦kQ8sPw3Zt1⟧",
        "Κωδικός: ⟦Θάλασσα4471!⟧",
        "пароль: ⟦Берёза2214⟧",
        "비밀번호는 ⟦호랑이8841⟧ 입니다",
        "パスワードをお送りします。\n⟦kW8sPq3Zt1Lx⟧",
        "admin und dann ⟦Fels+wand+62⟧ als Passwort",
        "$ pwgen 12 1\n⟦vaPh4eiK9oRu⟧\n(set it as root pw)",
        "pwd changed from ⟦Walrus8812⟧ to ⟦Penguin4471⟧",
        "Ann: can you tell me the wifi password?\nBob: ⟦canoe.river.6⟧",
        "[10:12] <ann> can I get the pass for the box\n[10:14] <bob> ⟦Canoe!river8⟧",
        "Bios password (the old laptop): ⟦kx8rmz3wq⟧",
        "パスワード password = ⟦aB3;xY9_qZ7⟧\n".replace("パスワード password = ", "password: "),
        'password = "⟦canoe\\"4471Rv⟧"',
        "<password>⟦Canoe&#39;River44⟧</password>",
    ],
)
def test_the_shape_of_a_value_near_a_word_for_passwords_tells_it(text: str) -> None:
    assert found(re.sub("[⟦⟧]", "", text)) == re.findall("⟦(.*?)⟧", text)


@pytest.mark.parametrize(
    "text",
    [
        "Zugang zum Wiki: Mitglied / ⟦Kranich.6219⟧",
        "NVR: admin/⟦Canoe!River44⟧, third floor",
        "my accounts\nnetflix  ann@example.org  ⟦35Walrus+pen⟧",
        "register => 412:⟦kQ8sPw3Zt1⟧@sip.example.org",
        "local-user ann password simple ⟦Walrus.8812⟧",
        "set psksecret ⟦Walrus.8812⟧",
        "[mx.river.org]:587    ann@river.org:⟦walrus8812⟧",
        "snmp-server user ann G v3 auth sha ⟦walrus8812⟧ priv aes 128 ⟦penguin4471⟧",
        "KEY FOUND! [ ⟦walrus-8812⟧ ]",
        "    Contenu de la clé            : ⟦canoe&river&6⟧",
        "WLAN-Schlüssel: ⟦4417 8802 1936 5521 0746⟧",
        "BitLocker recovery key:\n⟦185463-473446-736157-935046-105725-199872-949760-167759⟧",
        "> USER ann\n< 331 password required\n> PASS ⟦walrus8812⟧\n< 230 ok",
        "334 UGFzc3dvcmQ6\n⟦U2Fub2VyaXZlcjE5⟧\n235 ok",
        "kinit ann@EXAMPLE.ORG <<< '⟦Walrus8812%⟧'",
        "ConvertTo-SecureString -AsPlainText '⟦29Walrus=pen⟧' -Force",
        'openssl enc -d -in a.enc -k "⟦walrus canoe river⟧"',
        "EXEC sp_password NULL, '⟦62Walrus%pen⟧', 'sa'",
        '<machineKey validationKey="⟦' + "9F3C7A51" * 8 + '⟧" />',
        "[+] corp.lan\\ann:⟦WalrusPen12⟧ (Pwn3d!)",
        's:8:"password";s:10:"⟦kQ8sPw3Zt1⟧";',
    ],
)
def test_lists_devices_and_tools_need_no_word(text: str) -> None:
    assert found(re.sub("[⟦⟧]", "", text)) == re.findall("⟦(.*?)⟧", text)


@pytest.mark.parametrize(
    "text",
    [
        "Password must have at least 8 characters, such as Abcdef&12",
        "Sign in with the password of user walrus82 on db01.example.org",
        "Wi-Fi: Girona_5G (open, no password)",
        "passwd: password updated successfully (walrus82)",
        "Password:\nUsername: walrus82",
        "pass `asn1Spec` to guide the decoder",
        "The password form works in Windows10 and Android12",
        "password zxcvbn-4.4.2 is the newest",
        "password updated_at=2021-12-11T05:08:57Z",
        "db.password=<your password>\npool.size=42",
        "IDENTIFIED BY PASSWORD '*91D5C3AD5A6FC4F032D3E0C57B5805B4CF7A02D6'",
        "SHA-1 of the leaked password: b6f99cfb142c890d14b3b8370701b2d41c6f37de",
        "1Password 8.10.24 is installed on edge-03.example.org",
        "rootpw --plaintext x\nlang en_US.UTF-8",
        "sudo passwd walrus82",
        "the logins module / version2 of it",
    ],
)
def test_users_hosts_versions_and_rules_about_passwords_are_left(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("value", "rating"),
    [
        *[(value, SURE) for value in ("Tr4mv4j&17", "1963!gravel", "Harvest*Saddle*20")],
        *[(value, WORDY) for value in ("tulip1975", "2003-longmen", "Рябина1018")],
        ("zt9znela7", WEAK),
        *[(value, NONE) for value in ("Windows10", "db01.example.org", "ann@example.org", "a=b1")],
        *[(value, NONE) for value in ("2021-05-06", "config2.php", "/etc/passwd1", "ordinary")],
    ],
)
def test_a_token_is_rated_by_how_far_it_stands_out_of_prose(value: str, rating: int) -> None:
    assert rate(value) == rating


def test_weights_are_whole_numbers_of_one_byte_for_every_place() -> None:
    weights = read_weights()
    assert len(weights) == SIZE
    assert any(weights)
    assert all(-127 <= one <= 127 for one in weights)


def test_a_feature_has_the_place_that_its_checksum_tells() -> None:
    # The check value of CRC-32 (Koopman, Cyclic Redundancy Code catalogue).
    assert hash_features(["123456789"]) == [0xCBF43926 % SIZE]
    assert len(hash_features(["a\ud800"])) == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("the alarm panel wants 4417, password Tulip88", "4417"),
        ("password: (Tulip88)", "Tulip88"),
        ("login=ann;pw=Tulip88;x", "Tulip88"),
        ("the password\n\nfor it\nis\nTulip88", None),
        ("password " + "far away from it " * 9 + "Tulip88", None),
        ('passphrase: "otter cobalt ember"', "otter cobalt ember"),
        ("パスワードはTulip88です", "Tulip88"),
    ],
)
def test_tokens_in_reach_of_a_name_are_rated(text: str, value: str | None) -> None:
    tokens = [text[slice(*place)] for place in find_candidates(text, find_names(text))]
    assert (value or "Tulip88") in tokens if value else "Tulip88" not in tokens


@pytest.mark.parametrize(
    "text",
    [
        "user: canoe-river88",
        "SSID = Canoe_River88",
        "root:{SSHA}canoeRiver88",
        "password: changeme",
        "pin 0000",
        "write to ann.walrus88@river.org",
        "password sha-256",
    ],
)
def test_fields_of_users_hashes_addresses_and_filler_are_never_chosen(text: str) -> None:
    start = max(text.rfind(sign) for sign in " }") + 1
    assert not may_be_chosen(text, (start, len(text)))


def test_what_rules_found_is_not_rated_and_of_tokens_that_overlap_one_is_marked() -> None:
    text = "the new admin password for the panel is now 'Walrus-Canoe-4471' again"
    spans = find_secrets(text)
    assert [text[one.start : one.end] for one in spans] == ["Walrus-Canoe-4471"]
    assert list(find_modelled_passwords(text, find_names(text), spans)) == []


@pytest.mark.parametrize(
    "text",
    [
        '#define MQTT_PASS "⟦valencia97⟧"',
        'String PASSWORD_ADMIN = "⟦Walrus22#⟧";',
        'password: "⟦@n0uk_213⟧"',
        "UN/PW = admin/⟦k8fj3sl2⟧",
    ],
)
def test_rules_alone_read_these_names_and_values(text: str) -> None:
    plain = re.sub("[⟦⟧]", "", text)
    spans = find_secrets(plain, with_model=False)
    assert [plain[one.start : one.end] for one in spans] == re.findall("⟦(.*?)⟧", text)


def test_quoted_printable_is_decoded_before_tokens_are_rated() -> None:
    text = "X: a=3Db\nthe new admin password for the panel is now 'Walrus-Canoe=\n-4471' again"
    assert found(text) == ["Walrus-Canoe=\n-4471"]


def test_the_model_adds_to_what_rules_find(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Wifi parool on kiluvõileib24 ja uksekood 2309."
    assert {text[one.start : one.end] for one in find_secrets(text)} > {
        text[one.start : one.end] for one in find_secrets(text, with_model=False)
    }
    monkeypatch.setattr(password_model, "read_weights", lambda: [0] * SIZE)
    weigh_value.cache_clear()
    assert find_secrets(text) == find_secrets(text, with_model=False)
    weigh_value.cache_clear()
