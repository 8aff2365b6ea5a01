"""Findings about data: epochs, ids in files that the test damages, held-out, contamination."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from stages.engine import Many, Maybe, Stage
from stages.pretrain.preflight_checks import (
    check_contamination,
    check_epochs,
    check_held_out,
    check_ids,
)
from stages.pretrain.task import HeldOutSet


def account(**epochs):
    sources = [SimpleNamespace(name=n, epochs=e, planned=1000 * e) for n, e in epochs.items()]
    return SimpleNamespace(sources=sources)


def test_epochs_are_told_most_first_and_many_are_warned_of():
    finding = check_epochs(account(web=0.5, code=4.0))
    assert (finding.level, finding.message) == (
        "ok",
        "4,500 tokens planned; epochs: code 4.00, web 0.50",
    )
    finding = check_epochs(account(web=0.5, code=4.01))
    assert finding.level == "warning"
    assert finding.numbers["epochs"] == {"web": 0.5, "code": 4.01}
    many = check_epochs(account(**{f"s{n}": n / 10 for n in range(9)}))
    assert many.message.endswith("s4 0.40 and 4 more")


@pytest.fixture
def train(packed, read_input):
    return [read_input(*packed()["train"][0])]


def token_files(given):
    return [given.backend.local_path(f"{given.folder}/{path}") for path in given.paths("*.tokens")]


def test_ids_of_every_source_are_looked_at(train):
    finding = check_ids(train)
    assert finding.level == "ok", finding.message
    assert "of 2 sources" in finding.message
    assert 2 <= finding.numbers["sampled_sequences"] <= 8


def test_an_id_outside_the_vocabulary_is_a_refusal_that_names_the_file(train):
    for path in token_files(train[0]):
        ids = np.fromfile(path, dtype="<u2")
        ids[3] = 65_000
        path.chmod(0o644)
        ids.tofile(path)
    finding = check_ids(train)
    assert finding.level == "refusal"
    assert "has token 65000 at 3" in finding.message
    assert ".tokens" in finding.message


def test_files_are_not_marked_as_checked_by_a_look(train):
    check_ids(train)
    assert not [path for path in train[0]._checked if path.endswith(".tokens")]


def test_a_remote_store_is_not_fetched_for_a_sample(train):
    class Remote(type(train[0].backend)):
        local = False

        def local_path(self, path) -> Path:
            raise AssertionError("fetched")

    remote = replace(train[0], backend=Remote(train[0].backend.url))
    assert check_ids([remote]).level == "ok"


def test_a_run_without_held_out_sequences_is_warned_of(packed, read_input):
    held_out = HeldOutSet.from_inputs([read_input(*packed()["held_out"][0])], 12)
    assert check_held_out(held_out).message.endswith("sequences of code, web")
    assert check_held_out(HeldOutSet.from_inputs([], 12)).level == "warning"


def stage_of(name, inputs):
    def run(self, context):
        context.write_bytes("release", "README.md", name.encode())

    members = {
        "name": name,
        "version": 1,
        "reproducible": "bytes",
        "inputs": inputs,
        "outputs": {"release": "release"},
        "run": run,
    }
    return type(name, (Stage,), members)


@pytest.mark.parametrize(("compared", "level"), [(True, "ok"), (False, "warning")])
def test_a_comparison_with_benchmarks_is_found_in_the_lineage(
    store, run_stage, read_input, compared, level
):
    roles = {"documents": Maybe("release"), "contamination": Maybe("release")}
    hits = run_stage(stage_of("hits", {}))
    given = {"contamination": [(hits, "release")]} if compared else {}
    corpus = run_stage(stage_of("corpus", roles), {}, given)
    chain = {"documents": Many("release")}
    packed = run_stage(stage_of("packed", chain), {}, {"documents": [(corpus, "release")]})
    assert check_contamination(store, [read_input(packed, "release")]).level == level
