"""A server of a model that counts words as tokens."""

from __future__ import annotations

import socket
import threading
import time

import pytest
import uvicorn

from artifacts_schema.errors import InputError
from flows.serving.app import Service, make_app
from flows.serving.writer import Writer

KEY = "a-key-of-more-than-16-letters"


class WordModel:
    """A token for each word. It answers with its prompt's last word, again and again."""

    context = 40

    def __init__(self):
        self.gate = threading.Event()
        self.gate.set()
        self.written = 0

    def encode_plain(self, text):
        return text.split()

    def encode_chat(self, messages, tools=None):
        if messages[0]["role"] == "assistant":
            raise InputError("a conversation begins with a user", where="messages")
        words = [word for one in messages for word in one["content"].split()]
        return words + (tools or "").split()

    def spelled_token(self, messages):
        return "<|x|>" if any("<|x|>" in one["content"] for one in messages) else None

    def write_tokens(self, ids, sampling, most):
        for number in range(most):
            assert self.gate.wait(30)
            if ids[-1] == "end" and number == 2:
                return
            if ids[-1] == "fault":
                raise KeyError("a bug")
            if ids[-1] == "break":
                raise InputError("the model gives a log-probability that is not finite")
            self.written += 1
            yield f"{ids[-1]} "


@pytest.fixture
def model():
    return WordModel()


@pytest.fixture
def url(model):
    """A server in a thread: its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    service = Service("me/sft", model, Writer(model, waiting=3), 1)
    app = make_app(service, hosts=frozenset({f"127.0.0.1:{port}"}), key=KEY)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}"
    model.gate.set()
    server.should_exit = True
    thread.join(20)
