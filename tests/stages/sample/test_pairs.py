"""Minimal pairs: one fault each, and nothing but the fault tells the texts of a pair apart."""

from __future__ import annotations

import ast
from collections import Counter

from stages.sample.lessons import drop_shared
from stages.sample.modules import BENCHMARKS, source_file
from stages.sample.pairs import BRACKETS, QUOTES, WORD_ORDER, balance, minimal_pairs, sentences

SOURCES = [source[1] for name in BENCHMARKS[:4] if (source := source_file(name))]


def made():
    return balance(minimal_pairs(SOURCES, seed=0), seed=0)


def select(items, benchmark):
    return [item for item in items if item["benchmark"] == benchmark]


def test_each_benchmark_has_pairs_with_names_of_their_own():
    items = made()
    counts = Counter(item["benchmark"] for item in items)
    assert min(counts[name] for name in (WORD_ORDER, BRACKETS, QUOTES)) >= 10
    assert len({item["item_id"] for item in items}) == len(items)


def test_both_texts_have_the_same_length_and_an_exchange_keeps_the_words():
    for item in made():
        one, other = item["choices"]
        assert one != other
        assert len(one) == len(other)
        if item["benchmark"] == WORD_ORDER:
            assert Counter(one.split()) == Counter(other.split())
        else:
            assert sum(a != b for a, b in zip(one, other, strict=True)) == 1


def test_a_model_of_single_characters_is_right_about_half_of_the_faults():
    """Whatever such a model prefers, each fault is there as often as its reverse."""
    for benchmark in (BRACKETS, QUOTES):
        faults = Counter(tuple(item["fault"]) for item in select(made(), benchmark))
        for (right, wrong), count in faults.items():
            assert faults[wrong, right] == count


def test_a_wrong_bracket_or_quote_breaks_the_statement():
    def parses(text):
        for form in (text, f"{text} pass", f"if 1: pass\n{text} pass", f"{text}\n pass"):
            try:
                ast.parse(form)
            except SyntaxError:
                continue
            return True
        return False

    for item in made():
        if item["benchmark"] != WORD_ORDER:
            assert not parses(item["choices"][1 - item["answer"]])


def test_sentences_are_those_of_docstrings_and_comments():
    source = (
        '"""First words that are a whole sentence of eight words. X >>> y(1) has no words."""\n'
        "# A comment over two lines is one\n# sentence of words that is read whole.\n"
        'x = "Not a docstring but a string of more than eight words."\n'
    )
    assert list(sentences(source)) == [
        "First words that are a whole sentence of eight words.",
        "A comment over two lines is one sentence of words that is read whole.",
    ]


def test_a_short_pair_goes_where_a_text_has_all_of_its_words():
    item = {"prompt": "", "choices": ["a = f(b, c, d)", "a = f(b, c, d]"], "answer": 0}
    assert drop_shared([item], ["x\na = f(b, c,\n d)\n"]) == []
    assert drop_shared([item], ["a = f(b, c, e)"]) == [item]
    assert drop_shared([{**item, "choices": ["f(b, c)", "f(b, c]"]}], [""]) == []
