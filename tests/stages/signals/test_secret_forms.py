"""Passwords and assigned secrets in the ways to write them that `secret_forms.yaml` lists.

Values are made when the test runs, by a seeded generator.
"""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from stages.signals.credentials import find_secrets

LETTERS = string.ascii_letters + string.digits
FORMS: dict[str, str] = yaml.safe_load(
    Path(__file__).with_name("secret_forms.yaml").read_text(encoding="utf-8")
)


def forms(name: str) -> list[str]:
    lines = FORMS[name].splitlines()
    return [line.replace("\\n", "\n").replace("\\t", "\t") for line in lines]


def missed(name: str, values: list[str]) -> list[str]:
    """The texts in which no span is exactly the value."""
    texts = [(form.replace("⟦⟧", value), value) for form in forms(name) for value in values]
    return [
        text
        for text, value in texts
        if value not in [text[span.start : span.end] for span in find_secrets(text)]
    ]


def chosen(rng: random.Random) -> str:
    return rng.choice(["Kestrel", "marmalade", "Orchidee"]) + str(rng.randrange(10, 2030))


def drawn(rng: random.Random) -> str:
    """Twelve characters, of each class two or more, in any order."""
    classes = (string.ascii_lowercase, string.ascii_uppercase, string.digits, "!#*+")
    letters = [rng.choice(one) for one in classes for _ in range(3)]
    rng.shuffle(letters)
    return "a" + "".join(letters) + "Z"


@pytest.mark.parametrize("make", [chosen, drawn])
def test_passwords_are_found_beside_their_names(make: Callable[[random.Random], str]) -> None:
    """A word with a number may look like a name in code; three in a hundred are allowed to."""
    rng = random.Random(11)
    left = missed("passwords", [make(rng) for _ in range(2)])
    assert len(left) <= 0.03 * 2 * len(forms("passwords")), left


def test_words_and_numbers_alone_are_passwords_where_a_name_is_assigned_them() -> None:
    values = ["krokodil-velvet-ember", "sunflowerMustang", "84721937"]
    left = missed("words", values)
    numbers = [text for text in left if "84721937" in text]
    assert left == numbers  # Some commands want a letter: a port or a table is a number as well.
    assert len(numbers) <= 3, numbers


def test_keys_of_twenty_hexadecimal_digits_and_uuids_only_right_beside_their_name() -> None:
    for value in ("50179c06002b4d841f96", "9b2f4c1e-7a3d-4e58-b6c0-1d9e8f7a2b34"):
        assert [span.label for span in find_secrets(f"APP_SECRET={value}")] == ["assigned"]
        assert find_secrets(f"secret of the shop, order: {value}") == []


def test_published_samples_are_no_secrets() -> None:
    payload = "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ"
    signature = "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
    sample = f"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.{payload}.{signature}"
    assert find_secrets(f"token = {sample}") == []
    emulator = (
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    )
    assert find_secrets(f"AccountName=devstoreaccount1;AccountKey={emulator};") == []


def test_salts_of_signs_and_blanks_are_found_whole() -> None:
    rng = random.Random(4)
    value = "".join(rng.choices(LETTERS + "!#$%()*+,-. /:;<=>?@[]^_{|}~", k=64))
    text = f"define('SECURE_AUTH_KEY',  '{value}');"
    assert [text[span.start : span.end] for span in find_secrets(text)] == [value]
    assert (
        find_secrets("define('AUTH_KEY', 'put your unique phrase here, with 20+ (odd!) signs');")
        == []
    )


def test_random_values_are_found_beside_their_names() -> None:
    rng = random.Random(12)
    values = [
        rng.randbytes(16).hex(),
        "".join(rng.choices(LETTERS, k=40)),
        base64.b64encode(rng.randbytes(32)).decode(),
    ]
    assert missed("assigned", values) == []


def test_a_key_of_base64_for_addresses_is_found_whole() -> None:
    value = "OtGywLL5R72_Qk395KTn1Kse2_fZAjsX3cNcTv4-G_tx"
    text = f"SESSION_SECRET={value}\n"
    assert [text[span.start : span.end] for span in find_secrets(text)] == [value]


