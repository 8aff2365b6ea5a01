"""Scores of `classify`: those of transformers' pipeline, and the same bytes in every way."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.classify.scores import apply_activation, choose_activation, score_texts
from stages.encoders.encoder import EncoderSpec, load_encoder
from stages.encoders.parts import digest_text
from tests.stages.classify.conftest import draw_texts

TEXTS = draw_texts(60)


def spec_of(folder: Path, **changes: Any) -> EncoderSpec:
    usual: dict[str, Any] = {
        "head": "classifier",
        "device": "cpu",
        "precision": "float32",
        "max_length": 64,
        "windows": 1,
        "batch_tokens": 256,
        "threads": 1,
        "where": "here",
    }
    return EncoderSpec(folder=folder, **{**usual, **changes})


def pipeline_scores(folder: Path, texts: list[str], labels: list[str]) -> np.ndarray:
    """[text, label] What transformers' own pipeline gives, eight texts at once."""
    from transformers import pipeline

    classify = pipeline("text-classification", model=str(folder), device="cpu")
    rows = classify(texts, batch_size=8, top_k=None, truncation=True, max_length=64)
    by_label = [{score["label"]: score["score"] for score in row} for row in rows]
    return np.array([[row[label] for label in labels] for row in by_label])


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        (("a", "b", "c"), None),
        (("a", "b", "c"), "multi_label_classification"),
        (("LABEL_0",), "regression"),
        (("toxic",), None),
    ],
)
def test_scores_equal_the_pipelines(save_model: Any, labels: Any, problem: Any) -> None:
    folder = save_model(labels, problem_type=problem)
    ours = np.stack(score_texts(TEXTS, spec_of(folder), "auto").scores)
    expected = pipeline_scores(folder, TEXTS, list(labels))
    assert np.ptp(expected, axis=0).min() > 0.01  # Random weights tell the texts apart.
    # Logits of a regression lie between -5 and 0; products are summed in another order.
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5)


def test_a_score_does_not_depend_on_what_runs_with_it(domains: Path) -> None:
    """To the byte: alone, among others, in another order, a text twice."""
    spec = spec_of(domains)
    together = np.stack(score_texts(TEXTS, spec, "none").scores)
    order = random.Random(1).sample(range(len(TEXTS)), len(TEXTS))
    mixed = np.stack(score_texts([TEXTS[row] for row in order], spec, "none").scores)
    assert mixed.tobytes() == together[order].tobytes()
    for row in range(0, len(TEXTS), 7):
        (alone,) = score_texts([TEXTS[row]], spec, "none").scores
        assert alone.tobytes() == together[row].tobytes()


def test_shapes_in_which_rows_differ_run_one_by_one(domains: Path, monkeypatch: Any) -> None:
    """A library that sums the second row in another way is noticed before any score is made."""
    load_encoder.cache_clear()
    encoder = load_encoder(spec_of(domains))
    forward = type(encoder)._forward

    def unequal(self: Any, ids: Any, mask: Any) -> Any:
        output = forward(self, ids, mask)
        output[1:] = np.nextafter(output[1:], np.float32(np.inf))
        return output

    expected = score_texts(TEXTS, spec_of(domains), "none").scores
    load_encoder.cache_clear()
    monkeypatch.setattr(type(encoder), "_forward", unequal)
    scores = score_texts(TEXTS, spec_of(domains), "none").scores
    assert set(load_encoder(spec_of(domains))._rows.values()) == {1}
    np.testing.assert_allclose(np.stack(scores), np.stack(expected), rtol=0, atol=1e-5)
    load_encoder.cache_clear()


def test_only_the_beginning_of_a_long_text_is_read(domains: Path) -> None:
    """512 = 64 tokens of 8 characters: what follows changes nothing, as the pipeline has it too."""
    long = " ".join(draw_texts(1, 2000, seed=3)[0] for _ in range(3))
    assert len(long) > 4 * 512
    scored = score_texts([long, long[:700]], spec_of(domains), "none")
    assert scored.scores[0].tobytes() == scored.scores[1].tobytes()
    assert (scored.cut, scored.tokens) == (2, 128)
    np.testing.assert_allclose(
        np.stack(score_texts([long], spec_of(domains), "auto").scores),
        pipeline_scores(domains, [long], ["News", "Arts/Music", "Sport"]),
        atol=1e-5,
    )


def test_a_long_text_without_enough_tokens_at_first_is_read_whole(domains: Path) -> None:
    """600 spaces give no token, so the tokens lie beyond the first 512 characters."""
    spaced = " " * 600 + "river stone"
    scored = score_texts([spaced, "river stone"], spec_of(domains), "none")
    assert scored.scores[0].tobytes() == scored.scores[1].tobytes()


def test_windows_are_averaged_by_their_tokens(quality: Path) -> None:
    """62 tokens fit beside [CLS] and [SEP]; the second window has the rest."""
    words = [draw_texts(1, 90, seed=n)[0] for n in range(6)]
    encoder = load_encoder(spec_of(quality, windows=9))
    ((ids, _),) = encoder.tokenize([" ".join(words)])
    assert [len(one) for one in ids[:2]] == [64, 64]
    assert 2 < len(ids[-1]) < 64
    scores = [float(encoder.run([one], lambda: None)[0, 0]) for one in ids]
    weights = [len(one) for one in ids]
    expected = sum(s * w for s, w in zip(scores, weights, strict=True)) / sum(weights)
    (mean,) = score_texts([" ".join(words)], spec_of(quality, windows=9), "none").scores
    assert mean[0] == pytest.approx(expected, abs=1e-6)


def test_bfloat16_differs_from_the_third_digit(quality: Path) -> None:
    """bfloat16 has 8 bits of fraction, so about 2**-8 of a value is lost in each product."""
    exact = np.stack(score_texts(TEXTS, spec_of(quality), "none").scores)
    rounded = np.stack(score_texts(TEXTS, spec_of(quality, precision="bfloat16"), "none").scores)
    spread = np.ptp(exact)
    assert 0 < np.abs(exact - rounded).max() < 0.1 * spread


def test_activations_are_those_of_the_field() -> None:
    logits = np.array([[0.0, np.log(3.0)]], np.float32)
    assert apply_activation(logits, "softmax") == pytest.approx(np.array([[0.25, 0.75]]))
    assert apply_activation(logits, "sigmoid") == pytest.approx(np.array([[0.5, 0.75]]))
    assert choose_activation("none", "", ("a",)) == "none"
    assert choose_activation("auto", "regression", ("a",)) == "none"


def test_a_digest_is_blake2b_of_the_text() -> None:
    """`printf '' | b2sum -l 128`, from RFC 7693's reference implementation."""
    assert digest_text("") == "cae66941d9efbd404e4d88758ea67670"
