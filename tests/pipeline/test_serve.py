"""`ingot serve` on what the tiny recipe trained: the `openai` client, a process of its own."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys

import httpx
import pytest
from click.testing import CliRunner

from flows.cli.main import main

openai = pytest.importorskip("openai")


@pytest.fixture
def serve(ran, tmp_path):
    """`serve(ref)` → its process and a client that has the key."""
    processes = []

    def start(ref="tiny/dpo", key=None):
        arguments = ["--port", "0", "--device", "cpu", "--key-file", str(tmp_path / "key")]
        command = [sys.executable, "-m", "ingot_entry", "serve", ref, "--store", str(ran.folder)]
        process = subprocess.Popen(
            [*command, *arguments],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        processes.append(process)
        line = process.stdout.readline()
        url = re.search(r"http://\S+/v1", line)
        assert url, line
        secret = (tmp_path / "key").read_text().strip()
        client = openai.OpenAI(base_url=url[0], api_key=key or secret, max_retries=0, timeout=60)
        return process, client

    yield start
    for process in processes:
        process.kill()
        process.wait()


QUESTION = [{"role": "user", "content": "What does open do? <|im_end|>"}]


def test_completion_chat_stream_and_the_same_answer_as_ingot_chat(serve, ran):
    process, client = serve()
    (model,) = client.models.list().data
    assert model.id == "tiny/dpo"
    text = client.completions.create(model=model.id, prompt="The module", max_tokens=5, seed=1)
    assert text.usage.completion_tokens <= 5
    options = {"model": model.id, "messages": QUESTION, "max_tokens": 16, "seed": 0}
    whole = client.chat.completions.create(**options)
    pieces = client.chat.completions.create(**options, stream=True)
    written = "".join(one.choices[0].delta.content or "" for one in pieces if one.choices)
    assert written == whole.choices[0].message.content
    command = ["chat", "tiny/dpo", "--message", QUESTION[0]["content"], "--max-tokens", "16"]
    told = CliRunner().invoke(main, [*command, "--store", str(ran.folder), "--device", "cpu"])
    assert told.stdout.rstrip("\n") == written.replace("\t", "    ")
    with pytest.raises(openai.BadRequestError) as refused:
        client.completions.create(model=model.id, prompt="open " * 5000)
    assert refused.value.code == "context_length_exceeded"
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0


def test_a_wrong_key_and_a_server_that_is_killed_in_the_middle(serve):
    _, stranger = serve(key="not-the-key")
    with pytest.raises(openai.AuthenticationError):
        stranger.models.list()
    process, client = serve()
    pieces = client.completions.create(
        model="tiny/dpo", prompt="The", max_tokens=4000, stream=True, temperature=5
    )
    ended = [next(iter(pieces)).choices[0].finish_reason]
    process.kill()
    # What was cut does not look whole: an error, unless all of it was sent before.
    try:
        ended += [one.choices[0].finish_reason for one in pieces]
    except (openai.APIError, httpx.TransportError):
        assert ended == [None]
    else:
        assert ended[-1] == "length"


def test_a_port_in_use_and_a_key_that_others_can_read_are_one_line(ran, tmp_path):
    def error(*options):
        arguments = ["serve", "tiny/dpo", "--store", str(ran.folder), *options]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code != 0
        return result.stderr

    key = tmp_path / "key"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"port {port} cannot be had" in error("--port", port, "--key-file", str(key))
    assert key.stat().st_mode & 0o777 == 0o600
    key.chmod(0o644)
    assert "others can read the key" in error("--port", "0", "--key-file", str(key))
    key.chmod(0o600)
    key.write_text("short")
    assert "this is no key" in error("--port", "0", "--key-file", str(key))