def test_a_password_may_begin_with_the_sign_of_a_tag() -> None:
    for text, value in (('psk="{}"', "!galatasaray1967"), ("pass = {}", "!charlie2007")):
        whole = text.format(value)
        assert [whole[span.start : span.end] for span in find_secrets(whole)] == [value]
    assert find_secrets("password: !encrypted/pkcs1-oaep\n") == []


def test_a_public_key_of_web_push_and_a_hash_of_grub_are_no_secrets() -> None:
    point = b"\x04" + random.Random(5).randbytes(64)
    key = base64.urlsafe_b64encode(point).decode().rstrip("=")
    assert find_secrets(f'applicationServerKey: "{key}"') == []
    salt = random.Random(6).randbytes(64).hex()
    assert find_secrets(f"GRUB_PASSWORD: grub.pbkdf2.sha512.10000.{salt}.{salt[::-1]}") == []


@pytest.mark.parametrize("text", forms("none"))
def test_placeholders_code_and_prose_hold_none(text: str) -> None:
    assert find_secrets(text) == []


def test_a_password_at_development_hosts_must_look_like_one() -> None:
    for host in ("localhost:5432", "host:22", "db.corp.example"):
        found = find_secrets(f"postgres://app:Kestrel2031@{host}/x")
        assert [span.label for span in found] == ["url_password"]
        for word in ("password", "app", "postgrespw", "p4ssw0rd99"):
            assert find_secrets(f"postgres://app:{word}@{host}/x") == []


def test_the_secret_below_its_head_and_beside_its_key() -> None:
    secret = "".join(random.Random(5).choices(LETTERS + "+/", k=40))
    for text in (
        f"name,id,api_key\nann,7,{secret}\n",
        f"User,Access key ID,Secret\nann,AKIA{'QLORNMJJLDH4JGBX'},{secret}",
        f"| Client | Token |\n|---|---|\n| ann | `{secret}` |",
        f'Client("{secret}")  # api key',
    ):
        assert secret in [text[span.start : span.end] for span in find_secrets(text)], text
    assert find_secrets(f"name,id,digest\nann,7,{secret}\n") == []


@pytest.mark.parametrize("between", ["\n", "\n    ", "\\\n", '" +\n   "', "\r\n"])
@pytest.mark.parametrize("cut", [20, 44, 76])
def test_an_azure_key_over_lines_is_one_secret(between: str, cut: int) -> None:
    key = base64.b64encode(random.Random(5).randbytes(64)).decode()
    text = f'"AccountName=a;AccountKey={key[:cut]}{between}{key[cut:]};EndpointSuffix=x"'
    (span,) = find_secrets(text)
    assert (span.label, span.start, span.end - span.start) == (
        "azure_storage_key",
        text.index(key[:cut]),
        len(key) + len(between),
    )


def spans_of(text: str) -> list[str]:
    return [text[span.start : span.end] for span in find_secrets(text)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('PDO("pgsql:host=h;user=ann;password=qwerty1663!")', "qwerty1663!"),
        ("amqp://ann:Admin7011!@cache:5672", "Admin7011!"),
        ("sqlalchemy.url = postgresql://ann:Passw0rd1043!@mq.internal/x", "Passw0rd1043!"),
        ('jdbc:mysql://pg:3306/x?user=ann&password=Monkey_Sakura"', "Monkey_Sakura"),
        ('"SERVER=s;DATABASE=x;UID=sa;PWD=Katze_Buttercup"', "Katze_Buttercup"),
        ('sql.Open("mysql", "ann:V7gUUvl7HP@tcp(192.168.105.224:3306)/x")', "V7gUUvl7HP"),
        ("postgres://ann:haslokotek52@ec2.corp.com:5432/x", "haslokotek52"),
        ("| User | Password |\n|---|---|\n| ann | `qwerty9729*` |", "qwerty9729*"),
        ("CREATE USER 'a'@'localhost' IDENTIFIED BY 'Zvezda.Katze';", "Zvezda.Katze"),
    ],
)
def test_words_that_people_vary_are_passwords(text: str, value: str) -> None:
    assert spans_of(text) == [value]


