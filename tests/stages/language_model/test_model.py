"""Scores against kenlm 0.3.0; files that are not models; perplexities."""

from __future__ import annotations

import gzip
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import InputError, UsageError
from stages.language_model.config import NgramConfig
from stages.language_model.estimate import estimate
from stages.language_model.perplexity import NgramModel, load
from stages.language_model.vocabulary import Lines, Vocabulary

HERE = Path(__file__).parent
ARPA = HERE / "toy_order_5.arpa"

KENLM = {
    "the cat sat on the mat": [
        -1.434108, -0.428851, -0.395269, -0.032237, -0.032609, -0.143311, -0.039874
    ],
    "": [-0.861073],
    "the dog saw a bird": [-1.434108, -0.577618, -1.920663, -1.388217, -1.487353, -0.938833],
    "hello — κόσμε 世界": [-1.051767, -0.202416, -0.08952, -0.042458, -0.039874],
    "a a a": [-1.092998, -1.689247, -1.388217, -1.039503],
    "zebra zebra": [-1.434108, -1.386683, -0.938833],
    "sat on the mat </s> the": [
        -1.334971, -0.368886, -0.148337, -0.358657, -0.039874, -1.386683, -1.083167
    ],
    "the <s> cat <unk> mat": [
        -1.434108, -0.445365, -1.334971, -1.487353, -1.217932, -0.525489
    ],
}  # fmt: skip
"""`kenlm.Model(toy_order_5.arpa).full_scores(line)`"""


def test_token_scores_are_those_of_kenlm() -> None:
    scores, offsets = NgramModel.load(ARPA).token_scores(Lines.from_texts(list(KENLM)))
    assert np.diff(offsets).tolist() == [len(expected) for expected in KENLM.values()]
    assert scores.tolist() == pytest.approx(
        [score for expected in KENLM.values() for score in expected], abs=2e-6
    )


def test_line_scores_are_sums_whatever_lines_stand_beside() -> None:
    model = NgramModel.load(ARPA)
    together, lengths = model.line_scores(Lines.from_texts(list(KENLM)))
    assert together.tolist() == pytest.approx([sum(of) for of in KENLM.values()], abs=1e-5)
    assert lengths.tolist() == [len(of) for of in KENLM.values()]
    alone = [model.line_scores(Lines.from_texts([line]))[0][0] for line in KENLM]
    assert together.tolist() == alone


def test_equals_kenlm_where_it_is_installed(tmp_path: Path) -> None:
    kenlm = pytest.importorskip("kenlm")
    random = np.random.default_rng(5)
    text = [[f"w{w % 400}" for w in random.zipf(1.4, 12)] for _ in range(800)]
    estimate([text[:600]], tmp_path / "m", NgramConfig(prune=(0, 0, 1)))
    theirs = kenlm.Model(str(tmp_path / "m" / "model.arpa"))
    lines = [" ".join(line) for line in text]
    scores, _ = NgramModel.load(tmp_path / "m").token_scores(Lines.from_texts(lines))
    expected = [score for line in lines for score, _, _ in theirs.full_scores(line)]
    assert scores.tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("suffix", "pack"), [(".gz", gzip.compress), (".zst", zstandard.ZstdCompressor().compress)]
)
def test_packed_arpa_reads_the_same(
    tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / f"model.arpa{suffix}"
    path.write_bytes(pack(ARPA.read_bytes()))
    lines = Lines.from_texts(list(KENLM))
    expected, _ = NgramModel.load(ARPA).line_scores(lines)
    assert (NgramModel.load(path).line_scores(lines)[0] == expected).all()


SMALL = """\\data\\
ngram 1=4
ngram 2=2

\\1-grams:
-1 <unk>
-99\t<s>\t-0.5
-1e0\t</s>
-.5\tword\t-2.5E-1\r

\\2-grams:
-0.25\t<s> word
-0.75 word </s>\t0

\\end\\
"""


def test_arpa_of_other_writers_is_read(tmp_path: Path) -> None:
    (tmp_path / "m").write_text(SMALL)
    scores, _ = NgramModel.load(tmp_path / "m").token_scores(
        Lines.from_texts(["word", "word word", "?"])
    )
    # "word word" backs off from <s>: -0.25, then -0.25 - 0.5, then -0.75; "?" -0.5 - 1, then -1.
    assert scores.tolist() == pytest.approx([-0.25, -0.75, -0.25, -0.75, -0.75, -1.5, -1.0])


def test_a_model_without_unknown_words_scores_them_minus_100(tmp_path: Path) -> None:
    (tmp_path / "m").write_text(SMALL.replace("-1 <unk>\n", "").replace("1=4", "1=3"))
    scores, _ = NgramModel.load(tmp_path / "m").token_scores(Lines.from_texts(["?"]))
    assert scores.tolist() == [-100.5, -1.0]


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("\\data\\", "data", "line 1: "),
        ("ngram 2", "ngram 3", "line 3: .*'ngram 2=…'"),
        ("ngram 1=4\nngram 2=2", "ngram 1=4", "order 1; 2 to 6"),
        ("1=4", "1=5", "4 1-grams.* 5"),
        ("1=4", "1=3", "3 1-grams"),
        ("2=2", "2=99999999999999999", "2 2-grams.* 99,999"),
        ("2=2", "2=-1", "'ngram 2=…'"),
        ("\\1-grams:", "\\2-grams:", "line 5: .*1-grams:"),
        ("-99\t<s>", "nan\t<s>", "line 7: "),
        ("-99\t<s>", "-1e39\t<s>", "line 7: .*float32"),
        ("-99\t<s>", "-1.2.3\t<s>", "line 7: "),
        ("-99\t<s>", "0.1\t<s>", "line 7: .*zero"),
        ("-99\t<s>\t-0.5", "-99\tbegin\t-0.5", "<s> or </s>"),
        ("-.5\tword", "-.5\t</s>", "'</s>'"),
        ("<s> word", "<s> wort", "line 12: .*1-grams"),
        ("<s> word", "word", "line 12: "),
        ("word </s>\t0", "word </s>\t-1", "line 13: .*back-off"),
        ("word </s>\t0", "word </s>\t0\t0", "line 13: .*fields"),
        ("word </s>", "<s> word", "2-grams"),
        ("\\end\\\n", "", "line 1[45]: "),
        ("-0.75 word </s>\t0\n\n\\end\\\n", "-0.75 wo", "line 13: "),
        ("word", "w" * 3_000_000, "megabyte"),
    ],
)
def test_a_wrong_arpa_file_is_an_error_with_its_line(
    tmp_path: Path, old: str, new: str, value: str
) -> None:
    assert old in SMALL
    (tmp_path / "m").write_text(SMALL.replace(old, new, 1))
    with pytest.raises(InputError, match=value):
        NgramModel.load(tmp_path / "m")


