"""Secrets: each sort as its service makes it is found, what looks like one is left alone.

Secrets are made when the test runs, by a seeded generator: none stands in this file.
"""

from __future__ import annotations

import base64
import json
import random
import string
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stages.filter.edits import apply_edits
from stages.signals import assigned_secrets
from stages.signals.credentials import find_secrets, make_tag
from stages.signals.secret_kinds import INNER_KINDS, SECRET_KINDS, crc32_base62

LETTERS = string.ascii_letters + string.digits
BASE64URL = LETTERS + "_-"


def chars(alphabet: str, number: int, seed: int = 7) -> str:
    return "".join(random.Random(f"{seed} {number}").choices(alphabet, k=number))


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def made(seed: int = 7) -> dict[str, str]:
    """One secret of each sort, as its service would make it."""

    def some(alphabet: str, number: int) -> str:
        return chars(alphabet, number, seed)

    body = some(LETTERS, 30)
    upper = string.ascii_uppercase + "234567"
    capital = string.ascii_uppercase + string.digits
    return {
        "aws_access_key": "AKIA" + some(upper, 16),
        "google_api_key": "AIza" + some(BASE64URL, 34) + "x",
        "google_oauth_secret": "GOCSPX-" + some(LETTERS, 28),
        "github_token": "ghp_" + body + crc32_base62(body),
        "npm_token": "npm_" + body + crc32_base62(body),
        "gitlab_token": "glpat-" + some(LETTERS, 20),
        "slack_token": f"xoxb-{some('123456789', 12)}-{some('123456789', 13)}-{some(LETTERS, 24)}",
        "slack_webhook": "hooks.slack.com/services/"
        f"T{some(capital, 9)}/B{some(capital, 10)}/{some(LETTERS, 24)}",
        "stripe_key": "sk_live_" + some(LETTERS, 24),
        "openai_key": f"sk-proj-{some(LETTERS, 20)}T3BlbkFJ{some(LETTERS, 20)}",
        "anthropic_key": f"sk-ant-api03-{some(BASE64URL, 92)}A",
        "hugging_face_token": "hf_" + some(string.ascii_letters, 34),
        "docker_token": "dckr_pat_" + some(LETTERS, 27),
        "shopify_token": "shpat_" + some("0123456789abcdef", 32),
        "digitalocean_token": "dop_v1_" + some("0123456789abcdef", 64),
        "twilio_key": "SK" + some("0123456789abcdef", 32),
        "twitter_bearer": "A" * 22 + some(LETTERS, 80) + "x",
        "telegram_token": f"{some('123456789', 9)}:AA{some(BASE64URL, 32)}x",
        "azure_client_secret": f"{some(LETTERS, 3)}8Q~{some(LETTERS + '-_.', 33)}x",
        "aws_session_token": "IQoJb3JpZ2lu" + some(LETTERS, 300) + "x",
        "sendgrid_key": f"SG.{some(LETTERS, 22)}.{some(LETTERS, 43)}",
        "pypi_token": "pypi-AgEIcHlwaS5vcmc" + some(BASE64URL, 60) + "x",
        "json_web_token": f"{part({'alg': 'HS256'})}.{part({'sub': some(LETTERS, 9)})}"
        f".{some(BASE64URL, 42)}x",
    }


def labels(text: str) -> list[str]:
    return [span.label for span in find_secrets(text)]


@pytest.mark.parametrize("sort", made())
@pytest.mark.parametrize("around", ['key = "{}"\n', "Bearer {} and on", "{}", "[{}],", "x={}&y"])
def test_each_sort_is_found_whole(sort: str, around: str) -> None:
    for seed in range(5):
        secret = made(seed)[sort]
        text = "été\n" + around.format(secret)
        (span,) = find_secrets(text)
        assert (span.label, text[span.start : span.end]) == (sort, secret)
        assert span.replacement == make_tag(sort) == f"<secret:{sort}>"


def test_every_sort_is_tested() -> None:
    labels = {sort.label for sort in SECRET_KINDS + INNER_KINDS}
    assert labels - {"service_token"} == set(made())


