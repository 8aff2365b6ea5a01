"""`ingot forget --suspects RUN`: documents of a run's anomalies go on the list for `filter`."""

import json

import pytest
from click.testing import CliRunner

from flows.analysis.deletion import read_list
from flows.cli.main import main

ODD, ODDER, ASKED = "a" * 32, "b" * 32, "c" * 32


@pytest.fixture
def forget(store):
    def call(*arguments):
        return CliRunner().invoke(main, ["forget", *arguments, "--store", store.url])

    return call


def rows(*doc_ids):
    return [
        {"doc_id": doc_id, "reason": f"training step {n}: spike", "source": "web"}
        | {"training_step": n}
        for n, doc_id in enumerate(doc_ids, start=7)
    ]


def test_documents_go_on_the_list_with_the_runs_reasons(store, given, forget):
    run, _ = given("training_run", {"excluded.parquet": rows(ODD, ODDER), "run.json": {}})
    store.set_ref("demo/pretrain", run.stage, run.key)
    told = forget(ASKED, "--suspects", "demo/pretrain", "--reason", "request 1", "--json")
    assert told.exit_code == 0, told.output
    assert sorted(json.loads(told.stdout)["exclusions"]["added"]) == [ODD, ODDER, ASKED]
    assert read_list(store, "exclusions") == {
        ODD: "training step 7: spike",
        ODDER: "training step 8: spike",
        ASKED: "request 1",
    }


@pytest.mark.parametrize("files", [{"excluded.parquet": []}, {"run.json": {}}])
def test_a_run_without_anomalies_has_none_to_forget(store, given, forget, files):
    run, _ = given("training_run", files)
    told = forget("--suspects", run.key)
    assert told.exit_code == 2
    assert "had an anomaly" in told.stderr
    assert read_list(store, "exclusions") == {}


def test_what_is_no_training_run_is_refused(given, forget):
    other, _ = given("exclusions", {"00000.parquet": []})
    assert "not a training run" in forget("--suspects", other.key).stderr
