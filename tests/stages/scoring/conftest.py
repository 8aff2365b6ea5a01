import pytest

from stages.model.config import ModelConfig
from stages.model.decoder import Decoder
from stages.text.chat import SPECIAL_TOKENS

LINES = [
    "Return the first item of a list, or None if the list is empty.",
    "The capital of France is Paris; the capital of Italy is Rome.",
    "A dictionary maps keys to values. Keys are hashable, values are not restricted.",
]


@pytest.fixture(scope="session")
def tokenizer():
    """A byte-level BPE with Ingot's special tokens, ids 0 to 4."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(LINES * 20, trainer)
    return tokenizer


@pytest.fixture(scope="session")
def model(tokenizer):
    """Weights large enough that choices differ clearly."""
    config = ModelConfig(
        vocabulary_size=tokenizer.get_vocab_size(),
        width=32,
        layers=2,
        heads=4,
        kv_heads=2,
        context=24,
        init_std=0.3,
    )
    return Decoder(config, seed=11)
