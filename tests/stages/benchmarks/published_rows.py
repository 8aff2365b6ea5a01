"""Rows in the schemas that data sets publish: rebuilt from real data, or made by hand.

Twenty facts, written for these tests, with what breaks prompts: white space at both ends, braces,
quotes, backslashes, digits alone, brackets, doubled spaces, other scripts. Each schema takes of a
fact what it has. Nothing of a published data set is in this file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Row = dict[str, Any]

FACTS: list[tuple[str, str, str, str, str]] = [
    ("Which of these floats on water?", "a cork", "a nail", "a brick", "an anvil"),
    (" What is 6 × 7? ", "42", "36", "48", "13"),
    ("Which letter follows 'ü' in the list [ä, ö, ü]?", "none", "ä", "ö", "\"ü\""),
    ("A kettle whistles when", "the water boils", "it is empty", "the lid is off", "it is cold"),
    ("What does {{name}} stand for in a template?", "a field", "a name", "{braces}", "nothing"),
    ("Which path is on Windows?", "C:\\temp", "/tmp", "~/tmp", "tmp:"),
    ("Wie viele Beine hat eine Spinne?", "acht", "sechs", "vier", "zehn"),
    ("Which  gap   has two spaces?", "the first", "the  second", "neither", "both"),
    ("Was the bridge built before 1900", "yes", "no", "unknown", "1900"),
    ("猫は何と鳴きますか。", "ニャー", "ワン", "モー", "コケコッコー"),
    ("What does this print?\n\n    print('a' + 'b')", "ab", "a b", "'ab'", "an error"),
    ("How do you keep bread fresh?", "Wrap it.", "Wash it.", "Paint it.", "Sing to it."),
    ("If x = 3 and y = x - 5, what is |y|?", "2", "-2", "8", "3"),
    ("Which of 'A', 'B' and 'C' is a vowel?", "A", "B", "C", "all"),
    ("She said: \"I'll be late.\" What will she be?", "late", "early", "'ill'", "on time"),
    ("Когда тает снег?", "весной", "зимой", "осенью", "никогда"),
    ("What costs $5 when 10% is taken off of $5.56?", "a lunch", "a car", "$0", "100%"),
    ("Which step [title] comes first? [step] Mix.", "[header] Mix", "[a] Bake", "Eat [b]", "Cut"),
    ("Is </s> or <|im_end|> a word?", "neither", "</s>", "<|im_end|>", "both"),
    ("मछली कहाँ रहती है?", "पानी में", "पेड़ पर", "रेत में", "हवा में"),
]  # fmt: skip
"""Question, right answer, three wrong ones."""

ORDERS = ((0, 1, 2, 3), (1, 0, 3, 2), (2, 3, 0, 1), (3, 1, 2, 0))


def placed(number: int) -> tuple[str, list[str], int]:
    """The question, its choices in an order that varies, and the place of the right one."""
    question, *choices = FACTS[number]
    order = ORDERS[number % 4]
    return question, [choices[place] for place in order], order.index(0)


def labelled(choices: list[str], letters: str = "ABCDE") -> Row:
    """Choices as ARC has them."""
    return {"text": choices, "label": list(letters[: len(choices)])}


def arc(number: int) -> Row:
    question, choices, answer = placed(number)
    labels = labelled(choices, "1234" if number % 5 == 0 else "ABCD")
    return {
        "id": f"arc-{number}", "question": question, "choices": labels,
        "answerKey": labels["label"][answer],
    }  # fmt: skip


def mmlu(number: int) -> Row:
    question, choices, answer = placed(number)
    subject = ("abstract_algebra", "us_foreign_policy")[number % 2]
    return {"question": question, "subject": subject, "choices": choices, "answer": answer}


def mmlu_pro(number: int) -> Row:
    question, choices, answer = placed(number)
    options = [*choices, *(f" option {n}" for n in range(number % 7))]
    return {
        "question_id": 70 + number, "question": question, "options": options,
        "answer": "ABCD"[answer], "answer_index": answer, "category": "computer science",
        "cot_content": f"A: Let's think step by step. It is {choices[answer]}. "
        f"The answer is ({'ABCD'[answer]}).",
        "src": "own",
    }  # fmt: skip


def hellaswag(number: int) -> Row:
    question, choices, answer = placed(number)
    return {
        "ind": number, "activity_label": "Doing [x] things", "ctx_a": question,
        "ctx_b": "" if number % 3 else "then she [sub] says", "ctx": question,
        "endings": [f"{choice}  [step] and so on. [title] More" for choice in choices],
        "source_id": f"own~{number}", "split": "val", "split_type": "indomain",
        "label": str(answer),
    }  # fmt: skip


def winogrande(number: int) -> Row:
    right = number % 2
    names = (FACTS[number][1], FACTS[number][2])
    gap = "was glad _ ." if number == 7 else "was glad."
    return {
        "sentence": f"The sentence number {number} says that _ {gap} ",
        "option1": names[right], "option2": names[1 - right], "answer": str(1 + right),
    }  # fmt: skip


def commonsense_qa(number: int) -> Row:
    question, choices, answer = placed(number)
    return {
        "id": f"csqa-{number}", "question": question, "question_concept": "thing",
        "choices": labelled([*choices, "none of them"]), "answerKey": "ABCDE"[answer],
    }  # fmt: skip


def openbookqa(number: int) -> Row:
    question, choices, answer = placed(number)
    return {
        "id": f"obqa-{number}", "question_stem": question, "choices": labelled(choices),
        "answerKey": (" " if number % 4 == 0 else "") + "ABCD"[answer],
    }  # fmt: skip


def piqa(number: int) -> Row:
    goal, choices, answer = placed(number)
    solutions = [choices[answer], choices[answer - 1]]
    right = number % 2
    return {"goal": goal, "sol1": solutions[right], "sol2": solutions[1 - right], "label": right}


def siqa(number: int) -> Row:
    question, choices, answer = placed(number)
    three = [choices[answer], *(one for n, one in enumerate(choices) if n != answer)][:3]
    turn = number % 3
    turned = three[-turn:] + three[:-turn] if turn else three
    return {
        "context": f"Context {number}.", "question": question, "answerA": turned[0],
        "answerB": turned[1], "answerC": turned[2], "label": str(1 + turn),
    }  # fmt: skip


def boolq(number: int) -> Row:
    question, choices, answer = placed(number)
    return {
        "question": question.strip().rstrip("?"), "passage": f"A passage. {choices[answer]}.",
        "idx": number, "label": number % 2,
    }  # fmt: skip


def copa(number: int) -> Row:
    question, choices, answer = placed(number)
    right = number % 2
    pair = [f"It was {choices[answer]}.", f"Nobody saw {choices[answer - 1]}."]
    return {
        "premise": f"{question.strip()} ", "choice1": pair[right], "choice2": pair[1 - right],
        "question": ("cause", "effect")[number // 2 % 2], "idx": number, "label": right,
        "changed": False,
    }  # fmt: skip


def truthfulqa(number: int) -> Row:
    question, right, *wrong = FACTS[number]
    return {
        "question": question,
        "mc1_targets": {"choices": [right, *wrong], "labels": [1, 0, 0, 0]},
        "mc2_targets": {"choices": [right, f"I think {right}", *wrong], "labels": [1, 1, 0, 0, 0]},
    }


def lambada(number: int) -> Row:
    question, right, *_ = FACTS[number]
    return {"text": f"{question} He thought  of it, and said {right.split()[-1]}", "domain": None}


def gsm8k(number: int) -> Row:
    return {
        "question": FACTS[number][0],
        "answer": f"It is {number}*3=<<{number}*3={3 * number}>>{3 * number}.\n#### {3 * number:,}",
    }


def math(number: int) -> Row:
    answers = ("7", "\\frac{1}{2}", "(0, \\infty)", "x^{2} + {y}", "\\sqrt{2^{n_{k}}}")
    return {
        "problem": FACTS[number][0], "level": "Level 1", "type": "Algebra",
        "solution": f"First $\\boxed{{wrong}}$ is no answer.\nSo ${{a}}$ is "
        f"$\\boxed{{{answers[number % 5]}}}$. It follows {{from}} above.",
    }  # fmt: skip


def humaneval(number: int) -> Row:
    return {
        "task_id": f"Own/{number}", "entry_point": f"f{number}",
        "prompt": f"def f{number}(x: int) -> int:\n    \"\"\" Add {number}. {{x}} \"\"\"\n",
        "canonical_solution": f"    return x + {number}\n",
        "test": f"\n\ndef check(candidate):\n    assert candidate(1) == {number + 1}\n",
    }  # fmt: skip


def mbpp(number: int) -> Row:
    return {
        "task_id": 600 + number, "text": f"Write a function to add {number} {{n}}.",
        "code": f"def add(x):\r\n  return x + {number}",
        "test_list": [f"assert add({n}) == {n + number}" for n in range(3)],
        "test_setup_code": "", "challenge_test_list": [],
    }  # fmt: skip


def ifeval(number: int) -> Row:
    kinds = ("punctuation:no_comma", "length_constraints:number_words")
    arguments = {"num_words": 10 + number, "relation": "at least"}
    return {
        "key": 1000 + number, "prompt": f"{FACTS[number][0]} Answer without commas.",
        "instruction_id_list": list(kinds[: 1 + number % 2]),
        "kwargs": [dict.fromkeys(arguments), arguments][: 1 + number % 2],
    }  # fmt: skip


def xnli(number: int) -> Row:
    question, right, *_ = FACTS[number]
    return {"premise": question, "hypothesis": f"{right} it is", "label": number % 3}


def xstorycloze(number: int) -> Row:
    question, right, wrong, *_ = FACTS[number]
    sentences = {f"input_sentence_{n}": f"{n}: {question}" for n in range(1, 5)}
    pair = [right, wrong] if number % 2 == 0 else [wrong, right]
    return {
        "story_id": f"story-{number}", **sentences, "sentence_quiz1": pair[0],
        "sentence_quiz2": pair[1], "answer_right_ending": 1 + number % 2,
    }  # fmt: skip


def belebele(number: int) -> Row:
    question, choices, answer = placed(number)
    answers = {f"mc_answer{n + 1}": choice for n, choice in enumerate(choices)}
    return {
        "link": f"https://example.org/{number}", "question_number": 1 + number % 2,
        "flores_passage": f"A passage about {choices[answer]}.", "question": question, **answers,
        "correct_answer_num": str(answer + 1), "dialect": "eng_Latn", "ds": "2023-05-03",
    }  # fmt: skip


LANGUAGES = ("eng", "spa", "cat", "eus", "deu", "fra", "glg", "ita", "por")


def flores(number: int) -> Row:
    sentences = {f"sentence_{code}_Latn": f"{code}: {FACTS[number][0]}" for code in LANGUAGES}
    return {"id": number, "URL": "https://example.org", "domain": "own", **sentences}


SCHEMAS: dict[str, Callable[[int], Row]] = {
    "arc_easy": arc, "arc_challenge": arc, "mmlu": mmlu, "mmlu_pro": mmlu_pro,
    "hellaswag": hellaswag, "winogrande": winogrande, "commonsense_qa": commonsense_qa,
    "openbookqa": openbookqa, "piqa": piqa, "siqa": siqa, "boolq": boolq, "copa": copa,
    "truthfulqa_mc1": truthfulqa, "truthfulqa_mc2": truthfulqa, "lambada": lambada, "gsm8k": gsm8k,
    "math": math, "humaneval": humaneval, "mbpp": mbpp, "ifeval": ifeval, "xnli": xnli,
    "xcopa": copa, "xstorycloze": xstorycloze, "belebele": belebele, "flores": flores,
}  # fmt: skip
"""Stem of a task file → a row of its data set's schema, of a fact's number."""


def made_rows(stem: str) -> list[Row]:
    """Twenty rows in the schema of a data set."""
    return [SCHEMAS[stem](number) for number in range(len(FACTS))]


def _arc(row: Row) -> Row:
    letters = "ABCDE"[: len(row["choices"])]
    return {
        "id": row["id"], "question": row["question"].removeprefix("Question: "),
        "choices": labelled(row["choices"], letters), "answerKey": letters[row["gold"]],
    }  # fmt: skip


def _winogrande(row: Row) -> Row | None:
    first, second = row["context_options"]
    words = first.split(" "), second.split(" ")
    shared = 0
    while words[0][shared : shared + 1] == words[1][shared : shared + 1] != []:
        shared += 1
    before = "".join(word + " " for word in words[0][:shared])
    options = [" ".join(part[shared:]) for part in words]
    if "_" in before or not all(options):
        return None
    return {
        "sentence": f"{before}_ {row['continuation']}", "option1": options[0],
        "option2": options[1], "answer": str(row["gold"] + 1),
    }  # fmt: skip


def _boolq(row: Row) -> Row | None:
    match = re.fullmatch(r"(?s)Passage: (.*)\nQuestion: (.*)\?", row["question"])
    if match is None:
        return None
    return {"passage": match[1], "question": match[2], "idx": 0, "label": row["gold"]}


def _copa(row: Row) -> Row | None:
    match = re.fullmatch(r"(.*), (because|therefore)", row["question"])
    if match is None:
        return None
    first, second = (choice[0].upper() + choice[1:] for choice in row["choices"])
    return {
        "premise": f"{match[1]}.", "choice1": first, "choice2": second, "idx": 0,
        "question": {"because": "cause", "therefore": "effect"}[match[2]], "label": row["gold"],
    }  # fmt: skip


def _hellaswag(row: Row) -> Row:
    label, _, context = row["context"].partition(": ")
    return {
        "ind": 0, "activity_label": label, "ctx_a": context, "ctx_b": "", "ctx": context,
        "endings": row["choices"], "source_id": "", "split": "val", "split_type": "indomain",
        "label": str(row["gold"]),
    }  # fmt: skip


def _stem_of_book(row: Row) -> Row:
    labels = labelled(row["choices"])
    return {
        "id": row["id"], "question_stem": row["question"], "choices": labels,
        "answerKey": labels["label"][row["gold"]],
    }  # fmt: skip


def _piqa(row: Row) -> Row:
    goal = row["question"].removeprefix("Question: ")
    first, second = row["choices"]
    return {"goal": goal, "sol1": first, "sol2": second, "label": row["gold"]}


def _mmlu(row: Row) -> Row:
    return {
        "question": row["question"], "subject": row["subject"], "choices": row["choices"],
        "answer": row["gold"],
    }  # fmt: skip


REBUILT: dict[str, tuple[str, Callable[[Row], Row | None]]] = {
    "arc_easy": ("arc_easy", _arc),
    "arc_challenge": ("arc_challenge", _arc),
    "mmlu": ("mmlu-test", _mmlu),
    "hellaswag": ("hellaswag", _hellaswag),
    "winogrande": ("winogrande", _winogrande),
    "commonsense_qa": ("commonsenseqa", _arc),
    "openbookqa": ("openbookqa", _stem_of_book),
    "piqa": ("piqa", _piqa),
    "boolq": ("boolq", _boolq),
    "copa": ("copa", _copa),
    "lambada": ("lambada", lambda row: {"text": f"{row['context']} {row['continuation']}"}),
    "gsm8k": ("gsm8k-test", lambda row: {key: row[key] for key in ("question", "answer")}),
    "math": ("math", lambda row: {"problem": row["question"], "solution": row["solution"]}),
    "humaneval": ("humaneval", dict),
}
"""Stem of a task file → a file of real data, and how a row of it was published."""
