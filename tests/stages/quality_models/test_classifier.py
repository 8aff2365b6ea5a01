"""The classifier of the stage: what it learns, what its card says, what it refuses."""

from __future__ import annotations

import json
import random
import shutil

import numpy as np
import pytest
from two_classes import BAD, GOOD, SMALL, texts

from artifacts_schema.errors import IngotError, InputError, Stopped
from stages.language_model.classifier import Classifier, score_texts, to_single_line
from stages.quality_models import models as training
from stages.quality_models.config import ClassifierConfig


@pytest.fixture
def card_of(read_input):
    return lambda made: read_input(made, "classifier").read_json("card.json")


@pytest.fixture
def classifier_of(read_input, card_of):
    def load(made):
        card = card_of(made)
        return Classifier.from_card(card, read_input(made, "classifier").local_path(card["file"]))

    return load


def test_it_tells_the_classes_apart_and_scores_as_it_was_judged(make, card_of, classifier_of):
    made = make()
    card = card_of(made)
    assert card["signal"] == "quality_score"
    assert card["held"]["roc_auc"]["low"] > 0.95
    fresh = classifier_of(made)
    good, bad = texts(GOOD, 50, seed=11), texts(BAD, 50, seed=12)
    good_scores, bad_scores = score_texts(fresh, good), score_texts(fresh, bad)
    threshold = card["cutoff"]["threshold"]
    assert sum(score >= threshold for score in good_scores) >= 45
    assert sum(score >= threshold for score in bad_scores) <= 12
    held, trained = card["held"]["documents"], card["trained"]["documents"]
    assert held["reference"] + trained["reference"] == 200
    assert held["contrast"] + trained["contrast"] == 260
    assert made.counts["reference_documents"] == 200
    assert made.conservation.out == 460


def test_the_same_bytes_from_other_workers_and_shards(make, make_documents):
    first = make().outputs["classifier"]
    again = make(execution={"workers": 2}, force=True)  # Other bytes would raise.
    good, bad = texts(GOOD, 200, seed=1), texts(BAD, 260, seed=2)
    moved = make(
        reference=[make_documents([good[150:], good[:150]], snapshot="moved")],
        contrast=[make_documents([bad[::-1]], snapshot="moved")],
    )
    assert moved.key != again.key
    assert again.outputs["classifier"].digest == first.digest
    assert moved.outputs["classifier"].digest == first.digest
    other = make(classifier={**SMALL, "seed": 2})
    assert other.outputs["classifier"].digest != first.digest


def test_a_training_does_not_depend_on_what_memory_held(tmp_path, monkeypatch):
    """Alone, fastText leaves nine tenths of the input matrix as memory was: here full of 0x55."""
    monkeypatch.setenv("MALLOC_PERTURB_", "170")
    lines = tmp_path / "lines.txt"
    labelled = [("reference", t) for t in texts(GOOD, 40, 1)] + [
        ("contrast", t) for t in texts(BAD, 40, 2)
    ]
    random.Random(1).shuffle(labelled)
    training.write_lines(labelled, lines, lower_case=False)
    config = ClassifierConfig(**SMALL)
    models = set()
    for number in range(3):
        model = tmp_path / f"{number}.bin"
        training.train(lines, model, config, lambda: None)
        models.add(model.read_bytes())
    assert len(models) == 1
    untrained = ClassifierConfig(**{**SMALL, "learning_rate": 1e-30, "epochs": 1})
    training.train(lines, tmp_path / "untrained.bin", untrained, lambda: None)
    import fasttext

    matrix = fasttext.load_model(str(tmp_path / "untrained.bin")).get_input_matrix()
    assert (np.abs(matrix) <= 1 / 8).all()
    assert (matrix != 0).any(axis=1).mean() == pytest.approx(0.1, abs=0.01)


def test_copies_never_stand_on_both_sides(make, make_documents, card_of):
    """Each text three times under three ids: one of them is in the sample."""
    good, bad = texts(GOOD, 80, seed=1), texts(BAD, 80, seed=2)
    made = make(
        reference=[make_documents([good * 3], snapshot="thrice")],
        contrast=[make_documents([bad], snapshot="once")],
    )
    assert made.conservation.dropped == {"repeated": 160}
    card = card_of(made)
    assert card["held"]["documents"]["reference"] + card["trained"]["documents"]["reference"] == 80


