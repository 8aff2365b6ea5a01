"""The model card: what the model is, what it scored and how surely, where it came from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from artifacts_schema.identity import short
from stages.export.card_scores import (
    CLEAN,
    HELD_OUT_TEXT,
    Evaluation,
    Row,
    at_chance,
    evaluations_section,
    other_checkpoints_sections,
    plain_cell,
    planted_table,
)
from stages.export.config import LIBRARIES, ExportConfig
from stages.export.provenance import (
    HELD_OUT,
    Origin,
    TrainingData,
    data_section,
)
from stages.export.verify import Verification
from stages.model.config import ModelConfig
from stages.model.huggingface.families import family_of
from stages.model.size import count_parameters
from stages.scoring.metrics import row_label


def describe_architecture(model: ModelConfig, dtype: str) -> str:
    """A paragraph: parameters, then what the decoder is made of, as its config describes it.

    `dtype` is the type of the released weights, in words.
    """
    count = count_parameters(model)
    active = f" ({count.active:,} active for a token)" if model.experts is not None else ""
    first = (
        f"A decoder of {count.total:,} parameters{active}, {count.without_embeddings:,} without "
        f"embeddings: {model.layers} layers of width {model.width}"
    )
    tied = "tied to the output projection" if model.tied_embeddings else "not tied"
    last = (
        f"Context {model.context:,} tokens, vocabulary {model.vocabulary_size:,}, embeddings {tied}"
        f", weights in {dtype}."
    )
    return f"{first}, {', '.join(_parts(model))}. {last}"


def _parts(model: ModelConfig) -> Iterator[str]:
    if model.latent is None:
        yield (
            f"{model.heads} query heads over {model.kv_heads} key and value heads of "
            f"{model.head_width} channels"
        )
    else:
        yield f"{model.heads} heads of latent attention (rank {model.latent.kv_rank})"
    if model.qk_norm != "none":
        over = "each head" if model.qk_norm == "head" else "all heads"
        yield f"queries and keys normalised over {over}"
    if model.window is not None:
        yield f"sliding windows of {model.window:,} tokens (layers {model.window_pattern})"
    yield f"SwiGLU of {model.mlp_width}"
    if model.experts is not None:
        experts = model.experts
        yield (
            f"from layer {experts.first} on {experts.chosen} of {experts.experts} experts of "
            f"{experts.width} and {experts.shared} shared"
        )
    yield "RMSNorm" if model.norm == "pre" else "RMSNorm on what each part adds"
    yield _positions(model)
    if model.logit_softcap is not None:
        yield f"logits capped at {model.logit_softcap:g}"


def _positions(model: ModelConfig) -> str:
    words = f"rotary positions of base {model.rope_base:g}"
    if model.rope_share != 1:
        words += f" on {model.rope_share:.0%} of the channels"
    if model.rope_scaling is not None:
        names = {"yarn": "YaRN", "linear": "interpolation", "llama3": "Llama 3.1's method"}
        scaling = model.rope_scaling
        words += f" stretched {scaling.factor:g} times by {names[scaling.kind]}"
    return words + (f" except in every {model.nope_every}th layer" if model.nope_every else "")


def model_card(
    release: ExportConfig,
    model: ModelConfig,
    dtype: str,
    lineage: Mapping[str, Any],
    data: Sequence[TrainingData],
    origins: Sequence[Origin],
    evaluations: Sequence[Evaluation],
    verified: Verification,
    *,
    rounded: bool,
    reward: bool = False,
) -> str:
    """`README.md`: YAML front matter as the Hub reads it, then sections for people.

    `rounded`: the release holds other numbers than the checkpoint, which was measured. `reward`:
    it is a reward model.
    """
    own = [evaluation for evaluation in evaluations if evaluation.relation == "release"]
    sections = [
        front_matter(release, own, reward=reward),
        f"# {release.name}\n\n{release.description or _default_description(data, origins, reward)}",
        f"## Architecture\n\n{describe_architecture(model, dtype)}",
        (_use_of_reward if reward else _use)(
            release, model, verified, lineage["state"].get("chat_template")
        ),
        evaluations_section(own, dtype if rounded else None),
        *other_checkpoints_sections(evaluations),
        data_section(data, origins, planted_table(evaluations)),
        _limits(model, own, reward),
        _lineage(lineage),
    ]
    return "\n\n".join(sections) + "\n"


def _default_description(
    data: Sequence[TrainingData], origins: Sequence[Origin], reward: bool
) -> str:
    """The description of a model for which the config has none."""
    what = "A reward model" if reward else "A language model"
    if not data:
        return f"{what} that was not trained with Ingot."
    if any(one.recorded for one in origins):
        return f"{what} trained with Ingot from imported weights."
    if origins:
        return f"{what} trained with Ingot from weights of which nothing is on record."
    return f"{what} trained from scratch with Ingot."


def front_matter(release: ExportConfig, own: Sequence[Evaluation], *, reward: bool = False) -> str:
    """The YAML head, by `huggingface_hub`; scores of this very checkpoint in its `model-index`.

    Each benchmark, each source of held-out text, and each benchmark without contaminated items is
    a data set of its own: the Hub groups scores by type, config, split and revision of a data set.
    """
    from huggingface_hub import EvalResult, ModelCardData

    scores = [
        EvalResult(
            task_type="text-generation",
            **_data_set(row),
            dataset_revision=evaluation.revisions.get(
                HELD_OUT if row["benchmark"].startswith(HELD_OUT_TEXT) else "benchmarks"
            ),
            metric_type=row["metric"].removesuffix(CLEAN),
            metric_value=round(row["value"], 6),
        )
        for evaluation in own
        for row in evaluation.of_model
        if math.isfinite(row["value"])
    ]
    data = ModelCardData(
        language=list(release.languages) or None,
        license=release.license,
        library_name="transformers",
        pipeline_tag="text-classification" if reward else "text-generation",
        tags=["ingot"],
        model_name=release.name if scores else None,
        eval_results=scores or None,
    )
    return f"---\n{data.to_yaml().strip()}\n---"


def _data_set(row: Row) -> dict[str, Any]:
    """Name, type, config and split of what a score was measured on."""
    benchmark, clean, name = row["benchmark"], row["metric"].endswith(CLEAN), row_label(row)
    if benchmark.startswith(HELD_OUT_TEXT):
        source = benchmark.removeprefix(HELD_OUT_TEXT)
        return {
            "dataset_name": f"held-out text of {source}",
            "dataset_type": HELD_OUT,
            "dataset_config": source,
            "dataset_split": HELD_OUT,
        }
    return {
        "dataset_name": f"{name}, without contaminated items" if clean else name,
        "dataset_type": benchmark,
        "dataset_config": row_label({**row, "benchmark": "clean" if clean else "all"}),
        "dataset_split": "test",
    }


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

{_library(release)}{needs} process with `torch`
{verified.torch} and `transformers` {verified.transformers} loaded it: the logits of
{verified.probe_tokens} tokens, computed in float32 from the released weights, are Ingot's own
within {verified.logit_difference:.1e}; token ids and chat template are equal.

{chat_template_sentence(template)}"""


