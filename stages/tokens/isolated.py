"""Data that somebody else wrote, tried in an isolated Python: chat templates and tokenizers.

`try_isolated` runs this file as a script, with limits on memory, processor time and the length of
what comes back. So the file imports nothing of Ingot.
"""

import datetime
import json
import os
import resource
import subprocess
import sys
from typing import Any

TEXTS = (
    "The quick brown fox jumps over the lazy dog.",
    " leading and trailing ",
    "two  spaces,   three\tand\ttabs\n\n\nlines\r\nof another\rkind \n ",
    "def f(x):\n\treturn  x ** 2   # it's 1,000,000 or 0x1F\n",
    "0 12 345 6789 3.14159",
    "naïve café, Übergröße, ﬁne ½ Ⅷ ① ™",
    "e\u0301 and \u00e9, A\u030a and \u00c5, \uac00 and \u1100\u1161",
    "Привет, мир! Γειά σου. שלום مرحبا नमस्ते สวัสดี",
    "你好，世界。こんにちは、ｶﾀｶﾅ。안녕하세요.",
    "👩‍👩‍👧 🏳️‍🌈 𝒳 🇩🇪",
    "zero\u200bwidth, non\u00a0breaking, soft\u00adhyphen, \ufeff, \u2028, \u3000.",
    "\x00 \x01 \x1b[0m \x7f \ufffd \ufffe \U0010fffd",
    "UPPER lower Title MiXeD ß ẞ İ ı",
    "<s> </s> <unk> [CLS] [SEP] ▁ Ġ Ċ ##x @@ <0x0A>",
    "",
)
"""What a tokenizer is tried with."""

CHARACTERS = 1_000_000
"""Of the longest prompt that a template may render."""


class FixedDate:
    """Stands for `datetime` inside a template: the date that the request names."""

    moment = datetime.datetime(2024, 7, 26)

    @classmethod
    def now(cls) -> datetime.datetime:
        """Always the same moment."""
        return cls.moment


class Renderer:
    """A template with the special tokens that it may name, at a fixed date."""

    def __init__(self, template: str, tokens: dict[str, str], date: str) -> None:
        import transformers.utils.chat_template_utils as library

        FixedDate.moment = datetime.datetime.fromisoformat(date)
        vars(library)["datetime"] = FixedDate
        self._render = library.render_jinja_template
        self.template, self.tokens = template, dict[str, Any](tokens)

    def __call__(
        self, messages: list[Any], tools: list[Any] | None = None, ask: bool = False
    ) -> str:
        """The text of `messages`; with `ask`, up to where the assistant begins to speak."""
        rendered: str = self._render(
            [messages],
            tools=tools,
            chat_template=self.template,
            add_generation_prompt=ask,
            **self.tokens,
        )[0][0]
        if len(rendered) > CHARACTERS:
            raise ValueError(f"it gives {len(rendered):,} characters, more than {CHARACTERS:,}")
        return rendered


def render_template(request: dict[str, Any]) -> str:
    """Render `template` with `messages` and `tokens` up to where the assistant begins to speak."""
    render = Renderer(request["template"], request["tokens"], request["date"])
    return render(request["messages"], ask=True)


