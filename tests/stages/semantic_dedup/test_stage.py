"""`semantic_dedup`: exact pairs, classes, kills, planted paraphrases, and `filter` after it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from artifacts_schema.errors import InputError
from stages.encoders import parts
from stages.encoders.encoder import EncoderSpec, load_encoder
from stages.engine.page import Artifact
from stages.filter.stage import Filter
from stages.semantic_dedup import pairs
from stages.semantic_dedup.page import page
from stages.semantic_dedup.stage import SemanticDedup
from tests.stages.classify.conftest import WORDS, draw_texts, files_of, save_model

__all__ = ["files_of", "save_model"]

FLOOR = 0.97


def reword(text: str, changed: int, seed: int) -> str:
    """The text with some of its words replaced by others of the vocabulary."""
    draw, words = random.Random(seed), text.split()
    for place in draw.sample(range(len(words)), min(changed, len(words))):
        words[place] = draw.choice(WORDS)
    return " ".join(words)


ORIGINALS = [text for text in draw_texts(40, seed=8) if len(text.split()) > 20][:24]
COPIES = [reword(text, 2, seed) for seed, text in enumerate(ORIGINALS)]


@pytest.fixture(scope="session")
def encoder(save_model: Any) -> Any:
    """A BERT with random weights: near embeddings mean words in common, and nothing else."""
    return save_model(("a", "b"))


@pytest.fixture
def compare(run_stage: Any, snapshot: Any, files_of: Any, encoder: Any) -> Callable[..., Any]:
    """`compare(documents, floor=…, workers=…)` → the manifest."""

    def run(documents: list[Any], files: Any = None, workers: int = 1, **config: Any) -> Any:
        inputs = {"documents": documents, "model": snapshot(files or files_of(encoder))}
        settings = {"floor": FLOOR, "max_length": 64, **config}
        return run_stage(SemanticDedup, settings, inputs, {"device": "cpu", "workers": workers})

    return run


def embeddings_of(folder: Any, texts: list[str]) -> np.ndarray:
    """[text, width] By transformers alone, text by text: mean of the last states, length 1."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = (
        AutoModel.from_pretrained(folder).eval(),
        AutoTokenizer.from_pretrained(folder),
    )
    rows = []
    for text in texts:
        with torch.inference_mode():
            tokens = tokenizer(text, truncation=True, max_length=64, return_tensors="pt")
            state = model(**tokens).last_hidden_state[0].mean(0).double().numpy()
        rows.append(state / np.linalg.norm(state))
    return np.stack(rows)


def pairs_of(table: Any) -> dict[tuple[str, str], float]:
    return {
        (row["doc_id"], partner["doc_id"]): partner["similarity"]
        for row in table.to_pylist()
        for partner in row["partners"]
    }


def test_every_pair_above_the_floor_is_listed_and_no_other(
    compare: Any, make_documents: Any, read_table: Any, encoder: Any, monkeypatch: Any
) -> None:
    """The oracle compares all pairs of embeddings by transformers; blocks of seven."""
    monkeypatch.setattr(pairs, "BLOCK", 7)
    texts = [*ORIGINALS, *COPIES]
    documents = make_documents([texts[:20], texts[20:]])
    made = compare([documents])
    ids = read_table(*documents)["doc_id"].to_pylist()
    cosine = embeddings_of(encoder, texts)
    cosine = cosine @ cosine.T
    listed = pairs_of(read_table(made, "duplicates"))
    certain = np.abs(cosine - FLOOR) > 1e-5
    expected = {
        (ids[one], ids[two]) for one, two in np.argwhere((cosine >= FLOOR) & certain) if one != two
    }
    assert len(expected) > 20
    assert expected <= set(listed)
    place = {doc_id: row for row, doc_id in enumerate(ids)}
    for (one, two), similarity in listed.items():
        assert similarity == pytest.approx(cosine[place[one], place[two]], abs=1e-5)
        assert similarity >= np.float32(FLOOR)


def test_planted_rewordings_are_found(
    compare: Any, make_documents: Any, read_table: Any, store: Any
) -> None:
    """Two words of over twenty replaced. A random encoder sees words in common, no meaning."""
    documents = make_documents([ORIGINALS, COPIES])
    made = compare([documents])
    ids = read_table(*documents)["doc_id"].to_pylist()
    listed = pairs_of(read_table(made, "duplicates"))
    count = len(ORIGINALS)
    hits = sum((ids[count + n], ids[n]) in listed for n in range(count))
    assert hits / count > 0.7
    assert made.counts["with_partners"] >= 2 * hits
    titles = [figure.title for figure in page(Artifact(store, made))]
    assert titles[0] == "Documents of like meaning"


