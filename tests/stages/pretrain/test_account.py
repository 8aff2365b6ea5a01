"""What the config of pretraining says of its data: batch sizes, mixtures, caps, what is skipped."""

from __future__ import annotations

import subprocess
import sys

import pytest

from artifacts_schema.errors import UsageError
from artifacts_schema.identity import canonical_json
from stages.pretrain.config import PhaseConfig, PretrainConfig, format_sizes, read_sizes

PHASE = {"tokens": 10**9, "learning_rate": {"peak": 1e-3}}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (16, 16),
        ("16", 16),
        ("0: 16", 16),
        ("0: 256, 1e9: 512", ((0, 256), (10**9, 512))),
        ("0:768 250e9:1536", ((0, 768), (250 * 10**9, 1536))),
        ({0: 256, 1e9: 512}, ((0, 256), (10**9, 512))),
        ({"0": 256, "1_000": "512"}, ((0, 256), (1000, 512))),
    ],
)
def test_batch_sizes_are_a_number_or_a_schedule_in_one_form(given, meant):
    assert read_sizes(given) == meant
    assert read_sizes(format_sizes(read_sizes(given))) == meant


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (0, "'0' is no number of sequences from 1"),
        (1.5, "no number of sequences"),
        (True, "no number of sequences"),
        (None, "no number of sequences"),
        ("many", "'many' is no number of sequences"),
        ("nan", "no number of sequences"),
        ("1: 16", "begins at token 0"),
        ({}, "begins at token 0"),
        ("0: 16, 16", "no schedule like"),
        ("0: 16, 5: 8, 5: 4", "tokens of a schedule rise, but 5 follows 5"),
        ("0: 16, -5: 8", "no number of tokens"),
        ("0: 16, 9: 0", "no number of sequences"),
    ],
)
def test_what_is_no_batch_size_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        read_sizes(given)
    with pytest.raises(UsageError, match=message):
        PhaseConfig.parse({**PHASE, "sequences_per_batch": given}, where="p")


def test_equal_schedules_are_one_config_and_survive_a_manifest():
    texts = ["0: 256, 1e8: 512", "0:256 100000000:512", {0: 256, 10**8: 512}]
    phases = [PhaseConfig.parse({**PHASE, "sequences_per_batch": one}, where="p") for one in texts]
    assert len({canonical_json(one.identity()) for one in phases}) == 1
    assert PhaseConfig.parse(phases[0].plain(), where="p") == phases[0]
    plain = PhaseConfig.parse({**PHASE, "sequences_per_batch": "16"}, where="p")
    assert plain.identity() == PhaseConfig.parse(PHASE, where="p").identity()


def test_a_batch_size_behind_the_end_of_its_phase_is_refused():
    with pytest.raises(UsageError, match=r"1,000,000,000, .*1,000,000,"):
        PhaseConfig.parse({**PHASE, "sequences_per_batch": "0: 256, 1e9: 512"}, where="p")


@pytest.mark.parametrize("name", ["mixture", "mixture_end"])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"web": 0.5, "code": 0.6}, r"weights sum to 1\.1, not to 1"),
        ({"web": 0.0}, "weights sum to 0, not to 1"),
        ({"web": 1.5, "code": -0.5}, r"'code' is -0\.5"),
    ],
)
def test_a_mixture_that_cannot_be_is_told_with_the_recipe_before_anything_runs(
    name, weights, message
):
    values = {"phases": [PHASE, {**PHASE, name: weights}]}
    with pytest.raises(UsageError, match=rf"phases\.1\.{name}: .*{message}"):
        PretrainConfig.parse(values, where="recipe")


def test_weights_may_be_off_by_a_thousandth():
    third = {"web": 0.333, "code": 0.333, "books": 0.333}
    assert PhaseConfig.parse({**PHASE, "mixture": third}, where="p").mixture == third


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"skip": [{"first": 5, "last": 4}]}, r"skip\.0: it ends at 4, before it begins at 5"),
        ({"skip": [{"first": 0, "last": 4}]}, "counted from 1"),
        ({"skip": [{"first": 1, "last": 2, "unit": "steps"}]}, "training_steps"),
        ({"epochs": {"web": 0}}, "of 'web' it is 0, not above 0"),
        ({"max_epochs": 0}, "greater than 0"),
        ({"phases": [{**PHASE, "tokens": 0}]}, r"phases\.0\.tokens"),
    ],
)
def test_ranges_and_caps_that_mean_nothing_are_refused(values, message):
    with pytest.raises(UsageError, match=message):
        PretrainConfig.parse(values, where="recipe")


def test_the_config_of_a_recipe_loads_without_numpy_and_torch():
    script = (
        "import sys, stages.pretrain.config, stages.pretrain.stage, stages.pretrain.page\n"
        "print([m for m in ('numpy', 'torch', 'pyarrow', 'numba') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
