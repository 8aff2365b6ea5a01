"""The estimate against lmplz (kenlm 4cb443e): `toy*.arpa` are its output for `toy.txt`, with
`--discount_fallback` and `-o 2`, `-o 5`, `-o 3 --prune 0 1`, `-o 3 --limit_vocab_file` (the seven
words that occur more than once). INGOT_LMPLZ names an lmplz to be compared with on more text."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artifacts_schema.errors import InputError, UsageError
from artifacts_schema.files import write_whole
from stages.language_model import estimate as estimation
from stages.language_model.config import NgramConfig
from stages.language_model.counts import compute_discounts
from stages.language_model.estimate import estimate
from stages.language_model.perplexity import NgramModel
from stages.language_model.vocabulary import Lines

HERE = Path(__file__).parent
TOY = [line.split(" ") for line in (HERE / "toy.txt").read_text().split("\n")[:-1]]


def entries(path: Path) -> dict[str, tuple[float, ...]]:
    """n-gram → its numbers, in the order of the file."""
    rows = [line.split("\t") for line in path.read_text().split("\n")]
    return {row[1]: tuple(map(float, [row[0], *row[2:]])) for row in rows if len(row) > 1}


def assert_equal_arpa(ours: Path, theirs: Path) -> None:
    made, expected = entries(ours), entries(theirs)
    assert list(made) == list(expected)
    for gram, numbers in expected.items():
        assert made[gram] == pytest.approx(numbers, abs=2e-6), gram


@pytest.mark.parametrize(
    ("theirs", "config"),
    [
        ("toy_order_2", {"order": 2}),
        ("toy_order_5", {}),
        ("toy_pruned", {"order": 3, "prune": (0, 1)}),
        ("toy_limited", {"order": 3, "vocabulary": 7}),
    ],
)
def test_every_entry_equals_that_of_lmplz(
    tmp_path: Path, theirs: str, config: dict[str, Any]
) -> None:
    summary = estimate([TOY], tmp_path / "model", NgramConfig(**config))
    assert_equal_arpa(tmp_path / "model" / "model.arpa", HERE / f"{theirs}.arpa")
    head, unigrams = (HERE / f"{theirs}.arpa").read_text().split("\n\n")[:2]
    made = (tmp_path / "model" / "model.arpa").read_text().split("\n\n")[1]
    assert [len(n.split("\t")[2]) for n in made.split("\n")[1:4:2]] == [1, 1]  # "0", not "0.0"
    assert unigrams.split("\n")[0] == made.split("\n")[0]
    assert [f"ngram {n}={c}" for n, c in enumerate(summary.counts, 1)] == head.split("\n")[1:]
    assert (summary.lines, summary.tokens) == (6, sum(len(line) for line in TOY if line != [""]))


def random_text(lines: int) -> list[list[str]]:
    """Words with frequencies as in a language, of one seed."""
    random = np.random.default_rng(7)
    return [
        [f"w{word % 900}" for word in random.zipf(1.4, random.integers(0, 25))]
        for _ in range(lines)
    ]


@pytest.mark.skipif("INGOT_LMPLZ" not in os.environ, reason="INGOT_LMPLZ names no lmplz")
@pytest.mark.parametrize("prune", [(), (0, 1, 2)])
@pytest.mark.parametrize("order", [3, 6])
def test_equals_an_lmplz_on_more_text(tmp_path: Path, order: int, prune: tuple[int, ...]) -> None:
    text = random_text(3000)
    options = ["-o", str(order), "-S", "100M", "-T", str(tmp_path), "--discount_fallback"]
    with (tmp_path / "theirs").open("wb") as out:
        subprocess.run(
            [os.environ["INGOT_LMPLZ"], *options, *(["--prune", *map(str, prune)] * bool(prune))],
            input="".join(" ".join(line) + "\n" for line in text).encode(),
            stdout=out, stderr=subprocess.DEVNULL, check=True,
        )  # fmt: skip
    estimate([text], tmp_path / "model", NgramConfig(order=order, prune=prune))
    assert_equal_arpa(tmp_path / "model" / "model.arpa", tmp_path / "theirs")


@pytest.mark.parametrize("prune", [(), (1,), (0, 0, 2)])
def test_probabilities_after_any_context_sum_to_one(tmp_path: Path, prune: tuple[int, ...]) -> None:
    estimate([random_text(300)], tmp_path / "m", NgramConfig(order=3, prune=prune))
    model = NgramModel.load(tmp_path / "m")
    words = [model.words.word(i).decode() for i in range(model.words.size) if i != 1]
    for context in ("", "w1", "w1 w1", "w2 w5", "w7 w800", "never-seen"):
        lines = Lines.from_texts([f"{context} {word}" for word in words if word != "</s>"])
        scores, offsets = model.token_scores(lines)
        end, ends = model.token_scores(Lines.from_texts([context]))
        total = (10 ** scores[offsets[1:] - 2]).sum() + 10 ** end[ends[1] - 1]
        assert total == pytest.approx(1, abs=1e-5), context


def test_discounts_are_those_of_equation_26() -> None:
    # Y = 100 / (100 + 2 * 40) = 5 / 9; D1 = 1 - 2 Y 40 / 100, D2 = 2 - 3 Y 20 / 40, …
    assert compute_discounts([100, 40, 20, 12]) == pytest.approx((5 / 9, 2 - 5 / 6, 3 - 4 / 3))
    assert compute_discounts([100, 40, 0, 12]) is None
    assert compute_discounts([10, 1, 30, 1]) is None  # D2 is below 0.


def folder_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_bytes_do_not_depend_on_batches_or_how_lines_come(tmp_path: Path) -> None:
    text = random_text(400)
    estimate([text], tmp_path / "whole", NgramConfig())
    table = pa.table({"line": [" ".join(line) for line in text]})
    pieces = [table.slice(start, 37) for start in range(0, 400, 37)]
    estimate(pieces, tmp_path / "pieces", NgramConfig())
    assert folder_bytes(tmp_path / "whole") == folder_bytes(tmp_path / "pieces")


SPILL = """
import sys
from pathlib import Path
import numpy as np
from stages.language_model.config import NgramConfig
from stages.language_model.estimate import estimate
random = np.random.default_rng(3)
batches = ([[f"w{w}" for w in random.zipf(1.2, 20) % 50000] for _ in range(5000)] for _ in range(8))
folder, memory = Path(sys.argv[1]), sys.argv[2]
spilled = []
def watch(phase, done):
    overflow = folder / "work" / "counts" / "overflow"
    if overflow.is_dir():
        spilled.extend(path.name for path in overflow.iterdir())
