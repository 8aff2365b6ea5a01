"""A server of a model that counts words as tokens."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn

from artifacts_schema.errors import InputError
from flows.serving.app import ServedModel, Service, make_app
from flows.serving.comparison import Candidate, Comparison
from flows.serving.writer import Writer

KEY = "a-key-of-more-than-16-letters"


class WordModel:
    """A token for each word. It answers with its prompt's last word, again and again."""

    context = 40

    def __init__(self):
        self.gate = threading.Event()
        self.gate.set()
        self.written = self.most_at_once = 0
        self.word = str

    def encode_plain(self, text):
        return text.split()

    def encode_chat(self, messages, tools=None):
        if messages[0]["role"] == "assistant":
            raise InputError("a conversation begins with a user", where="messages")
        words = [word for one in messages for word in one["content"].split()]
        return words + (tools or "").split()

    def spelled_token(self, messages):
        return "<|x|>" if any("<|x|>" in one["content"] for one in messages) else None

    def open_batch(self):
        return WordBatch(self, places=2)


class WordText:
    """As `OpenText`: a word of the prompt again and again, two of `end`."""

    def __init__(self, word, most, stops):
        self.word, self.most, self.stops = word, most, stops
        self.text, self.tokens, self.ending, self.failure = "", 0, None, None

    @property
    def is_open(self):
        return self.ending is None and self.failure is None

    def append(self):
        if self.word == "break":
            self.failure = InputError("the model gives a log-probability that is not finite")
            return
        if self.word == "end" and self.tokens == 2:
            self.ending = "end"
            return
        self.tokens += 1
        self.text += f"{self.word} "
        places = [place for stop in self.stops if (place := self.text.find(stop)) >= 0]
        if places:
            self.text, self.ending = self.text[: min(places)], "stop"
        elif self.tokens == self.most:
            self.ending = "length"


class WordBatch:
    """As `ContinuousBatch`: a word of each text a step; a prompt ending in `fault` is a bug."""

    def __init__(self, model, places):
        self.model, self.places, self.texts = model, places, []

    def add(self, prompt, sampling, *, max_new_tokens, stop_texts=()):
        assert len(self.texts) < self.places
        self.texts.append(WordText(self.model.word(prompt[-1]), max_new_tokens, stop_texts))
        return self.texts[-1]

    def remove(self, text):
        self.texts.remove(text)

    def step(self):
        assert self.model.gate.wait(30)
        if any(text.word == "fault" for text in self.texts):
            raise KeyError("a bug")
        self.model.most_at_once = max(self.model.most_at_once, len(self.texts))
        for text in self.texts:
            text.append()
            self.model.written += 1
        self.texts = [text for text in self.texts if text.is_open]


@pytest.fixture
def model():
    return WordModel()


@contextmanager
def serving(service):
    """The address of a server in a thread."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    app = make_app(service, hosts=frozenset({f"127.0.0.1:{port}"}), key=KEY)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}"
    for one in service.models:
        one.model.gate.set()
    server.should_exit = True
    thread.join(20)


def served(name, model):
    return ServedModel(name, model, Writer(model.open_batch, waiting=3), 1)


@pytest.fixture
def url(model):
    with serving(Service([served("me/sft", model)])) as url:
        yield url


@pytest.fixture
def choices(tmp_path):
    """The file of choices of `compared`."""
    return tmp_path / "choices.jsonl"


@pytest.fixture(params=[True, False], ids=["blind", "named"])
def compared(request, choices):
    """`(address, blind)` of a server of two models, one of which shouts."""
    first, second = WordModel(), WordModel()
    second.word = str.upper
    candidates = Candidate("me/one", "a" * 64), Candidate("me/two", "b" * 64)
    comparison = Comparison(candidates, choices, blind=request.param, who="login")
    models = [served("me/one", first), served("me/two", second)]
    with serving(Service(models, comparison)) as url:
        yield url, request.param
