"""Models in `signals`: those that `quality_models` made, published ones, and what is refused."""

from __future__ import annotations

import math
import os
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from artifacts_schema.errors import InputError
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store
from stages.language_model.classifier import MAGIC, VERSION
from stages.language_model.perplexity import NgramModel
from stages.language_model.vocabulary import Lines
from stages.quality_models.stage import QualityModels
from stages.signals.models import Models
from stages.signals.stage import Signals

GOOD, BAD = ["theory", "evidence", "measured", "chapter"], ["buy", "cheap", "click", "offer"]
COMMON = ["the", "of", "and", "to", "in", "it", "is", "was"]

SMALL = {
    "ngram": {"order": 3},
    "classifier": {"buckets": 500, "dim": 4, "epochs": 5, "learning_rate": 0.5},
    "held_share": 0.3,
}

ARPA = """\\data\\
ngram 1=4
ngram 2=1

\\1-grams:
-2\t<unk>
-99\t<s>\t0
-1\t</s>
-0.5\tword\t0

\\2-grams:
-0.25\t<s> word

\\end\\
"""
"""log10 p of "word" is -0.25 at the beginning of a line and -0.5 elsewhere, of its end -1."""


def texts_of(words: list[str], seed: int) -> list[str]:
    """90 texts of two lines of one class."""
    draw = random.Random(seed)
    lines = [" ".join(draw.choices([*words, *COMMON], k=9)) for _ in range(180)]
    return [f"{first}\n{second}" for first, second in zip(lines[:90], lines[90:], strict=True)]


DOCUMENTS = [
    [
        {"text": "The theory of evidence\nis measured.", "language": "en"},
        {"text": "Die Theorie", "language": "de"},
        {"text": "buy the cheap offer", "language": "en-GB"},
    ],
    [{"text": "chapter", "language": "en"}, {"text": "click"}, {"text": " ", "language": "en"}],
]
ENGLISH = [True, False, True, True, False, True]

Read = Callable[..., Any]


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A folder, or with `place` "s3" a bucket."""
    if "place" in request.fixturenames:
        return Store.open(request.getfixturevalue("s3_url") + "/store")
    return Store.open(str(tmp_path / "store"))


@pytest.fixture
def make_models(run_stage: Any, make_documents: Any) -> Callable[..., Manifest]:
    """`make_models(**config)`: a run of `quality_models` on 180 documents."""

    def make(**config: Any) -> Manifest:
        good = make_documents([texts_of(GOOD, 1)], snapshot="good")
        bad = make_documents([texts_of(BAD, 2)], snapshot="bad")
        inputs = {"reference": [good], "contrast": [bad]}
        return run_stage(QualityModels, {**SMALL, **config}, inputs)

    return make


@pytest.fixture
def measure(run_stage: Any, make_documents: Any) -> Callable[..., Manifest]:
    """`measure(inputs, config, …)` of `DOCUMENTS`, or of other shards."""

    def run(
        inputs: Any, config: Any = None, shards: Any = DOCUMENTS, workers: int = 1, **options: Any
    ) -> Manifest:
        given = {"documents": [make_documents(shards)], **inputs}
        config = {"groups": [], "line_rules": [], **(config or {})}
        return run_stage(Signals, config, given, {"workers": workers}, **options)

    return run


def roles(made: Manifest) -> dict[str, list[tuple[Manifest, str]]]:
    """All that `quality_models` made, as inputs of `signals`."""
    return {name: [(made, name)] for name in ("ngram_model", "cutoffs", "classifier")}


def test_own_models_score_documents_of_their_language(
    make_models: Any, measure: Any, read_table: Read, read_input: Read
) -> None:
    """Perplexities by the arithmetic of the model's tokens, the score by fastText itself."""
    import fasttext

    models = make_models()
    made = measure(roles(models))
    found = read_table(made, "signals")
    assert found.column_names[-4:] == [
        *("line_perplexity", "perplexity", "perplexity_bucket", "quality_score"),
    ]
    described = read_input(made, "signals").read_json("signals.json")["columns"]
    assert [column["name"] for column in described] == found.column_names[1:]
    rows = found.to_pylist()
    assert [row["perplexity"] is not None for row in rows] == ENGLISH
    assert [row["perplexity_bucket"] is not None for row in rows] == ENGLISH

    model = NgramModel.load(read_input(models, "ngram_model").local_path("model.json").parent)
    lines, _ = model.token_scores(Lines.from_texts(["the theory of evidence", "is measured ."]))
    assert rows[0]["line_perplexity"] == pytest.approx(10 ** (-lines.sum() / (4 + 3 + 2)))
    whole, _ = model.token_scores(Lines.from_texts(["the theory of evidence is measured ."]))
    assert rows[0]["perplexity"] == pytest.approx(10 ** (-whole.sum() / (7 + 1)))

    told = read_input(models, "cutoffs").read_json("cutoffs.json")["languages"]["en"]
    for row in rows:
        value, name = row["line_perplexity"], row["perplexity_bucket"]
        if value is not None:
            head, tail = value < told["head"], value >= told["tail"]
            assert name == ("head" if head else "tail" if tail else "middle")

    theirs = fasttext.load_model(str(read_input(models, "classifier").local_path("classifier.bin")))
    for document, row in zip([d for shard in DOCUMENTS for d in shard], rows, strict=True):
        labels, values = theirs.predict(document["text"].strip().replace("\n", " "), k=-1)
        expected = dict(zip(labels, values, strict=True))["__label__reference"]
        assert row["quality_score"] == pytest.approx(min(expected, 1.0))
    assert rows[0]["quality_score"] > 0.5 > rows[2]["quality_score"]