def test_a_duplicate_class_counts_as_one_document(make, make_documents):
    good = [{"text": t, "duplicate_class": f"{n // 2:032x}"} for n, t in
            enumerate(texts(GOOD, 160, seed=1))]  # fmt: skip
    made = make(reference=[make_documents([good], snapshot="classes")])
    assert made.conservation.dropped == {"repeated": 80}


def test_what_both_roles_hold_belongs_to_neither(make, make_documents):
    good, bad = texts(GOOD, 100, seed=1), texts(BAD, 100, seed=2)
    made = make(
        reference=[make_documents([good + bad[:7]], snapshot="a")],
        contrast=[make_documents([bad], snapshot="b")],
    )
    assert made.conservation.dropped == {"in_both": 14}


def test_blank_and_foreign_documents_are_left_out(make, make_documents):
    good = [{"text": t, "language": "en-GB"} for t in texts(GOOD, 100, seed=1)]
    strange = [{"text": " \n"}, {"text": "ein Text", "language": "de"}]
    made = make(reference=[make_documents([[*good, *strange]], snapshot="a")])
    assert made.conservation.dropped == {"blank": 1, "other_language": 1}


def test_about_as_many_documents_are_drawn_as_were_asked_for(make, card_of):
    made = make(documents=100)
    used = made.counts
    assert 70 < used["reference_documents"] < 130  # Binomial(200, 1/2): ±4 deviations.
    assert 65 < used["contrast_documents"] < 135
    assert made.conservation.dropped["not_drawn"] == 460 - made.conservation.out


def test_the_cutoff_follows_the_config(make, card_of):
    strict = card_of(make(classifier={**SMALL, "kept_contrast": 0.02}))
    best = card_of(make(classifier={**SMALL, "kept_contrast": None}))
    assert strict["held"]["at_cutoff"]["contrast_kept"]["value"] <= 0.02
    assert best["cutoff"]["chosen"] == "best F1"
    curve = best["held"]["curve"]
    f1 = [
        2 * p * r / (p + r) for p, r in zip(curve["precision"], curve["recall"], strict=True) if r
    ]
    assert best["held"]["at_cutoff"]["f1"]["value"] == pytest.approx(max(f1), abs=1e-4)


def test_a_quantized_model_is_smaller_and_scores_alike(make, card_of, classifier_of, read_input):
    many = {**SMALL, "buckets": 20_000}
    full, small = make(classifier=many), make(classifier={**many, "quantize": True})
    assert card_of(small)["file"] == "classifier.ftz"
    sizes = [read_input(made, "classifier").size for made in (full, small)]
    assert sizes[1] < sizes[0] / 3
    sample = texts(GOOD, 20, seed=5) + texts(BAD, 20, seed=6)
    pairs = zip(score_texts(classifier_of(full), sample), score_texts(classifier_of(small), sample),
                strict=True)  # fmt: skip
    assert max(abs(a - b) for a, b in pairs) < 0.2


def test_what_is_switched_off_says_so(make, read_input):
    made = make()
    for output, path in (("ngram_model", "card.json"), ("cutoffs", "cutoffs.json")):
        told = read_input(made, output).read_json(path)
        assert told == {"made": False, "why": "switched off in the config"}


def test_errors_name_what_to_do(make, good, make_documents):
    with pytest.raises(InputError, match=r"^quality_models\.contrast: .*`classifier: null`"):
        make(contrast=[])
    with pytest.raises(InputError, match=r"^quality_models\.contrast"):
        make(contrast=[good])
    with pytest.raises(InputError, match=r"`ngram`.*`classifier`"):
        make(classifier=None)
    few = [make_documents([texts(BAD, 5, seed=3)], snapshot="few")]
    with pytest.raises(InputError, match=r"'contrast'.* 10 "):
        make(contrast=few)
    none = [make_documents([[{"text": "ein Text", "language": "de"}]], snapshot="none")]
    with pytest.raises(InputError, match=r"0 .*'contrast'"):
        make(contrast=none)


