"""Pieces of a small SentencePiece model, trained here, against that library and CCNet's ways."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import InputError
from stages.language_model.perplexity import PieceTokens, TextLines

sentencepiece = pytest.importorskip("sentencepiece")

TEXT = "the cat sat on the mat and then another cat met a cafe owner in 0000"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A unigram model of 60 pieces of seeded sentences; training in one thread is exact."""
    folder = tmp_path_factory.mktemp("pieces")
    draw = random.Random(1)
    lines = [" ".join(draw.choices(TEXT.split(), k=8)) for _ in range(300)]
    (folder / "lines.txt").write_text("\n".join(lines))
    sentencepiece.SentencePieceTrainer.Train(
        input=str(folder / "lines.txt"),
        model_prefix=str(folder / "pieces"),
        vocab_size=60,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    return folder / "pieces.model"


@pytest.fixture(scope="module")
def oracle(model: Path) -> Any:
    """The pieces of a line, between spaces, by the library itself."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    return lambda line: " ".join(processor.encode(line, out_type=str))


def as_one_line(tokens: PieceTokens, texts: list[str]) -> TextLines:
    return tokens.joined(tokens.lines(texts), texts)


def plain(found: TextLines) -> list[list[str]]:
    """The lines of each text."""
    lines, offsets = found
    data, ends = lines.data.tobytes(), lines.offsets
    texts = [data[ends[i] : ends[i + 1]].decode() for i in range(len(lines))]
    assert offsets[0] == 0
    assert offsets[-1] == len(lines)
    return [texts[a:b] for a, b in pairwise(offsets)]


def test_lines_are_normalised_as_ccnet_does_and_split_by_the_model(
    model: Path, oracle: Any
) -> None:
    """Lower case, no accents, zeros for digits; white space around a line is no piece."""
    found = plain(PieceTokens(model).lines(["The  Café \n\n\tcat 1984", "", " ", "mat\n"]))
    assert found == [
        [oracle("the cafe"), "", oracle("cat 0000")],
        [],
        [""],
        [oracle("mat"), ""],
    ]
    assert found[0][0].startswith("▁the ▁")


def test_a_text_as_one_line_has_no_line_feeds(model: Path, oracle: Any) -> None:
    """As in CCNet's pipeline, where the last word of a line and the next become one."""
    found = plain(as_one_line(PieceTokens(model), ["\nThe cat\nsat\n", "", "\n", "mat"]))
    assert found == [[oracle("the catsat")], [], [""], [oracle("mat")]]


def test_texts_are_split_alike_whatever_stands_beside_them(model: Path) -> None:
    texts = ["the cat\nsat", "", "on the mat", "另一只猫\n🐈"]
    tokens = PieceTokens(model)
    assert plain(tokens.lines(texts)) == [plain(tokens.lines([text]))[0] for text in texts]
    alone = [plain(as_one_line(tokens, [text]))[0] for text in texts]
    assert plain(as_one_line(tokens, texts)) == alone


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(st.sampled_from("cat \n\0\ud800é\t\u2581\u200f\r猫")), max_size=4))
def test_any_text_has_a_line_for_each_of_its_lines(model: Path, texts: list[str]) -> None:
    tokens = PieceTokens(model)
    _, offsets = tokens.lines(texts)
    assert np.diff(offsets).tolist() == [text.count("\n") + 1 if text else 0 for text in texts]
    _, offsets = as_one_line(tokens, texts)
    assert np.diff(offsets).tolist() == [int(bool(text)) for text in texts]
    assert all("\n" not in line for lines in plain(tokens.lines(texts)) for line in lines)


@pytest.mark.parametrize("content", [b"", b"no model", b"\\data\\\nngram 1=4\n"])
def test_what_is_no_model_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "pieces.model"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"pieces\.model"):
        PieceTokens(path)


def test_a_cut_model_is_an_error(model: Path, tmp_path: Path) -> None:
    whole = model.read_bytes()
    (tmp_path / "cut.model").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"cut\.model"):
        PieceTokens(tmp_path / "cut.model")
