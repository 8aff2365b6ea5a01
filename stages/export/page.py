"""What a release contributes to a report."""

from __future__ import annotations

from typing import Any

from artifacts_schema.identity import short
from stages.engine.page import (
    Artifact,
    Cell,
    Figure,
    TableFigure,
    TextFigure,
    make_facts,
    make_table,
)

CARD_CHARACTERS = 4_000
CLASSIFIER = "ForSequenceClassification"
"""How the names of classes end that score sequences; `family.py` imports torch."""


def summary(artifact: Artifact) -> list[Figure]:
    """Where the released folder lies, and how to load it."""
    return [TextFigure("release", artifact.place("release")), _loading(artifact, "load it")]


def page(artifact: Artifact) -> list[Figure]:
    """Files, how to load them, what was verified, the card's head, the way back to the sources."""
    if artifact.manifest.stage == "export_dataset":
        return dataset_figures(artifact)
    release = artifact.output("release")
    return [
        TextFigure("Released folder", artifact.place("release")),
        _loading(artifact, "How to load it"),
        files(artifact),
        verified(artifact),
        TextFigure("Model card", card_head(release.read_bytes("README.md").decode("utf-8"))),
        came_from(release.read_json("ingot.json")),
        lineage(artifact),
    ]


def dataset_figures(artifact: Artifact) -> list[Figure]:
    """Of a data set: its folder, documents by source, what was left out, its card."""
    output = artifact.output("dataset")
    facts: dict[str, Any] = output.read_json("dataset.json")
    sources = [
        (source, one["documents"], one["bytes"], len(one["files"]))
        for source, one in facts["sources"].items()
    ]
    return [
        TextFigure("Data set folder", artifact.place("dataset")),
        make_table("Documents by source", "source | documents:, | bytes:, | files:,", sources),
        make_facts("Left out of the data set", sorted(facts["left_out"].items())),
        TextFigure("Data card", card_head(output.read_bytes("README.md").decode("utf-8"))),
    ]


def files(artifact: Artifact) -> TableFigure:
    """Every released file with its size and the beginning of its sha256."""
    released = artifact.manifest.output("release").files
    rows: list[tuple[Cell, ...]] = [
        (file.path, file.bytes, short(file.sha256))
        for file in sorted(released, key=lambda f: f.path)
    ]
    rows.append(("all", sum(file.bytes for file in released), None))
    return make_table("Released files", "file | bytes:, | sha256", rows)


def verified(artifact: Artifact) -> TableFigure:
    """What a fresh process with `transformers` alone found; a release that fails is not made."""
    counts, libraries = artifact.manifest.counts, artifact.manifest.code.libraries
    difference = counts.get("logit_difference")
    described = artifact.output("release").read_json("config.json")
    dtype: str | None = described.get("dtype")
    form: str | None = artifact.manifest.config.get("quantise")
    what = "score" if _scores(described) else "logit"
    rows: list[tuple[str, Cell]] = [
        (f"largest difference of a {what}", None if difference is None else f"{difference:.1e}"),
        ("tokens compared", counts.get("probe_tokens")),
        ("type of the released weights", dtype),
        *([("matrices of layers", form)] if form is not None else []),
        ("token ids and chat template", "equal"),
        (f"{'scores' if what == 'score' else 'generates'}, without Ingot and remote code", "yes"),
        ("transformers", libraries.get("transformers")),
        ("torch", libraries.get("torch")),
        ("tokenizers", libraries.get("tokenizers")),
    ]
    note = (
        f"{what.capitalize()}s of Ingot's decoder and of `transformers`, both of the released "
        "weights in float32."
    )
    return make_facts("Verified before release", rows, note)


def card_head(card: str) -> str:
    """The model card from its title up to its evaluation, whose numbers have their own page."""
    body = card.split("\n---\n", 1)[-1] if card.startswith("---\n") else card
    head = body.split("\n## Evaluation", 1)[0].strip()
    return head if len(head) <= CARD_CHARACTERS else f"{head[:CARD_CHARACTERS]} …"


def came_from(ingot: dict[str, Any]) -> TableFigure:
    """The checkpoint and the evaluations, as the release's `ingot.json` names them."""
    rows: list[tuple[Cell, ...]] = [("checkpoint", *_name(ingot["checkpoint"]), None)]
    rows += [("evaluation", *_name(one), _measured(one)) for one in ingot["evaluations"]]
    note = "As `ingot.json` in the release says it, in full there."
    return make_table("Made of", "role | stage | key | output | digest | measured", rows, note)


def _name(one: dict[str, Any]) -> tuple[Cell, ...]:
    return one["stage"], short(one["key"]), one["output"], short(one["digest"])


def _measured(evaluation: dict[str, Any]) -> str:
    """The released checkpoint, or which other one."""
    if evaluation["of_this_release"]:
        return "this release"
    named = [f"{one['stage']} {short(one['key'])}" for one in evaluation["measured"]]
    return ", ".join(named) or "not known"


def lineage(artifact: Artifact) -> TableFigure:
    """Every artifact above the release, nearest first."""
    from artifacts_schema.store.store import ancestors

    used: dict[tuple[str, str], set[str]] = {}
    for edge in ancestors(artifact.store, artifact.manifest):
        used.setdefault(edge.parent, set()).add(f"{edge.child[0]} ({edge.role})")
    rows: list[tuple[Cell, ...]] = []
    for (stage, key), children in used.items():
        manifest = artifact.store.manifest(stage, key)
        size = sum(output.bytes for output in manifest.outputs.values()) if manifest else None
        rows.append(
            (stage, short(key), size if manifest else "collected", ", ".join(sorted(children)))
        )
    note = "Nearest first. Of what was collected, the store does not know what it was made of."
    return make_table("Lineage of the release", "stage | key | bytes:, | went into", rows, note)


def _scores(described: dict[str, Any]) -> bool:
    """Whether a `config.json` is that of a reward model."""
    return any(str(one).endswith(CLASSIFIER) for one in described.get("architectures") or ())


def _loading(artifact: Artifact, title: str) -> TextFigure:
    place = artifact.place("release")
    described = artifact.output("release").read_json("config.json")
    own = described.get("model_type") == "ingot"
    register = "import stages.model.huggingface.auto_classes\n" if own else ""
    name = "AutoModelForSequenceClassification" if _scores(described) else "AutoModelForCausalLM"
    return TextFigure(
        title,
        f"{register}from transformers import {name}, AutoTokenizer\n"
        f'model = {name}.from_pretrained("{place}")\n'
        f'tokenizer = AutoTokenizer.from_pretrained("{place}")',
    )
