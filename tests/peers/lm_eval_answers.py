"""What lm-evaluation-harness makes of written answers: run by a Python that has it.

Reads a JSON file of questions (`test_lm_eval_answers.py` writes it), prints JSON.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from typing import Any


def extracted(cases: list[Any]) -> list[Any]:
    """`regex` filters on texts."""
    from lm_eval.filters.extraction import RegexFilter

    return [
        RegexFilter(pattern, group_select=-1 if take == "last" else 0).apply([texts], [{}])
        for pattern, take, texts in cases
    ]


def matched(cases: list[Any]) -> list[bool]:
    """`exact_match` with its options, pair by pair."""
    from lm_eval.api.metrics import exact_match_hf_evaluate

    return [
        bool(exact_match_hf_evaluate([answer], [reference], **options)["exact_match"])
        for answer, reference, options in cases
    ]


def votes(cases: list[list[str]]) -> list[str]:
    """`majority_vote` of lists of answers."""
    from lm_eval.filters.selection import MajorityVoteFilter

    return [one[0] for one in MajorityVoteFilter().apply(cases, [{} for _ in cases])]


def overlaps(cases: list[Any]) -> list[float]:
    """sacrebleu's chrF of sentences, which the harness's translation tasks have."""
    import sacrebleu

    return [sacrebleu.sentence_chrf(answer, [one]).score / 100 for answer, one in cases]


def latex(texts: list[str]) -> list[Any]:
    """Each text as Minerva's and as MATH's evaluation normalise it (null: that one failed)."""
    version = importlib.metadata.version
    # Only sympy's parser needs this very version, and nothing is parsed here.
    importlib.metadata.version = lambda name: "4.11" if "antlr4" in name else version(name)
    from lm_eval.tasks.hendrycks_math import utils as math
    from lm_eval.tasks.minerva_math import utils as minerva

    def stripped(text: str) -> str | None:
        try:
            return math.strip_string(text)
        except Exception:  # As its own `is_equiv` does.
            return None

    return [[minerva.normalize_final_answer(text), stripped(text)] for text in texts]


def followed(cases: dict[str, Any]) -> dict[str, list[bool]]:
    """IFEval's instructions on answers, strictly and loosely; kinds that need other data left out.

    NLTK's tokenizer without its sentence model, which would have to be fetched.
    """
    import nltk

    nltk.data.find = lambda *_: None
    from lm_eval.tasks.ifeval import instructions_util, utils
    from nltk.tokenize import NLTKWordTokenizer

    instructions_util.nltk.word_tokenize = NLTKWordTokenizer().tokenize
    judged = {}
    for name, (settings, answers) in cases.items():
        example = utils.InputExample(0, [name], "", [settings])
        try:
            judged[name] = [
                [
                    utils.test_instruction_following_strict(example, one).follow_all_instructions,
                    utils.test_instruction_following_loose(example, one).follow_all_instructions,
                ]
                for one in answers
            ]
        except (LookupError, AttributeError, ModuleNotFoundError) as error:
            print(f"{name}: {type(error).__name__} {error}"[:200], file=sys.stderr)
    return judged


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        questions = json.load(file)
    asked = {one.__name__: one for one in (extracted, matched, votes, overlaps, latex, followed)}
    print(json.dumps({name: asked[name](value) for name, value in questions.items()}))
