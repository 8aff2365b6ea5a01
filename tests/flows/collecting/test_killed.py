"""The server killed while people judge: what it acknowledged is kept, each prompt judged once."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from flows.collecting.collection import JUDGEMENTS
from flows.collecting.lines import read_lines
from tests.flows.collecting.conftest import answer_row

PEOPLE, PROMPTS = 4, 400


@pytest.fixture
def start(tmp_path):
    """`start(folder)` → a server's process, and the address and header for its clients."""
    processes = []

    def begin(folder):
        key = tmp_path / "key"
        arguments = ["collect", "--into", str(folder), "--port", "0", "--key-file", str(key)]
        command = [sys.executable, "-m", "ingot_entry", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        line = process.stdout.readline()
        url = re.search(r"http://\S+/", line)
        assert url, line
        return process, url[0], {"Authorization": f"Bearer {key.read_text().strip()}"}

    yield begin
    for process in processes:
        process.kill()
        process.wait()


def judge_until_killed(url, headers, who, draws, acknowledged):
    """Judge and take back, as long as the server answers."""
    window = f"{draws.getrandbits(128):032x}"
    body = {"who": who, "window": window}
    with httpx.Client(base_url=url, headers=headers, timeout=30) as client:
        while True:
            try:
                question = client.post("/next", json=body).json()["question"]
                number = f"{draws.getrandbits(128):032x}"
                more = {"id": number, "prompt": question["prompt"], "verdict": "ranked"}
                ranks = list(range(1, len(question["answers"]) + 1))
                answer = client.post("/judgements", json={**body, **more, "ranks": ranks})
                assert answer.is_success, answer.text
                acknowledged.append(number)
                if draws.random() < 0.2:
                    number = f"{draws.getrandbits(128):032x}"
                    answer = client.post("/undo", json={**body, "id": number})
                    assert answer.is_success, answer.text
                    acknowledged.append(number)
            except httpx.TransportError:
                return


def test_what_was_acknowledged_is_in_the_file_after_any_kill(make_collection, start):
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    draws = random.Random(seed)
    folder = make_collection([answer_row(n, ["one", "two"]) for n in range(PROMPTS)]).folder
    acknowledged = []
    for _ in range(3):
        process, url, headers = start(folder)
        before, target = len(acknowledged), len(acknowledged) + draws.randrange(5, 60)
        with ThreadPoolExecutor(PEOPLE) as pool:
            people = [
                pool.submit(
                    judge_until_killed,
                    *(url, headers, f"P{number}", random.Random(draws.random()), acknowledged),
                )
                for number in range(PEOPLE)
            ]
            while len(acknowledged) < target and not any(one.done() for one in people):
                threading.Event().wait(0.001)
            process.kill()
            process.wait()
        for one in people:
            one.result()
        assert len(acknowledged) > before
        kept = [row["id"] for row in read_lines(folder / JUDGEMENTS)]
        assert set(acknowledged) <= set(kept)
        assert len(kept) == len(set(kept))
        assert len(kept) - len(acknowledged) <= 3 * PEOPLE, "one a person may be on its way"
    rows = read_lines(folder / JUDGEMENTS)
    undone = {row["undoes"] for row in rows if "undoes" in row}
    holding = [row["prompt"] for row in rows if "undoes" not in row and row["id"] not in undone]
    assert len(holding) == len(set(holding)), "no prompt was judged by two people"
