"""What a config promises is done, or refused where nothing could do it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from artifacts_schema.errors import UsageError
from stages.dedup.config import DedupConfig
from stages.dedup.stage import Dedup
from stages.engine import Upstream
from stages.filter.config import FilterConfig
from stages.filter.stage import Filter
from stages.signals.config import SignalsConfig
from stages.signals.stage import Signals

SECRETS = {
    "aws": "AKIA" + "Z7QKXW3N5VJH2RTB",
    "github": "ghp_" + "a8Kd03jfLq9ZxYw2Pn7Rs5Tv1Bc4Me3dlnZI",  # The last six are a checksum.
    "jwt": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
    "eyJzdWIiOiI4MzkyMDE3NDY1IiwibmFtZSI6IkFubmEgTGluZCJ9."
    "dBjftJeZ4CVPmB92K27uhbUJU1p1r_wW1gFWFOEjXk8",
    "key": "-----BEGIN RSA PRIVATE KEY-----\n"
    + "MIIEpAIBAAKCAQEA3Tz2mr7SZiAMfQyuvBjM9OiZ1BFFgt7xkWEPeGC8QmrVJ1aN\n" * 3
    + "-----END RSA PRIVATE KEY-----",
}


def test_secrets_are_not_in_the_kept_text_by_default(
    make_documents: Any, run_stage: Any, read_table: Any
) -> None:
    texts = [f"The settings are {secret} and that is all." for secret in SECRETS.values()]
    documents = make_documents([texts])
    measured = run_stage(Signals, {}, {"documents": [documents]})
    made = run_stage(
        Filter,
        {"rules": []},
        {
            "documents": [documents],
            "signals": [(measured, "signals")],
            "views": [(measured, "views")],
        },
    )
    kept = read_table(made, "documents")["text"].to_pylist()
    assert len(kept) == len(SECRETS)
    for text, secret in zip(kept, SECRETS.values(), strict=True):
        assert secret not in text
        assert text.startswith("The settings are ")
    assert made.counts["edited"] == len(SECRETS)


def test_redaction_needs_its_view_in_views() -> None:
    with pytest.raises(UsageError, match=r"'secrets'.*personal_data\.secret"):
        FilterConfig.parse({"views": ["personal_data"]}, where="filter")
    FilterConfig.parse({"views": [], "personal_data": "keep"}, where="filter")
    FilterConfig.parse({"views": [], "personal_data": "drop"}, where="filter")
    secrets = {"views": ["personal_data"], "personal_data": {"secret": "drop"}}
    FilterConfig.parse(secrets, where="filter")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "personal_data"),
        ({"views": ["lines"], "personal_data": "keep"}, "`views` .*lines"),
        (
            {"views": ["duplicate_substrings"], "personal_data": "keep"},
            "duplicate_substrings.*`dedup`",
        ),
        ({"personal_data": "keep", "contamination": {"min_share": 0.1}}, "`contamination`"),
        ({"personal_data": "keep", "duplicates": {"threshold": 0.7}}, "`duplicates`"),
    ],
)
def test_a_stage_alone_refuses_what_no_input_brings(
    make_documents: Any, run_stage: Any, config: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        run_stage(Filter, {"rules": [], **config}, {"documents": [make_documents([["a text"]])]})


def test_every_documents_input_needs_views_of_its_own(make_documents: Any, run_stage: Any) -> None:
    one, two = make_documents([["one"]]), make_documents([["two"]], snapshot="other")
    views = (run_stage(Signals, {}, {"documents": [one]}), "views")
    with pytest.raises(UsageError, match="1 of 2"):
        run_stage(Filter, {"rules": []}, {"documents": [one, two], "views": [views]})


def views_of(stage: Any, config: Any, **inputs: Any) -> Upstream:
    return Upstream(stage.name, "views", "views", stage, config, None, lambda: inputs)


DOCUMENTS = (Upstream("web", "documents", "documents"),)
INGEST = SimpleNamespace(name="ingest")


@pytest.mark.parametrize(
    ("config", "views", "message"),
    [
        ({}, [], "personal_data"),
        ({}, [views_of(INGEST, None)], "personal_data"),
        ({"views": ["personal_dta"]}, [views_of(Signals, SignalsConfig())], "'personal_data'"),
        (
            {"views": ["c4@code"]},
            [views_of(Signals, SignalsConfig(line_rules=()))],
            "'c4@code'",
        ),
        ({"views": ["boilerplate"]}, [views_of(Signals, SignalsConfig())], "'boilerplate'"),
        (
            {"views": ["duplicate_substrings"]},
            [views_of(Signals, SignalsConfig()), views_of(Dedup, DedupConfig())],
            "'duplicate_substrings'",
        ),
    ],
)
def test_a_plan_refuses_edits_that_no_input_marks(
    config: dict[str, Any], views: list[Upstream], message: str
) -> None:
    named = {**config, "personal_data": "keep"} if config else config
    with pytest.raises(UsageError, match=message):
        Filter.check_plan(FilterConfig(**named), {"documents": DOCUMENTS, "views": views})


def test_a_plan_takes_edits_that_the_inputs_mark() -> None:
    config = FilterConfig(views=("personal_data", "secrets", "c4@code", "boilerplate"))
    page_views = (Upstream("web", "views", "views"),)
    given = views_of(Signals, SignalsConfig(), page_views=page_views)
    Filter.check_plan(config, {"documents": DOCUMENTS, "views": [given]})
    own = Upstream("marks", "views", "views")
    named = FilterConfig(views=("personal_data", "secrets", "of my own"))
    Filter.check_plan(named, {"documents": DOCUMENTS, "views": [own]})


def test_views_of_an_artifact_whose_config_is_not_known_are_not_judged() -> None:
    """Made by an older version of `signals`, say: the plan must neither crash nor refuse."""
    documents = Upstream("documents", "documents", "documents")
    for stage in (Signals, Dedup):
        views = Upstream("old", "views", "views", stage=stage)
        given = {"documents": [documents], "views": [views]}
        if stage is Signals:
            Filter.check_plan(FilterConfig(), given)
        else:
            Filter.check_plan(FilterConfig.parse({"personal_data": "keep"}, where="f"), given)