@pytest.mark.parametrize(
    "text",
    [
        "postgres://postgres:postgres@db:5432/x amqp://guest:guest@mq:5672",
        "mysql://user:password@db/x postgres://ann:Admin123!@db/x",
        "amqp://ann:Password2023!@db/x",
        'sql.Open("mysql", "root:root@tcp(127.0.0.1:3306)/x")',
        'sql.Open("mysql", "user:password@tcp(db:3306)/x")',
        "password = Settings.Default",
        "password: Types.Words\n",
        "password=moje_haslo",
    ],
)
def test_defaults_of_programs_and_names_are_none(text: str) -> None:
    assert spans_of(text) == []


def test_an_application_s_secret_with_signs_is_found_bare_and_quoted() -> None:
    alphabet = "abcdefghijklmnopqrstuvwxyz0123456789!@#%^&*(-_=+)"
    value = "".join(random.Random(6).choices(alphabet, k=50))
    for text in (
        f"SECRET_KEY={value}\nPORT=1",
        f'let apiSecret = "{value}"',
        f"SECRET_KEY='{value}'",
    ):
        assert spans_of(text) == [value], text
    for text in (f"value={value}", "SECRET_KEY=${" + value + "}", f"SECRET_KEY={'ab-+' * 12}"):
        assert spans_of(text) == [], text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("<username>ann</username><password>{}</password>", "shadow.wiosna17154"),
        ("kullanıcı adı: tomasz_k şifre: {}", "pirate.walnut70057"),
        ("POST /login username=bluebird&password={}", "hdd_6.poqd7"),
        ("benutzer = lgarcia\npasswort = {}\n", "lisboa_montagne140"),
        ("./tracker-cli --session-secret {} --verbose", "febc1ccc2d94e3ae5b67e3b18e8bd887"),
        ("./tracker-cli --secret-key {} --verbose", "Ho4PMUZ1jd8SA4w1S9JtbwanpYYDv+MuRCFaQCNVWN0="),
    ],
)
def test_a_value_that_may_be_a_name_is_a_secret_where_no_program_stands(
    text: str, value: str
) -> None:
    whole = text.format(value)
    assert [whole[span.start : span.end] for span in find_secrets(whole)] == [value]


def test_a_name_of_a_program_is_none() -> None:
    for text in (
        "password = settings.password1",
        "connect(user, password=hdd_6.poqd7)",
        "passwort = lisboa_montagne",
        "password = config.secret_key2",
    ):
        assert find_secrets(text) == [], text


