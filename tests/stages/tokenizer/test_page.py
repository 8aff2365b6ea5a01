"""The page of a tokenizer: its numbers from training.json, its cuts from tokenizer.json."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from stages.engine.page import Artifact, BarFigure, SamplesFigure, TableFigure
from stages.tokenizer import page as pages
from stages.tokenizer.page import page
from stages.tokenizer.stage import TokenizerStage
from stages.tokens.vocabulary import decode_vocabulary

# Twelve words each by UAX #29.
TEXTS = [f"the cat number {n} sat on a mat, and        the dog ran" for n in range(80)]


@pytest.fixture
def trained(run_stage, make_documents, store):
    def make(**config):
        rows = [
            {
                "text": text,
                "source": "web" if n % 2 else "code",
                "language": ("en", None, "de")[n % 3],
            }
            for n, text in enumerate(TEXTS)
        ]
        config = {"vocabulary_size": 320, "held_share": 0.3, **config}
        return Artifact(
            store, run_stage(TokenizerStage, config, {"documents": [make_documents([rows])]})
        )

    return make


@pytest.fixture
def brought(given, store):
    """`brought(tokenizer, **training)` → a tokenizer's artifact that tells of no sample."""

    def make(tokenizer, **training):
        size = tokenizer.get_vocab_size()
        told = {
            "algorithm": "unigram",
            "pre_tokenizer": None,
            "vocabulary_size": size,
            "padded_vocabulary_size": size,
            "origin": {"snapshot": "some-model", "files": {"tokenizer.json": "ab" * 32}},
            **training,
        }
        files = {
            "tokenizer.json": tokenizer.to_str().encode(),
            "tokenizer_config.json": {},
            "training.json": told,
        }
        return Artifact(store, given("tokenizer", files)[0])

    return make


def of_type(found, kind, title):
    (figure,) = [f for f in found if isinstance(f, kind) and f.title.startswith(title)]
    return figure


def test_the_page_shows_sample_fertility_and_vocabulary(trained):
    artifact = trained()
    found = page(artifact)
    training = artifact.output("tokenizer").read_json("training.json")
    assert len({figure.title for figure in found}) == len(found)
    facts = dict(of_type(found, TableFigure, "Tokenizer").rows)
    assert facts["special tokens"] == 16
    padded = facts["vocabulary with padding, rows of a model's embedding"]
    assert padded == training["padded_vocabulary_size"] > training["vocabulary_size"]
    sample = of_type(found, TableFigure, "Training sample by source")
    assert sum(row[3] for row in sample.rows) == pytest.approx(1)
    languages = of_type(found, TableFigure, "Training sample by language")
    assert {row[0] for row in languages.rows} == {"en", "de", "unknown"}
    fertility = of_type(found, TableFigure, "Fertility")
    for source, documents, size, words, tokens, per_word, continued, per_token in fertility.rows:
        assert (size, words) == (training["held"][source]["bytes"], 12 * documents)
        assert per_word == pytest.approx(tokens / words, abs=1e-4)
        assert 0 <= continued <= 1
        assert per_token == pytest.approx(size / tokens, abs=1e-4)
    lengths = of_type(found, BarFigure, "Tokens of the vocabulary")
    # 256 single bytes; with the special tokens, which have no length, they are the vocabulary.
    assert lengths.series[0].values[0] == 256
    assert sum(lengths.series[0].values) + 16 == training["vocabulary_size"]


def test_special_tokens_stand_with_their_roles_and_the_reserved_ones_together(trained):
    rows = of_type(page(trained()), TableFigure, "Special tokens").rows
    assert rows[0][1:] == ("<|begin_of_text|>", "begin")
    roles = {row[1]: row[2] for row in rows}
    assert roles["<|fim_middle|>"] == "fim middle"
    assert rows[-1] == ("8 to 15", "<|reserved_0|> … <|reserved_7|>", "none yet: 8")


def test_nothing_held_shows_no_fertility(trained):
    titles = [figure.title for figure in page(trained(held_share=0.0))]
    assert "Fertility on held documents" not in titles
    assert "Training sample by source" in titles


@pytest.mark.parametrize("algorithm", ["bpe", "unigram", "wordpiece"])
def test_texts_in_pieces_are_whole_under_every_algorithm(trained, algorithm):
    found = page(trained(algorithm=algorithm))
    shown = of_type(found, SamplesFigure, "Texts cut")
    prose = shown.samples[0]
    assert prose.text.replace(pages.BORDER, "") == pages.TEXTS["prose"]
    lengths = of_type(found, BarFigure, "Tokens of the vocabulary").series[0].values
    assert lengths[0] >= 256


def test_a_tokenizer_brought_along_has_no_sample_and_tells_what_importing_changed(brought):
    pieces = [("<unk>", 0.0), ("</s>", 0.0), ("▁", -3.0), ("▁the", -1.0), ("ing", -2.0)]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens(["<unk>", "</s>"])
    artifact = brought(
        tokenizer,
        special_tokens={"begin": None, "end": 1, "padding": 1},
        added_tokens=["<|pad|>"],
        changes=["pad_token was '</s>', which is eos_token too"],
        lost_texts=["  two", "three"],
        special_ids_in_text=["</s>"],
    )
    found = page(artifact)
    assert not [figure for figure in found if "sample" in figure.title]
    facts = dict(of_type(found, TableFigure, "Tokenizer").rows)
    assert facts["came from snapshot"] == "some-model"
    assert facts["tokens added at the end"] == "<|pad|>"
    assert facts["texts tried that decode to another text"] == 2
    special = of_type(found, TableFigure, "Special tokens")
    assert (1, "</s>", "end, padding") in special.rows
    assert "becomes that token" in special.note
    longest = of_type(found, TableFigure, "Longest tokens")
    assert longest.rows[0][1:] == (4, "␣the")


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
    assert pages.visible(' a\n"') == '␣a\\n\\"'
    assert pages.visible("x" * 500) == "x" * (pages.LONGEST_CHARACTERS - 1) + "…"


def test_texts_are_shown_in_pieces_with_their_counts(tokenizer):
    shown = pages.texts_in_pieces(tokenizer, decode_vocabulary(tokenizer))
    for sample in shown.samples:
        facts = dict(sample.facts)
        assert sample.text.count(pages.BORDER) == facts["tokens"] - 1
        assert facts["bytes"] == len(pages.TEXTS[sample.group].encode())
