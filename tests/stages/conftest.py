"""What tests of several stages share: a tiny model and its tokenizer, a kill, a file in memory."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import pytest

from artifacts_schema.store import failpoints

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from artifacts_schema.manifest import Manifest
    from stages.engine import Input
    from stages.model.decoder import Decoder

LINES = [
    "Return the first item of a list, or None if the list is empty.",
    "The capital of France is Paris; the capital of Italy is Rome.",
    "A dictionary maps keys to values. Keys are hashable, values are not restricted.",
    "what is the colour of the sky today",
    "the answer is blue",
    "say yes or no to the man",
]


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """What the tokenizer stage makes of six lines."""
    from stages.tokenizer.training import train

    return train(iter(LINES * 20), vocabulary_size=400, pre_tokenizer="llama-bpe", min_frequency=2)


@pytest.fixture(scope="session")
def make_model(tokenizer: Tokenizer) -> Callable[..., Decoder]:
    """`make_model(context=64, …)` → two layers of random weights, with that of the config."""
    from stages.model.config import ModelConfig
    from stages.model.decoder import Decoder

    tiny = {"width": 32, "layers": 2, "heads": 4, "kv_heads": 2, "context": 64, "init_std": 0.2}
    shape = {"vocabulary_size": tokenizer.get_vocab_size(), "rope_base": 50_000.0, **tiny}
    return lambda **changes: Decoder(ModelConfig(**{**shape, **changes}), seed=11)


@pytest.fixture(scope="session")
def model(make_model: Callable[..., Decoder]) -> Decoder:
    """A tiny model with a context of 64 tokens; not to be changed by a test."""
    return make_model()


@pytest.fixture
def checkpoint(
    given: Callable[..., Any], model: Decoder, tokenizer: Tokenizer
) -> tuple[Manifest, str]:
    """The model and its tokenizer as a committed checkpoint."""
    from stages.model.files import model_files
    from stages.tokenizer.training import transformers_config

    files = {
        **model_files(model),
        "tokenizer.json": tokenizer.to_str().encode(),
        "tokenizer_config.json": transformers_config("llama-bpe"),
        "state.json": {"stage": "pretrain", "training_step": 1200, "tokens": 34567},
    }
    return given("checkpoint", files)


@pytest.fixture
def chat_checkpoint(
    given: Callable[..., Any], model: Decoder, tokenizer: Tokenizer
) -> tuple[Manifest, str]:
    """The same as `sft` leaves it: with ChatML, and the record of it."""
    from stages.model.files import model_files
    from stages.tokenizer.training import transformers_config
    from stages.tokens.chat import CHAT_TEMPLATE
    from stages.tokens.chat_template import make_trained_record

    described = {**transformers_config("llama-bpe"), "chat_template": CHAT_TEMPLATE}
    state = {"stage": "sft", "training_step": 12, "tokens": 345}
    files = {
        **model_files(model),
        "tokenizer.json": tokenizer.to_str().encode(),
        "tokenizer_config.json": described,
        "state.json": {**state, "chat_template": make_trained_record("sft", None)},
    }
    return given("checkpoint", files)


@pytest.fixture
def in_several_files() -> Callable[[Input, int], dict[str, Any]]:
    """`in_several_files(checkpoint, most)` → its files, weights in several of `most` bytes."""
    from safetensors.torch import load

    from stages.model.tensor_files import specs_of, write_tensors

    def split(checkpoint: Input, most: int) -> dict[str, Any]:
        files: dict[str, Any] = {name: checkpoint.read_bytes(name) for name in checkpoint.paths()}
        weights = load(files.pop("model.safetensors"))

        @contextmanager
        def opened(name: str) -> Iterator[IO[bytes]]:
            file = io.BytesIO()
            yield file
            files[name] = file.getvalue()

        written = write_tensors(
            opened, "model.safetensors", specs_of(weights), weights.__getitem__, most=most
        )
        assert len(written) > 3
        return files

    return split


class Killed(BaseException):
    """Stands for SIGKILL: no code under test catches it."""


@pytest.fixture
def killed_at(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AbstractContextManager[None]]:
    """`with killed_at("checkpoint written", visit=2):` dies there; fails if that is not reached."""

    @contextmanager
    def run_until(point: str, visit: int = 1) -> Iterator[None]:
        visits = []

        def die(reached: str) -> None:
            visits.append(reached)
            if visits.count(point) == visit:
                raise Killed

        try:
            with monkeypatch.context() as patch:
                patch.setattr(failpoints, "on_failpoint", die)
                yield
        except Killed:
            return
        pytest.fail(f"'{point}' was not reached {visit} times")

    return run_until


@dataclass(frozen=True)
class _InMemory:
    name: str
    data: bytes

    def open(self) -> IO[bytes]:
        return io.BytesIO(self.data)

    @property
    def bytes(self) -> int:
        return len(self.data)


@pytest.fixture(scope="session")
def read_bytes() -> Callable[[str, bytes], _InMemory]:
    """`read_bytes(name, data)` → a source file, to read rows and records from."""
    return _InMemory


@pytest.fixture(scope="session")
def namespaces() -> None:
    """Skips where the kernel or a container forbids what the sandbox needs, as `unshare` finds."""
    kinds = ("--user", "--map-root-user", "--net", "--mount", "--pid", "--ipc", "--fork")
    try:
        tried = subprocess.run(["unshare", *kinds, "true"], capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("needs util-linux, to see whether there are namespaces")
    if tried.returncode != 0:
        pytest.skip(f"no namespaces here: {tried.stderr.strip()}")