GROUPED = "hudc krtb ytmn lbaw"
HEXADECIMAL = "f9e334e3c87ae5b2ef4d699d96a8f22e"
KEY = "Zq7xVt2mRb9sKd4wPf8hJn3c"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # What Google makes for a program.
        (f'smtp_password = "{GROUPED}"', GROUPED),
        (f"auth: {{ user: 'a@solmar.io', pass: '{GROUPED}' }}", GROUPED),
        (f'smtp.login("bot@gmail.com", "{GROUPED}")', GROUPED),
        (f"EMAIL_HOST_PASSWORD={GROUPED}", GROUPED),
        # Numbers and words of wireless networks, and of meetings.
        ("Wifi of the flat: network tulipan_guest, password 23014441", "23014441"),
        ("The wifi code is 63990321, the router is behind the TV.", "63990321"),
        ("Red: Hostal_Sol · Clave: 79868846", "79868846"),
        ("Meeting ID: 912 3344 1122 Passcode: 77689444", "77689444"),
        ("Meeting-ID: 845 1234 9921\nKenncode: 80675024", "80675024"),
        ("WLAN-Schlüssel: 95008263424318001111", "95008263424318001111"),
        ("SSID: Vereinsheim\nKey: Pamir-Olifant897", "Pamir-Olifant897"),
        # More words between a name and its password.
        ("Das Kennwort der alten Kiste war übrigens Waffel-Birke122, ja.", "Waffel-Birke122"),
        ("La password per accedere all'area riservata è Cobalt-Laguna54", "Cobalt-Laguna54"),
        ("Habe das Kennwort auf Kastanie-Birke915 gesetzt.", "Kastanie-Birke915"),
        ("log in with vltava-cobalt-gandalf as the password.", "vltava-cobalt-gandalf"),
        ("Zaloguj się loginem ann i hasłem aurora2008", "aurora2008"),
        ("пароль на вайфай 48123164", "48123164"),
        ("Pass wifi: 38253276", "38253276"),
        ("Nywila: Umbra1988", "Umbra1988"),
        # Commands and files.
        ("JENKINS_PASS: Kanelbulle*81", "Kanelbulle*81"),
        ("password: \"{{ 'indigo839?' | password_hash('sha512') }}\"", "indigo839?"),
        ("admin_password: !unsafe 'Pamir-Birke69#'", "Pamir-Birke69#"),
        ("'password' => bcrypt('Marmelade76!'),", "Marmelade76!"),
        ("client.connect('srv-3.lan', 22, 'ann', 'Vulkan74?')", "Vulkan74?"),
        ("new Sequelize('shop', 'ann', 'kyfUmbra544?', {})", "kyfUmbra544?"),
        ('.basic_auth("ann", Some("juniper1955nebula?"))', "juniper1955nebula?"),
        ('wifi.sta.config("Home","kastanie334cobalt")', "kastanie334cobalt"),
        ("read -s PASS; PASS=${PASS:-WWX8ESVoVjO8kYPEx6}", "WWX8ESVoVjO8kYPEx6"),
        ("enable password utdb5lhpyo11", "utdb5lhpyo11"),
        ("ftp> user ann Zubrowka95", "Zubrowka95"),
        ("NEO4J_AUTH=neo4j/afvHanoi13", "afvHanoi13"),
        ("'cookieValidationKey' => 'oIUmsDUmg1xYf0',", "oIUmsDUmg1xYf0"),
        ('ann : EAP "Sakura719"', "Sakura719"),
        (':local pass "Kanelbulle!1998"', "Kanelbulle!1998"),
        ("Credentials for the demo site: ann_app / L4s4gn4675", "L4s4gn4675"),
        ("Default login: `admin` / `yucDorad68`", "yucDorad68"),
        # Secrets of applications of any length.
        ("client_secret: mwpSPZ7YDbGccKIWf", "mwpSPZ7YDbGccKIWf"),
        ("$cfg['blowfish_secret'] = 're8ybSiJz17s';", "re8ybSiJz17s"),
        (f"cookieSession({{ keys: ['{HEXADECIMAL}'] }})", HEXADECIMAL),
        (f'format!("Bearer {{}}", "{KEY}")', KEY),
        (f"Authorization: KakaoAK {HEXADECIMAL}", HEXADECIMAL),
    ],
)
def test_more_ways_to_write_a_password(text: str, value: str) -> None:
    assert spans_of(text) == [value]


@pytest.mark.parametrize(
    "text",
    [
        '"this must have only" is what the password = "this must have only" line does',
        "    client_secret: Incomplete\n    access_token_url: Incomplete\n",
        "The wifi code is printed on the card at reception.",
        "Kennwort auf Windows10 zurücksetzen",
        "пароль на Windows10 забыл",
        "MD5 (password) = 5f4dcc3b5aa765d61d8327deb882cf99",
        "password: !encrypted/pkcs1-oaep " + "3nb8" * 20,
        "secret: AQICAH" + "XWDRP709fZa1bBL8n10bKjWUfGrVb0uFOZ219",
        "https://app.powerbi.com/view?r=eyJrIjoiZjZhZDM4Y2MtNTc2NS00ODQ0LWFjYWMtMWU4ODhiMTExMGNkIiwi"
        "dCI6IjA3ODYxNGIzLWNhYjMtNDg3OC1hZDExLTcxNzE3YTgxMTk1MSIsImMiOjl9",
        "-----BEGIN PRIVATE KEY-----\n"
        "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
        "-----END PRIVATE KEY-----",
    ],
)
def test_more_that_only_looks_like_a_password(text: str) -> None:
    assert spans_of(text) == []


