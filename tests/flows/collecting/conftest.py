"""A collection of made-up answers, a desk over it, and a server in a thread."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest
import uvicorn

from flows.collecting.app import make_app
from flows.collecting.collection import ANSWERS, JUDGEMENTS, Collection, Settings
from flows.collecting.desk import Desk
from flows.collecting.lines import DurableLines

KEY = "a-key-of-more-than-16-letters"


def make_settings(**changes):
    values = {
        "model": "me/sft",
        "checkpoint": "sft/" + "a" * 64 + ":checkpoint",
        "digest": "b" * 64,
        "snapshot": "questions",
        "snapshot_digest": "c" * 64,
        "prompts": None,
        "answers": 3,
        "seed": 7,
        "temperature": 1.0,
        "top_p": 1.0,
        "max_tokens": 16,
        "twice": 0.0,
    }
    return Settings(**{**values, **changes})


def prompt_id(number):
    return f"{number:032x}"


def answer_row(number, texts, **changes):
    answers = [{"text": text, "ending": "end", "tokens": 3} for text in texts]
    messages = [{"role": "user", "content": f"Question {number}?", "weight": None}]
    row = {"prompt": prompt_id(number), "messages": messages, "tools": None, "answers": answers}
    return {**row, "excluded": None, **changes}


@pytest.fixture
def make_collection(tmp_path):
    """`make_collection(rows, **settings)`: a folder with these lines of answers."""

    def make(rows=None, **settings):
        if rows is None:
            rows = [answer_row(n, [f"one {n}", f"two {n}", f"three {n}"]) for n in range(4)]
        collection = Collection.begin(tmp_path / "helpful", make_settings(**settings))
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (collection.folder / ANSWERS).write_text(text)
        return Collection.open(collection.folder)

    return make


@pytest.fixture
def open_desk(make_collection):
    """`open_desk(**options)`: a desk over a collection; `again=True` as after a restart."""
    opened = []

    def make(rows=None, *, twice=0.0, again=False, **options):
        if again:
            opened[-1].close()
            collection = Collection.open(opened[-1].path.parent)
        else:
            collection = make_collection(rows, twice=twice)
        opened.append(DurableLines(collection.folder / JUDGEMENTS))
        return Desk(collection.questions, opened[-1], twice=twice, seed=7, **options)

    yield make
    if opened:
        opened[-1].close()


@pytest.fixture
def desk(open_desk):
    return open_desk()


@pytest.fixture
def url(desk):
    """A server in a thread: its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    app = make_app(desk, "helpful", hosts=frozenset({f"127.0.0.1:{port}"}), key=KEY)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(20)
