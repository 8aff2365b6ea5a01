"""`ingot prove-resume` as a person runs it: real processes, real signals, shards of a whole recipe.

What it finds where a resume is broken is tested in `tests/flows/analysis`, in forks.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from flows.cli.main import main

TINY = Path(__file__).parent / "tiny.yaml"

pytestmark = pytest.mark.faults


@pytest.mark.full
def test_the_tiny_recipe_resumes_to_the_same_bits(ran):
    before = ran.store.keys()
    result = CliRunner().invoke(
        main,
        [
            "prove-resume", str(TINY), "--store", str(ran.folder),
            "--training-steps", "6", "--kills", "2", "--seed", "1", "--json",
        ],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    proof = json.loads(result.stdout)
    assert proof["bit_exact"]
    assert [life["killed"] is not None for life in proof["lives"]] == [True, True, False]
    assert proof["lives"][-1]["last"] == proof["training_steps"] == 6
    assert ran.store.keys() == before


@pytest.mark.full
def test_a_step_of_two_ranks_resumes_to_the_same_bits_whichever_dies(ran):
    result = CliRunner().invoke(
        main,
        [
            "prove-resume", str(TINY), "--store", str(ran.folder), "--training-steps", "6",
            "--kills", "3", "--seed", "1", "--set", "pretrain.execution.layout.data=2", "--json",
        ],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    proof = json.loads(result.stdout)
    assert proof["bit_exact"]
    assert proof["compared"]["batches"] == 6
    killed = [life["killed"] for life in proof["lives"]]
    assert killed[-1] is None
    assert {one[-8:] for one in killed[:-1]} == {"(rank 0)", "(rank 1)"}
