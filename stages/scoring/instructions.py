"""Instructions whose following a program can verify: IFEval's 25 kinds, as pure functions.

Zhou et al. 2023 (arXiv 2311.07911), with the checks of lm-evaluation-harness 0.4.13. An answer is
judged *strictly*, as it is, or *loosely*: without its first line, its last line, both, and each
of these without asterisks; one of the eight that follows is enough.

Three kinds need the language of an answer (extra `instructions`: langdetect, with a fixed seed).
Two count what has no single definition: sentences by marks and space (the paper's splitter is
NLTK's punkt), words in capitals between space, without punctuation at their ends (the paper's
tokens are NLTK's).
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from artifacts_schema.errors import InputError
from stages.scoring.answers import run_pattern

Settings = Mapping[str, Any]
Check = Callable[[str, Settings], bool]
CHECKS: dict[str, Check] = {}
"""By the published name, as `keywords:existence`."""


@dataclass(frozen=True)
class Instruction:
    """A kind and its settings, of which empty ones count as absent."""

    name: str
    settings: Settings


def read_instructions(reference: str, where: str) -> list[Instruction]:
    """Those of an item, from JSON with IFEval's fields `instruction_id_list` and `kwargs`.

    InputError for a kind that is not known, or for other JSON.
    """
    try:
        values = json.loads(reference)
        pairs = list(zip(values["instruction_id_list"], values["kwargs"], strict=True))
        known = [Instruction(name, {k: v for k, v in kw.items() if v}) for name, kw in pairs]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"not the JSON of IFEval's instructions: {error}",
            where=where,
            hint="an object with `instruction_id_list` and, of the same length, `kwargs`",
        ) from error
    for one in known:
        if one.name not in CHECKS:
            raise InputError(f"unknown instruction '{one.name}'", where=where)
    return known


def follows(answer: str, instruction: Instruction) -> bool:
    """Whether an answer follows an instruction; an empty one follows none.

    InputError for settings that the kind lacks.
    """
    if not answer.strip():
        return False
    try:
        return CHECKS[instruction.name](answer, instruction.settings)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"settings that cannot be checked: {type(error).__name__} {error}",
            where=f"instruction {instruction.name}",
        ) from error


def follows_loosely(answer: str, instruction: Instruction) -> bool:
    """Whether one of the eight variants of an answer follows an instruction."""
    lines = answer.split("\n")
    parts = ["\n".join(one).strip() for one in (lines[1:], lines[:-1], lines[1:-1])]
    variants = [answer, *parts]
    return any(
        follows(one, instruction) for one in [*variants, *(v.replace("*", "") for v in variants)]
    )


def _check(name: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        CHECKS[name] = check
        return check

    return register


def _compare(count: int, threshold: int, relation: str) -> bool:
    if relation == "less than":
        return count < threshold
    if relation == "at least":
        return count >= threshold
    raise ValueError(f"relation '{relation}'")


@_check("keywords:existence")
def _(answer: str, settings: Settings) -> bool:
    return all(_count(one, answer) for one in settings["keywords"])


@_check("keywords:frequency")
def _(answer: str, settings: Settings) -> bool:
    count = _count(settings["keyword"].strip(), answer)
    return _compare(count, settings["frequency"], settings["relation"])


@_check("keywords:forbidden_words")
def _(answer: str, settings: Settings) -> bool:
    words = settings["forbidden_words"]
    return not any(_count(rf"\b{one}\b", answer) for one in words)


@_check("keywords:letter_frequency")
def _(answer: str, settings: Settings) -> bool:
    count = answer.lower().count(settings["letter"].strip().lower())
    return _compare(count, settings["let_frequency"], settings["let_relation"])


@_check("language:response_language")
def _(answer: str, settings: Settings) -> bool:
    return _language(answer) in (settings["language"], None)


@_check("length_constraints:number_sentences")
def _(answer: str, settings: Settings) -> bool:
    return _compare(_sentences(answer), settings["num_sentences"], settings["relation"])


@_check("length_constraints:number_words")
def _(answer: str, settings: Settings) -> bool:
    words = len(re.findall(r"\w+", answer))
    return _compare(words, settings["num_words"], settings["relation"])


@_check("length_constraints:number_paragraphs")
def _(answer: str, settings: Settings) -> bool:
    """Between lines of three asterisks; an empty one counts at neither end, and fails inside."""
    paragraphs = re.split(r"\s?\*\*\*\s?", answer)
    if not all(one.strip() for one in paragraphs[1:-1]):
        return False
    ends = paragraphs if len(paragraphs) == 1 else [paragraphs[0], paragraphs[-1]]
    empty = sum(not one.strip() for one in ends)
    return bool(len(paragraphs) - empty == settings["num_paragraphs"])


@_check("length_constraints:nth_paragraph_first_word")
def _(answer: str, settings: Settings) -> bool:
    """Empty paragraphs are not counted, but have a place."""
    paragraphs = answer.split("\n\n")
    count = sum(bool(one.strip()) for one in paragraphs)
    place = settings["nth_paragraph"]
    if place > count or not paragraphs[place - 1].strip():
        return False
    word = paragraphs[place - 1].split()[0].lstrip("'").lstrip('"')
    first = re.split(r"[.,?!'\"]", word, maxsplit=1)[0].lower()
    return bool(count == settings["num_paragraphs"] and first == settings["first_word"].lower())


@_check("detectable_content:number_placeholders")
def _(answer: str, settings: Settings) -> bool:
    return len(re.findall(r"\[.*?\]", answer)) >= settings["num_placeholders"]


@_check("detectable_content:postscript")
def _(answer: str, settings: Settings) -> bool:
    marker = settings["postscript_marker"].strip()
    patterns = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}
    return _count(patterns.get(marker, marker), answer) > 0


@_check("detectable_format:number_bullet_lists")
def _(answer: str, settings: Settings) -> bool:
    stars = re.findall(r"^\s*\*[^\*].*$", answer, re.MULTILINE)
    dashes = re.findall(r"^\s*-.*$", answer, re.MULTILINE)
    return bool(len(stars) + len(dashes) == settings["num_bullets"])


@_check("detectable_format:constrained_response")
def _(answer: str, settings: Settings) -> bool:
    return any(f"My answer is {one}." in answer for one in ("yes", "no", "maybe"))


@_check("detectable_format:number_highlighted_sections")
def _(answer: str, settings: Settings) -> bool:
    single = re.findall(r"\*[^\n\*]*\*", answer)
    double = re.findall(r"\*\*[^\n\*]*\*\*", answer)
    texts = [one.strip("*") for one in single]
    texts += [one.removeprefix("**").removesuffix("**") for one in double]
    return sum(bool(one.strip()) for one in texts) >= settings["num_highlights"]


@_check("detectable_format:multiple_sections")
def _(answer: str, settings: Settings) -> bool:
    mark = settings["section_spliter"].strip()  # Spelled so in the data set.
    return _count(rf"(?-i:\s?{mark}\s?\d+\s?)", answer) >= settings["num_sections"]


@_check("detectable_format:json_format")
def _(answer: str, settings: Settings) -> bool:
    text = answer.strip()
    for fence in ("```json", "```Json", "```JSON", "```"):
        text = text.removeprefix(fence)
    try:
        json.loads(text.removesuffix("```").strip())
    except (ValueError, RecursionError):
        return False
    return True


@_check("detectable_format:title")
def _(answer: str, settings: Settings) -> bool:
    titles = re.findall(r"<<[^\n]+>>", answer)
    return any(one.lstrip("<").rstrip(">").strip() for one in titles)


@_check("combination:two_responses")
def _(answer: str, settings: Settings) -> bool:
    parts = [one.strip() for one in answer.split("******")]
    texts = [one for one in parts if one]
    return all(parts[1:-1]) and len(texts) == 2 and texts[0] != texts[1]


@_check("combination:repeat_prompt")
def _(answer: str, settings: Settings) -> bool:
    return answer.strip().lower().startswith(settings["prompt_to_repeat"].strip().lower())


@_check("startend:end_checker")
def _(answer: str, settings: Settings) -> bool:
    return answer.strip().strip('"').lower().endswith(settings["end_phrase"].strip().lower())


@_check("startend:quotation")
def _(answer: str, settings: Settings) -> bool:
    text = answer.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'


@_check("change_case:capital_word_frequency")
def _(answer: str, settings: Settings) -> bool:
    words = (one.strip(string.punctuation) for one in answer.split())
    count = sum(one.isupper() for one in words)
    return _compare(count, settings["capital_frequency"], settings["capital_relation"])


@_check("change_case:english_capital")
def _(answer: str, settings: Settings) -> bool:
    return answer.isupper() and _language(answer) in ("en", None)


@_check("change_case:english_lowercase")
def _(answer: str, settings: Settings) -> bool:
    return answer.islower() and _language(answer) in ("en", None)


@_check("punctuation:no_comma")
def _(answer: str, settings: Settings) -> bool:
    return "," not in answer


def _count(pattern: str, answer: str) -> int:
    """Matches in any case of a pattern from a row: IFEval's keywords are patterns."""
    return run_pattern(
        f"(?i:{pattern})", lambda one, seconds: len(one.findall(answer, timeout=seconds))
    )


