"""What `--set` of `ingot what-if` takes."""

from __future__ import annotations

import pytest

from artifacts_schema.errors import UsageError
from flows.analysis.what_if import apply_settings
from stages.filter.config import FilterConfig


@pytest.mark.parametrize(
    "text",
    ["duplicates.threshold=0.7", "filter.duplicates.threshold=0.7", " filter.languages=[en]"],
)
def test_a_path_may_begin_with_the_step_as_a_run_takes_it(text: str) -> None:
    config = apply_settings(FilterConfig(), [text])
    assert config != FilterConfig()
    assert not config.thresholds


def test_a_bare_name_is_a_rule() -> None:
    assert apply_settings(FilterConfig(), ["gopher_few_words=30"]).thresholds == {
        "gopher_few_words": 30
    }


def test_an_unknown_rule_is_told_in_plain_words() -> None:
    with pytest.raises(UsageError) as told:
        apply_settings(FilterConfig(), ["gopher_few_word=30"])
    assert told.value.what.startswith("thresholds: no chosen preset has a rule 'gopher_few_word'")
