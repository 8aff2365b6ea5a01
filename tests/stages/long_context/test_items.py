"""What items hold: lengths, depths, templates, and who answers them."""

import json
import re
from collections import Counter
from typing import get_args

import pytest
from hypothesis import given as forall
from hypothesis import strategies as st

from stages.evaluate.judging import judge_answers
from stages.long_context.config import QUESTIONS, Family, LongContextConfig
from stages.long_context.families import (
    NIAH,
    Draws,
    Setting,
    answer_tokens,
    has_depth,
    make_problem,
)
from stages.long_context.items import (
    TokenCounter,
    describe_tasks,
    largest_size,
    make_item,
    split_sentences,
)
from stages.scoring.answers import Answer, Judge, string_match_all

SENTENCES = tuple(f"Visitor {n} kept a record of the weather." for n in range(500))
FAMILIES = tuple(one for one in get_args(Family) if one not in QUESTIONS)

# RULER's templates with their answer prefixes (scripts/data/synthetic/constants.py, c3f5e3b).
RULER_NIAH = (
    "Some special magic {type_needle_v} are hidden within the following text. Make sure to "
    "memorize it. I will quiz you about the {type_needle_v} afterwards.\n{context}\nWhat are all "
    "the special magic {type_needle_v} for {query} mentioned in the provided text?"
    " The special magic {type_needle_v} for {query} mentioned in the provided text are"
)
RULER_VT = (
    "Memorize and track the chain(s) of variable assignment hidden in the following text.\n\n"
    "{context}\nQuestion: Find all variables that are assigned the value {query} in the text above."
    " Answer: According to the chain(s) of variable assignment in the text above, {num_v} variables"
    " are assigned the value {query}, they are: "
)


@pytest.fixture(scope="module")
def items(word_tokenizer):
    """`items(family, length, count, sentences=…, **config)` → rows."""
    word_tokenizer.encode_special_tokens = True
    counter = TokenCounter(word_tokenizer)

    def make(family, length, count, sentences=SENTENCES, **config):
        settings = LongContextConfig(**config)
        return [make_item(family, length, n, counter, sentences, settings) for n in range(count)]

    return make


def free(row):
    (request,) = [one for one in row["requests"] if one["formulation"] == "free"]
    return request["prompt"], request["references"]


def read_answer(family, prompt):
    """What a reader answers who misses nothing: from the prompt alone."""
    if family == "vt":
        text = prompt.rsplit("Memorize and track", 1)[1]
        value = re.search(r"assigned the value (\d+) in the text", text).group(1)
        held = {re.search(rf"VAR (\w+) = {value}\b", text).group(1)}
        for _ in range(9):
            held |= {a for a, b in re.findall(r"VAR (\w+) = VAR (\w+)", text) if b in held}
        return " ".join(sorted(held))
    if family == "cwe":
        listed = prompt.rsplit("Below is a numbered list", 1)[1].split("\nQuestion")[0]
        counts = Counter(re.findall(r"\d+\. ([a-z-]+)", listed))
        return " ".join(word for word, _ in counts.most_common(10))
    if family == "fwe":
        words = prompt.split("coded words. ", 1)[1].split("\nQuestion")[0].split()
        counts = Counter(word for word in words if word != "...")
        return " ".join(word for word, _ in counts.most_common(3))
    values = re.findall(r"special magic \w+ for ([\w-]+) is: ([\w-]+)\.", prompt)
    asked = re.search(r"What (?:is|are all) the special magic \w+ for (.*?) mentioned", prompt)
    keys = re.split(r", and |, ", asked.group(1))
    return " ".join(value for key in keys for name, value in values if name == key)


def pick(row, answer):
    """The choice that shares most with what a reader answers."""
    words = set(answer.split())
    shares = [len(words & set(re.findall(r"[\w-]+", choice))) for choice in row["choices"]]
    return shares.index(max(shares))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("length", [1024, 4096])
def test_a_perfect_reader_is_right_and_a_blind_one_by_chance(items, family, length):
    rows = items(family, length, 3)
    tasks = describe_tasks(LongContextConfig(lengths=(length,)))
    for row in rows:
        prompt, references = free(row)
        answer = read_answer(family, prompt)
        assert string_match_all(answer, references) == 1.0
        assert string_match_all("no idea", references) == 0.0
        assert len(set(references)) == len(references)
        assert len(set(row["choices"])) == len(row["choices"]) == 4
        assert pick(row, answer) == row["answer"]
        judge = Judge.from_task({task["name"]: task for task in tasks}[row["benchmark"]])
        written = Answer(
            row["benchmark"], row["item_id"], "free", 0, 0, "", answer, (), "end",
            tuple(references), False,
        )  # fmt: skip
        (judged,) = judge_answers([written], {row["benchmark"]: judge}, {})
        assert (judged.metric, judged.value) == ("string_match_all", 1.0)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_place_of_the_right_choice_says_nothing(family):
    setting = Setting(1024, None, 4, SENTENCES)
    problems = [make_problem(family, Draws(n), 140, setting) for n in range(400)]
    counts = Counter(problem.answer for problem in problems)
    for place in range(4):  # 400 draws of 1 in 4: 100, standard deviation 8.7.
        assert abs(counts[place] - 100) < 4 * 8.7


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("length", [1024, 1500, 4096])
def test_an_item_fills_its_length_up_to_one_unit_of_haystack(items, word_tokenizer, family, length):
    (row,) = items(family, length, 1)
    prompt, _ = free(row)
    facts = json.loads(row["metadata"])
    own = len(word_tokenizer.encode(prompt, add_special_tokens=False).ids)
    longest = max(
        len(word_tokenizer.encode(one, add_special_tokens=False).ids) for one in row["choices"]
    )
    assert facts["tokens"] == 1 + own + max(answer_tokens(family), longest)
    # A paragraph of noise or a needle has up to 60 tokens here, a word of `cwe` is there 3 times.
    assert length - 60 < facts["tokens"] <= length