@pytest.mark.full
def test_the_same_bytes_from_workers_other_shards_and_after_kills(
    make_models: Any, measure: Any, read_table: Read, killed_at: Any
) -> None:
    given = roles(make_models())
    with killed_at("shard written", visit=1):
        measure(given)
    with killed_at("payload written"):
        measure(given)
    resumed = measure(given)
    two = measure(given, workers=2, force=True)  # Other bytes would raise.
    assert two.outputs["signals"].digest == resumed.outputs["signals"].digest
    one_shard = measure(given, shards=[[row for shard in DOCUMENTS for row in shard]])
    assert read_table(one_shard, "signals").equals(read_table(resumed, "signals"))


def test_the_language_that_is_measured_comes_before_the_declared_one(
    measure: Any, snapshot: Any, read_table: Read, tmp_path: Path
) -> None:
    models = {
        "word.arpa": ARPA.encode(),
        "lid.bin": fasttext_bytes({"en": "word", "de": "wort"}),
    }
    config = {"published_ngram_models": [{"file": "word.arpa", "language": "en"}]}
    shards = [[{"text": "word", "language": "de"}, {"text": "wort", "language": "en"}]]
    inputs = {
        "published_models": snapshot(models),
        "language_model": snapshot({"lid.bin": models["lid.bin"]}, name="lid"),
    }
    rows = read_table(measure(inputs, config, shards), "signals").to_pylist()
    assert [row["language"] for row in rows] == ["en", "de"]
    assert rows[0]["perplexity"] == pytest.approx(10 ** (1.25 / 2))
    assert rows[1]["perplexity"] is None


