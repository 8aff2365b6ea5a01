from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from copies_by_hand import copy_row
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.kinds import sidecar_folder
from artifacts_schema.manifest import Manifest
from stages.filter.config import FilterConfig
from stages.filter.presets import PRESETS
from stages.filter.stage import Filter
from stages.filter.verdicts import FilterInputs, Verdicts, compare_presets, compute_verdicts

Reference = tuple[Manifest, str]
RULES = ("garbled", "fineweb@code")
SIGNALS = {rule.signal: rule for name in RULES for rule in PRESETS[name]}
CONFIG: dict[str, Any] = {
    "rules": list(RULES),
    "rules_by_source": {"code": ["garbled"]},
    "rules_by_language": {"ja": ["garbled"]},
    "languages": ["en", "de", "ja"],
    "thresholds": {"fineweb_newlines": 0.4},
    "thresholds_by_language": {"de": {"fineweb_few_ended_lines": 0.3}},
    "contamination": {"min_ngrams_hit": 2},
    "views": ["lines", "personal_data", "secrets"],
    "personal_data": {"iban": "drop", "phone": "keep"},
}


def drawn(seed: int, documents: int) -> list[dict[str, Any]]:
    """Documents with signals, spans, overlap and partners, each drawn from a seed."""
    draw = random.Random(seed)
    made = []
    for number in range(documents):
        text = draw.choice(["  x  ", "mail a@b.co now", "one\ntwo\nthree"])
        values = {
            name: draw.choice([None, rule.threshold, rule.threshold * 1.2 + 0.01, 0.0])
            for name, rule in SIGNALS.items()
        }
        end = draw.randint(0, len(text))
        span = {"start": 0, "end": end, "replacement": draw.choice(["", "*"])}
        labels = {"view": draw.choice(["lines", "personal_data", "other"]), "label": "phone"}
        made.append(
            {
                "doc_id": f"{number:03d}",
                "text": text,
                "source": draw.choice(["web", "code"]),
                "signals": {
                    **values,
                    "language": draw.choice(["en", "de", "ja", "fr"]),
                    "iban_count": float(draw.random() < 0.1),
                    "characters": float(len(text)),
                },
                "spans": [{**span, **labels}] if draw.random() < 0.5 else [],
                "hit": draw.choice([0, 0, 0, 1, 2, 3]),
                "partner": draw.randrange(number) if number and draw.random() < 0.4 else None,
                "similarity": draw.choice([0.6, 0.8, 0.9]),
            }
        )
    return made


def roles_of(
    make: Callable[..., Reference],
    make_documents: Callable[..., Reference],
    documents: list[dict[str, Any]],
    shards: list[int],
) -> dict[str, list[Reference]]:
    """Everything that `filter` reads, cut into shards of the given sizes."""
    starts = np.concatenate([[0], np.cumsum(shards)]).tolist()
    parts = {f"{k:05d}.parquet": documents[starts[k] : starts[k + 1]] for k in range(len(shards))}
    corpus = make_documents(
        [
            [
                {**{n: d[n] for n in ("doc_id", "text", "source")}, "url": f"https://x.example/{i}"}
                for i, d in enumerate(part)
            ]
            for part in parts.values()
        ]
    )
    folder = sidecar_folder(corpus[0].output(corpus[1]).digest)

    def table(made: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        return {
            path: [{"doc_id": d["doc_id"], **made(d)} for d in part] for path, part in parts.items()
        }

    def in_folder(rows: dict[str, Any]) -> dict[str, Any]:
        return {f"{folder}/{path}": found for path, found in rows.items()}

    def partners(d: dict[str, Any]) -> dict[str, Any]:
        near = [] if d["partner"] is None else [(f"{d['partner']:03d}", d["similarity"])]
        made = copy_row(d["doc_id"], d["doc_id"], near)
        made.pop("doc_id")
        return made

    excluded = [{"doc_id": d["doc_id"], "reason": "-"} for d in documents[::7]]
    overlap = in_folder(table(lambda d: {"ngrams": 9, "ngrams_hit": d["hit"], "hits": []}))
    duplicates = {
        **in_folder(table(partners)),
        "statistics.json": {"parameters": {"floor": 0.5}},
    }
    return {
        "documents": [corpus],
        "signals": [make("signals", table(lambda d: d["signals"]))],
        "views": [make("views", table(lambda d: {"spans": d["spans"]}))],
        "contamination": [make("contamination", overlap)],
        "exclusions": [make("exclusions", {"00000.parquet": excluded})],
        "duplicates": [make("duplicates", duplicates)],
    }


@pytest.fixture
def given_of(read_input: Any) -> Callable[[dict[str, list[Reference]]], FilterInputs]:
    """Roles as artifacts → what `verdicts_of` reads."""

    def load(roles: dict[str, list[Reference]]) -> FilterInputs:
        found = {role: [read_input(*one) for one in given] for role, given in roles.items()}
        contamination = (found.pop("contamination", None) or [None])[0]
        names = ("documents", "signals", "views", "duplicates", "ledger", "exclusions")
        names += ("conversations", "preferences")
        return FilterInputs(
            contamination=contamination, **{role: found.get(role, []) for role in names}
        )

    return load


def told(verdicts: Verdicts) -> list[dict[str, Any]]:
    """The verdicts as rows of a ledger."""
    return [
        {
            "doc_id": doc_id.as_py(),
            "reason": reason.as_py(),
            "failing": verdicts.failing(row),
            "partner": partner.as_py(),
            "value": float(verdicts.findings.value[row]),
            "threshold": float(verdicts.findings.threshold[row]),
        }
        for row, (doc_id, reason, partner) in enumerate(
            zip(verdicts.doc_ids, verdicts.reasons, verdicts.partners, strict=True)
        )
    ]


def test_verdicts_are_those_of_the_stage(
    given: Any, make_documents: Any, run_stage: Any, read_table: Any, given_of: Any
) -> None:
    """On a corpus with copies, overlap, exclusions, languages, sources and edits."""
    documents = drawn(7, 240)
    roles = roles_of(given, make_documents, documents, [100, 0, 140])
    manifest = run_stage(Filter, CONFIG, roles)
    verdicts = compute_verdicts(given_of(roles), FilterConfig.parse(CONFIG, where="test"))
    rows = read_table(manifest, "ledger").to_pylist()
    found = told(verdicts)
    for row in rows:
        row["value"] = float("nan") if row["value"] is None else row["value"]
        row["threshold"] = float("nan") if row["threshold"] is None else row["threshold"]
    expected = [{name: row[name] for name in found[0]} for row in rows]
    np.testing.assert_equal(found, expected)
    assert verdicts.kept.tolist() == [row["verdict"] == "kept" for row in rows]
    assert verdicts.sources.to_pylist() == [d["source"] for d in documents]
    assert verdicts.characters.to_pylist() == [row["characters"] for row in rows]
    reasons = {row["reason"] for row in rows}
    assert reasons >= {
        None, "language", "garbled_replacement_characters", "fineweb_few_ended_lines",
        "personal_data_iban", "empty_after_edits", "contamination", "exclusion", "near_duplicate",
    }  # fmt: skip
    # Conservation: every document is kept or dropped for one reason, none twice.
    account = manifest.conservation
    assert account.records_in == len(documents) == account.out + sum(account.dropped.values())
    kept = read_table(manifest, "documents")["doc_id"].to_pylist()
    assert kept == [row["doc_id"] for row in rows if row["verdict"] == "kept"]


@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 12), min_size=1, max_size=3))
def test_no_split_into_shards_changes_a_verdict(
    request: pytest.FixtureRequest, seed: int, shards: list[int]
) -> None:
    make, make_documents, load = (
        request.getfixturevalue(name) for name in ("given", "make_documents", "given_of")
    )
    documents = drawn(seed, sum(shards))
    config = FilterConfig.parse(CONFIG, where="test")
    whole, cut = (
        compute_verdicts(load(roles_of(make, make_documents, documents, sizes)), config)
        for sizes in ([sum(shards)], shards)
    )
    np.testing.assert_equal(told(whole), told(cut))
    for verdicts in (whole, cut):
        lists = [verdicts.failing(row) for row in range(len(documents))]
        order = {name: place for place, name in enumerate(verdicts.names)}
        for row, names in enumerate(lists):
            assert [order[name] for name in names] == sorted(order[name] for name in set(names))
            assert verdicts.kept[row] == (not names) == (verdicts.first[row] < 0)
            assert verdicts.reasons[row].as_py() == (names[0] if names else None)