def test_pairs_across_inputs_are_in_the_newer_ones_rows(
    compare: Any, make_documents: Any, read_table: Any
) -> None:
    """What is said of an earlier snapshot does not depend on a later one."""
    old = make_documents([ORIGINALS], snapshot="old")
    new = make_documents([[*COPIES, ORIGINALS[3]]], snapshot="new")
    made = compare([old, new])
    alone = compare([old])
    by_path = {path: read_table(made, "duplicates", path) for path in tables(made)}
    (own,) = tables(alone)
    assert by_path[own].equals(read_table(alone, "duplicates", own))
    (newer,) = set(by_path) - {own}
    old_ids = read_table(*old)["doc_id"].to_pylist()
    rows = by_path[newer].to_pylist()
    assert {partner["doc_id"] for row in rows for partner in row["partners"]} & set(old_ids)
    assert rows[-1]["exact_class"] == old_ids[3]
    assert rows[-1]["partners"] == []


def tables(made: Any) -> list[str]:
    return [
        file.path for file in made.outputs["duplicates"].files if file.path != "statistics.json"
    ]


def test_workers_and_kills_change_no_byte(
    compare: Any, make_documents: Any, store: Any, killed_at: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(parts, "PART_ROWS", 8)
    documents = [make_documents([[*ORIGINALS, "", " "], [], COPIES])]
    made = compare(documents)
    expected = made.outputs["duplicates"].digest
    assert made.counts["empty"] == 2
    assert made.conservation.records_in == made.conservation.out == 2 * len(ORIGINALS) + 2
    store.backend.remove(f"artifacts/semantic_dedup/{made.key}.json")
    kills = [("shard written", 2), ("shard recorded", 3), ("shard written", 5)]
    for point, visit in [*kills, ("payload written", 1), ("before manifest", 1)]:
        with killed_at(point, visit=visit):
            compare(documents)
    assert compare(documents).outputs["duplicates"].digest == expected
    store.backend.remove(f"artifacts/semantic_dedup/{made.key}.json")
    assert compare(documents, workers=2).outputs["duplicates"].digest == expected


def test_the_nearest_partners_stay_of_a_full_list(
    compare: Any, make_documents: Any, read_table: Any
) -> None:
    documents = [make_documents([[*ORIGINALS, *COPIES]])]
    full = read_table(compare(documents, floor=0.9), "duplicates").to_pylist()
    capped = compare(documents, floor=0.9, max_partners=2)
    rows = read_table(capped, "duplicates").to_pylist()
    assert max(len(row["partners"]) for row in full) > 2
    for row, whole in zip(rows, full, strict=True):
        assert row["partners"] == whole["partners"][:2]
    assert capped.counts["capped"] == sum(max(0, len(row["partners"]) - 2) for row in full)


def test_filter_drops_what_is_like_a_kept_document(
    compare: Any, make_documents: Any, run_stage: Any, read_table: Any
) -> None:
    documents = make_documents([[*ORIGINALS, *COPIES, ORIGINALS[0]]])
    made = compare([documents])
    inputs = {"documents": [documents], "duplicates": [(made, "duplicates")]}
    config = {"rules": [], "personal_data": "keep", "views": []}
    policy = {"threshold": 0.98, "exact": "raw"}
    decided = run_stage(Filter, {**config, "duplicates": policy}, inputs)
    ledger = read_table(decided, "ledger").to_pylist()
    assert ledger[-1]["reason"] == "exact_duplicate"
    near = [row for row in ledger if row["reason"] == "near_duplicate"]
    found = read_table(made, "duplicates")
    listed, class_of = (
        pairs_of(found),
        dict(zip(*found.select([0, 1]).to_pydict().values(), strict=True)),
    )
    assert near
    for row in near:
        assert listed[class_of[row["doc_id"]], class_of[row["partner"]]] >= 0.98


def test_a_model_that_is_no_safetensors_is_refused(
    compare: Any, make_documents: Any, files_of: Any, encoder: Any
) -> None:
    files = files_of(encoder)
    files["pytorch_model.bin"] = files.pop("model.safetensors")
    with pytest.raises(InputError, match=r"semantic_dedup\.model.*pickle"):
        compare([make_documents([["a"]])], files=files)


def test_the_mean_is_over_all_tokens_of_all_windows(encoder: Any) -> None:
    spec = EncoderSpec(encoder, "none", "cpu", "float32", 64, 9, 64, 1, "here")
    model = load_encoder(spec)
    ((windows, _),) = model.tokenize([" ".join(ORIGINALS[:4])])
    assert len(windows) > 1
    states = model.run(windows, lambda: None)
    lengths = [len(one) for one in windows]
    mean = pairs._mean(states, lengths)
    total = sum(n * state.astype(np.float64) for n, state in zip(lengths, states, strict=True))
    assert mean == pytest.approx(total / np.linalg.norm(total), abs=1e-6)