def test_an_ngram_without_its_shorter_parts_is_an_error(tmp_path: Path) -> None:
    text = SMALL.replace("ngram 2=2", "ngram 2=2\nngram 3=1")
    text = text.replace("\\end\\", "\\3-grams:\n-1\tword word </s>\n\n\\end\\")
    (tmp_path / "m").write_text(text)
    with pytest.raises(InputError, match="line 17: "):
        NgramModel.load(tmp_path / "m")


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_damaged_arpa_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    damaged = bytearray(SMALL.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(damaged) - 1))
        damaged[place : place + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=3))
    path = tmp_path_factory.mktemp("damaged") / "m"
    path.write_bytes(damaged)
    try:
        scores, _ = NgramModel.load(path).token_scores(Lines.from_texts(["word ?"]))
    except InputError:
        return
    assert np.isfinite(scores).all()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    estimate([[["a", "b", "c"], ["a", "c"]]], tmp_path / "model", NgramConfig(order=3))
    return tmp_path / "model"


@pytest.mark.parametrize("name", ["1-grams.bin", "3-grams.bin", "words.bin", "word_slots.bin"])
def test_a_cut_or_missing_table_is_an_error(folder: Path, name: str) -> None:
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[:-1])
    with pytest.raises(InputError, match=rf"{name}: {len(whole) - 1} bytes.* {len(whole)} "):
        NgramModel.load(folder)
    (folder / name).unlink()
    with pytest.raises(InputError, match=rf"{name}: .* {len(whole)} "):
        NgramModel.load(folder)


def test_a_hostile_description_or_word_table_is_an_error(folder: Path) -> None:
    slots = bytearray((folder / "word_slots.bin").read_bytes())
    for at in range(8, len(slots), 16):
        if any(slots[at : at + 8]):
            slots[at : at + 8] = b"\xff" * 8
    whole = (folder / "word_slots.bin").read_bytes()
    (folder / "word_slots.bin").write_bytes(slots)
    with pytest.raises(InputError, match=r"word_slots\.bin"):
        NgramModel.load(folder)
    (folder / "word_slots.bin").write_bytes(whole)
    described = json.loads((folder / "model.json").read_text())
    for change in ({"counts": [5, 5]}, {"table_slots": [10**18, 1]}, {"strange": 1}):
        (folder / "model.json").write_text(json.dumps({**described, **change}))
        with pytest.raises(InputError):
            NgramModel.load(folder)
    (folder / "model.json").write_text("[")
    with pytest.raises(InputError, match=r"model\.json"):
        NgramModel.load(folder)


def test_a_kenlm_binary_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kenlm", None)
    with pytest.raises(UsageError, match=r"ingot\[kenlm\]"):
        load(tmp_path / "en.arpa.bin")


def test_vocabulary_numbers_words_in_the_order_they_come() -> None:
    words = Vocabulary.new()
    ids, offsets = words.learn(Lines.from_texts(["b a\tb", "", " \0c\n", "<s> a"]))
    assert ids.tolist() == [3, 4, 3, 5, 4]
    assert offsets.tolist() == [0, 3, 3, 4, 5]
    many = [f"word{i}" for i in range(50_000)] + ["x" * 200_000]
    ids, _ = words.learn(Lines.from_texts([" ".join(many)]))
    assert ids.tolist() == list(range(6, 6 + len(many)))
    assert words.ids(Lines.from_texts([f"word49999 {many[-1]} strange"]))[0].tolist() == [
        50_005,
        50_006,
        0,
    ]
    assert math.log2(len(words.slots)).is_integer()
