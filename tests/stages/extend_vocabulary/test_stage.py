"""The stage: rows by arithmetic, the model before and after, training that goes on, refusals."""

from __future__ import annotations

import json
import math

import pytest
import torch
from safetensors.torch import load

from artifacts_schema.errors import InputError, UsageError
from stages.engine.page import Artifact
from stages.extend_vocabulary.config import ExtendConfig
from stages.extend_vocabulary.page import page
from stages.extend_vocabulary.stage import ExtendVocabulary, extend_rows
from stages.model.files import model_files, read_model, read_tokenizer
from stages.tokens.fertility import FertilityCounter, find_unicode_words

LINES = [
    "Die Straßenbahn fährt durch die Straßen der Stadt und hält am Bahnhof.",
    "Der Bahnhof liegt nicht weit von der Straßenbahn; die Stadt ist groß.",
    "什么是北京？北京是一座城市。",
    "Привет, мир! Это большой город.",
]


@pytest.fixture
def documents(make_documents):
    """400 documents of a language that the tokenizer was not trained on, in two shards."""
    texts = [f"{LINES[n % 4]} {LINES[(n + 1) % 4]} {n % 7}" for n in range(400)]
    return make_documents([texts[:250], texts[250:]])


@pytest.fixture
def inputs(checkpoint, documents):
    return {"checkpoint": [checkpoint], "documents": [documents]}


CONFIG = {"new_tokens": 90, "held_share": 0.1, "tokens": [" Straßenbahn"]}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_of_new_tokens_are_the_mean_of_their_pieces(dtype):
    """Two rows of padding after five tokens: the first new tokens take their place."""
    old = torch.arange(14, dtype=torch.float32).view(7, 2).to(dtype)
    new = extend_rows(old, [(0, 3), (4,), (1, 1, 4)], 5, 10)
    assert torch.equal(new[:5], old[:5])
    assert new[5:8].float().tolist() == [[3, 4], [8, 9], [4, 5]]
    # Beyond them the mean of the five old tokens.
    assert new[8:].float().tolist() == [[4, 5], [4, 5]]
    assert new.dtype == dtype
    assert torch.equal(extend_rows(old, [(0, 3)], 5, 7)[6], old[6])


@pytest.mark.parametrize("tied", [True, False])
def test_the_old_model_is_in_the_new_one(
    tied, checkpoint, documents, given, make_model, read_input, run_stage
):
    start = read_input(*checkpoint)
    files = {path: start.read_bytes(path) for path in start.paths()}
    files |= model_files(make_model(tied_embeddings=tied))
    base = given("checkpoint", files)
    made = run_stage(ExtendVocabulary, CONFIG, {"checkpoint": [base], "documents": [documents]})
    old, new = read_model(read_input(*base)), read_model(read_input(made, "checkpoint"))
    size = read_tokenizer(read_input(*base)).get_vocab_size()
    training = read_input(made, "tokenizer").read_json("training.json")
    count = len(training["extended"]["pieces"])
    assert training["vocabulary_size"] == size + count
    assert new.config.vocabulary_size == training["padded_vocabulary_size"]
    assert new.config.vocabulary_size % 64 == 0
    tokens = torch.arange(40).view(2, 20) % size
    with torch.no_grad():
        before, after = old(tokens), new(tokens)
    # The same products in a larger matrix: rounding alone differs.
    torch.testing.assert_close(after[..., :size], before, rtol=1e-5, atol=1e-5)
    for name in ("embedding.weight", *(() if tied else ("head.weight",))):
        one, other = old.get_parameter(name).detach(), new.get_parameter(name).detach()
        assert torch.equal(other[:size], one[:size])
        for number, pieces in enumerate(training["extended"]["pieces"]):
            torch.testing.assert_close(other[size + number], one[list(pieces)].mean(0))


