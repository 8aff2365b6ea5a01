import importlib
import os

import pytest
import torch

from stages.export import verify


@pytest.fixture(scope="session")
def model(make_model):
    """A context that holds more of the texts by which a release is verified."""
    return make_model(context=128)


@pytest.fixture
def loaded_here(monkeypatch):
    """The script that loads a release runs in this process: for tests that are not about isolation.

    It compares all that it compares elsewhere; only that Ingot is absent cannot be seen here.
    """
    importlib.import_module("huggingface_hub")  # Before the script, which sets it offline.
    environment = dict(os.environ)
    script = importlib.import_module("stages.export.load_release")
    os.environ.clear()
    os.environ.update(environment)

    def run(release, probes, register, python=None):
        threads = torch.get_num_threads()
        try:
            return {**script.main(str(release), str(probes), register), "ingot_absent": True}
        finally:
            torch.set_num_threads(threads)

    monkeypatch.setattr(verify, "run_script", run)
