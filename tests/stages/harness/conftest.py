import json
import os

import pytest

ROWS = [
    {"question": "The capital of France is", "choices": ["Paris", "Rome"], "gold": 0},
    {"question": "The sky is", "choices": ["a dictionary", "blue", "hashable keys"], "gold": 1},
    {"question": "Keys are", "choices": ["hashable", "no man"], "gold": 0},
    {"question": "what is the", "choices": ["colour of the sky", "list", "item"], "gold": 0},
    {"question": "say yes or", "choices": ["values", "no"], "gold": 1},
    {"question": "The answer is", "choices": ["blue", "Rome", "Paris"], "gold": 2},
]
SHOTS = [
    {"question": "The capital of Italy is", "choices": ["Rome", "Paris"], "gold": 0},
    {"question": "A dictionary maps", "choices": ["values", "keys"], "gold": 1},
]
TEXTS = [{"text": "A dictionary maps keys to values. " * n} for n in (1, 2, 9)]
CHOICES = """
task: colours
dataset_path: json
dataset_kwargs: {data_files: {test: data/test.jsonl, train: data/shots.jsonl}}
test_split: test
fewshot_split: train
fewshot_config: {sampler: first_n}
output_type: multiple_choice
doc_to_text: "Question: {{question}}\\nAnswer:"
doc_to_choice: choices
doc_to_target: gold
metric_list:
  - {metric: acc, aggregation: mean, higher_is_better: true}
  - {metric: acc_norm, aggregation: mean, higher_is_better: true}
  - {metric: acc_bytes, aggregation: mean, higher_is_better: true}
  - {metric: acc_mutual_info, aggregation: mean, higher_is_better: true}
metadata: {version: 2.0}
"""
ROLLING = """
task: texts
dataset_path: json
dataset_kwargs: {data_files: {test: data/texts.jsonl}}
test_split: test
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{text}}"
metric_list: [{metric: word_perplexity}, {metric: byte_perplexity}, {metric: bits_per_byte}]
metadata: {version: 1}
"""
LAST_WORD = """
task: last_word
dataset_path: json
dataset_kwargs: {data_files: {test: data/test.jsonl}}
test_split: test
output_type: loglikelihood
doc_to_text: "{{question}}"
doc_to_target: " {{choices[gold]}}"
metric_list:
  - {metric: perplexity, aggregation: perplexity, higher_is_better: false}
  - {metric: acc, aggregation: mean, higher_is_better: true}
metadata: {version: 1}
"""
WRITTEN = """
task: written
dataset_path: json
dataset_kwargs: {data_files: {test: data/test.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{choices[gold]}}"
generation_kwargs: {until: [". "], max_gen_toks: 12, do_sample: false}
filter_list:
  - {name: first, filter: [{function: regex, regex_pattern: "(\\\\w+)"}, {function: take_first}]}
  - {name: whole, filter: [{function: take_first}]}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
metadata: {version: 1}
"""
FILES = {
    "colours.yaml": CHOICES, "texts.yaml": ROLLING, "last_word.yaml": LAST_WORD,
    "written.yaml": WRITTEN,
}  # fmt: skip


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


DATA = {
    "data/test.jsonl": lines(ROWS),
    "data/shots.jsonl": lines(SHOTS),
    "data/texts.jsonl": lines(TEXTS),
}


@pytest.fixture(autouse=True)
def environment():
    """What the library sets for its process is taken back."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def snapshot(given):
    """`snapshot({name: text})` → a snapshot of these files."""

    def make(files):
        content = {name: text.encode() for name, text in files.items()}
        listing = {
            "name": "tasks",
            "files": [{"name": n, "bytes": len(b), "sha256": ""} for n, b in content.items()],
        }
        return given(
            "snapshot",
            {"snapshot.json": listing, **{f"files/{name}": b for name, b in content.items()}},
        )

    return make