def test_verdicts_fail_as_the_stage_does(given: Any, make_documents: Any, given_of: Any) -> None:
    roles = roles_of(given, make_documents, drawn(1, 4), [4])
    low = FilterConfig.parse({**CONFIG, "duplicates": {"threshold": 0.4}}, where="test")
    with pytest.raises(UsageError, match=r"0\.4"):
        compute_verdicts(given_of(roles), low)
    missing = FilterConfig(rules=("truncated",))
    with pytest.raises(UsageError, match="'is_truncated'"):
        compute_verdicts(given_of(roles), missing)
    other = roles_of(given, make_documents, drawn(1, 5)[1:], [4])
    with pytest.raises(InputError, match="signals"):
        compute_verdicts(given_of({**roles, "signals": other["signals"]}), missing)


def test_documents_alone_are_all_kept(make_documents: Any, given_of: Any) -> None:
    roles = {"documents": [make_documents([["one", "two"]])]}
    verdicts = compute_verdicts(given_of(roles), FilterConfig(rules=()))
    assert verdicts.kept.tolist() == [True, True]
    assert verdicts.characters.to_pylist() == [None, None]
    assert verdicts.partners.null_count == 2


def test_presets_are_compared_each_alone(given: Any, make_documents: Any, given_of: Any) -> None:
    """Three shards' worth of counts, done again document by document."""
    documents = drawn(3, 60)
    roles = roles_of(given, make_documents, documents, [20, 40])
    names = ["garbled", "fineweb@code", "fineweb@blog", "truncated", "fineweb-2"]
    found = compare_presets(given_of(roles), names)
    assert found.presets == ("garbled", "fineweb@code", "fineweb@blog")
    assert found.missing["truncated"] == ("is_truncated",)
    assert "words" in found.missing["fineweb-2"]
    drops = {
        name: [any(fails(rule, d["signals"][rule.signal]) for rule in PRESETS[name])
               for d in documents]
        for name in found.presets
    }  # fmt: skip
    assert found.documents == 60
    assert found.kept.tolist() == [60 - sum(drops[name]) for name in found.presets]
    for a, one in enumerate(found.presets):
        for b, two in enumerate(found.presets):
            only = [x and not y for x, y in zip(drops[one], drops[two], strict=True)]
            assert found.only[a, b] == sum(only)
    table = found.table()
    assert table["preset"].to_pylist() == list(found.presets)
    assert table["only, not garbled"].to_pylist() == found.only[:, 0].tolist()
    assert json.dumps(table.to_pylist())


def fails(rule: Any, value: float | None) -> bool:
    if value is None:
        return False
    return value < rule.minimum if rule.minimum is not None else value > rule.maximum
