"""A Dask cluster may stand in a recipe, in a profile, and behind a form; it changes no key."""

from __future__ import annotations

import pytest

from artifacts_schema.config import Config, MapExecution
from artifacts_schema.errors import UsageError
from flows.orchestration.forms import stage_spec
from stages.engine import Stage, protocol

ADDRESS = "tls://head:8786"
RECIPE = """\
snapshots:
  crawl: {files: ['data/a/*.txt']}
steps:
  read: {stage: lines, inputs: {snapshot: crawl}}
  signals: {stage: signals, inputs: {documents: read}, execution: %s}
"""


class Alone(Stage):
    """A stage without inputs, as a form can run it."""

    name, version, reproducible = "alone", 1, "bytes"
    outputs = {"exclusions": "exclusions"}
    Config, Execution = Config, MapExecution

    def run(self, context):
        """Make nothing."""


@pytest.fixture
def signals(project, open_pipeline):
    """`signals(execution, profile=None)` → the step's execution, by name."""

    def bind(execution, profile=None):
        path = project / "given.yaml"
        path.write_text(RECIPE % execution)
        if profile is not None:
            (project / "cluster.yaml").write_text(profile)
            profile = str(project / "cluster.yaml")
        found = open_pipeline(recipe=path, profile=profile).graph.instances
        return found["signals"].execution

    return bind


def test_a_recipe_names_a_cluster(signals):
    given = signals(f"{{engine: dask, scheduler: '{ADDRESS}'}}")
    assert given == {"engine": "dask", "scheduler": ADDRESS}


def test_a_profile_sends_a_stage_to_a_cluster(signals):
    profile = f"stages: {{signals: {{engine: dask, scheduler: '{ADDRESS}'}}}}\n"
    assert signals("{workers: 3}", profile) == {
        "workers": 3, "engine": "dask", "scheduler": ADDRESS,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("execution", "told"),
    [
        ("{engine: dask}", "engine dask needs the address of a scheduler"),
        ("{scheduler: 'tcp://a:b@head:1'}", "an address holds no user and no password"),
        ("{engin: dask}", "unknown key 'engin', did you mean 'engine'?"),
    ],
)
def test_what_is_wrong_is_told_before_anything_runs(signals, execution, told):
    with pytest.raises(UsageError) as error:
        signals(execution)
    assert told in str(error.value)
    assert "given.yaml:5: steps.signals.execution" in str(error.value)


def test_a_stage_that_no_cluster_can_run_refuses_one(project, open_pipeline):
    path = project / "given.yaml"
    path.write_text((RECIPE % "{}").replace("crawl}}", "crawl}, execution: {engine: dask}}"))
    with pytest.raises(UsageError, match="'engine'"):
        open_pipeline(recipe=path)


def test_a_form_runs_with_a_profile_that_names_a_cluster(store, tmp_path, monkeypatch):
    monkeypatch.setitem(protocol._registered, "alone", Alone)
    profile = tmp_path / "cluster.yaml"
    profile.write_text(f"stages: {{alone: {{engine: dask, scheduler: '{ADDRESS}'}}}}\n")
    plain, dask = (
        stage_spec(store, "alone", {"store": store.url, "profile": given})
        for given in (None, str(profile))
    )
    assert (dask.execution["engine"], dask.execution["scheduler"]) == ("dask", ADDRESS)
    assert dask.key == plain.key