@forall(
    st.lists(st.integers(1, 50), min_size=1, max_size=200),
    st.integers(1, 20),
    st.integers(1, 4000),
)
def test_the_largest_size_fits_and_the_next_does_not(steps, least, most):
    def tokens(size):
        whole, rest = divmod(size, len(steps))
        return whole * sum(steps) + sum(steps[:rest])

    size = largest_size(tokens, least, most)
    if size is None:
        assert tokens(least) > most
    else:
        assert size >= least
        assert tokens(size) <= most < tokens(size + 1)


@pytest.mark.parametrize("family", [one for one in FAMILIES if has_depth(one)])
def test_the_needle_that_is_asked_for_lies_at_the_stated_depth(items, family):
    depths = (0, 10, 50, 100)
    for row, depth in zip(items(family, 2048, 4, depths=depths), depths, strict=True):
        prompt, (value,) = free(row)
        facts = json.loads(row["metadata"])
        assert facts["depth"] == depth
        context = prompt.split("afterwards.\n", 1)[1].split("\nWhat is")[0]
        if facts["haystack"] == "documents":
            units = re.split(r"(?<=[.])\s", context)
        else:
            units = context.split("\n")
        hidden = [n for n, unit in enumerate(units) if "special magic" in unit]
        (place,) = [n for n in hidden if value in units[n]]
        others = 0 if facts["haystack"] == "needles" else sum(n < place for n in hidden)
        assert place - others == round(depth / 100 * facts["size"])
        assert len(units) == facts["size"] + NIAH[family].hidden


def test_prompts_are_those_of_ruler():
    setting = Setting(2048, 50, 4)
    problem = make_problem("niah_single_1", Draws("a"), 2, setting)
    context = problem.prompt.split("afterwards.\n")[1].split("\nWhat is")[0]
    key = re.search(r"numbers for ([\w-]+) is", context).group(1)
    template = RULER_NIAH.replace("Some", "A").replace("are all", "is").replace("are", "is")
    assert problem.prompt == template.format(type_needle_v="number", context=context, query=key)
    noise = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back "
    needle = f"One of the special magic numbers for {key} is: {problem.references[0]}."
    assert context == "\n".join([f"{noise}again.", needle, f"{noise}again."])
    assert re.fullmatch(r"[1-9]\d{6}", problem.references[0])

    several = make_problem("niah_multiquery", Draws("a"), 9, setting)
    context = several.prompt.split("afterwards.\n")[1].split("\nWhat are")[0]
    query = re.search(r"numbers for (.*) mentioned in the provided text\?", several.prompt).group(1)
    assert len(re.fullmatch(r"(\S+), (\S+), (\S+), and (\S+)", query).groups()) == 4
    assert several.prompt == RULER_NIAH.format(
        type_needle_v="numbers", context=context, query=query
    )

    chain = make_problem("vt", Draws("a"), 6, setting)
    context = chain.prompt.split("text.\n\n")[1].split("\nQuestion")[0]
    value = re.search(r"VAR \w+ = (\d{5})\n", context).group(1)
    assert chain.prompt == RULER_VT.format(context=context, query=value, num_v=5)
    assert context.count(" = ") == 5


def test_draws_do_not_depend_on_how_many_items_there_are(items):
    assert items("niah_multikey_1", 1024, 3, items=3) == items("niah_multikey_1", 1024, 3, items=9)
    first, second = (items("niah_single_1", 1024, 1, seed=seed) for seed in (0, 1))
    assert first[0]["requests"] != second[0]["requests"]


def test_sentences_are_cut_at_their_ends_and_long_ones_left_out():
    text = f"One is\nshort.  Is two? {'x' * 401}. 三つ目です。四つ目です。 last"
    assert split_sentences(text) == [
        "One is short.",
        "Is two?",
        "三つ目です。",
        "四つ目です。",
        "last",
    ]


def test_string_match_counts_references_that_an_answer_holds():
    assert string_match_all("They are ABC, and def.", ["abc", "DEF", "ghi", "bcd"]) == 0.5
    with pytest.raises(ValueError, match="reference"):
        string_match_all("any", [])