def fasttext_bytes(labels: dict[str, str]) -> bytes:
    """A model written by hand, as fastText's `loadModel` reads it: each label has one word.

    A text of no other known word has the label by softmax((5, 0)): 0.9933.
    """
    dim, softmax, supervised = 2, 3, 3
    settings = (dim, 5, 5, 1, 5, 1, softmax, supervised, 0, 0, 0, 100)
    entries = [(word, 0) for word in labels.values()] + [(f"__label__{n}", 1) for n in labels]
    parts = [
        struct.pack("<ii12id", MAGIC, VERSION, *settings, 1e-4),
        struct.pack("<iiiqq", len(entries), 2, 2, 2, -1),
        *(entry.encode() + struct.pack("<xqb", 1, kind) for entry, kind in entries),
        struct.pack("<?qq4f", False, 2, dim, 5.0, 0.0, 0.0, 5.0),
        struct.pack("<?qq4f", False, 2, dim, 1.0, 0.0, 0.0, 1.0),
    ]
    return b"".join(parts)


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A SentencePiece model of 8 letters and no longer piece."""
    trainer = pytest.importorskip("sentencepiece").SentencePieceTrainer
    folder = tmp_path_factory.mktemp("pieces")
    (folder / "lines.txt").write_text("word\nwords in a row\n" * 10)
    trainer.Train(
        input=str(folder / "lines.txt"),
        model_prefix=str(folder / "m"),
        model_type="char",
        vocab_size=20,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    return (folder / "m.model").read_bytes()


def test_published_models_enter_as_a_snapshot(
    measure: Any, snapshot: Any, read_table: Read, read_input: Read, tmp_path: Path, pieces: bytes
) -> None:
    """Of pieces the ARPA knows "▁" alone, in its place of "word": "word" is it and 4 unknown."""
    files = {
        "ccnet/en.arpa": ARPA.replace("word", "▁").encode(),
        "ccnet/en.sp.model": pieces,
        "rest.arpa": ARPA.encode(),
        "oh_eli5.bin": fasttext_bytes({"hq": "word", "cc": "click"}),
    }
    config = {
        "published_ngram_models": [
            {
                "file": "ccnet/en.arpa",
                "language": "en",
                "pieces": "ccnet/en.sp.model",
                "cutoffs": [10.0, 30.0],
            },
            {"file": "rest.arpa"},
        ],
        "published_classifiers": [{"name": "dclm", "file": "oh_eli5.bin", "label": "hq"}],
    }
    shards = [[{"text": "word", "language": "en"}, {"text": "Word word"}, "click"]]
    made = measure({"published_models": snapshot(files)}, config, shards)
    rows = read_table(made, "signals").to_pylist()
    assert math.log10(rows[0]["perplexity"]) == pytest.approx((0.25 + 4 * 2 + 1) / 6)
    assert math.log10(rows[1]["perplexity"]) == pytest.approx((0.25 + 0.5 + 1) / 3)
    assert [row["perplexity_bucket"] for row in rows] == ["tail", None, None]
    right = pytest.approx(0.9933, abs=1e-3)
    assert [row["dclm_score"] for row in rows] == [right, right, pytest.approx(0.0067, abs=1e-3)]
    assert read_input(made, "signals").read_json("signals.json")["columns"][-1]["name"] == (
        "dclm_score"
    )


@pytest.mark.parametrize("kind", ["ngram_model", "classifier", "cutoffs"])
def test_an_artifact_without_a_model_is_refused(kind: str, measure: Any, given: Any) -> None:
    path = "cutoffs.json" if kind == "cutoffs" else "card.json"
    empty = given(kind, {path: {"made": False, "why": "switched off in the config"}})
    with pytest.raises(InputError, match=rf"^signals\.{kind}: given_{kind} \w+ .*switched off"):
        measure({kind: [empty]})


def test_models_that_would_write_one_column_are_refused(make_models: Any, measure: Any) -> None:
    first, second = make_models(), make_models(seed=2)
    for role, message in [
        ("ngram_model", r"^signals\.ngram_model: .*'en'"),
        ("classifier", r"^signals\.classifier: .*'quality'"),
    ]:
        with pytest.raises(InputError, match=message):
            measure({role: [(first, role), (second, role)]})


def test_cutoffs_count_only_with_their_own_model(make_models: Any, measure: Any) -> None:
    """Perplexities of two models are not of one scale."""
    first, second = make_models(classifier=None), make_models(classifier=None, seed=2)
    message = r"^signals\.cutoffs: .*'en'"
    for models in ([], [(first, "ngram_model")]):
        with pytest.raises(InputError, match=message):
            measure({"ngram_model": models, "cutoffs": [(second, "cutoffs")]})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"published_ngram_models": [{"file": "b"}]}, r"'b' .*a\.arpa, cut\.arpa"),
        ({"published_classifiers": ["a.arpa"]}, r"^signals\.published_models: a\.arpa"),
        ({"published_classifiers": ["half.bin"]}, r"^signals\.published_models: half\.bin"),
        ({"published_classifiers": [("language", "ft.bin")]}, "language_score"),
        (
            {"published_ngram_models": [{"file": "ft.bin"}]},
            r"^signals\.published_models: ft\.bin.*`published_classifiers`",
        ),
        (
            {"published_ngram_models": [{"file": "wrong.bin"}]},
            r"^signals\.published_models: wrong\.bin",
        ),
        (
            {"published_ngram_models": [{"file": "cut.arpa"}]},
            r"^signals\.published_models: cut\.arpa, line 11",
        ),
        (
            {"published_ngram_models": [{"file": "a.arpa", "pieces": "cut.arpa"}]},
            r"^signals\.published_models: cut\.arpa",
        ),
        (
            {"published_ngram_models": [{"file": "a.arpa"}, {"file": "cut.arpa"}]},
            r"^signals\.ngram_model",
        ),
    ],
)
def test_published_files_that_are_no_such_models_are_refused(
    measure: Any, snapshot: Any, tmp_path: Path, config: Any, message: str
) -> None:
    fasttext = fasttext_bytes({"en": "word", "de": "wort"})
    files = {
        "a.arpa": ARPA.encode(),
        "cut.arpa": ARPA[: ARPA.index("\\2-grams")].encode(),
        "ft.bin": fasttext,
        "half.bin": fasttext[:-200],
        "wrong.bin": ARPA.encode(),
    }
    named = [
        ("quality", one) if isinstance(one, str) else one
        for one in config.pop("published_classifiers", [])
    ]
    config = config | {
        "published_classifiers": [{"name": n, "file": f, "label": "en"} for n, f in named]
    }
    with pytest.raises(InputError, match=message):
        measure({"published_models": snapshot(files)}, config)


def test_a_label_that_a_model_lacks_is_named(measure: Any, snapshot: Any, tmp_path: Path) -> None:
    files = {"m.bin": fasttext_bytes({"hq": "word", "cc": "wort"})}
    config = {"published_classifiers": [{"name": "dclm", "file": "m.bin", "label": "__label__hq"}]}
    with pytest.raises(InputError, match=r"'__label__hq'.*cc, hq"):
        measure({"published_models": snapshot(files)}, config)


def test_two_snapshots_with_files_of_one_name_are_refused(measure: Any, snapshot: Any) -> None:
    first, second = snapshot({"a": b"1"}, name="first"), snapshot({"a": b"2"}, name="second")
    with pytest.raises(InputError, match="'a'"):
        measure({"published_models": [*first, *second]})


@pytest.mark.full
@pytest.mark.parametrize("place", ["s3"])
def test_models_stay_where_the_cache_drops_them(
    make_models: Any, measure: Any, read_table: Read, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """On a bucket the files are copies in the node's cache, which may go while workers start."""
    given = roles(make_models())
    laid, cache = Models.from_context, Path(os.environ["INGOT_CACHE"])

    def laid_then_dropped(context: Any) -> Models:
        models = laid(context)
        shutil.rmtree(cache / "files")
        return models

    monkeypatch.setattr(Models, "from_context", laid_then_dropped)
    rows = read_table(measure(given), "signals").to_pylist()
    assert [row["perplexity"] is not None for row in rows] == ENGLISH
    assert all(row["quality_score"] is not None for row in rows)
