import pytest


@pytest.fixture(scope="session")
def uniform(model):
    """A model that finds every token equally likely: all its logits are 0."""
    import torch

    from stages.model.decoder import Decoder

    flat = Decoder(model.config)
    with torch.no_grad():
        flat.embedding.weight.zero_()
    return flat


@pytest.fixture
def texts():
    """Of very different lengths."""
    return [f"Keys are values, number {n}. " * (1 + n % 3) for n in range(40)]


@pytest.fixture
def packed(given, make_documents, run_stage, tokenizer, texts):
    """Half of the texts as held-out shards of two sources, in sequences of 64 tokens."""
    from stages.pack.stage import Pack
    from stages.tokenizer.training import transformers_config

    sources = ["even", "odd"] * 20
    rows = [{"text": text, "source": source} for text, source in zip(texts, sources, strict=True)]
    documents = make_documents([rows], snapshot="made")
    made = given(
        "tokenizer",
        {
            "tokenizer.json": tokenizer.to_str().encode(),
            "tokenizer_config.json": transformers_config("llama-bpe"),
            "training.json": {"vocabulary_size": 400, "padded_vocabulary_size": 400},
        },
    )
    config = {"sequence_length": 64, "held_out_share": 0.5}
    return run_stage(Pack, config, {"documents": [documents], "tokenizer": [made]})
