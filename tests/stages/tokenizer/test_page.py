"""The page of a tokenizer: its numbers from training.json, its cuts from tokenizer.json."""

from __future__ import annotations

import pytest
from tokenizers.pre_tokenizers import ByteLevel

from stages.engine.figures import BarFigure, SamplesFigure, TableFigure
from stages.engine.page import Artifact
from stages.tokenizer import figures
from stages.tokenizer.page import page
from stages.tokenizer.stage import TokenizerStage

# Twelve words each.
TEXTS = [f"the cat number {n} sat on a mat, and        the dog ran" for n in range(80)]


@pytest.fixture
def trained(run_stage, make_documents, store):
    def make(**config):
        rows = [
            {"text": text, "source": "web" if n % 2 else "code"} for n, text in enumerate(TEXTS)
        ]
        config = {"vocabulary_size": 300, "held_share": 0.3, **config}
        return Artifact(
            store, run_stage(TokenizerStage, config, {"documents": [make_documents([rows])]})
        )

    return make


def of_type(found, kind, title):
    (figure,) = [f for f in found if isinstance(f, kind) and f.title.startswith(title)]
    return figure


def test_the_page_shows_sample_fertility_and_vocabulary(trained):
    artifact = trained()
    found = page(artifact)
    training = artifact.output("tokenizer").read_json("training.json")
    assert len({figure.title for figure in found}) == len(found)
    assert dict(of_type(found, TableFigure, "Tokenizer").rows)["special tokens"] == 5
    sample = of_type(found, TableFigure, "Training sample")
    assert sum(row[3] for row in sample.rows) == pytest.approx(1)
    fertility = of_type(found, TableFigure, "Fertility")
    for source, documents, size, words, tokens, per_word, per_token in fertility.rows:
        assert (size, words) == (training["held"][source]["bytes"], 12 * documents)
        assert per_word == pytest.approx(tokens / words, abs=1e-4)
        assert per_token == pytest.approx(size / tokens, abs=1e-4)
    lengths = of_type(found, BarFigure, "Tokens of the vocabulary")
    # 256 single bytes; with the 5 special tokens, which have no length, they are the vocabulary.
    assert lengths.series[0].values[0] == 256
    assert sum(lengths.series[0].values) + 5 == training["vocabulary_size"]


def test_nothing_held_shows_no_fertility(trained):
    titles = [figure.title for figure in page(trained(held_share=0.0))]
    assert "Fertility on held documents" not in titles
    assert "Training sample by source" in titles


def test_tokens_of_a_text_join_to_the_text(tokenizer):
    text = "The answer is 12 naïve\n你 <|im_end|>"
    pieces = figures.cut(tokenizer, text)
    assert pieces[-1] == "<|im_end|>"
    raw = "".join(pieces).encode("latin-1", "backslashreplace").decode("unicode_escape")
    assert raw.encode("latin-1").decode() == text


def test_every_byte_has_the_character_that_the_library_gives_it():
    pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
    for text in (bytes(range(128)).decode(), "\x80ÿĀ߿ࠀ￿\U0010ffff"):
        ((spelling, _),) = pre_tokenizer.pre_tokenize_str(text)
        assert bytes(figures._bytes()[character] for character in spelling) == text.encode()


def test_runs_of_one_character_do_not_fill_the_longest_tokens(trained):
    longest = of_type(page(trained()), TableFigure, "Longest tokens")
    shown = [row[2] for row in longest.rows]
    assert "␣number␣" not in shown
    assert "␣number" in shown
    assert not [text for text in shown if set(text) == {"␣"}]
    assert "repeat one character" in longest.note
    sizes = [row[1] for row in longest.rows]
    assert sizes == sorted(sizes, reverse=True)


def test_a_token_in_a_table_shows_its_white_space_and_is_cut():
    assert figures.visible(' a\n"') == '␣a\\n\\"'
    assert figures.visible("x" * 500) == "x" * (figures.LONGEST_CHARACTERS - 1) + "…"


def test_texts_are_shown_in_pieces_with_their_counts(tokenizer):
    shown = figures.texts_in_pieces(tokenizer)
    assert isinstance(shown, SamplesFigure)
    for sample in shown.samples:
        facts = dict(sample.facts)
        assert sample.text.count(figures.BORDER) == facts["tokens"] - 1
        assert facts["bytes"] == len(figures.TEXTS[sample.group].encode())
