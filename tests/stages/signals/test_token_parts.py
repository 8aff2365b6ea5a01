"""Tokens whose parts stand apart: each part is found, and no name or word beside a token is."""

from __future__ import annotations

import base64
import json
import random
import string

import pytest

from stages.signals.credentials import find_secrets

LETTERS = string.ascii_letters + string.digits


def chars(number: int, seed: int, alphabet: str = LETTERS) -> str:
    return "".join(random.Random(f"{seed} {number}").choices(alphabet, k=number))


def web_token(algorithm: str, signature: int) -> str:
    parts = [{"alg": algorithm, "typ": "JWT"}, {"sub": "31174", "role": "editor", "exp": 17373771}]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()) for part in parts]
    return ".".join([*(part.decode().rstrip("=") for part in encoded), chars(signature, 8)])


TOKENS = {
    "Hugging Face": "hf_" + chars(34, 11),
    "Slack": f"xoxb-{chars(12, 1, string.digits)}-{chars(13, 2, string.digits)}-{chars(24, 3)}",
    "SendGrid": f"SG.{chars(22, 5)}.{chars(43, 5)}",
    "HS256": web_token("HS256", 43),
    "RS256": web_token("RS256", 342),
}
FORMS = (
    'part1 = "{}"\npart2 = "{}"\ntoken = part1 + part2',
    "const k1 = '{}';\nconst k2 = '{}';\nconst key = k1 + k2;",
    "[2021-05-09, 16:54] Ann: first half {}\n[2021-05-09, 16:55] Ann: second half {}",
    "Key: `{}`\n`{}`",
    '"source": [\n  "token = \'{}\'\\\\\\n",\n  "        \'{}\'\\n"\n]',
    'sb.append("{}");\nsb.append("{}");',
    'buffer.append("{}").append("{}")',
    "<p>{}</p>\n<p>{}</p>",
    'call(f"{}" f"{}")',
    "{}...\n...{}",
)


def found(text: str) -> list[str]:
    return [text[span.start : span.end] for span in find_secrets(text)]


@pytest.mark.parametrize("service", TOKENS)
@pytest.mark.parametrize("form", FORMS)
def test_each_part_is_a_secret(form: str, service: str) -> None:
    token = TOKENS[service]
    for share in (0.5, 0.6):
        cut = int(share * len(token))
        parts = [token[:cut], token[cut:]]
        text = form.format(*parts)
        assert found(text) in (
            parts,
            [form[form.index("{}") : form.rindex("{}") + 2].format(*parts)],
        )


def test_a_web_token_goes_on_where_its_signature_has_no_length_that_is_used() -> None:
    token = TOKENS["RS256"]
    for cut in (len(token) - 300, len(token) - 40):
        text = f"10:15 app: key {token[:cut]}\n10:16 app: {token[cut:]}\n10:17 done"
        assert found(text) == [token[:cut], token[cut:]]
    whole = TOKENS["HS256"]
    assert found(f"key {whole}\nid {chars(20, 4)}1a") == [whole]


def test_a_token_below_another_is_no_part_of_it() -> None:
    one, two = (f"sk-ant-api03-{chars(50, seed)}" for seed in (21, 22))
    assert found(f"KEY_1={one}\nKEY_2={two}\n") == []
    assert found("sk-ant-api03-aaaaaaaaaaaaaa\n" * 12) == []
    head, payload, signature = TOKENS["HS256"].split(".")
    parts = [f"{head}.", f"{payload}.{signature}"]
    text = "a = '{}';\nb = '{}';".format(*parts)
    assert found(text) in (parts, [text[5:-2]])


def test_a_hyphen_that_a_page_breaks_a_token_with_is_no_part() -> None:
    token = TOKENS["SendGrid"]
    text = f"key, two lines in the pdf: {token[:34]}-\n{token[34:]}"
    assert found(text) == [token[:34], token[34:]]


def test_three_parts_are_joined() -> None:
    token = TOKENS["SendGrid"]
    text = f"KEY_1={token[:25]}\nKEY_2={token[25:45]}\nKEY_3={token[45:]}\n"
    assert found(text) in ([token[:25], token[25:45], token[45:]], [text[6:-1]])


def test_a_token_that_is_too_short_is_not_joined_to_what_stands_near() -> None:
    for text in (
        f"hf_{chars(14, 1)} is cut; see commit {chars(12, 2, '0123456789abcdef')} and file3a.py",
        f'model = "hf_{chars(16, 3)}"\nrevision = "{chars(40, 4, "0123456789abcdef")}"',
        f"ghp_{chars(16, 5)}\n2021-05-09T16:54:01Z done",
        f"xoxb-{chars(12, 1, string.digits)}-{chars(10, 2, string.digits)}\nsecond answer of mine",
    ):
        assert found(text) == [], text


def test_a_removed_line_of_a_diff_begins_a_token_as_an_added_one_does() -> None:
    token = TOKENS["Hugging Face"]
    for sign in "+-":
        text = f"{sign}{token[:20]}\n{sign}{token[20:]}"
        assert found(text) == [text[1:]]


SHORT = {
    "GitLab": "glpat-" + chars(20, 31),
    "Stripe": "sk_" + "live_" + chars(24, 32),
    "Anthropic": f"sk-ant-api03-{chars(93, 34)}AA",
    "OpenAI": f"sk-{chars(20, 35)}T3Blbk" + f"FJ{chars(20, 36)}",
    "Google": "AI" + "za" + chars(35, 37),
    "Telegram": f"{chars(10, 38, '123456789')}:AA{chars(33, 39)}",
    "SendGrid": f"SG.{chars(22, 41)}.{chars(43, 42)}",
    "Discord": f"MTI0NTY3ODkwMTIzNDU2Nzg5.GaBc1d.{chars(38, 43)}",
    "New Relic": f"NRAK-{chars(27, 44, string.ascii_uppercase + string.digits)}",
}


@pytest.mark.parametrize("service", SHORT)
@pytest.mark.parametrize(
    "form",
    [
        "Premi\u00e8re partie : {}\nDeuxi\u00e8me partie : {}",
        "\u524d\u534a\u306f {} \u3001\u5f8c\u534a\u306f {}",
        "The token starts with {} and ends with {}.",
        "Der Token ist {}, dann direkt {}.",
        'key = QStringLiteral("{}") + QStringLiteral("{}");',
        '[@"{}" stringByAppendingString:@"{}"]',
        'key = "{}"sv\n      "{}"sv;',
        "key_a = '{}'  # first\nkey_b = '{}'",
        '{{"keyPart1": "{}", "keyPart2": "{}"}}',
        "define('K1', '{}');\ndefine('K2', '{}');",
        '"{}\\z\n    {}"',
        "<w:t>{}</w:t><w:t>{}</w:t>",
        "?q={}%0A{}",
    ],
)
@pytest.mark.parametrize("cut", [14, 15])
def test_a_first_part_of_few_characters_is_joined(form: str, service: str, cut: int) -> None:
    token = SHORT[service]
    parts = [token[:cut], token[cut:]]
    joined = form[form.index("{}") : form.rindex("{}") + 2].replace("{{", "{").format(*parts)
    assert found(form.format(*parts)) in (parts, [joined])


def test_a_masked_token_is_not_joined_to_what_follows() -> None:
    for text in (
        "| glpat-{}\u2026 | active | {} |",
        "masked: glpat-{}**** request {}",
        'prefix = "glpat-{}"  # cut\nrevision = "{}"',
        "last used: glpat-{} by i-0{}",
    ):
        assert found(text.format(chars(9, 51), chars(17, 52))) == [], text
