"""From documents to tokens and their readers: what cannot be right is one error that helps.

Each says what is wrong, where, and what to do about it; what can be counted instead is counted.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from artifacts_schema.errors import CorruptArtifact, IngotError, InputError, UsageError
from artifacts_schema.manifest import Manifest
from artifacts_schema.store import Store, layout
from stages.export_tokens.stage import ExportTokens
from stages.pack.stage import Pack
from stages.pretrain.stage import Pretrain
from stages.tokenizer.stage import TokenizerStage

Make = Callable[..., Any]

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "one", "dog", "ran", "far", "def", "self"]
LENGTH = 32
TINY = {
    "model": {"width": 32, "layers": 1, "heads": 2, "kv_heads": 1, "context": LENGTH},
    "phases": [
        {
            "tokens": LENGTH * 4 * 3,
            "sequences_per_batch": 4,
            "learning_rate": {"peak": 1e-2},
        }
    ],
    "precision": "fp32",
    "max_held_out_sequences": 4,
}
"""Three training steps of four sequences."""


def texts(count: int, seed: int, words: int = 30) -> list[dict[str, Any]]:
    """Documents of two sources."""
    rng = random.Random(seed)
    return [
        {
            "source": ("web", "code")[number % 2],
            "text": " ".join(rng.choices(WORDS, k=rng.randint(3, words))),
        }
        for number in range(count)
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bad-input")


@pytest.fixture
def store(folder: Path) -> Store:
    """One for all tests here, so that they share runs."""
    return Store.open(str(folder / "store"))


@pytest.fixture
def documents(make_documents: Make) -> Any:
    return make_documents([texts(120, seed=1)])


@pytest.fixture
def tokenizer_of(run_stage: Make, documents: Any) -> Make:
    """`tokenizer_of(vocabulary_size)`, trained on the documents."""

    def train(size: int) -> Any:
        config = {"vocabulary_size": size, "held_share": 0.0}
        return run_stage(TokenizerStage, config, {"documents": [documents]}), "tokenizer"

    return train


@pytest.fixture
def tokenizer(tokenizer_of: Make) -> Any:
    return tokenizer_of(300)


@pytest.fixture
def pack(run_stage: Make, tokenizer: Any) -> Make:
    """`pack(documents, **config)` → the manifest."""

    def run(given: Any, **config: Any) -> Manifest:
        inputs = {"documents": [given], "tokenizer": [tokenizer]}
        settings = {"sequence_length": LENGTH, "held_out_share": 0.1, **config}
        manifest: Manifest = run_stage(Pack, settings, inputs)
        return manifest

    return run


@pytest.fixture
def packed(pack: Make, documents: Any) -> Manifest:
    manifest: Manifest = pack(documents)
    return manifest


@pytest.fixture
def pretrain(run_stage: Make, tokenizer: Any) -> Make:
    """`pretrain(shards, tokenizer=None, verify_inputs=True, **config)`; shards are references."""

    def run(*shards: Any, with_tokenizer: Any = None, verify: bool = True, **config: Any) -> Any:
        inputs = {"train": list(shards), "tokenizer": [with_tokenizer or tokenizer]}
        how = {"device": "cpu", "threads": 1, "verify_inputs": verify}
        return run_stage(Pretrain, {**TINY, **config}, inputs, how)

    return run


@pytest.fixture
def export(run_stage: Make) -> Make:
    """`export(*shards, verify=True)`."""

    def run(*shards: Any, verify: bool = True) -> Any:
        inputs = {"shards": list(shards)}
        return run_stage(ExportTokens, {}, inputs, {"verify_inputs": verify})

    return run


@contextmanager
def told(kind: type[IngotError], *parts: str) -> Iterator[None]:
    """One error of this kind, that holds all of `parts` and says where."""
    with pytest.raises(kind) as error:
        yield
    said = str(error.value)
    assert [part for part in parts if part not in said] == [], said
    assert error.value.where, f"does not say where: {said}"


@pytest.fixture
def changed(packed: Manifest, read_input: Make, given: Make) -> Make:
    """`changed(path → (bytes → bytes), facts)`: the train shards with some files other."""

    def make(changes: dict[str, Make], **facts: Any) -> Any:
        found = read_input(packed, "train")
        files: dict[str, Any] = {}
        for path in found.paths("*"):
            if path.endswith(".parquet"):
                files[path] = found.read_table(path).to_pylist()
            elif path == "shards.json":
                files[path] = {**found.read_json(path), **facts}
            else:
                files[path] = changes.get(path, bytes)(found.read_bytes(path))
        return given("token_shards", files)

    return make


@pytest.fixture
def file_of(packed: Manifest, read_input: Make) -> Make:
    """`file_of(source)`: its first token file."""
    table = read_input(packed, "train").read_json("shards.json")
    return lambda source: table["sources"][source]["shards"][0]["file"]


# Shards and tokenizers ---------------------------------------------------------------------------


def test_a_tokenizer_of_another_vocabulary_than_the_shards(
    pretrain: Make, packed: Manifest, tokenizer_of: Make
) -> None:
    with told(InputError, "tokenizer", "give the tokenizer that packed them, or pack again"):
        pretrain((packed, "train"), with_tokenizer=tokenizer_of(290))


@pytest.mark.parametrize("reader", ["pretrain", "export"])
def test_shards_of_two_tokenizers(
    request: pytest.FixtureRequest, reader: str, packed: Manifest, changed: Make
) -> None:
    """Of the same documents even: ids mean something else."""
    other = changed({}, vocabulary_size=299)
    with told(InputError, "vocabulary_size is 299, that of the first input is 300", "tokenizer"):
        request.getfixturevalue(reader)((packed, "train"), other)


@pytest.mark.parametrize("reader", ["pretrain", "export"])
@pytest.mark.parametrize("place", [0, 17, -1])
def test_an_id_out_of_range_is_named_with_its_sequence(
    request: pytest.FixtureRequest, reader: str, changed: Make, file_of: Make, place: int
) -> None:
    def put(raw: bytes) -> bytes:
        ids = np.frombuffer(raw, "<u2").copy()
        held = np.flatnonzero(ids != 2)
        ids[held[place]] = 300
        return ids.tobytes()

    path = file_of("web")
    with told(CorruptArtifact, "300", path, "sequence", "pack again"):
        every_source = {"phases": [{**TINY["phases"][0], "tokens": LENGTH * 4 * 200}]}
        config = every_source if reader == "pretrain" else {}
        request.getfixturevalue(reader)(changed({path: put}), **config)


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("reader", ["pretrain", "export"])
@pytest.mark.parametrize("damage", ["flipped", "cut"])
def test_a_cut_or_flipped_shard_is_found_before_it_counts(
    request: pytest.FixtureRequest,
    reader: str,
    damage: str,
    verify: bool,
    pack: Make,
    documents: Any,
    store: Store,
    read_input: Make,
) -> None:
    """A flip that nobody looks for (`verify_inputs: false`) may be read; it ends no process."""
    seed = ["pretrain", "export"].index(reader) * 4 + ["flipped", "cut"].index(damage) * 2 + verify
    manifest = pack(documents, seed=100 + seed)  # Shards of this test alone: they are damaged.
    found = read_input(manifest, "train")
    listed = found.read_json("shards.json")["sources"]["web"]["shards"][0]["file"]
    place = layout.payload(manifest.stage, manifest.key, manifest.attempt)
    path = Path(store.backend.full(f"{place}/train/{listed}"))
    data = path.read_bytes()
    path.chmod(0o644)
    middle = len(data) // 2
    flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    path.write_bytes(flipped if damage == "flipped" else data[:-7])
    read = request.getfixturevalue(reader)
    if damage == "flipped" and not verify:
        with suppress(CorruptArtifact, InputError):
            read((manifest, "train"), verify=verify)
        return
    with told(CorruptArtifact, listed):
        read((manifest, "train"), verify=verify)


# Mixtures and phases -----------------------------------------------------------------------------


def phases(**changes: Any) -> list[dict[str, Any]]:
    return [{**TINY["phases"][0], **changes}]


def test_a_source_without_tokens_and_a_positive_weight(pretrain: Make, changed: Make) -> None:
    with told(UsageError, "books", "no source 'books' in the token shards", "code"):
        pretrain(changed({}), phases=phases(mixture={"web": 0.5, "books": 0.5}))


def test_a_source_that_has_only_a_name(
    pretrain: Make, packed: Manifest, read_input: Make, changed: Make
) -> None:
    table = read_input(packed, "train").read_json("shards.json")
    none = dict.fromkeys(table["sources"]["web"], 0) | {"shards": [], "languages": {}}
    shards = changed({}, sources={**table["sources"], "books": none})
    with told(UsageError, "source 'books' has weight 0.5 but no tokens", "leave it out, or pack"):
        pretrain(shards, phases=phases(mixture={"web": 0.5, "books": 0.5}))


@pytest.mark.parametrize("caps", [{"max_epochs": 1.0}, {"epochs": {"web": 1.0}}])
def test_caps_that_cannot_be_met_are_said_with_the_numbers_before_the_first_step(
    pretrain: Make, packed: Manifest, read_input: Make, caps: dict[str, Any]
) -> None:
    table = read_input(packed, "train").read_json("shards.json")
    there = table["sources"]["web"]["sequences"]
    config = phases(tokens=8 * there * LENGTH, mixture={"web": 0.5, "code": 0.5})
    allowed = f"{there:,} allowed ({there:,} available)"
    with told(UsageError, "source 'web' would be read", allowed, "too many", "add data"):
        pretrain((packed, "train"), phases=config, **caps)


@pytest.mark.parametrize("tokens", [0, -5])
def test_a_phase_of_zero_tokens(pretrain: Make, packed: Manifest, tokens: int) -> None:
    with told(UsageError, "phases.0.tokens", "greater than or equal to 1", str(tokens)):
        pretrain((packed, "train"), phases=phases(tokens=tokens))


@pytest.mark.parametrize("field", ["mixture", "mixture_end"])
@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"web": 0.5, "code": 0.4}, "weights sum to 0.9, not to 1"),
        ({"web": 0.7, "code": 0.7}, "weights sum to 1.4, not to 1"),
        ({"web": 0.0, "code": 0.0}, "weights sum to 0, not to 1"),
        ({"web": 1.5, "code": -0.5}, "the weight of 'code' is -0.5"),
    ],
)
def test_weights_that_are_no_shares(
    pretrain: Make, packed: Manifest, field: str, weights: dict[str, float], said: str
) -> None:
    with told(UsageError, f"phases.0.{field}", said):
        pretrain((packed, "train"), phases=phases(**{field: weights}))


def test_no_sequence_to_train_on(pretrain: Make, pack: Make, documents: Any) -> None:
    everything_held_out = pack(documents, held_out_share=0.999999)
    with told(UsageError, "the token shards hold no sequence"):
        pretrain((everything_held_out, "train"))


# Documents ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["best_fit", "concatenate"])
def test_a_document_longer_than_all_others_together(
    pack: Make,
    export: Make,
    make_documents: Make,
    read_input: Make,
    strategy: str,
) -> None:
    """It is cut into sequences, and is whole again where documents are asked for."""
    rng = random.Random(5)
    long = " ".join(rng.choices(WORDS, k=40_000))
    given = make_documents([[{"text": long}, *texts(6, seed=2)], texts(4, seed=3)], "long")
    manifest = pack(given, strategy=strategy, held_out_share=0.0, repetition=None)
    found = read_input(manifest, "train")
    index = [
        row for path in found.paths("*.index.parquet") for row in found.read_table(path).to_pylist()
    ]
    tokens: Counter[str] = Counter()
    for row in index:
        tokens[row["doc_id"]] += row["length"]
    (longest, count), *_ = tokens.most_common()
    assert count > 40_000
    assert sum(row["doc_id"] == longest for row in index) >= count // LENGTH
    exported = read_input(export((manifest, "train")), "dataset")
    table = exported.read_json("dataset.json")["sources"]["web"]
    lengths = np.frombuffer(exported.read_bytes("web.idx"), "<i4", table["documents"], offset=34)
    assert lengths.max() == count
    assert table["incomplete"] == 0


def test_empty_documents_are_counted_and_nothing_else(
    pack: Make, make_documents: Make, read_input: Make
) -> None:
    rows = texts(20, seed=4)
    for number in (0, 7, 19):
        rows[number]["text"] = ""
    manifest = pack(make_documents([rows, [""]], "with empty ones"), repetition=None)
    assert manifest.conservation is not None
    assert manifest.conservation.dropped == {"empty": 4}
    assert manifest.conservation.out == 17


def test_nothing_but_empty_documents(
    pack: Make, make_documents: Make, pretrain: Make, export: Make
) -> None:
    manifest = pack(make_documents([["", ""], [""]], "empty"))
    assert manifest.conservation is not None
    assert manifest.conservation.dropped == {"empty": 3}
    with told(UsageError, "the token shards hold no sequence"):
        pretrain((manifest, "train"))
    with pytest.raises(InputError, match="the token shards hold no document"):
        export((manifest, "train"))


def test_a_tokenizer_has_nothing_to_learn_from_empty_documents(
    run_stage: Make, make_documents: Make
) -> None:
    with told(InputError, "no document to train on"):
        run_stage(TokenizerStage, {}, {"documents": [make_documents([[]], "none")]})