@pytest.mark.parametrize("sort", made())
def test_a_secret_inside_a_longer_word_is_none(sort: str) -> None:
    secret = made()[sort]
    if sort != "slack_webhook":  # an address: its end alone is fixed
        assert sort not in labels(f"abc{secret}")
    if sort not in {"slack_webhook"} | {
        s.label for s in SECRET_KINDS if "," in s.shape.pattern[-30:]
    }:
        assert sort not in labels(f"{secret}abcdefgh")


@pytest.mark.parametrize("between", ["\n", "\n    ", "\\\n", '" +\n  "', "=\n", "\r\n", "\n> "])
@pytest.mark.parametrize("sort", ["github_token", "json_web_token", "gitlab_token", "openai_key"])
def test_a_token_over_lines_is_one_secret(sort: str, between: str) -> None:
    """Below a token that is whole, a rest that reads as a word (`Ouax`) counts as a word."""
    for seed in range(5):
        secret = made(seed)[sort]
        for cut in (14, len(secret) // 2, len(secret) - 12):
            broken = secret[:cut] + between + secret[cut:]
            text = f'a = "{broken}"\nand more words in the next line'
            assert apply_edits(text, find_secrets(text)) == (
                f'a = "{make_tag(sort)}"\nand more words in the next line'
            )


def test_a_line_below_a_whole_token_is_left() -> None:
    for sort in ("gitlab_token", "json_web_token", "slack_token"):
        secret = made()[sort]
        for below in ("next words", "export OTHER=1", "some_name = 4"):
            text = f"{secret}\n{below}"
            assert apply_edits(text, find_secrets(text)) == f"{make_tag(sort)}\n{below}"
    assert (
        labels("the tokens begin with ghp_\nand have forty letters in all, as the page says") == []
    )


@pytest.mark.parametrize(
    "text",
    [
        "password: {}",
        "Password: {}\n",
        'pwd = "{}"',
        "DB_PASSWORD={}\n",
        "Passwort: {}",
        "the password is {}.",
        "<password>{}</password>",
        '"password": "{}",',
        "user=a&password={}&x=1",
        "İ password: {}",  # Two characters in small letters.
        "password: **{}**",
        "Password: <b>{}</b>",
        "pwd = &quot;{}&quot;",
    ],
)
@pytest.mark.parametrize("password", ["winter79!", "Tr0ub4dor-3", "kX9q4Zt7w"])
def test_passwords_that_their_name_tells_are_found(text: str, password: str) -> None:
    whole = text.format(password)
    (span,) = find_secrets(whole)
    assert (span.label, whole[span.start : span.end]) == ("password", password)


@pytest.mark.parametrize(
    "text",
    [
        "password: str",
        "password = getpass.getpass()",
        "password = settings.DB_PW1",
        "login(user, password=pw1)",
        "password = password1",
        "password: ${DB_PASSWORD_1}",
        "Password: required, 8 characters",
        "password: 8-20 characters",
        "password = sha256(raw)",
        "password: base64",
        "PWD=/home/user1/src",
        "compass: abc123def",
        "Antwort: abc123def",
        "password: sunshine",
    ],
)
def test_code_and_words_about_passwords_are_left(text: str) -> None:
    assert labels(text) == []


def test_a_checksum_or_chance_tells_tokens_of_github_and_npm() -> None:
    """The example of GitHub's format that the web has for its checksum: 30 characters, then six."""
    assert crc32_base62("zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ") == "0mLq17"
    for sort in ("github_token", "npm_token"):
        secret = made()[sort]
        wrong = secret[:-1] + ("a" if secret[-1] != "a" else "b")
        assert labels(secret) == [sort]
        assert labels(wrong) == [sort]  # A copy with a slip of the pen is nearly the secret.
        prefix = secret[:4]
        assert labels(f"{prefix}{'a1' * 18}") == []
        assert labels(f"{prefix}ABCDEFGHIJKLMNOPQRSTUVWXYZ1234567890") == []


def test_private_keys_in_files_and_in_strings() -> None:
    body = "\n".join(chars(LETTERS + "+/", 64, seed) for seed in range(5))
    for name in ("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "):
        block = f"-----BEGIN {name}PRIVATE KEY-----\n{body}\n-----END {name}PRIVATE KEY-----"
        text = f"before\n{block}\nafter"
        assert apply_edits(text, find_secrets(text)) == "before\n<secret:private_key>\nafter"
        in_json = json.dumps({"private_key": block})
        assert labels(in_json) == ["private_key"]
    assert labels(f"-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----") == []
    assert labels("-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----") == []
    prose = "put your own key between these two lines and never tell it to anybody at all, please"
    assert labels(f"-----BEGIN PRIVATE KEY-----\n{prose}\n-----END PRIVATE KEY-----") == []


@pytest.mark.parametrize(
    "text",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "AKIAXXXXXXXXXXXXXXXX",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        'api_key = "<your api key goes here 12345>"',
        'api_key = "YOUR_API_KEY_GOES_HERE_12345"',
        'api_key = "${SECRET_FROM_ENV_12345678}"',
        'token = os.environ["MY_TOKEN_2_NAME_IS_LONG"]',
        'secret_name = "projects/my-project-123/secrets/db"',
        'password = "correct horse battery staple"',
        'token: "bcd2f1b8-9a78-44d3-8a7a-4dd07d7cf635"',
        'token_url = "https://login.example.org/oauth2/v2.0/token123456"',
        'key_id = "module1.submodule2.ClassName3.method4"',
        "https://user:password@host/",
        "https://user:p4ssw0rd99@example.com/",
        "postgres://user:${DB_PASSWORD_1}@db.corp.net/x",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "eyJub3RhIjoiand0In0.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcdefghijklmnopqrstuvwxyz",
    ],
)
def test_placeholders_and_look_alikes_are_left_alone(text: str) -> None:
    assert labels(text) == []


