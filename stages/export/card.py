"""The model card: what the model is, what it scored and how surely, where it came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from artifacts_schema.identity import short
from stages.export.architecture import architecture
from stages.model.config import ModelConfig
from stages.model.huggingface import family_of

if TYPE_CHECKING:
    from stages.engine import Input
    from stages.export.stage import ExportConfig
    from stages.export.verify import Verification

Row = Mapping[str, Any]

HIGHER_IS_BETTER = ("accuracy", "accuracy_by_bytes")
PIPELINE = "planted/"


@dataclass(frozen=True)
class Evaluation:
    """An evaluation as the card shows it."""

    stage: str
    key: str
    results: tuple[Row, ...]
    generations: tuple[Row, ...]

    @classmethod
    def read(cls, given: Input) -> Evaluation:
        """The tables of an evaluation output."""
        return cls(
            given.stage,
            given.key,
            tuple(given.read_table("results.parquet").to_pylist()),
            tuple(given.read_table("generations.parquet").to_pylist()),
        )


def model_card(
    release: ExportConfig,
    model: ModelConfig,
    lineage: Mapping[str, Any],
    evaluations: Sequence[Evaluation],
    verified: Verification,
) -> str:
    """`README.md`: YAML front matter as the Hub reads it, then sections for people."""
    sections = [
        front_matter(release, evaluations),
        f"# {release.name}\n\n{release.description}",
        f"## Architecture\n\n{architecture(model)}",
        _use(release, model, verified, lineage["state"].get("chat_template")),
        *(_evaluation(evaluation) for evaluation in evaluations),
        _limits(model, evaluations),
        _lineage(lineage),
    ]
    return "\n\n".join(sections) + "\n"


def front_matter(release: ExportConfig, evaluations: Sequence[Evaluation]) -> str:
    """The YAML head, by `huggingface_hub`; scores of the model in its `model-index`."""
    from huggingface_hub import EvalResult, ModelCardData

    scores = [
        EvalResult(
            task_type="text-generation",
            dataset_type="ingot",
            dataset_name=row["benchmark"],
            metric_type=row["metric"],
            metric_value=round(row["value"], 6),
        )
        for evaluation in evaluations
        for row in _of_model(evaluation)
    ]
    data = ModelCardData(
        language=list(release.languages) or None,
        license=release.license,
        library_name="transformers",
        pipeline_tag="text-generation",
        tags=["ingot"],
        model_name=release.name if scores else None,
        eval_results=scores or None,
    )
    return f"---\n{data.to_yaml().strip()}\n---"


def at_chance(row: Row) -> bool:
    """Whether a score is no better than its baseline by two standard errors."""
    if row["baseline"] is None:
        return False
    gain = row["value"] - row["baseline"]
    if row["metric"].removesuffix("_clean") not in HIGHER_IS_BETTER:
        gain = -gain
    return bool(gain <= 2 * (row["standard_error"] or 0.0))


def results_table(rows: Sequence[Row]) -> str:
    """A Markdown table of scores with their standard errors."""
    lines = [
        "| benchmark | metric | value | standard error | baseline | count |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        numbers = [_number(row[name]) for name in ("value", "standard_error", "baseline")]
        cells = [_cell(row["benchmark"]), row["metric"], *numbers, f"{row['count']:,}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _use(
    release: ExportConfig,
    model: ModelConfig,
    verified: Verification,
    template: Mapping[str, Any] | None,
) -> str:
    family = family_of(model)
    register = f"import {family.register}  # of Ingot\n" if family.register else ""
    needs = (
        f"No native class expresses this model: `{family.architecture}` comes with Ingot, which"
        " must be installed. No remote code is needed. Before this folder was released, a fresh"
        if family.register
        else f"`{family.architecture}` loads it; no remote code is needed. Before this folder was"
        " released, a fresh"
    )
    return f"""## Use

```python
{register}from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{release.name}")
model = AutoModelForCausalLM.from_pretrained("{release.name}")
{_prompt(template)}
print(tokenizer.decode(model.generate(**prompt, max_new_tokens=64)[0]))
```

