import pytest

from .judge_server import JudgeServer


@pytest.fixture
def serve():
    """`serve(reply)` → an endpoint on loopback; see `JudgeServer`."""
    servers = []

    def start(reply):
        servers.append(JudgeServer(reply))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def message(role, content):
    return {"role": role, "content": content, "reasoning": None, "tool_calls": [],
            "tool_call_id": None, "name": None, "weight": None}  # fmt: skip


@pytest.fixture
def preferences(given):
    """`preferences(count)` → pairs whose better answer holds the word `good`."""

    def make(count):
        rows = [
            {"preference_id": f"{n:032x}", "source": "people", "tools": None, "metadata": "{}",
             "prompt": [message("user", f"Question {n}?")],
             "chosen": [message("assistant", f"A good answer {n}.")],
             "rejected": [message("assistant", f"A poor answer {n}.")]}
            for n in range(count)
        ]  # fmt: skip
        return given("preferences", {"00000.parquet": rows})

    return make


@pytest.fixture
def evaluation(given):
    """`evaluation({prompt: answer})` → an evaluation with these generations."""

    def make(answers):
        rows = [
            {"prompt": prompt, "completion": text, "form": "chat", "benchmark": None}
            for prompt, text in answers.items()
        ]
        return given(
            "evaluation",
            {"results.parquet": [], "items.parquet": [], "choices.parquet": [],
             "answers.parquet": [], "generations.parquet": rows, "tasks.json": []},
        )  # fmt: skip

    return make
