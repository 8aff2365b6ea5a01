"""The stage `classify`: rows of documents, kills, reuse of scores, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from artifacts_schema.errors import InputError
from stages.classify import scores
from stages.classify.page import page
from stages.classify.stage import Classify
from stages.encoders import parts
from stages.engine.page import Artifact
from tests.stages.classify.conftest import draw_texts

SHARDS = [draw_texts(20, seed=1), ["", " \n", *draw_texts(5, seed=2)], []]
LABELS = ("News", "Arts/Music", "Sport")


@pytest.fixture
def documents(make_documents: Any) -> Any:
    return make_documents(SHARDS)


def test_rows_are_those_of_the_documents(
    classify: Any, documents: Any, domains: Path, read_table: Any, read_input: Any, store: Any
) -> None:
    made = classify(documents, domains, {"top_label": True})
    table, source = read_table(made, "signals"), read_table(*documents)
    assert table["doc_id"].equals(source["doc_id"])
    columns = ["domain.News", "domain.Arts_Music", "domain.Sport"]
    assert table.column_names == ["doc_id", *columns, "domain", "domain.text_digest"]
    values = np.stack([table[name].to_numpy() for name in columns], axis=1)
    scored = ~np.isnan(values).any(axis=1)
    assert np.flatnonzero(~scored).tolist() == [20, 21]  # The two texts without a token.
    assert values[scored].sum(axis=1) == pytest.approx(1)
    best = [LABELS[place] for place in values[scored].argmax(axis=1)]
    assert table["domain"].filter(scored).to_pylist() == best
    assert table["domain"][20].as_py() is None
    assert made.conservation.records_in == made.conservation.out == 27
    assert made.counts["empty"] == 2
    assert made.layout["dtype"] == "float32"
    described = read_input(made, "signals").read_json("signals.json")["columns"]
    assert [column["name"] for column in described] == table.column_names[1:]
    titles = [figure.title for figure in page(Artifact(store, made))]
    assert titles[1:] == ["Scores over documents", "Documents by the label with the highest score"]


def test_only_the_labels_asked_for_are_written(
    classify: Any, documents: Any, domains: Path, read_table: Any
) -> None:
    all_of_them = read_table(classify(documents, domains), "signals")
    one = read_table(classify(documents, domains, {"labels": ["Sport"]}), "signals")
    assert one.column_names == ["doc_id", "domain.Sport", "domain.text_digest"]
    assert one["domain.Sport"].equals(all_of_them["domain.Sport"])


def test_workers_and_kills_change_no_byte(
    classify: Any, documents: Any, domains: Path, store: Any, killed_at: Any, monkeypatch: Any
) -> None:
    """Parts of eight documents; each kill strikes when one more part has left its file."""
    monkeypatch.setattr(parts, "PART_ROWS", 8)
    expected = classify(documents, domains).outputs["signals"].digest
    store.backend.remove(f"artifacts/classify/{classify(documents, domains).key}.json")
    kills = [("shard written", 1), ("shard written", 2), ("shard recorded", 1)]
    for point, visit in [*kills, ("payload written", 1), ("before manifest", 1)]:
        with killed_at(point, visit=visit):
            classify(documents, domains)
    resumed = classify(documents, domains)
    assert resumed.outputs["signals"].digest == expected
    store.backend.remove(f"artifacts/classify/{resumed.key}.json")
    parallel = classify(documents, domains, workers=2)
    assert parallel.outputs["signals"].digest == expected


def test_parts_of_another_layout_are_not_mixed_in(
    classify: Any, documents: Any, domains: Path, store: Any, killed_at: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(parts, "PART_ROWS", 8)
    with killed_at("shard written", visit=2):
        classify(documents, domains, batch_tokens=64)
    done: list[str] = []
    score = scores.score_part

    def noted(part: Any, *rest: Any, **named: Any) -> Any:
        done.append(part.id)
        return score(part, *rest, **named)

    monkeypatch.setattr(scores, "score_part", noted)
    made = classify(documents, domains, batch_tokens=512)
    assert made.layout["batch_tokens"] == 512
    assert len(done) == 5  # Three parts of twenty rows, one of seven, one of none.


def test_scores_of_an_earlier_run_are_reused_to_the_byte(
    classify: Any, documents: Any, make_documents: Any, domains: Path, read_table: Any
) -> None:
    """Of the 25 texts with a token, ten and five were scored before, in other rows and shards."""
    earlier = classify(make_documents([[*SHARDS[0][:10], *SHARDS[1]]], snapshot="a"), domains)
    fresh = classify(documents, domains)
    joined = classify(documents, domains, scores=[(earlier, "signals")])
    assert joined.counts["reused"] == 15
    assert joined.counts["scored"] == fresh.counts["scored"] - 15
    assert joined.outputs["signals"].digest == fresh.outputs["signals"].digest


@pytest.mark.parametrize(
    ("config", "execution", "difference"),
    [
        ({"precision": "bfloat16"}, {}, "bfloat16"),
        ({"windows": 2}, {}, "windows"),
        ({}, {"batch_tokens": 1024}, "batch_tokens"),
        ({"labels": ["Sport"]}, {}, "lacks domain.Arts_Music"),
    ],
)
def test_scores_made_in_another_way_are_not_reused(
    classify: Any, documents: Any, domains: Path, config: Any, execution: Any, difference: str,
    monkeypatch: Any,
) -> None:  # fmt: skip
    import logging

    logged: list[str] = []
    monkeypatch.setattr(logging.Logger, "warning", lambda self, *a: logged.append(a[0] % a[1:]))
    earlier = classify(documents, domains, config, **execution)
    made = classify(documents, domains, scores=[(earlier, "signals")])
    assert made.counts["reused"] == 0
    assert any(difference in line for line in logged)


def test_scores_of_another_model_are_not_reused(
    classify: Any, documents: Any, domains: Path, save_model: Any
) -> None:
    other = save_model(LABELS, initializer_range=0.2)
    earlier = classify(documents, other)
    assert classify(documents, domains, scores=[(earlier, "signals")]).counts["reused"] == 0


def edit_json(files: dict[str, bytes], name: str, **changes: Any) -> dict[str, bytes]:
    return {**files, name: json.dumps({**json.loads(files[name]), **changes}).encode()}


def with_nan(files: dict[str, bytes]) -> dict[str, bytes]:
    from safetensors.torch import load, save

    weights = load(files["model.safetensors"])
    weights["classifier.bias"][1] = float("nan")
    return {**files, "model.safetensors": save(weights, {"format": "pt"})}


def without_head(files: dict[str, bytes]) -> dict[str, bytes]:
    from safetensors.torch import load, save

    weights = load(files["model.safetensors"])
    kept = {name: one for name, one in weights.items() if not name.startswith("classifier")}
    return {**files, "model.safetensors": save(kept, {"format": "pt"})}


def renamed(files: dict[str, bytes], old: str, new: str) -> dict[str, bytes]:
    return {(new if name == old else name): data for name, data in files.items()}


REFUSED = {
    "remote code": (lambda f: edit_json(f, "config.json", auto_map={"AutoModel": "m.M"}), "auto_m"),
    "code of the tokenizer": (
        lambda f: edit_json(f, "tokenizer_config.json", auto_map={"AutoTokenizer": ["t.T", None]}),
        "tokenizer_config.json has `auto_map`",
    ),
    "pickle": (lambda f: renamed(f, "model.safetensors", "pytorch_model.bin"), "is a pickle"),
    "no weights": (lambda f: renamed(f, "model.safetensors", "README.md"), "no safetensors"),
    "no tokenizer": (lambda f: renamed(f, "tokenizer.json", "vocab.txt"), "no tokenizer.json"),
    "broken tokenizer": (lambda f: {**f, "tokenizer.json": b"{}"}, "tokenizer.json is refused"),
    "no config": (lambda f: renamed(f, "config.json", "c.json"), "no config.json"),
    "NaN": (with_nan, "classifier.bias is not finite"),
    "no head": (without_head, "lack the weights classifier"),
    "quantized": (
        lambda f: edit_json(f, "config.json", quantization_config={"bits": 4}),
        "quantization_config",
    ),
    "cut weights": (
        lambda f: {**f, "model.safetensors": f["model.safetensors"][:-100]},
        "cannot load",
    ),
    "unknown type": (lambda f: edit_json(f, "config.json", model_type="nobody"), "cannot load"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_models_that_cannot_be_trusted_are_refused(
    classify: Any, documents: Any, domains: Path, files_of: Any, case: str
) -> None:
    edit, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        classify(documents, edit(files_of(domains)))


def test_a_label_that_the_model_lacks_is_refused_with_those_it_has(
    classify: Any, documents: Any, domains: Path
) -> None:
    with pytest.raises(InputError, match="'News2'") as caught:
        classify(documents, domains, {"labels": ["News2"]})
    assert caught.value.hint == "labels: News, Arts/Music, Sport"


def test_longer_sequences_than_the_model_reads_are_refused(
    classify: Any, make_documents: Any, domains: Path
) -> None:
    """Its table of positions has 64 rows."""
    with pytest.raises(InputError, match="cannot run"):
        classify(make_documents([draw_texts(3, 500)]), domains, {"max_length": 128})


def test_columns_are_known_where_labels_are_named() -> None:
    named = Classify.Config(name="d", labels=("Arts/Music",), top_label=True)
    assert Classify.columns(named, {}) == {"d.Arts_Music": "float32?", "d": "string?"}
    assert Classify.columns(Classify.Config(name="d"), {}) is None
