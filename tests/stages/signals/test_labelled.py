"""Personal data and languages against labels: what `tests/benchmarks/labelled.py` measures.

The figures are those of a run; what is computed from them here has no chance in it, so the bounds
that are equalities would be broken by any change of a verdict.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from stages.signals.models import identify_languages
from tests.benchmarks.labelled import (
    CODES,
    PERSONAL,
    TYPES,
    Agreement,
    agreement,
    named,
    our_spans,
    rows_of,
    sentences,
)


def test_agreement_by_hand() -> None:
    """Two values, three spans: one found twice, one missed, one span on nothing."""
    rows = [{"spans": [{"type": "T", "start": 0, "end": 9}, {"type": "T", "start": 20, "end": 25}]}]
    answers = [[(0, 9, "T"), (8, 12, "T"), (30, 31, "T"), (20, 25, "U")]]
    got = agreement(rows, answers, "T")
    assert got == Agreement(values=2, spans=3, found=1, right=2, exact=1)
    assert (got.precision, got.recall) == (2 / 3, 1 / 2)
    assert got.f1 == pytest.approx(4 / 7)


def test_macro_f1_by_hand() -> None:
    """a: two of two and one wrong (F1 4/5), b: one of two (2/3); c is not known."""
    got = named(["a", "a", "b", "b", "c"], ["a", "a", "a", "b", "a"], {"a", "b"})
    assert (got.texts, got.right, got.languages) == (4, 3, 2)
    assert got.macro_f1 == pytest.approx((4 / 5 + 2 / 3) / 2)
    assert got.low <= got.macro_f1 <= got.high


def test_personal_data_is_found_at_least_as_well_as_by_presidio(shared_data: Path) -> None:
    """Presidio 2.2.366: values found / spans right / spans, by its own recognizers.

    E-mail 31/31/31, phone 39/39/50, IBAN 16/16/16, card 73/73/73, IP 8/8/8. Ours misses one card,
    of twelve digits that begin with 06, which no network issues.
    """
    rows = rows_of(shared_data, PERSONAL)
    answers = our_spans([row["text"] for row in rows])
    assert {kind: agreement(rows, answers, kind) for kind in TYPES} == {
        "EMAIL_ADDRESS": Agreement(31, 31, 31, 31, 31),
        "PHONE_NUMBER": Agreement(65, 65, 65, 65, 65),
        "IBAN_CODE": Agreement(17, 17, 17, 17, 17),
        "CREDIT_CARD": Agreement(96, 95, 95, 95, 95),
        "IP_ADDRESS": Agreement(8, 8, 8, 8, 8),
    }


def test_sentences_are_named_as_the_model_alone_names_them(shared_data: Path) -> None:
    """24,036 sentences in 96 languages; 0.769 of them right, as by fastText's own `predict`."""
    import fasttext

    texts, truth = sentences(shared_data)
    model = shared_data / "models" / "lid.176.ftz"
    told, _ = identify_languages(texts, model, 1000)
    got = named(truth, told, set(CODES.values()))
    assert (got.texts, got.languages) == (24_036, 96)
    assert got.right / got.texts > 0.765
    assert got.macro_f1 > 0.73
    predict = fasttext.load_model(str(model)).predict
    some = range(0, len(texts), 50)
    alone = [predict(" ".join(texts[i].split()))[0][0].removeprefix("__label__") for i in some]
    assert [told[i] for i in some] == alone


def test_a_thousand_characters_say_as_much_as_all(shared_data: Path) -> None:
    """Books and encyclopedias of eight languages, 3,000 to 20,000 characters a text."""
    texts = [
        row["text"]
        for name in ("en-classics", "ar", "de", "es", "fr", "hi", "ja", "zh")
        for row in rows_of(shared_data, f"text/{name}")[::10]
    ]
    model = shared_data / "models" / "lid.176.ftz"
    cut, uncut = (identify_languages(texts, model, size)[0] for size in (1000, 1_000_000))
    assert sum(a != b for a, b in zip(cut, uncut, strict=True)) <= 1