estimate(batches, folder, NgramConfig(), memory, watch)
print(len(spilled))
"""


@pytest.mark.full
@pytest.mark.slow
def test_little_memory_spills_and_gives_the_same_bytes(tmp_path: Path) -> None:
    spilled = {}
    for memory in ("60MB", "2GB"):
        run = subprocess.run(
            [sys.executable, "-c", SPILL, str(tmp_path / memory), memory],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        spilled[memory] = int(run.stdout)
    assert spilled["60MB"] > 0 == spilled["2GB"]
    assert folder_bytes(tmp_path / "60MB") == folder_bytes(tmp_path / "2GB")


@pytest.mark.parametrize("at", ["read", "count", "normalise", "write"])
def test_stopped_anywhere_leaves_no_model_and_the_next_run_makes_it(
    tmp_path: Path, at: str
) -> None:
    class Killed(BaseException):
        pass

    def kill(phase: str, done: int) -> None:
        if phase == at and (phase != "write" or done == 3):
            raise Killed

    model = tmp_path / "model"
    with pytest.raises(Killed):
        write_whole(model, lambda part: estimate([TOY], part, NgramConfig(), on_progress=kill))
    assert list(tmp_path.iterdir()) == []
    write_whole(model, lambda part: estimate([TOY], part, NgramConfig()))
    assert_equal_arpa(tmp_path / "model" / "model.arpa", HERE / "toy_order_5.arpa")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_text_without_tokens_and_a_taken_folder_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no tokens"):
        estimate([[[], ["<s>", "</s>"]]], tmp_path / "model", NgramConfig())
    (tmp_path / "taken").mkdir()
    with pytest.raises(FileExistsError):
        estimate([TOY], tmp_path / "taken", NgramConfig())


def test_too_little_memory_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="4MB") as caught:
        estimate([random_text(3000)], tmp_path / "model", NgramConfig(), memory="4MB")
    assert caught.value.where == str(tmp_path / "model")


def test_words_named_as_marks_are_white_space(tmp_path: Path) -> None:
    plain, marked = [["a", "b"]] * 3, [["a", "<s>", "b", "<unk>"], ["</s>", "a", "b"], ["a", "b"]]
    estimate([plain], tmp_path / "plain", NgramConfig(order=2))
    estimate([marked], tmp_path / "marked", NgramConfig(order=2))
    assert folder_bytes(tmp_path / "plain") == folder_bytes(tmp_path / "marked")


def test_more_words_than_keys_hold_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimation, "word_bits", lambda order: 3)
    with pytest.raises(InputError, match="order 5 takes 8"):
        estimate([TOY], tmp_path / "model", NgramConfig())


@pytest.mark.parametrize(
    "config",
    [{"order": 7}, {"order": 1}, {"prune": (1, 0)}, {"order": 2, "prune": (0, 0, 1)},
     {"prune": (-1,)}, {"vocabulary": 0}, {"discount_fallback": (1.5, 1, 1)}],
)  # fmt: skip
def test_config_refuses_what_no_model_is(config: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        NgramConfig.parse(config, where="config")


@pytest.mark.full
@settings(max_examples=15, deadline=None)
@given(
    text=st.lists(st.lists(st.text(max_size=6), max_size=6), min_size=1, max_size=8),
    order=st.integers(2, 6),
)
def test_any_strings_make_a_model_that_reads_back_equal(
    tmp_path_factory: pytest.TempPathFactory, text: list[list[str]], order: int
) -> None:
    folder = tmp_path_factory.mktemp("any") / "model"
    text = [*text, ["a", "\udcff", "long" * 50_000]]
    estimate([text], folder, NgramConfig(order=order))
    lines = Lines.from_texts([" ".join(line) for line in text])
    mapped = NgramModel.load(folder).token_scores(lines)[0]
    read = NgramModel.load(folder / "model.arpa").token_scores(lines)[0]
    assert np.isfinite(mapped).all()
    assert (mapped == read).all()