def test_the_encoding_is_part_of_a_key_of_laravel() -> None:
    key = "base64:" + base64.b64encode(random.Random(3).randbytes(32)).decode()
    assert spans_of(f"APP_KEY={key}") == [key]


APART = "walnut ridge copper saddle"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # Words with blanks.
        (f"app.use(session({{ secret: '{APART}', resave: false }}))", APART),
        (f"passphrase: '{APART}'", APART),
        (f'WiFi.begin("HomeNet", "{APART}");', APART),
        (f"cryptsetup luksFormat /dev/sdb1 - <<< '{APART}'", APART),
        (f"jwt.sign(payload, '{APART}', options)", APART),
        ("BORG_PASSPHRASE='Walnut Ridge 80 Copper' borg list", "Walnut Ridge 80 Copper"),
        ("gpg --passphrase 'walnut 45 ridge copper' -d x.gpg", "walnut 45 ridge copper"),
        # Words with points, and a number.
        ("createPool({ user: 'ann', password: 'walnut.ridge_7244' })", "walnut.ridge_7244"),
        ("\toption key 'walnut.ridge.copper.saddle'", "walnut.ridge.copper.saddle"),
        ("export DB_PASSWORD=walnut.ridge.copper", "walnut.ridge.copper"),
        ("--db-password walnut.7244.ridge", "walnut.7244.ridge"),
        # Digits alone, and what routers encode.
        ("ykman piv access change-pin --pin 150863", "150863"),
        (" password 7 05080E0034495A1D1C57474353", "05080E0034495A1D1C57474353"),
        ('"Password"=hex:a4,83,f0,77,be,72,36,cc', "a4,83,f0,77,be,72,36,cc"),
        ("user ann\npassword qdvvaatqpukgvmeu\n", "qdvvaatqpukgvmeu"),
        ('<Resource username="ann" password="Fc2(l_H]#6sU"/>', "Fc2(l_H]#6sU"),
        # What other signs end.
        ('"UID=sa;Password=7Yd$wolke&amp;Reh;Encrypt=True"', "7Yd$wolke&amp;Reh"),
        ("jdbc:sqlserver://db;user=ann;password={Pf3il;Bogen};encrypt=true", "Pf3il;Bogen"),
        (
            "https://12f32e29006f22c6ef4613dd64d54647269321b2:x-oauth-basic@gems.corp.net/",
            "12f32e29006f22c6ef4613dd64d54647269321b2",
        ),
    ],
)
def test_words_apart_and_joined_by_points_are_passwords(text: str, value: str) -> None:
    assert [text[span.start : span.end] for span in find_secrets(text)] == [value]


@pytest.mark.parametrize(
    "text",
    [
        '"password": "Invalid credentials supplied here"',
        'password: "correct horse battery staple"',
        '"passphrase": "enter the passphrase again"',
        'passphrase: "lorem ipsum dolor sit amet"',
        "validates :password, message: 'should have more letters'",
        '"password": "mindestens acht zeichen lang"',
        'password: "auth.form.label.password"',
        "password: form.cleaned_data.password",
        "password = os.environ.database.password1",
        "aws cognito-idp admin-set-user-password --user-pool-id eu-west-1_Ab12Cd34E",
        "IF WS-PASSWORD = SPACES PERFORM 900-ERROR.",
        "# openvpn --auth-user-pass\nvpn-branch7",
        "password requisite pam_unix.so",
        "echo build-2041 | tee log",
    ],
)
def test_sentences_and_names_of_programs_are_none(text: str) -> None:
    assert find_secrets(text) == []
