"""The tenth blind set holds what it says: forms, checksums, weights. No rule runs here."""

from __future__ import annotations

import random
import re
from functools import partial
from itertools import groupby
from pathlib import Path

import pytest

from tests.benchmarks import tenth_blind
from tests.benchmarks.blind_set import KINDS, load, values_of
from tests.benchmarks.blind_standards import crc_base62, der_end
from tests.benchmarks.splits import TENTH_BLIND_SEED
from tests.benchmarks.tenth_blind import SET
from tests.benchmarks.tenth_blind.keys import PRIVATE, PUBLIC, age_key
from tests.benchmarks.tenth_blind.services import EVERY, make_key

positives = partial(SET.positives, seed=TENTH_BLIND_SEED)
negatives = partial(SET.negatives, seed=TENTH_BLIND_SEED)
FORMS = Path(tenth_blind.__file__).with_name("FORMS.md").read_text("utf-8")


def table_rows(columns: int) -> list[list[str]]:
    """Rows of the tables of FORMS.md that have so many columns, without their heads."""
    rows = [line.strip("|").split("|") for line in FORMS.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row] for row in rows]
    return [row for row in cells if len(row) == columns and re.fullmatch(r"[\d.]+", row[-1])]


def weights_of(kind: str, sign: str) -> list[float]:
    """The weight of each template in the order of FORMS.md, by its rule."""
    forms = [
        (float(number), int(count))
        for name, side, _, number, count in (row for row in table_rows(5) if row[1] in "+-")
        if name == kind and side == sign
    ]
    largest = max(number / count for number, count in forms)
    return [
        round(max(0.03, number / count / largest), 2)
        for number, count in forms
        for _ in range(count)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_weights_follow_the_counted_forms(kind: str) -> None:
    templates = load(kind, SET.texts)
    for sign in "+-":
        written = [template.weight for template in templates if template.sign == sign]
        assert written == pytest.approx(weights_of(kind, sign), abs=0.006)


def test_counts_of_forms_add_up() -> None:
    summary = {row[0]: list(map(int, row[1:])) for row in table_rows(5) if row[1] not in "+-"}
    total = summary.pop("all")
    assert total == [sum(column) for column in zip(*summary.values(), strict=True)]
    assert all(row[0] == sum(row[1:]) for row in summary.values())
    forms = [row for row in table_rows(5) if row[1] in "+-"]
    for kind in ("email", "phone", "ip", "card", "iban"):
        counted = {
            sign: sum(int(row[3]) for row in rows)
            for sign, rows in groupby((row for row in forms if row[0] == kind), lambda row: row[1])
        }
        assert counted["-"] == summary[kind][2]
        # cards and IBANs: the surroundings of published numbers, one of them without a positive
        assert counted["+"] == (summary[kind][1] or {"card": 23, "iban": 24}[kind])
    counted = re.findall(r"`[^`]+` (\d+)[,.]", FORMS.replace("\n", " "))
    assert sum(map(int, counted)) == summary["references to credentials"][0]


def test_forms_of_keys_are_whole() -> None:
    rng = random.Random(4)
    for form in {**PRIVATE, **PUBLIC}.keys() - {"OPENSSH PRIVATE KEY"}:
        content = {**PRIVATE, **PUBLIC}[form](rng)
        assert der_end(content) == len(content)
    assert len(age_key(rng)) == 74


def test_keys_of_services_have_their_published_lengths_and_checksums() -> None:
    rng = random.Random(3)
    for name in ("github", "github_oauth", "npm"):
        body = make_key(rng, name).partition("_")[2]
        assert crc_base62(body[:30]) == body[30:]
    lengths = {
        "github": 40, "github_fine": 93, "gitlab": 26, "anthropic": 108, "sendgrid": 69,
        "digitalocean": 71, "hugging_face": 37, "shopify": 38, "google": 39, "google_client": 35,
        "databricks": 36, "groq": 56, "replicate": 40, "notion": 50, "airtable": 82, "linear": 48,
        "postman": 64, "telegram": 46, "npm": 40, "docker": 36, "openai": 51, "circleci": 70,
    }  # fmt: skip
    assert {name: len(make_key(rng, name)) for name in lengths} == lengths
    heads = {make_key(rng, name)[:3] for name in EVERY}
    values = [value for case in positives("provider_key") for value in values_of(case)]
    assert len(heads & {value[:3] for value in values}) >= 20
