"""Sizes from text and time, by arithmetic; recipes that plan."""

from __future__ import annotations

import pytest

from artifacts_schema.errors import InputError
from flows.recipe.starter import DEPTHS, choose_plan, measure_speed, recipe_name
from flows.recipe.survey_source import DataSource

SPEED = 3e11
"""Operations a second; training takes half of it, in .6 of the time."""


def plan(text_bytes, minutes=30.0, speed=SPEED, memory=10**12):
    return choose_plan(int(text_bytes), minutes, speed, memory, where="here")


def test_tokens_of_plenty_of_text_are_what_the_time_allows():
    """6 operations a parameter and token: 30 min · .6 · 1.5e11 / 6 N."""
    chosen = plan(1e12)
    assert chosen.limit == "time"
    assert chosen.tokens == pytest.approx(30 * 60 * 0.6 * 1.5e11 / (6 * chosen.parameters), rel=0.1)
    body = chosen.parameters - chosen.vocabulary * chosen.width
    assert chosen.depth == DEPTHS[0] or chosen.tokens >= 20 * body


def test_little_text_is_read_four_times_at_most():
    chosen = plan(2e6)
    assert chosen.limit == "text"
    assert 3.5 < chosen.epochs <= 4
    assert chosen.tokens <= 4 * 2e6 / 3.5


def test_more_time_gives_a_larger_model():
    sizes = [plan(1e12, minutes).parameters for minutes in (10, 1_000, 100_000)]
    assert sizes == sorted(set(sizes))


def test_time_that_little_text_leaves_goes_into_the_model():
    """Up to a parameter for each token, as in the quickstart."""
    small, large = plan(4e6, minutes=1), plan(4e6, minutes=600)
    assert large.depth > small.depth
    assert large.parameters - large.vocabulary * large.width <= large.tokens


def test_a_gpu_cluster_of_a_month_gets_a_model_of_a_billion():
    """4e14 operations a second for 30 days: 20 · 6 N² = C → N of about 1.6e9 · .72."""
    assert 0.5e9 < plan(1e13, 60 * 24 * 30, 4e14).parameters < 2e9


def test_less_text_than_a_batch_is_refused():
    with pytest.raises(InputError) as caught:
        plan(5_000)
    assert caught.value.where == "here"


def test_batches_are_whole_sequences_and_grow_with_the_run():
    for text in (1e5, 1e7, 1e9, 1e12):
        for minutes in (5, 500, 50_000):
            chosen = plan(text, minutes)
            assert chosen.sequences_per_batch * chosen.context in (2048, 8192, 65536, 524288)


def test_the_speed_of_this_machine_is_a_speed():
    assert 1e8 < measure_speed() < 1e15


@pytest.mark.parametrize(
    ("folder", "name"),
    [("notes", "notes"), ("2024 crawl", "corpus-2024-crawl"), ("été", "t"), ("…", "corpus"),
     ("snapshots", "snapshots-corpus")],
)  # fmt: skip
def test_a_recipe_is_named_after_its_folder(tmp_path, folder, name):
    assert recipe_name(DataSource(str(tmp_path / folder))) == name
