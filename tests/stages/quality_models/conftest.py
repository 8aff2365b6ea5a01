"""Two classes of documents and a run of the stage."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from two_classes import BAD, GOOD, SMALL, texts

from stages.quality_models.stage import QualityModels


@pytest.fixture
def good(make_documents):
    """200 documents of the reference in two shards."""
    found = texts(GOOD, 200, seed=1)
    return make_documents([found[:120], found[120:]], snapshot="good")


@pytest.fixture
def bad(make_documents):
    """260 documents of the contrast in two shards."""
    found = texts(BAD, 260, seed=2)
    return make_documents([found[:100], found[100:]], snapshot="bad")


@pytest.fixture
def make(run_stage, good, bad):
    """`make(reference=…, contrast=…, **config)` → the manifest."""

    def run(reference=None, contrast=None, execution=None, force=False, **config):
        inputs = {
            "reference": [good] if reference is None else reference,
            "contrast": [bad] if contrast is None else contrast,
        }
        asked = {"ngram": None, "classifier": SMALL, "held_share": 0.25, **config}
        return run_stage(QualityModels, asked, inputs, execution, force=force)

    return run
