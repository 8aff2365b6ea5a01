"""A tokenizer that knows the words of the items, and items made with it."""

import pytest

from stages.long_context.families import NIAH, NOISE, Draws, Setting, make_problem, word_lists


@pytest.fixture(scope="session")
def word_tokenizer():
    """Trained on what items are made of."""
    from stages.tokenizer.training import train

    lines = [f" {word}" for words in word_lists() for word in words] + [NOISE]
    for family in (*NIAH, "vt", "cwe", "fwe"):
        problem = make_problem(family, Draws("vocabulary"), 140, Setting(1024, None, 4))
        lines += [problem.question, problem.prompt[:200]]
    return train(iter(lines * 3), vocabulary_size=2500, pre_tokenizer="llama-bpe", min_frequency=2)


@pytest.fixture
def given_tokenizer(given, word_tokenizer):
    """It as an artifact."""
    from stages.tokenizer.training import transformers_config

    size = word_tokenizer.get_vocab_size()
    return given(
        "tokenizer",
        {
            "tokenizer.json": word_tokenizer.to_str().encode(),
            "tokenizer_config.json": transformers_config("llama-bpe"),
            "training.json": {"vocabulary_size": size, "padded_vocabulary_size": size},
        },
    )


@pytest.fixture
def prose(make_documents):
    """Documents of sentences that all differ."""
    texts = [
        " ".join(f"Visitor {n} of house {page} kept a record of the weather." for n in range(40))
        for page in range(30)
    ]
    return make_documents([texts[:15], texts[15:]])