{needs} process with `torch`
{verified.torch} and `transformers` {verified.transformers} loaded it: the logits of
{verified.probe_tokens} tokens are the training model's within {verified.logit_difference:.1e};
token ids and chat template are equal.

{chat_template_sentence(template)}"""


def _prompt(template: Mapping[str, Any] | None) -> str:
    """Code that makes `prompt`, by the chat template where there is one."""
    if template is None:
        return 'prompt = tokenizer("Once upon a time", return_tensors="pt")'
    return """messages = [{"role": "user", "content": "Hello"}]
prompt = tokenizer.apply_chat_template(
    messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
)"""


def chat_template_sentence(template: Mapping[str, Any] | None) -> str:
    """Which chat template the release has, by the record in the checkpoint's `state.json`."""
    if template is None:
        return "It has no chat template: it was not trained on conversations."
    if template["source"].startswith("snapshot"):
        return f"Its chat template is its own, unchanged (from {template['source']})."
    told = f"Its chat template is {template['format']}, which {template['source']} trained with."
    replaced = template["replaced"]
    if replaced is None:
        return told
    return f"{told} It replaces the one that the model was imported with ({replaced['source']})."


def _evaluation(evaluation: Evaluation) -> str:
    parts = [f"## Evaluation\n\nArtifact `{evaluation.stage}/{short(evaluation.key)}`."]
    if rows := _of_model(evaluation):
        parts.append(
            "Accuracy by log-likelihood of the choices (`by_bytes`: divided by their UTF-8 bytes), "
            "baseline chance; bits per UTF-8 byte, baseline the token-unigram model. `_clean`: "
            "without items that share an n-gram with the training text.\n\n" + results_table(rows)
        )
    if rows := [row for row in evaluation.results if row["benchmark"].startswith(PIPELINE)]:
        parts.append(
            "Defects planted in the crawl, and the share of each that the pipeline caught (`none`: "
            "share of sound documents that it kept).\n\n" + results_table(rows)
        )
    for row in evaluation.generations:
        written = f"{row['prompt']}{row['completion']}".replace("\n", "\n    ")
        parts.append(f"Sample ({row['form']}, prompt first):\n\n    {written}")
    return "\n\n".join(parts)


def _limits(model: ModelConfig, evaluations: Sequence[Evaluation]) -> str:
    chance = [
        f"{_cell(row['benchmark'])} ({row['metric']})"
        for evaluation in evaluations
        for row in _of_model(evaluation)
        if at_chance(row)
    ]
    lines = [
        f"- It sees {model.context:,} tokens; what lies before them is lost.",
        "- It may write what is false, private or offensive: it repeats its training text.",
        "- It was measured on what stands above and on nothing else.",
    ]
    if chance:
        lines.append(f"- Not better than its baseline by two standard errors: {', '.join(chance)}.")
    if not evaluations:
        lines[2] = "- It was released without an evaluation."
    return "## Limits\n\n" + "\n".join(lines)


def _lineage(lineage: Mapping[str, Any]) -> str:
    inputs = [("checkpoint", lineage["checkpoint"])]
    inputs += [("evaluation", given) for given in lineage["evaluations"]]
    rows = [
        f"| {role} | {given['stage']} | `{short(given['key'])}` | `{short(given['digest'])}` |"
        for role, given in inputs
    ]
    table = "| role | stage | key | digest |\n|---|---|---|---|\n" + "\n".join(rows)
    checkpoint, state = lineage["checkpoint"], lineage["state"]
    trained = [
        f"{state[name]:,} {unit}"
        for name, unit in (("training_step", "training steps"), ("tokens", "tokens"))
        if state.get(name)  # An imported model was trained elsewhere.
    ]
    last = f" Its last stage took {' and '.join(trained)}." if trained else ""
    command = f"ingot lineage {short(checkpoint['key'])}"
    return f"""## Lineage

Made with Ingot.{last} `ingot.json` holds the full names below; in the store that made this,
`{command}` prints the way back to every source file.

{table}"""


def _of_model(evaluation: Evaluation) -> list[Row]:
    return [row for row in evaluation.results if not row["benchmark"].startswith(PIPELINE)]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
