"""The page of a comparison: its figures say what the tables hold."""

from __future__ import annotations

import json

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from stages.compare_tokenizers.page import page, summary
from stages.compare_tokenizers.stage import CompareTokenizers
from stages.engine.page import Artifact, BarFigure, SamplesFigure, TableFigure


def words_only() -> Tokenizer:
    """Knows two English words: everything else is unknown, a Thai sentence one token."""
    words = {"<unk>": 0, "the": 1, "cat": 2, "<|end_of_text|>": 3, "<|pad|>": 4}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(["<|end_of_text|>", "<|pad|>"])
    return tokenizer


TRANSLATIONS = [
    {"en": "the cat the cat", "th": "สวัสดีชาวโลก", "ru": "этот кот"},
    {"en": "cat cat", "th": "ชาวโลก", "ru": "кот кот"},
]


@pytest.fixture
def artifact(run_stage, as_artifact, make_documents, bpe, store):
    """English bytes are merged; `words` knows English words alone."""
    parallel = [
        {"text": text, "language": language, "metadata": json.dumps({"id": number})}
        for number, by_language in enumerate(TRANSLATIONS)
        for language, text in by_language.items()
    ]
    documents = [
        {"text": "the cat", "language": "en"},
        {"text": "кот", "language": "ru", "source": "books"},
    ]
    manifest = run_stage(
        CompareTokenizers,
        {"names": ["pieces", "words"]},
        {
            "tokenizers": [as_artifact(bpe(["the cat"] * 5, 270)), as_artifact(words_only())],
            "documents": [make_documents([documents])],
            "parallel": [make_documents([parallel], snapshot="other")],
        },
    )
    return Artifact(store, manifest)


def of_type(found, kind, title):
    (figure,) = [f for f in found if isinstance(f, kind) and f.title.startswith(title)]
    return figure


def rows_of(figure):
    table = figure.table()
    names = [column.heading for column in table.columns[1:]]
    return {row[0]: dict(zip(names, row[1:], strict=True)) for row in table.rows}


def test_every_figure_has_a_title_of_its_own_and_the_summary_is_its_beginning(artifact):
    found = page(artifact)
    assert len({figure.title for figure in found}) == len(found)
    assert summary(artifact) == found[:2]


def test_the_tax_names_the_dearest_languages_in_a_sentence(artifact):
    tax = of_type(page(artifact), BarFigure, "Tax")
    # Bytes: 36 + 18 in Thai, 15 + 13 in Russian. English: "the", "cat" and " cat" are one token,
    # " the" two, since it was not trained on: 5 + 2.
    rows = rows_of(tax)
    assert rows["en"] == {"pieces": 1.0, "words": 1.0}
    assert rows["th"] == {"pieces": pytest.approx(54 / 7), "words": None}
    assert rows["ru"] == {"pieces": pytest.approx(28 / 7), "words": None}
    assert list(rows) == ["th", "ru", "en"]
    assert "th 7.71, ru 4.00 with pieces." in tax.note
    assert "ru, th with words" in (tax.note)


def test_numbers_on_text_that_is_unknown_are_not_shown(artifact):
    found = page(artifact)
    for title in ("Fertility by language", "Continued words by language", "Bytes per token by la"):
        rows = rows_of(of_type(found, BarFigure, title))
        assert rows["th"]["words"] is None
        assert rows["th"]["pieces"] is not None
        assert rows["en"]["words"] is not None
    table = of_type(found, TableFigure, "Tokenizers")
    headings = [column.heading for column in table.columns]
    cells = {row[0]: dict(zip(headings, row, strict=True)) for row in table.rows}
    assert cells["pieces"]["unknown"] is None
    assert cells["words"]["unknown"] == pytest.approx(7 / 15)  # 2 + 2 + 2 parallel, 1 document
    assert cells["words"]["bytes/token"] is None
    assert cells["pieces"]["restored"] == 1
    assert cells["pieces"]["highest tax"] == "7.71 (th)"


def test_sources_and_all_measures_are_those_of_the_table(artifact):
    found = page(artifact)
    assert rows_of(of_type(found, BarFigure, "Fertility by source"))["web"]["pieces"] == 1.0
    table = of_type(found, TableFigure, "All measures")
    assert len(table.rows) == artifact.output("comparison").read_table("measures.parquet").num_rows
    assert ("documents", "books", "ru", "pieces", 1, 1, 6) in {row[:7] for row in table.rows}


def test_vocabularies_are_told_by_script_and_use(artifact):
    found = page(artifact)
    scripts = rows_of(of_type(found, BarFigure, "Vocabulary by script"))
    told = artifact.output("comparison").read_json("tokenizers.json")
    tokens = told["pieces"]["vocabulary_size"] - 2
    assert scripts["part of a character"]["pieces"] == pytest.approx(128 / tokens)
    assert scripts["Latin"]["words"] == 1.0
    use = {row[0]: row[1:] for row in of_type(found, TableFigure, "Use").rows}
    often, rare, unused, share, unreachable, special = use["words"]
    assert (often + rare, unused, special) == (3, 0, 2)
    assert (share, unreachable) == (0.0, 0)
    assert sum(use["pieces"][:3]) == tokens


def test_a_sentence_is_cut_by_each_tokenizer_in_the_dearest_languages(artifact):
    cut = of_type(page(artifact), SamplesFigure, "The same sentence")
    assert [sample.group for sample in cut.samples] == ["en", "en", "th", "th", "ru", "ru"]
    thai = cut.samples[3]
    assert (thai.heading, thai.text) == ("1 tokens, words", "<unk>")


def test_a_page_stands_without_the_tokenizers_that_were_collected(artifact, monkeypatch):
    monkeypatch.setattr(
        "stages.compare_tokenizers.page.inputs_in_order", lambda artifact, role: [None, None]
    )
    titles = [figure.title for figure in page(artifact)]
    assert "Tokenizers" in titles
    assert not [title for title in titles if title.startswith("The same sentence")]


def test_unreachable_tokens_are_listed(run_stage, as_artifact, make_documents, store):
    words = {"the": 0, "a b": 1, "<|end_of_text|>": 2, "<|pad|>": 3, "?": 4}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    manifest = run_stage(
        CompareTokenizers,
        {},
        {"tokenizers": [as_artifact(tokenizer)], "documents": [make_documents([["the"]])]},
    )
    found = page(Artifact(store, manifest))
    (row,) = of_type(found, TableFigure, "Unreachable tokens").rows
    assert row == ("bpe 5", 1, "a␣b", 3)
    assert not [figure for figure in found if figure.title.startswith("Tax")]
