"""A task as a file of lm-evaluation-harness, which asks what the task asks; variants as a group.

The templates stay as they are: what they may use means the same there. Names that only Ingot knows
(`item.question`, `item.choices`) are set before them. The harness reads rows from local files,
which the file names by the fields of the task; solved examples are the first of another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from artifacts_schema.errors import UsageError
from stages.examples.task import (
    CLOZE_PROMPT,
    ITEM,
    LETTERS,
    LISTED_PROMPT,
    Free,
    Ranked,
    Task,
    Templates,
)

ITEMS_FILE, EXAMPLES_FILE = "ITEMS.jsonl", "EXAMPLES.jsonl"
"""What a person replaces by the paths of the rows."""


def harness_task(
    task: Task, name: str, shots: int, *, rows: tuple[str, str] = (ITEMS_FILE, EXAMPLES_FILE)
) -> dict[str, Any]:
    """The settings of a formulation, in the harness's words; `rows` are files of items, examples.

    UsageError for what it cannot say: contexts that differ, and examples of the item's own group.
    """
    way = task.way(name)
    where = f"task '{task.name}', {name}"
    if isinstance(way, Ranked) and way.contexts is not None:
        raise UsageError(
            "each choice has a context of its own, which the harness takes from Python alone",
            where=where,
            hint=f"its own task is {way.harness}" if way.harness else None,
        )
    if shots and task.fewshot.match:
        raise UsageError(
            f"examples are those with the same {task.fewshot.match}, which the harness cannot say",
            where=where,
            hint="write it for 0 shots, or split the rows into a file for each",
        )
    settings: dict[str, Any] = {
        "task": f"{task.name}_{name}",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": _data_files(task, shots, rows)},
        "test_split": "items",
        **_fewshot(task, shots),
        "num_fewshot": shots,
        "target_delimiter": way.delimiter,
        "fewshot_delimiter": task.fewshot.separator,
    }
    if way.preamble:
        settings["description"] = way.preamble
    if isinstance(way, Free):
        settings |= _free(task, way)
        if way.answer and shots:
            settings["fewshot_config"]["doc_to_target"] = _with_item(task, way.answer)
    else:
        settings |= _ranked(task, name, way)
    settings["metadata"] = {"version": task.version, "ingot_digest": task.digest}
    return settings


def _data_files(task: Task, shots: int, rows: tuple[str, str]) -> dict[str, str]:
    if shots and not task.fewshot.examples:
        return {"items": rows[0], "examples": rows[1]}
    return {"items": rows[0]}


def _fewshot(task: Task, shots: int) -> dict[str, Any]:
    if not shots:
        return {}
    first = {"sampler": "first_n"}
    if task.fewshot.examples:
        return {"fewshot_config": {**first, "samples": [*task.fewshot.examples]}}
    return {"fewshot_split": "examples", "fewshot_config": first}


def _ranked(task: Task, name: str, way: Ranked) -> dict[str, Any]:
    default = CLOZE_PROMPT if name == "cloze" else LISTED_PROMPT
    prompt = default if way.prompt is None else way.prompt
    assert task.choices is not None
    if way.choices is not None:
        choices = _with_item(task, _as_list(way.choices))
    elif name == "multiple_choice":
        choices = _with_item(task, "{{'" + LETTERS + "'[:item.choices|length]|list}}")
    else:
        choices = _as_list(task.choices)
    answer = task.answer if isinstance(task.answer, int) else str(task.answer)
    return {
        "output_type": "multiple_choice",
        "doc_to_text": _with_item(task, prompt),
        "doc_to_choice": choices,
        "doc_to_target": answer,
        "metric_list": [
            {"metric": metric, "aggregation": "mean", "higher_is_better": True}
            for metric in ("acc", "acc_norm", "acc_bytes")
        ],
    }


def _free(task: Task, way: Free) -> dict[str, Any]:
    references = [way.references] if isinstance(way.references, str) else [*way.references]
    settings: dict[str, Any] = {
        "output_type": "generate_until",
        "doc_to_text": _with_item(task, way.prompt),
        "doc_to_target": _with_item(task, references[0]),
        "generation_kwargs": {
            "until": [*way.stop],
            "max_gen_toks": way.max_new_tokens,
            "do_sample": way.temperature > 0,
            "temperature": way.temperature,
        },
        "repeats": way.samples,
        "metric_list": [_metric(way)],
    }
    filters = [
        {
            "name": rule.name,
            "filter": [
                {
                    "function": "regex",
                    "regex_pattern": rule.pattern,
                    "group_select": 0 if rule.take == "first" else -1,
                },
                {"function": "take_first"},
            ],
        }
        for rule in way.extraction
        if rule.pattern and not rule.boxed
    ]
    if filters:
        settings["filter_list"] = filters
    return settings


def _metric(way: Free) -> dict[str, Any]:
    if way.metric == "exact_match":
        return {
            "metric": "exact_match",
            "aggregation": "mean",
            "higher_is_better": True,
            "ignore_case": way.normalise.case,
            "ignore_punctuation": way.normalise.punctuation,
            "regexes_to_ignore": [*way.normalise.patterns],
        }
    if way.metric == "chrf":
        return {"metric": "chrf", "aggregation": "chrf", "higher_is_better": True}
    # It judges programs and instructions by Python code of its own: only the answers are stored.
    return {"metric": "bypass", "aggregation": "bypass", "higher_is_better": True}


def _as_list(value: Templates) -> str:
    """Templates of a list as one template that writes a Python list, which the harness reads."""
    if isinstance(value, str):
        return value
    names = ", ".join(f"text_{number}" for number in range(len(value)))
    return "".join(map(_capture, range(len(value)), value)) + "{{[" + names + "]}}"


def _capture(number: int, source: str) -> str:
    return f"{{% set text_{number} %}}{source}{{% endset %}}"


def _with_item(task: Task, source: str) -> str:
    """A template, with the names of the item that it reads set before it."""
    before, parts = "", []
    if f"{ITEM}.question" in source:
        before += "{% set item_question %}" + task.question + "{% endset %}"
        parts.append("'question': item_question")
    if f"{ITEM}.choices" in source and task.choices is not None:
        if isinstance(task.choices, str):
            choices = task.choices.strip().removeprefix("{{").removesuffix("}}")
        else:
            before += "".join(map(_capture, range(len(task.choices)), task.choices))
            choices = "[" + ", ".join(f"text_{n}" for n in range(len(task.choices))) + "]"
        parts.append(f"'choices': {choices}")
    if not parts:
        return source
    return f"{before}{{% set {ITEM} = {{{', '.join(parts)}}} %}}{source}"


def harness_group(tasks: Sequence[Task], stem: str, name: str, shots: int) -> dict[str, str]:
    """Texts of a file for each variant of a task, and of their group's, by file name.

    The group's scores are means over all rows. Each variant reads rows of its own.
    """
    import yaml

    files: dict[str, str] = {}
    metrics: dict[str, str] = {}
    members = []
    for task in tasks:
        rows = f"{task.name}.jsonl", f"{task.name}_examples.jsonl"
        settings = harness_task(task, name, shots, rows=rows)
        members.append(settings["task"])
        files[f"{settings['task']}.yaml"] = _yaml(task, name, settings)
        metrics |= {one["metric"]: one["aggregation"] for one in settings["metric_list"]}
    group = {
        "group": f"{stem}_{name}",
        "task": members,
        "aggregate_metric_list": [
            {"metric": metric, "aggregation": "mean", "weight_by_size": True}
            for metric, aggregation in metrics.items()
            if aggregation == "mean"
        ],
        "metadata": {"version": max(task.version for task in tasks)},
    }
    if not group["aggregate_metric_list"]:
        del group["aggregate_metric_list"]
    return {**files, f"_{stem}_{name}.yaml": yaml.safe_dump(group, sort_keys=False)}


def harness_yaml(task: Task, name: str, shots: int) -> str:
    """The file's text."""
    return _yaml(task, name, harness_task(task, name, shots))


def _yaml(task: Task, name: str, settings: dict[str, Any]) -> str:
    import yaml

    head = f"# Task {task.name} of Ingot, version {task.version}, formulation {name}.\n"
    head += "# Put the paths of your rows into data_files; their fields: "
    head += ", ".join(task.fields) + "\n"
    return head + yaml.safe_dump(settings, sort_keys=False, allow_unicode=True, width=100)
