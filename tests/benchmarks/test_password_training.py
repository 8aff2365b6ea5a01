"""The texts that the password model is trained on, and a small training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stages.signals.credentials import find_secrets
from stages.signals.password_features import SIZE
from tests.benchmarks import password_training
from tests.benchmarks.password_training import (
    TEXTS,
    fit,
    make_labelled_rows,
    make_rows,
    measure,
    package_texts,
    read_marked,
    using,
)
from tests.benchmarks.redaction import BLIND_SETS
from tests.benchmarks.redaction_cases import Case

FILES = sorted(TEXTS.glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_marks_enclose_values_without_blanks_at_their_ends(path: Path) -> None:
    cases = read_marked(path)
    assert len({case.text for case in cases}) > 150
    for case in cases:
        assert not {"⟦", "⟧"} & set(case.text)
        for start, end in case.values:
            value = case.text[start:end]
            assert value.strip() == value != ""


def test_every_file_is_named_in_the_page_about_them() -> None:
    page = (TEXTS / "README.md").read_text()
    named = {"code_1", "code_2", "code_3", "code_4", "languages_1", "languages_2", "languages_3"}
    named |= {"languages_4", "languages_5", "negatives_1", "negatives_2"}
    named |= {f"prose_{number}" for number in range(1, 7)}
    assert {path.stem for path in FILES} == named
    assert all(f"`{name}`" in page for name in named - {"languages_2", "prose_2", "prose_3"})


def test_no_text_of_the_last_set_is_one_of_these() -> None:
    own = {case.text for path in FILES for case in read_marked(path)}
    last = BLIND_SETS[-1]
    assert not own & {case.text for case in last.make_cases("password", last.first_seed)}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("password: a\n", "does not start with a head"),
        ("=== + password\npassword: a\n", "marked wrongly"),
        ("=== - password\npassword: ⟦a⟧\n", "marked wrongly"),
        ("=== + password\npassword: ⟦a\n", "marked wrongly"),
    ],
)
def test_a_file_with_wrong_marks_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        read_marked(path)


def cases(form: str, values: list[str]) -> list[Case]:
    made = []
    for value in values:
        text = form.format(value)
        place = text.index(value)
        made.append(Case("password", text, ((place, place + len(value)),)))
    return made


def test_a_form_that_it_saw_is_found_with_another_value_and_equal_texts_give_equal_weights() -> (
    None
):
    form = "the zorblat password sits at {} near the door"
    words = ["willow", "pebble", "garnet", "saddle", "copper", "meadow", "thimble", "lantern"]
    seen = cases(form, [f"{one}.{two}" for one in words for two in words[:4] if one != two])
    rows = [make_rows(((one.text, one.values, ()) for one in seen), 5.0)]
    assert rows[0].features.has_canonical_format
    weights = fit(rows)
    assert weights.shape == (SIZE,)
    assert np.array_equal(weights, fit(rows))
    (unseen,) = cases(form, ["walrus.canoe"])
    before = find_secrets(unseen.text)
    with using(weights):
        spans = find_secrets(unseen.text)
        assert measure([unseen]) == "1 | 0.000 | 1.000 | 1.000"
    assert [unseen.text[one.start : one.end] for one in spans] == ["walrus.canoe"]
    assert find_secrets(unseen.text) == before


def test_secrets_of_other_kinds_are_neither_positives_nor_negatives() -> None:
    text = "password Tulip88 and key Walrus99"
    all_rows = make_rows([(text, (), ())], 1.0)
    without = make_rows([(text, (), [(9, 16)])], 1.0)
    assert all_rows.labels.sum() == without.labels.sum() == 0
    assert len(without.labels) < len(all_rows.labels)


def test_of_a_package_texts_alone_are_read_and_no_more_than_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(password_training, "_MOST_OF_PACKAGE", 10)
    for name in ("a.py", "b.md", "c.md", "d.bin"):
        (tmp_path / name).write_text(name * 2)
    assert list(package_texts(tmp_path)) == ["a.pya.py", "b.mdb.md"]
    assert list(package_texts(tmp_path / "d.bin")) == []


def test_a_file_left_out_is_not_trained_on() -> None:
    every = sum(int(part.labels.sum()) for part in make_labelled_rows())
    rest = sum(int(part.labels.sum()) for part in make_labelled_rows(left_out=FILES[0]))
    assert 0 < every - rest <= sum(len(case.values) for case in read_marked(FILES[0]))