def _library(release: ExportConfig) -> str:
    """What must be installed to load a quantised form."""
    if release.quantise is None:
        return ""
    library = LIBRARIES[release.quantise].replace("_", "-")
    return (
        f"The matrices of the layers are stored in {release.quantise}: `pip install {library}`.\n"
    )


def _use_of_reward(
    release: ExportConfig,
    model: ModelConfig,
    verified: Verification,
    template: Mapping[str, Any] | None,
) -> str:
    family = family_of(model)
    register = f"import {family.register}  # of Ingot\n" if family.register else ""
    return f"""## Use

```python
{register}from transformers import AutoModelForSequenceClassification, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{release.name}")
model = AutoModelForSequenceClassification.from_pretrained("{release.name}")
messages = [{{"role": "user", "content": "Hello"}}, {{"role": "assistant", "content": "Hi."}}]
conversation = tokenizer.apply_chat_template(messages, return_tensors="pt", return_dict=True)
print(model(**conversation).logits[0, 0])
```

The score is read at the last token of the conversation, as the chat template writes it; higher is
better, and only differences between answers to one prompt mean something. `{family.classifier}`
loads it. Before this folder was released, a fresh process with `torch` {verified.torch} and
`transformers` {verified.transformers} loaded it: its scores, in float32 from the released weights,
each sequence alone and in a padded batch, are Ingot's own within {verified.logit_difference:.1e};
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
    sentence = (
        f"Its chat template is {template['format']}, which {template['source']} trained with."
    )
    replaced = template["replaced"]
    if replaced is None:
        return sentence
    return (
        f"{sentence} It replaces the one that the model was imported with ({replaced['source']})."
    )


def _limits(model: ModelConfig, own: Sequence[Evaluation], reward: bool) -> str:
    chance: dict[str, list[str]] = {}
    for evaluation in own:
        for row in evaluation.of_model:
            metrics = chance.setdefault(plain_cell(row_label(row)), [])
            if at_chance(row) and row["metric"] not in metrics:
                metrics.append(row["metric"])
    named = [f"{name} ({', '.join(metrics)})" for name, metrics in chance.items() if metrics]
    measured = "It was measured on what stands under Evaluation and on nothing else."
    faults = (
        "- It may prefer what is false or offensive: it scores as the people or models did that "
        "ranked its training pairs."
        if reward
        else "- It may write what is false, private or offensive: it repeats its training text."
    )
    lines = [
        f"- It sees {model.context:,} tokens; what lies before them is lost.",
        faults,
        f"- {measured if own else 'It was released without an evaluation.'}",
    ]
    if named:
        lines.append(f"- Not shown to be better than its baseline (95 %): {'; '.join(named)}.")
    return "## Limits\n\n" + "\n".join(lines)


def _lineage(lineage: Mapping[str, Any]) -> str:
    inputs = [("checkpoint", lineage["checkpoint"])]
    inputs += [("evaluation", source) for source in lineage["evaluations"]]
    rows = [
        f"| {role} | {source['stage']} | `{short(source['key'])}` | `{short(source['digest'])}` |"
        for role, source in inputs
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