def test_tokenizer_and_checkpoint_agree_and_texts_are_restored(
    inputs, run_stage, read_input, store
):
    made = run_stage(ExtendVocabulary, CONFIG, inputs)
    checkpoint, tokenizer = (read_input(made, one) for one in ("checkpoint", "tokenizer"))
    assert checkpoint.read_bytes("tokenizer.json") == tokenizer.read_bytes("tokenizer.json")
    training = tokenizer.read_json("training.json")
    base = read_input(*inputs["checkpoint"][0])
    before, after = training["held_before"]["web"], training["held"]["web"]
    assert before["documents"] == after["documents"] > 20
    assert after["not_restored"] == 0
    assert after["bytes_per_token"] > 1.5 * before["bytes_per_token"]
    # By the library on one text, beside what the stage summed over the held ones.
    cuts = [
        FertilityCounter.from_json(one.read_bytes("tokenizer.json").decode())
        .cut(LINES, find_unicode_words(LINES))
        .ids.tolist()
        for one in (base, tokenizer)
    ]
    assert len(cuts[1]) < len(cuts[0])
    assert training["extended"]["listed"] == [" Straßenbahn"]
    assert training["extended"]["documents"] + after["documents"] == 400
    assert made.conservation.records_in == 400
    facts, held, tokens = page(Artifact(store, made))
    assert dict(facts.rows)["new tokens, learnt"] == 90
    assert "before" in json.dumps([line.name for line in held.series])
    assert len(tokens.rows) == 40


def bits_per_byte(read_input, artifact, texts):
    """Of texts under a model, by its own tokenizer: the definition, without our scoring."""
    checkpoint = read_input(*artifact)
    model, tokenizer = read_model(checkpoint).eval(), read_tokenizer(checkpoint)
    nats, size = 0.0, 0
    for text in texts:
        ids = tokenizer.encode(text).ids[: model.config.context]
        row = torch.tensor([ids])
        with torch.no_grad():
            logs = model(row).log_softmax(-1)
        nats -= logs[0, :-1].gather(1, row[0, 1:, None]).sum().item()
        size += len(tokenizer.decode(ids[1:]).encode())
    return nats / math.log(2) / size


@pytest.fixture
def pretrained(run_stage, make_documents):
    """A model that has learnt the documents a little, and its shards' tokenizer."""
    from stages.pack.stage import Pack
    from stages.pretrain.stage import Pretrain
    from stages.tokenizer.stage import TokenizerStage

    texts = [f"{LINES[n % 4]} {LINES[(n + 1) % 4]} {n % 7}" for n in range(400)]
    documents = [make_documents([texts])]
    made = run_stage(
        TokenizerStage, {"vocabulary_size": 290, "held_share": 0.0}, {"documents": documents}
    )

    def train(tokenizer, steps, checkpoint=None):
        shards = run_stage(
            Pack, {"sequence_length": 64}, {"documents": documents, "tokenizer": [tokenizer]}
        )
        config = {
            "phases": [
                {
                    "tokens": steps * 8 * 64,
                    "sequences_per_batch": 8,
                    "learning_rate": {"peak": 1e-2},
                }
            ],
            "precision": "fp32",
        }
        if checkpoint is None:
            config["model"] = {"width": 32, "layers": 2, "heads": 2, "kv_heads": 1, "context": 64}
        inputs = {"train": [(shards, "train")], "tokenizer": [tokenizer]}
        inputs |= {"checkpoint": [checkpoint]} if checkpoint else {}
        return run_stage(Pretrain, config, inputs, {"device": "cpu", "threads": 1})

    base = train((made, "tokenizer"), 20)
    return train, base, documents


def test_bits_per_byte_are_close_at_once_and_lower_after_a_few_steps(
    pretrained, run_stage, read_input
):
    """Measured: 2.60 before, 2.52 at once, 0.89 after; at once 2.71 with rows that are the mean of
    the whole vocabulary's, 2.77 with those of other pieces."""
    train, base, documents = pretrained
    inputs = {"checkpoint": [(base, "checkpoint")], "documents": documents}
    made = run_stage(ExtendVocabulary, {"new_tokens": 8, "held_share": 0.05}, inputs)
    further = train((made, "tokenizer"), 20, (made, "checkpoint"))
    before, at_once, after = (
        bits_per_byte(read_input, (one, "checkpoint"), LINES) for one in (base, made, further)
    )
    assert at_once < before * 1.02
    assert after < before


def test_a_list_alone_is_enough_and_a_release_carries_it(checkpoint, run_stage, read_input):
    from stages.export.stage import Export

    made = run_stage(
        ExtendVocabulary, {"tokens": [" Straßenbahn", " Bahnhof"]}, {"checkpoint": [checkpoint]}
    )
    tokenizer = read_tokenizer(read_input(made, "checkpoint"))
    cut = tokenizer.encode("die Straßenbahn am Bahnhof", add_special_tokens=False).tokens
    assert {"ĠStraÃŁenbahn", "ĠBahnhof"} <= set(cut)
    released = run_stage(Export, {}, {"checkpoint": [(made, "checkpoint")]})
    lineage = read_input(released, "release").read_json("ingot.json")
    assert lineage["state"]["extended"]["listed"] == [" Straßenbahn", " Bahnhof"]


