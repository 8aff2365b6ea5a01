"""Language by a fastText model: a tiny one made here, and the published one where it is."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from artifacts_schema.errors import InputError
from artifacts_schema.manifest import Manifest
from stages.language_model.classifier import MAGIC, VERSION, is_whole
from stages.signals.models import identify_languages
from stages.signals.stage import Signals

ENGLISH = ["the cat sat on the mat and looked at the dog", "this is the house that they built"]
GERMAN = ["die Katze saß auf der Matte und sah den Hund an", "das ist das Haus, das sie bauten"]


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model written by hand, as fastText's `loadModel` reads it: each word is one language's.

    A text's vector is the mean of its words'; of one language alone, softmax((5, 0)) is 0.9933.
    """
    words = {word: (5.0, 0.0) for text in ENGLISH for word in text.split()}
    words |= {word: (0.0, 5.0) for text in GERMAN for word in text.split()}
    dim, softmax, supervised = 2, 3, 3
    settings = (dim, 5, 5, 1, 5, 1, softmax, supervised, 0, 0, 0, 100)
    entries = [(word, 0) for word in words] + [("__label__en", 1), ("__label__de", 1)]
    parts = [
        struct.pack("<ii12id", MAGIC, VERSION, *settings, 1e-4),
        struct.pack("<iiiqq", len(entries), len(words), 2, len(words), -1),
        *(entry.encode() + struct.pack("<xqb", 1, kind) for entry, kind in entries),
    ]
    for matrix in (list(words.values()), [(1.0, 0.0), (0.0, 1.0)]):
        flat = [value for row in matrix for value in row]
        parts.append(struct.pack(f"<?qq{len(flat)}f", False, len(matrix), dim, *flat))
    path = tmp_path_factory.mktemp("language") / "model.bin"
    path.write_bytes(b"".join(parts))
    return path


@pytest.fixture
def measured(
    run_stage: Any, make_documents: Any, snapshot: Any, read_table: Any
) -> Callable[..., Any]:
    """Signals of texts with a model file's bytes: the manifest and its rows."""

    def run(texts: list[str], model: bytes, **config: Any) -> tuple[Manifest, list[dict[str, Any]]]:
        inputs = {
            "documents": [make_documents([texts])],
            "language_model": snapshot({"model.bin": model}, name="lid"),
        }
        made = run_stage(Signals, config, inputs)
        return made, read_table(made, "signals").to_pylist()

    return run


def test_language_and_probability_stand_beside_the_other_signals(
    measured: Any, model_file: Path, read_input: Any
) -> None:
    made, rows = measured([ENGLISH[0], GERMAN[1], " \n\t"], model_file.read_bytes())
    assert [row["language"] for row in rows] == ["en", "de", None]
    assert [row["language_score"] for row in rows[:2]] == pytest.approx([0.9933, 0.9933], abs=1e-3)
    assert rows[2]["language_score"] is None
    described = json.loads(read_input(made, "signals").read_bytes("signals.json"))
    assert [c["name"] for c in described["columns"][-3:]] == [
        *("language", "language_score", "line_language_share"),
    ]


def test_only_the_beginning_is_judged_and_lines_do_not_matter(model_file: Path) -> None:
    text = ENGLISH[0].replace(" ", "\n") + "\n" + GERMAN[0] * 20
    names, _ = identify_languages([text, text], model_file, len(ENGLISH[0]))
    assert names == ["en", "en"]
    assert identify_languages([text], model_file, 100_000)[0] == ["de"]


def test_what_is_no_model_is_refused_before_fasttext_sees_it(measured: Any) -> None:
    with pytest.raises(InputError, match=r"^signals\.language_model"):
        measured(["text"], b"\x80\x04pickle")


def test_a_cut_model_is_refused_before_fasttext_sees_it(measured: Any, model_file: Path) -> None:
    """fastText would take the bytes behind the cut for sizes, and ask for gigabytes."""
    whole = model_file.read_bytes()
    assert is_whole(whole)
    for length in (8, 60, 100, 200, len(whole) // 2):
        assert not is_whole(whole[:length]), length
    with pytest.raises(InputError, match=r"^signals\.language_model"):
        measured(["text"], whole[:200])


def test_the_published_model_is_whole_and_no_half_of_it_is(shared_data: Path) -> None:
    """lid.176.ftz is quantized: nearly all of it is the first matrix."""
    whole = (shared_data / "models/lid.176.ftz").read_bytes()
    assert is_whole(whole)
    assert not is_whole(whole[: len(whole) // 2])


def test_the_published_model_knows_the_languages_of_a_parallel_text(
    measured: Any, shared_data: Path
) -> None:
    import zstandard

    packed = (shared_data / "text/parallel-xquad.jsonl.zst").read_bytes()
    plain = zstandard.ZstdDecompressor().stream_reader(packed).read()
    rows = [json.loads(line) for line in plain.splitlines()][::8]
    _, found = measured(
        [row["text"] for row in rows], (shared_data / "models/lid.176.ftz").read_bytes()
    )
    right = sum(row["lang"] == one["language"] for row, one in zip(rows, found, strict=True))
    assert right / len(rows) > 0.99  # Paragraphs of Wikipedia, where lid.176 hardly errs.
