"""The data card: what a data set holds, how it was made, what was done about what it may hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from artifacts_schema.identity import short
from artifacts_schema.manifest import Manifest
from stages.export.config import DatasetConfig
from stages.export.dataset_files import MISSING, OPTED_OUT, OTHER_LICENCE
from stages.export.provenance import TrainingData, treatment_lines

_MOST = 12
"""Values of a kind that are named; the rest are counted."""
_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"),
          (10**7, "1M<n<10M"), (10**8, "10M<n<100M"), (10**9, "100M<n<1B"))  # fmt: skip
_REASONS = {
    OPTED_OUT: "the page is marked against use for AI",
    OTHER_LICENCE: "the page names no licence that was asked for",
}


def dataset_card(
    config: DatasetConfig,
    facts: Mapping[str, Any],
    steps: Sequence[Manifest],
    described: Sequence[TrainingData],
) -> str:
    """`README.md`: YAML front matter as the Hub reads it, then sections for people."""
    sections = [
        _front_matter(config, facts),
        f"# {config.name}\n\n{describe(config)}",
        _contents(config, facts),
        _funnel(steps, facts),
        _measures(facts, described),
        _licences(config, facts),
        _use(config, facts),
    ]
    return "\n\n".join(sections) + "\n"


def describe(config: DatasetConfig) -> str:
    """What the data set is, in words of its publisher where there are some."""
    return config.description or "Documents of an Ingot pipeline, filtered and without copies."


def _front_matter(config: DatasetConfig, facts: Mapping[str, Any]) -> str:
    """Every source is a configuration; `default` holds all."""
    from huggingface_hub import DatasetCardData

    folders = {one["name"]: f"data/{one['name']}/*.parquet" for one in facts["sources"].values()}
    configs = [
        {
            "config_name": "default",
            "default": True,
            "data_files": [{"split": "train", "path": list(folders.values())}],
        },
        *(
            {
                "config_name": name,
                "data_files": [{"split": "train", "path": path}],
            }
            for name, path in folders.items()
            if name != "default"
        ),
    ]
    documents = sum(one["documents"] for one in facts["sources"].values())
    data = DatasetCardData(
        language=list(config.languages) or None,
        license=config.license,
        pretty_name=config.name,
        size_categories=[next((name for most, name in _SIZES if documents < most), "n>1B")],
        task_categories=["text-generation"],
        tags=["ingot"],
        configs=configs,
    )
    return f"---\n{data.to_yaml().strip()}\n---"


def _contents(config: DatasetConfig, facts: Mapping[str, Any]) -> str:
    lines = [
        "| source | documents | bytes of text | files | languages |",
        "|---|---:|---:|---:|---|",
    ]
    for source, one in facts["sources"].items():
        numbers = f"{one['documents']:,} | {one['bytes']:,} | {len(one['files']):,}"
        lines.append(f"| {_cell(source)} | {numbers} | {_named(one['languages'])} |")
    columns = (
        "Each row has `id`, `text`, `source`, `url`, `date`, `title`, `language`, `licence`, "
        "`snapshot` and `metadata` (JSON text). Languages are those that documents declare."
    )
    return "\n".join(["## Contents\n", *lines, "", columns])


def _funnel(steps: Sequence[Manifest], facts: Mapping[str, Any]) -> str:
    lines = ["| step | in | out | left out |", "|---|---:|---:|---|"]
    for step in steps:
        if (account := step.conservation) is None:
            continue
        name = f"{step.stage} `{short(step.key)}`"
        lines.append(
            f"| {name} | {account.records_in:,} | {account.out:,} | {_named(account.dropped)} |"
        )
    out = sum(one["documents"] for one in facts["sources"].values())
    left = facts["left_out"]
    lines.append(f"| this data set | {out + sum(left.values()):,} | {out:,} | {_named(left)} |")
    note = "Records of each step above; a step that reads several outputs counts those of all."
    return "\n".join(["## How it was made\n", *lines, "", note])


def _measures(facts: Mapping[str, Any], described: Sequence[TrainingData]) -> str:
    lines = list(dict.fromkeys(line for one in described for line in treatment_lines(one)))
    if facts["pages"]:
        count = facts["left_out"].get(OPTED_OUT, 0)
        lines.append(
            f"- Opt-outs: {count:,} documents were left out because {_REASONS[OPTED_OUT]} "
            "(`noai`, TDM reservation and the like)."
        )
    else:
        lines.append("- Opt-outs: what pages say of use for AI was not looked at here.")
    return "\n".join(["## Personal data, benchmarks, opt-outs\n", *lines])


def _licences(config: DatasetConfig, facts: Mapping[str, Any]) -> str:
    parts = [
        f"The collection is published under `{config.license}`."
        if config.license
        else "No licence of the collection was stated: to be filled in by the provider."
    ]
    parts.append("Each document stays under the terms of its own page.")
    if not facts["pages"]:
        parts.append("Licences that pages name were not looked at.")
        return "## Licences\n\n" + " ".join(parts)
    lines = ["", "| source | licence that pages name: documents |", "|---|---|"]
    lines += [
        f"| {_cell(source)} | {_named(one['licences'])} |"
        for source, one in facts["sources"].items()
    ]
    return "## Licences\n\n" + " ".join(parts) + "\n" + "\n".join(lines)


def _use(config: DatasetConfig, facts: Mapping[str, Any]) -> str:
    source = next(iter(facts["sources"].values()))["name"]
    return f"""## Use

```python
from datasets import load_dataset

everything = load_dataset("{config.name}", split="train")
one_source = load_dataset("{config.name}", "{source}", split="train")
```

Made with Ingot. `dataset.json` holds the full names of the artifacts that it was made of."""


def _named(counts: Mapping[str, int]) -> str:
    """`en 1,200, de 30, and 4 more`, most frequent first."""
    ordered = sorted(counts.items(), key=lambda pair: (pair[0] == MISSING, -pair[1], pair[0]))
    names = [f"{_cell(name)} {count:,}" for name, count in ordered[:_MOST]]
    rest = len(ordered) - _MOST
    return ", ".join(names) + (f", and {rest} more" if rest > 0 else "") if names else "–"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