def render_conversations(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Each conversation ({"messages", "tools"}) as texts, with where its answers lie.

    {"rows": [{"text", "marked", "messages", "answers": [[message, start, end, exact], …]}]}, or
    {"failed": why}. A row has the first `messages` of the conversation; an answer begins where the
    prompt of inference ends (`exact`), or where the two part. Where the text up to each answer is
    how the whole begins, there is one row, else one for each answer, with the earlier turns as
    inference would show them. `marked` is the text with `MARK`, the number of the message and
    `MARK` in place of each content, or null.
    """
    render = Renderer(request["template"], request["tokens"], request["date"])
    return [
        _conversation(render, one["messages"], one["tools"]) for one in request["conversations"]
    ]


MARK = "\ufdd1"
"""A character that no text may hold: it bounds what stands for a content."""


def _conversation(render: Renderer, messages: list[Any], tools: Any) -> dict[str, Any]:
    """As `render_conversations`; arguments of calls are objects, or text where that fails."""
    try:
        return {"rows": _rows(render, [_with_objects(one) for one in messages], tools)}
    except Exception:  # Older templates join arguments to a text.
        try:
            return {"rows": _rows(render, messages, tools)}
        except Exception as error:  # What a template raises is its own affair.
            return {"failed": f"{type(error).__name__}: {error}"[:200]}


def _with_objects(message: dict[str, Any]) -> dict[str, Any]:
    if "tool_calls" not in message:
        return message
    calls = []
    for call in message["tool_calls"]:
        arguments = json.loads(call["function"]["arguments"])
        calls.append({**call, "function": {**call["function"], "arguments": arguments}})
    return {**message, "tool_calls": calls}


def _rows(render: Renderer, messages: list[Any], tools: Any) -> list[dict[str, Any]]:
    whole = render(messages, tools)
    if tools and whole == render(messages):
        raise ValueError("it leaves out the tools that the conversation offers")
    answers = []
    for number, message in enumerate(messages):
        if message["role"] == "assistant":
            prompt = render(messages[:number], tools, ask=True)
            through = render(messages[: number + 1], tools)
            same = _common(prompt, through)
            answers.append((through, [number, same, len(through), same == len(prompt)]))
    rows: list[dict[str, Any]]
    if all(whole.startswith(through) for through, _ in answers):
        spans = [span for _, span in answers]
        rows = [{"text": whole, "messages": len(messages), "answers": spans}]
    else:
        rows = [
            {"text": through, "messages": span[0] + 1, "answers": [span]}
            for through, span in answers
        ]
    for row in rows:
        row["marked"] = _marked(render, messages[: row["messages"]], tools)
    return rows


def _common(first: str, second: str) -> int:
    """Characters that both begin with."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(first), len(second)))


def _marked(render: Renderer, messages: list[Any], tools: Any) -> str | None:
    marked = [
        {**one, "content": f"{MARK}{number}{MARK}"} if one["content"].strip() else one
        for number, one in enumerate(messages)
    ]
    try:
        return render(marked, tools)
    except Exception:  # The contents are then looked for in the text itself.
        return None


def probe_tokenizer(description: str) -> dict[str, list[str]]:
    """Encode and decode `TEXTS` with a tokenizer.json.

    Returns {"lost": texts that are decoded to others, "special": special tokens that a text can
    spell}.
    """
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(description)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    lost = []
    for text in TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        if tokenizer.decode(ids, skip_special_tokens=False) != text:
            lost.append(text)
    special = []
    for index, token in sorted(tokenizer.get_added_tokens_decoder().items()):
        texts = (token.content, f"a{token.content}b", f" {token.content} ")
        encodings = (tokenizer.encode(text, add_special_tokens=False).ids for text in texts)
        if token.special and any(index in ids for ids in encodings):
            special.append(token.content)
    return {"lost": lost, "special": special}


TASKS = {task.__name__: task for task in (render_template, render_conversations, probe_tokenizer)}


def try_isolated(
    task: str, request: Any, *, seconds: int, processor_seconds: int, memory: int
) -> dict[str, Any]:
    """{"result": what the task returns}, or {"failed": why there is no result}.

    `seconds` limits the whole call, `processor_seconds` and `memory` (bytes) the process.
    """
    # -I: no environment, user site or working directory on its path.
    command = [sys.executable, "-I", __file__, task, str(processor_seconds), str(memory)]
    try:
        process = subprocess.run(
            command,
            input=json.dumps(request).encode(),
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"it is not done within {seconds} s"}
    lines = process.stdout.decode("utf-8", "replace").splitlines()
    if process.returncode or not lines:
        code = process.returncode
        ending = f"signal {-code}" if code < 0 else f"code {code}"
        last = process.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        return {"failed": f"its process ended with {ending} {' '.join(last)[:200]}".strip()}
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def _answer(task: str, processor_seconds: int, memory: int) -> dict[str, Any]:
    os.environ.update(HF_HUB_OFFLINE="1", USE_TORCH="0")
    os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1")
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (processor_seconds, processor_seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        return {"result": TASKS[task](json.load(sys.stdin))}
    except MemoryError:
        return {"failed": "it takes more memory than it may"}
    except BaseException as error:  # A panic of a library written in Rust is no Exception.
        return {"failed": f"{type(error).__name__}: {error}"[:300]}


if __name__ == "__main__":
    print(json.dumps(_answer(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