def test_a_chat_template_stays(chat_checkpoint, documents, run_stage, read_input):
    made = run_stage(
        ExtendVocabulary, CONFIG, {"checkpoint": [chat_checkpoint], "documents": [documents]}
    )
    before, after = (read_input(*one) for one in (chat_checkpoint, (made, "checkpoint")))
    assert after.read_bytes("tokenizer_config.json") == before.read_bytes("tokenizer_config.json")
    template = before.read_json("state.json")["chat_template"]
    assert after.read_json("state.json")["chat_template"] == template


@pytest.mark.parametrize("workers", [1, 2])
def test_bytes_do_not_depend_on_workers_or_kills(workers, inputs, run_stage, store, killed_at):
    execution = {"workers": workers}
    whole = run_stage(ExtendVocabulary, CONFIG, inputs, execution)
    store.backend.remove(f"artifacts/extend_vocabulary/{whole.key}.json")
    with killed_at("payload written"):
        run_stage(ExtendVocabulary, CONFIG, inputs, {"workers": 1})
    again = run_stage(ExtendVocabulary, CONFIG, inputs, {"workers": 1})
    assert {name: one.digest for name, one in again.outputs.items()} == {
        name: one.digest for name, one in whole.outputs.items()
    }


def test_weights_in_bfloat16_stay_so_and_no_optimizer_state_is_carried(
    checkpoint, documents, given, read_input, run_stage
):
    from safetensors.torch import save

    start = read_input(*checkpoint)
    files = {path: start.read_bytes(path) for path in start.paths()}
    weights = {n: w.bfloat16() for n, w in load(files["model.safetensors"]).items()}
    files |= {"model.safetensors": save(weights), "optimizer.safetensors": save(weights)}
    base = given("checkpoint", files)
    made = run_stage(ExtendVocabulary, CONFIG, {"checkpoint": [base], "documents": [documents]})
    output = read_input(made, "checkpoint")
    after = load(output.read_bytes("model.safetensors"))
    assert {one.dtype for one in after.values()} == {torch.bfloat16}
    assert not output.has("optimizer.safetensors")
    same = [name for name in weights if name != "embedding.weight"]
    assert all(torch.equal(after[name], weights[name]) for name in same)


def test_a_checkpoint_without_tokenizer_or_with_another_kind_is_refused(
    checkpoint, documents, given, read_input, run_stage
):
    start = read_input(*checkpoint)
    files = {path: start.read_bytes(path) for path in start.paths()}
    bare = {name: one for name, one in files.items() if not name.startswith("tokenizer")}
    with pytest.raises(InputError, match="carries no tokenizer"):
        run_stage(
            ExtendVocabulary,
            CONFIG,
            {"checkpoint": [given("checkpoint", bare)], "documents": [documents]},
        )
    content = json.loads(files["tokenizer.json"])
    content["model"] = {
        "type": "Unigram",
        "unk_id": None,
        "vocab": [[token, -1.0] for token in content["model"]["vocab"]],
        "byte_fallback": False,
    }
    other = given("checkpoint", {**files, "tokenizer.json": json.dumps(content).encode()})
    with pytest.raises(InputError, match="its algorithm is Unigram"):
        run_stage(ExtendVocabulary, CONFIG, {"checkpoint": [other], "documents": [documents]})


def test_text_without_a_frequent_pair_is_refused(checkpoint, make_documents, run_stage):
    inputs = {"checkpoint": [checkpoint], "documents": [make_documents([["xq"], ["zv"]])]}
    with pytest.raises(InputError, match="often enough"):
        run_stage(ExtendVocabulary, {"min_frequency": 50, "held_share": 0.0}, inputs)


@pytest.mark.parametrize(
    ("config", "documents", "where"),
    [({}, [], "documents"), ({"new_tokens": 0, "tokens": ["x y"]}, [None], "new_tokens")],
)
def test_inputs_that_do_not_fit_the_config_are_refused_in_the_plan(config, documents, where):
    with pytest.raises(UsageError) as refused:
        ExtendVocabulary.check_plan(
            ExtendConfig.parse(config, where="config"), {"documents": documents}
        )
    assert refused.value.where == where


@pytest.mark.parametrize(
    "fields", [{"new_tokens": 0}, {"tokens": ["a", "a"]}, {"tokens": [""]}, {"held_share": 1.0}]
)
def test_fields_that_contradict_are_refused(fields):
    with pytest.raises(UsageError):
        ExtendConfig.parse(fields, where="config")