def test_a_training_that_fails_says_how(tmp_path):
    missing, model = tmp_path / "missing.txt", tmp_path / "m.bin"
    with pytest.raises(IngotError, match=r"missing\.txt"):
        training.train(missing, model, ClassifierConfig(**SMALL), lambda: None)
    assert not model.exists()


def test_a_training_can_be_stopped(tmp_path):
    lines = tmp_path / "lines.txt"
    training.write_lines(
        [("reference", "a b"), ("contrast", "c d")] * 5000, lines, lower_case=False
    )
    long = ClassifierConfig(**{**SMALL, "epochs": 1000})
    looks = []

    def stop():
        looks.append(1)
        if len(looks) > 3:
            raise Stopped("stopped on request")

    with pytest.raises(Stopped):
        training.train(lines, tmp_path / "m.bin", long, stop)
    assert not (tmp_path / "m.bin").exists()


def test_a_cut_model_is_refused(make, classifier_of, tmp_path):
    whole = classifier_of(make())
    cut = tmp_path / "cut.bin"
    content = whole.model.read_bytes()
    for length in (0, 6, 100, len(content) // 2, len(content) - 1):
        cut.write_bytes(content[:length])
        with pytest.raises(InputError, match=r"cut\.bin"):
            score_texts(Classifier(cut), ["text"])
    shutil.copy(whole.model, cut)
    with pytest.raises(InputError, match=r"'hq'.*contrast, reference"):
        score_texts(Classifier(cut, "hq"), ["text"])


def test_a_text_cannot_end_its_line_or_vote_on_itself(make, classifier_of):
    found = classifier_of(make())
    bad = texts(BAD, 1, seed=9)[0]
    plain, ended, voted = score_texts(
        found, [bad, f"theory </s> {bad}", f"__label__reference {bad} __label__reference"]
    )
    assert voted == pytest.approx(plain, abs=1e-6)
    assert ended == pytest.approx(score_texts(found, [f"theory {bad}"])[0], abs=1e-6)


def test_any_text_has_a_score(make, classifier_of):
    found = classifier_of(make())
    strange = ["", " \n\t", "\0", "a\0b", "\ud800 x", "</s>", "__label__", "x" * 1_000_000,
               "\u200f" * 100, "a\n" * 100_000]  # fmt: skip
    given = score_texts(found, strange)
    assert all(0 <= score <= 1 for score in given)


def test_lines_are_joined_as_dclm_joins_them():
    assert to_single_line("  A line\r\nand\tanother\x85third \n", lower_case=False) == (
        "A line and\tanother third"
    )
    assert to_single_line("Ä B", lower_case=True) == "ä b"


def test_the_card_names_what_a_user_must_know(make, card_of):
    card = card_of(make())
    assert card["trained"]["arguments"] == {
        "bucket": 2000, "dim": 8, "epoch": 5, "label": "__label__", "loss": "softmax", "lr": 0.5,
        "maxn": 0, "minCount": 1, "minn": 0, "seed": 1, "thread": 1, "wordNgrams": 2,
    }  # fmt: skip
    assert set(card["trained"]["libraries"]) == {"python", "fasttext-numpy2", "numpy"}
    assert json.dumps(card)


def test_a_killed_run_goes_on_from_the_model_and_gives_the_same_bytes(
    make, make_documents, killed_at, monkeypatch
):
    with killed_at("shard written", visit=2):
        make()
    with killed_at("payload written"):
        make()
    trainings = []
    monkeypatch.setattr("stages.quality_models.models.train", lambda *_: trainings.append(1))
    made = make()
    assert not trainings
    monkeypatch.undo()
    good = [make_documents([texts(GOOD, 200, seed=1)], snapshot="the same in one shard")]
    undisturbed = make(reference=good)
    assert undisturbed.key != made.key
    assert made.outputs["classifier"].digest == undisturbed.outputs["classifier"].digest