@pytest.mark.parametrize(
    "text",
    [
        'api_key = "{}"',
        "API_KEY={}\n",
        '"clientSecret": "{}",',
        "aws_secret_access_key = {}\n",
        "const authToken = '{}';",
        "password => '{}'",
    ],
)
def test_random_values_of_telling_names_are_found(text: str) -> None:
    for seed in range(5):
        value = chars(LETTERS + "+/", 40, seed)
        (span,) = find_secrets(text.format(value))
        assert span.label == "assigned"
        assert text.format(value)[span.start : span.end] == value
    assert labels("checksum = '" + chars(LETTERS, 40) + "'") == []


def test_the_password_of_an_address_goes_and_the_rest_stays() -> None:
    text = "see postgres://admin:kX9q4Zt7w@db.corp.net:5432/x"
    assert (
        apply_edits(text, find_secrets(text))
        == "see postgres://admin:<secret:url_password>@db.corp.net:5432/x"
    )


MARKS = ["AKIA", "ghp_", "eyJ", "://a:", "@", "token", "=", '"', "'", ":", "SG.", "T3BlbkFJ", "😀"]
KEYS = ["-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "\n", " ", "\ud800"]
PIECES = st.sampled_from([*made().values(), *MARKS, *KEYS])


@given(st.lists(PIECES | st.text(max_size=8), max_size=12).map("".join))
@example("token='" + "a1B2" * 8)
@settings(deadline=None, max_examples=300)
def test_any_text_has_ordered_spans_and_twice_is_once(text: str) -> None:
    spans = find_secrets(text)
    assert all(0 <= s.start < s.end <= len(text) for s in spans)
    assert all(a.end <= b.start for a, b in pairwise(spans))
    once = apply_edits(text, spans)
    left = [span for span in find_secrets(once) if "<secret:" in once[span.start : span.end]]
    assert left == []


def test_the_standard_library_and_prose_have_none(shared_data: Path) -> None:
    """570 files of CPython and 300 of C4's pages hold no secret, and none is reported."""
    import zstandard

    for name in ("code/python-stdlib", "text/en-web-c4-demo", "text/en-docs"):
        with zstandard.open(shared_data / f"{name}.jsonl.zst", "rt") as lines:
            texts = [json.loads(line)["text"] for line in lines]
        assert [span for text in texts for span in find_secrets(text)] == [], name


@pytest.mark.parametrize(
    "unit",
    [
        "password=",
        "password for a b c ",
        "login: a / ",
        "eyJaaaaa9A\n",
        "ghp_aB3dEfgh\n",
        "hf_aB3dEfgh12345\n",
        "sk-ant-api03-aaaaaaaaaaaaaa ",
        "://a:bc",
        "1:AA",
        "Q~",
        "token='",
        "A",
        "user,password\n",
        "what password again?\n",
        "insert into a (password) values (",
        'mysql_connect("a", "b", ',
        'AUTH_KEY="',
    ],
)
def test_long_floods_take_linear_time(unit: str) -> None:
    # A quadratic scan of these 300,000 characters would take minutes; the test has a time limit.
    assert find_secrets(unit * (300_000 // len(unit))) == []


def test_a_flood_of_names_costs_a_few_matches_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each value after `key` has three such names and values before it: at most two are matched."""
    rng = random.Random(6)
    values = 300
    text = "".join(f"key {''.join(rng.choices(LETTERS, k=36))} " for _ in range(values))
    calls = []
    pattern = assigned_secrets._NAMED

    class Counted:
        def match(self, *arguments: Any) -> Any:
            calls.append(arguments)
            return pattern.match(*arguments)

    monkeypatch.setattr(assigned_secrets, "_NAMED", Counted())
    find_secrets(text)
    assert 0 < len(calls) <= 3 * values


AZURE_KEY = chars(LETTERS + "+/", 86) + "=="


@pytest.mark.parametrize(
    "text",
    [
        "AccountName=a;AccountKey={};EndpointSuffix=core.windows.net",
        "az storage blob list --account-key {}",
        '[{{"keyName": "key1", "permissions": "FULL", "value": "{}"}}]',
        "azure:\n  storage:\n    key: {}",
        "the primary key of our storage account is {}, please rotate",
    ],
)
def test_an_azure_key_is_64_bytes_in_its_context(text: str) -> None:
    written = text.format(AZURE_KEY)
    (span,) = find_secrets(written)
    assert written[span.start : span.end] == AZURE_KEY


@pytest.mark.parametrize(
    "text",
    [
        "@azure/storage-blob@^12:\n  integrity sha512-{}",
        'storage account certificate: "{}"',
        "blob digest {}",
        "data:image/png;base64,{}",
        "ed25519 signature {}",
    ],
)
def test_digests_and_certificates_of_64_bytes_are_no_keys(text: str) -> None:
    assert find_secrets(text.format(AZURE_KEY)) == []


def test_a_cut_azure_key_is_no_assigned_secret() -> None:
    cut = chars(LETTERS, 20)
    assert find_secrets(f'"AccountKey": "{cut}"') == []
    assert [span.label for span in find_secrets(f'"apiKey": "{cut}"')] == ["assigned"]


def spans_of(text: str) -> list[str]:
    return [text[span.start : span.end] for span in find_secrets(text)]


SANCTUM = "2838|" + chars(LETTERS, 40)
UUID = "96ebb673-6038-409c-9d2e-f1240c36308b"
LOGIN = base64.b64encode(b"torsten.w:Istanbul.Barcelona").decode()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f'http GET x "Authorization:Bearer {SANCTUM}"', SANCTUM),
        (f"authorization:\n  type: Bearer\n  credentials: {SANCTUM}", SANCTUM),
        (f"API_TOKEN={SANCTUM}", SANCTUM),
        (f"Authorization: Bearer {UUID}", UUID),
        (f'new AuthenticationHeaderValue("Bearer", "{UUID}")', UUID),
        (f'{{"access_token": "{UUID}"}}', UUID),
        (f"Authorization: {UUID}", UUID),
        (f"> Authorization: Basic {LOGIN}", LOGIN),
        (f'headers.update({{"Authorization": "Basic {LOGIN}"}})', LOGIN),
        (f"Basic {LOGIN}", LOGIN),
    ],
)
def test_what_follows_a_scheme_of_http_is_found_whole(text: str, value: str) -> None:
    assert spans_of(text) == [value]


@pytest.mark.parametrize(
    "text",
    [
        f"row 2838|{chars(LETTERS, 12)} of the bearer",
        f"| 2838|{'a' * 40} | token",
        f"the request {UUID} was refused",
        f"authorization_id: {UUID}",
        "Authorization: Bearer 00000000-0000-0000-0000-000000000000",
        f"Authorization: Basic {base64.b64encode(b'username:password').decode()}",
        f"Authorization: Basic {base64.b64encode(b'administrator:administrator').decode()}",
        f"Authorization: Basic {base64.b64encode(b'no colon is in this text').decode()}",
        f"Sec-WebSocket-Key: {base64.b64encode(random.Random(1).randbytes(16)).decode()}",
    ],
)
def test_numbers_of_requests_and_logins_of_examples_are_none(text: str) -> None:
    assert spans_of(text) == []


def test_keys_of_services_by_their_whole_shape() -> None:
    hook = "https://" + made()["slack_webhook"]
    assert spans_of(f"curl -X POST {hook}") == [hook]
    assert spans_of(f"see {hook[:-1]}") == []
    account, key = (sort + chars("0123456789abcdef", 32) for sort in ("AC", "SK"))
    assert spans_of(f'account_sid = "{account}"') == []  # Who it is, as a user's name.
    assert spans_of(f'sid = "{key}"') == [key]
    assert spans_of(f'sid = "{key}0"') == []
    assert spans_of(f"SK{'ab' * 16}") == []
    certificate = base64.b64encode(b"-----BEGIN CERTIFICATE-----" + bytes(range(200))).decode()
    assert spans_of(f"certificate-authority-data: {certificate}") == []
    token = chars(string.ascii_lowercase + "234567", 52)
    assert spans_of(f"export AZURE_DEVOPS_EXT_PAT={token}") == [token]
    assert spans_of(f"pattern={token}") == []
    assert spans_of(f"PAT of azure, sha256 {token}") == []


JOINED = [
    '"{}" ..\n  "{}"',
    '"{}"\n  <> "{}"',
    '"{}"\n  ^ "{}"',
    '"{}" & _\n    "{}"',
    '"{}" & vbCrLf & _\n    "{}"',
    "<td>{}<br>\n{}</td>",
    "{}=\n{}",
    "; {}\n; {}",
    '"{}" ++\n  "{}"',
    "'{}' ||\n  '{}'",
    'concat!("{}",\n    "{}")',
    '"{}")\n .append("{}"',
    "12: {}\n13: {}\n14: end",
]


@pytest.mark.parametrize("form", JOINED)
@pytest.mark.parametrize("cut", [14, 23])
def test_a_token_in_two_parts_is_one_secret(form: str, cut: int) -> None:
    token = made(3)["gitlab_token"]
    text = f"let key = {form.format(token[:cut], token[cut:])}; "
    (span,) = find_secrets(text)
    inner = form[form.index("{") : form.rindex("}") + 1]
    assert text[span.start : span.end] == inner.format(token[:cut], token[cut:])


def test_two_tokens_of_a_list_are_two_secrets() -> None:
    tokens = [made(seed)["gitlab_token"] for seed in (3, 4)]
    text = f'["{tokens[0]}",\n "{tokens[1]}"]'
    assert [text[span.start : span.end] for span in find_secrets(text)] == tokens


def test_private_keys_without_marks_are_found() -> None:
    lines = [chars_of(64, seed) for seed in range(3)]
    for feed in ("\n", "\r\n", "\\n"):
        body = feed.join([*lines[:2], lines[2][:30] + "=="])
        head = feed.join(["PuTTY-User-Key-File-3: ssh-rsa", "Private-Lines: 3", ""])
        text = f"{head}{body}{feed}Private-MAC: 1de42a52"
        assert [text[span.start : span.end] for span in find_secrets(text)] == [body]
    private = chars_of(43, 7)
    for text in (
        f'{{"kty":"EC","crv":"P-256","x":"{chars_of(43, 8)}","d":"{private}"}}',
        f"<RSAKeyValue><Modulus>{lines[0]}</Modulus><D>{private}</D></RSAKeyValue>",
    ):
        assert [text[span.start : span.end] for span in find_secrets(text)] == [private]
    public = f'{{"kty":"EC","crv":"P-256","x":"{chars_of(43, 8)}","y":"{private}"}}'
    assert find_secrets(public) == []


def chars_of(number: int, seed: int) -> str:
    return "".join(random.Random(seed).choices(string.ascii_letters + string.digits, k=number))


def test_a_value_that_a_program_joins_below_is_redacted_whole() -> None:
    first, second = chars_of(50, 11), chars_of(40, 12)
    for between in ("' +\n    '", "\\\n"):
        text = f"headers.Authorization = 'Bearer {first}{between}{second}';"
        (span,) = find_secrets(text)
        assert text[span.start : span.end] == first + between + second
    text = f"api_key = '{first}',\n'{second}'"
    assert [text[span.start : span.end] for span in find_secrets(text)] == [first]
