"""The page of a release, from a hand-made folder."""

from __future__ import annotations

import pytest

from artifacts_schema.store.gc import remove_artifact
from stages.engine.page import Artifact
from stages.export.page import CARD_CHARACTERS, card_head, page, summary

CONFIG = b'{"dtype": "bfloat16"}'
CARD = """---
library_name: transformers
model-index:
- name: x
---

# tiny

A model | with <b>markup</b>.

## Evaluation

Numbers.
"""


@pytest.fixture
def released(given, store):
    """A release of a checkpoint that came of a tokenizer, twice used."""
    checkpoint, output = given("checkpoint", {"state.json": {}})
    named = {"stage": checkpoint.stage, "key": checkpoint.key, "output": output}
    own = {**named, "digest": "e" * 64, "measured": [], "of_this_release": True}
    other = {"stage": "pretrain", "key": "a" * 64, "digest": "b" * 64}
    foreign = {**own, "measured": [other], "of_this_release": False}
    lineage = {"checkpoint": {**named, "digest": "d" * 64}, "evaluations": [own, foreign]}
    files = {"README.md": CARD.encode(), "ingot.json": lineage, "config.json": CONFIG}
    manifest, _ = given("release", files)
    reference = store.reference(checkpoint, output)
    manifest = manifest.model_copy(
        update={
            "counts": {"logit_difference": 2.5e-6, "probe_tokens": 240},
            "inputs": {"checkpoint": (reference,), "evaluation": (reference,)},
        }
    )
    return Artifact(store, manifest), checkpoint


def of(found, title):
    (figure,) = [figure for figure in found if figure.title == title]
    return figure


def test_the_page_lists_files_and_what_was_verified(released):
    artifact, _ = released
    found = page(artifact)
    assert len({figure.title for figure in found}) == len(found)
    files = of(found, "Released files")
    sizes = {row[0]: row[1] for row in files.rows}
    assert sizes["config.json"] == len(CONFIG)
    assert sizes["all"] == sum(size for name, size in sizes.items() if name != "all")
    checked = dict(of(found, "Verified before release").rows)
    assert checked["largest difference of a logit"] == "2.5e-06"
    assert checked["tokens compared"] == 240
    assert checked["type of the released weights"] == "bfloat16"
    assert "torch" not in checked  # this manifest names no such library
    place = artifact.place("release")
    assert f'from_pretrained("{place}")' in of(found, "How to load it").text


def test_the_card_is_shown_from_its_title_to_its_evaluation(released):
    text = of(page(released[0]), "Model card").text
    assert text == "# tiny\n\nA model | with <b>markup</b>."
    assert card_head("# bare") == "# bare"
    assert card_head("x" * 10_000) == "x" * CARD_CHARACTERS + " …"


def test_lineage_names_every_ancestor_once_with_all_it_went_into(released):
    artifact, checkpoint = released
    ((stage, key, size, used),) = of(page(artifact), "Lineage of the release").rows
    assert (stage, key) == (checkpoint.stage, checkpoint.key[:12])
    assert size == checkpoint.output("checkpoint").bytes
    assert used == "given_release (checkpoint), given_release (evaluation)"


def test_a_collected_ancestor_is_still_named(released, store):
    artifact, checkpoint = released
    remove_artifact(store, checkpoint)
    (row,) = of(page(artifact), "Lineage of the release").rows
    assert row[:3] == (checkpoint.stage, checkpoint.key[:12], "collected")
    assert of(page(artifact), "Made of").rows[0][1] == checkpoint.stage


def test_each_evaluation_says_which_checkpoint_it_measured(released):
    rows = of(page(released[0]), "Made of").rows
    assert [row[-1] for row in rows] == [None, "this release", "pretrain aaaaaaaaaaaa"]


def test_the_summary_is_where_it_lies_and_how_to_load_it(released):
    artifact, _ = released
    place, load = summary(artifact)
    assert (place.title, load.title) == ("release", "load it")
    assert place.text in load.text
