"""IFEval's instructions: for each kind answers that follow it, and some that do not."""

import json

import pytest

from artifacts_schema.errors import InputError
from stages.scoring.instructions import (
    CHECKS,
    Instruction,
    follows,
    follows_loosely,
    judge_instructions,
    read_instructions,
)

CASES = {
    "keywords:existence": (
        {"keywords": ["Rome", "river"]}, ["A RIVER in rome"], ["A river in Paris"]
    ),
    "keywords:frequency": (
        {"keyword": " cat ", "frequency": 2, "relation": "at least"},
        ["Cat, cat", "concatenate the cats"], ["one cat"],
    ),
    "keywords:forbidden_words": ({"forbidden_words": ["cat"]}, ["concatenate"], ["A Cat."]),
    "keywords:letter_frequency": (
        {"letter": "A", "let_frequency": 2, "let_relation": "less than"}, ["a bc"], ["a bAc"]
    ),
    "length_constraints:number_sentences": (
        {"num_sentences": 3, "relation": "less than"},
        ["One. Two!", "Dr. No is J. B.'s enemy. Is he?"], ["One. Two! Three", "1? 2? 3?"],
    ),
    "length_constraints:number_words": (
        {"num_words": 3, "relation": "at least"}, ["one two-three"], ["one two"]
    ),
    "length_constraints:number_paragraphs": (
        {"num_paragraphs": 2}, ["a\n***\nb", "***a *** b", "a***b***"], ["a", "a***   ***b***c"]
    ),
    "length_constraints:nth_paragraph_first_word": (
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Then"},
        ["a\n\n'then, b", 'a\n\n"Then" b'], ["a\n\nb", "a\n\nthen b\n\nc", "then", "a\n\n\n\nthen"],
    ),
    "detectable_content:number_placeholders": (
        {"num_placeholders": 2}, ["[name] of [place]"], ["[name of place]", "[a\nb] [c]"]
    ),
    "detectable_content:postscript": (
        {"postscript_marker": "P.S."}, ["Bye.\nP.S. yes", "p. s. yes"], ["Bye. PS yes"]
    ),
    "detectable_format:number_bullet_lists": (
        {"num_bullets": 2}, ["* a\n* b", "- a\n  * b"], ["* a", "** a\n* b", "* a\n- b\n- c"]
    ),
    "detectable_format:constrained_response": (
        {}, ["My answer is maybe.", "Well: My answer is no."], ["My answer is maybe", "yes"]
    ),
    "detectable_format:number_highlighted_sections": (
        {"num_highlights": 2}, ["*a* and *b*", "**a** *b*"], ["*a*", "**a**", "* * and **"]
    ),
    "detectable_format:multiple_sections": (
        {"section_spliter": "Section", "num_sections": 2},
        ["Section 1 a Section 2 b"], ["Section 1 a section 2 b", "Section one"],
    ),
    "detectable_format:json_format": (
        {}, ['{"a": 1}', '```json\n[1]\n```'], ["{a: 1}", "[" * 100_000]
    ),
    "detectable_format:title": ({}, ["<<poem>> a"], ["<poem>", "<< >>", "<<a\nb>>"]),
    "combination:two_responses": (
        {}, ["a******b", "******a******b******"], ["a", "a******a ", "a******b******c"]
    ),
    "combination:repeat_prompt": (
        {"prompt_to_repeat": " Say it. "}, ["say it. Yes"], ["Yes. Say it."]
    ),
    "startend:end_checker": ({"end_phrase": "The End"}, ['"... the end"'], ["the end."]),
    "startend:quotation": ({}, [' "a" '], ['"', '"a', "'a'"]),
    "change_case:capital_word_frequency": (
        {"capital_frequency": 2, "capital_relation": "less than"},
        ["ONE two", '"ONE," Two'], ["ONE, TWO!", "A-B C"],
    ),
    "change_case:english_capital": (
        {}, ["THIS IS A SENTENCE IN ENGLISH ABOUT THE WEATHER"], ["This is not in capitals"]
    ),
    "change_case:english_lowercase": (
        {}, ["this is a sentence in english about the weather"],
        ["dies ist ein satz in deutscher sprache über das wetter", "Not lower"],
    ),
    "language:response_language": (
        {"language": "de"}, ["Dies ist ein Satz in deutscher Sprache über das Wetter."],
        ["This is a sentence in English about the weather."],
    ),
    "punctuation:no_comma": ({}, ["a b"], ["a, b"]),
}  # fmt: skip
"""Kind → settings, answers that follow, answers that do not. By the definitions of Zhou et al.
2023; `tests/peers/test_lm_eval_answers.py` has the harness judge the same cases."""
LANGUAGES = ("language:response_language", "change_case:english_capital",
             "change_case:english_lowercase")  # fmt: skip


def test_there_is_a_case_for_each_of_25_kinds():
    assert set(CASES) == set(CHECKS)
    assert len(CHECKS) == 25


@pytest.mark.parametrize("name", CASES)
def test_instructions_are_followed_or_not(name):
    if name in LANGUAGES:
        pytest.importorskip("langdetect", reason="needs langdetect: ingot[instructions]")
    settings, right, wrong = CASES[name]
    one = Instruction(name, settings)
    assert [follows(answer, one) for answer in right] == [True] * len(right)
    assert [follows(answer, one) for answer in wrong] == [False] * len(wrong)
    assert not follows(" \n", one)


def test_loosely_the_first_and_last_line_and_asterisks_do_not_count():
    quoted = Instruction("startend:quotation", {})
    no_comma = Instruction("punctuation:no_comma", {})
    assert follows_loosely('Here it is:\n"yes"', quoted)
    assert follows_loosely('"yes"\nCheers', quoted)
    assert follows_loosely('Well:\n*"yes"*\nCheers', quoted)
    assert not follows('Here it is:\n"yes"', quoted)
    assert not follows_loosely("a\nb, c\nd", no_comma)
    assert judge_instructions('Sure, here:\n"yes"', [quoted, no_comma]) == {
        "prompt_strict": (0.0, 1.0), "instruction_strict": (0.0, 2.0),
        "prompt_loose": (1.0, 1.0), "instruction_loose": (2.0, 2.0),
    }  # fmt: skip


def test_instructions_come_from_the_data_set_s_json():
    reference = json.dumps({
        "instruction_id_list": ["punctuation:no_comma", "startend:end_checker"],
        "kwargs": [{"end_phrase": None}, {"end_phrase": "End", "num_words": None}],
    })  # fmt: skip
    assert read_instructions(reference, "x") == [
        Instruction("punctuation:no_comma", {}),
        Instruction("startend:end_checker", {"end_phrase": "End"}),
    ]


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("no json", "not the JSON"),
        ("[]", "not the JSON"),
        ('{"instruction_id_list": ["a"], "kwargs": []}', "not the JSON"),
        ('{"instruction_id_list": ["a:b"], "kwargs": [{}]}', "unknown instruction 'a:b'"),
    ],
)
def test_other_json_is_an_error_that_names_the_item(reference, message):
    with pytest.raises(InputError, match=message) as caught:
        read_instructions(reference, "ifeval/7")
    assert caught.value.where == "ifeval/7"


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("keywords:existence", {}),
        ("length_constraints:number_words", {"num_words": 3, "relation": "about"}),
        ("length_constraints:number_words", {"num_words": "3", "relation": "at least"}),
    ],
)
def test_settings_that_cannot_be_checked_are_an_error_and_not_a_wrong_answer(name, settings):
    with pytest.raises(InputError) as caught:
        follows("a b c", Instruction(name, settings))
    assert name in caught.value.where