_ABBREVIATIONS = re.compile(r"(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|vs|e\.g|i\.e)\.")


def _sentences(answer: str) -> int:
    """Up to a word that a mark ends; initials and usual abbreviations end none."""
    words = [one.rstrip("\"'”’)]*") for one in answer.split()]
    ends = [w.endswith((".", "!", "?", "…")) and not _ABBREVIATIONS.fullmatch(w) for w in words]
    return sum(ends) + (bool(ends) and not ends[-1])


def _language(answer: str) -> str | None:
    """ISO 639-1 code of a text's language; None of one without letters: that follows."""
    try:
        import langdetect
    except ModuleNotFoundError as error:
        raise InputError(
            "instructions about the language of an answer need langdetect",
            where="score",
            hint="pip install 'ingot[instructions]'",
        ) from error
    langdetect.DetectorFactory.seed = 0
    try:
        language: str = langdetect.detect(answer)
    except langdetect.LangDetectException:
        return None
    return language


def judge_instructions(
    answer: str, instructions: Sequence[Instruction]
) -> dict[str, tuple[float, float]]:
    """Numerator and denominator of IFEval's four scores of an answer.

    Of items all of whose instructions are followed (`prompt_…`), and of instructions.
    """
    scores = {}
    for way, check in (("strict", follows), ("loose", follows_loosely)):
        right = [check(answer, one) for one in instructions]
        scores[f"prompt_{way}"] = (float(all(right)), 1.0)
        scores[f"instruction_{way}"] = (float(sum(right)), float(len(right)))
    return scores
