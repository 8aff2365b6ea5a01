"""`ingot chat REF` and `ingot complete REF PROMPT`: write with a model of the store."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from flows.analysis.artifacts import format_title, open_store, refs_by_artifact
from flows.cli.options import combine, json_option, store_option
from flows.cli.output import echo, print_json

if TYPE_CHECKING:
    from flows.analysis.chat import Conversation, LanguageModel
    from stages.scoring.generation import Sampling

HELP = "/clear forgets the conversation, /system TEXT begins one, /seed N, /exit"

sampling_options = combine(
    click.option(
        "--max-tokens", type=click.IntRange(min=1), default=256, show_default=True, metavar="N",
        help="Most tokens of one answer.",
    ),
    click.option(
        "--temperature", type=click.FloatRange(0, 10), default=0.7, show_default=True,
        help="0 takes the likeliest token each time.",
    ),
    click.option(
        "--top-p", type=click.FloatRange(0, 1), default=0.95, show_default=True,
        help="Draw from the likeliest tokens that have this probability together.",
    ),
    click.option(
        "--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True,
        help="Of the draws; equal seeds give equal texts on one machine.",
    ),
    click.option(
        "--device", metavar="NAME", help="cpu, cuda or cuda:N; by default a GPU if there is one."
    ),
)  # fmt: skip


@click.command("complete")
@click.argument("ref")
@click.argument("prompt")
@sampling_options
@click.option(
    "--backend",
    type=click.Choice(["torch", "vllm"]),
    default="torch",
    show_default=True,
    help="vllm: a release, on a GPU, by the extra of that name; untried on one.",
)
@store_option
@json_option
def complete(
    ref: str, prompt: str, backend: str, store: str, as_json: bool, **options: Any
) -> None:
    """Let the model REF continue PROMPT as the beginning of a document.

    REF is a checkpoint or release: a name in the store, or a key of 6 or more digits.
    """
    sampling, most = _sampling(**options)
    if backend == "vllm":
        pieces = _write_by_vllm(store, ref, prompt, sampling, most)
    else:
        _, model = _load(store, ref, options["device"])
        pieces = model.write(model.encode_text(prompt), sampling, most)
    if as_json:
        print_json({"prompt": prompt, "completion": "".join(pieces)})
        return
    echo(prompt, nl=False)
    _stream(pieces)


@click.command("chat")
@click.argument("ref")
@click.option(
    "--message", "messages", multiple=True, metavar="TEXT",
    help="Say this and leave; may be repeated, in order.",
)  # fmt: skip
@click.option("--system", metavar="TEXT", help="The system message that begins the conversation.")
@sampling_options
@store_option
@json_option
def chat(
    ref: str,
    messages: tuple[str, ...],
    system: str | None,
    store: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Talk to the model REF: a line is a turn, Ctrl-C ends an answer, Ctrl-D the conversation.

    REF is a checkpoint or release: a name in the store, or a key of 6 or more digits. A model that
    was never tuned on conversations continues each line as a text. Lines of a pipe are turns too.
    """
    from flows.analysis.chat import Conversation

    title, model = _load(store, ref, options["device"])
    tuned = model.template is not None
    if not tuned:
        echo("this model was never tuned to answer: it continues what you write", err=True)
    begin = [{"role": "system", "content": system}] if system and tuned else []
    conversation = Conversation(model, *_sampling(**options), list(begin))
    if as_json or messages:
        texts = messages or tuple(_lines(""))
        answers = [_answer(conversation, text, as_json) for text in texts]
        if as_json:
            exchanges = zip(texts, answers, strict=True)
            print_json({"model": title, "turns": [{"user": u, "model": m} for u, m in exchanges]})
        return
    if sys.stdin.isatty():
        echo(f"{title}; context {model.context:,} tokens. {HELP}", err=True)
    for line in _lines("> "):
        if line.startswith("/"):
            if not _obey(conversation, line):
                return
        elif line.strip():
            _answer(conversation, line)


def _load(store: str, ref: str, device: str | None) -> tuple[str, LanguageModel]:
    """What to call the model, and the model."""
    from flows.analysis.chat import find_model, load_model

    opened = open_store(store)
    manifest, output = find_model(opened, ref)
    title = format_title(manifest, refs_by_artifact(opened))
    return title, load_model(opened, manifest, output, choose_device(device))


def _write_by_vllm(
    store: str, ref: str, prompt: str, sampling: Sampling, most: int
) -> Iterator[str]:
    from flows.analysis.chat import complete_by_vllm, find_model

    opened = open_store(store)
    manifest, output = find_model(opened, ref)
    yield complete_by_vllm(opened, manifest, output, prompt, sampling, most)


def choose_device(name: str | None) -> str:
    """The device of `--device`, by default a GPU if there is one; UsageError for none."""
    import torch

    from artifacts_schema.errors import UsageError

    if name is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"--device {name}: {str(error).splitlines()[0]}") from None
    return name


def _sampling(
    max_tokens: int, temperature: float, top_p: float, seed: int, device: str | None
) -> tuple[Sampling, int]:
    from stages.scoring.generation import Sampling

    return Sampling(temperature, top_p, seed), max_tokens


def _answer(conversation: Conversation, text: str, quiet: bool = False) -> str:
    """Say `text`, print the answer as it comes unless `quiet`; returns it."""
    model = conversation.model
    if model.template is None:
        pieces = model.write(
            model.encode_text(text), conversation.sampling, conversation.max_new_tokens
        )
        if not quiet:
            echo(text, nl=False)
    else:
        pieces = conversation.ask(text)
    if quiet:
        return "".join(pieces)
    answer = _stream(pieces)
    if conversation.skipped:
        echo(f"({conversation.skipped} earlier messages no longer fit the context)", err=True)
    return answer


def _stream(pieces: Iterator[str]) -> str:
    """Print pieces as they come, up to Ctrl-C; returns their text."""
    written: list[str] = []
    try:
        for piece in pieces:
            written.append(piece)
            echo(piece.replace("\t", "    "), nl=False)
    except KeyboardInterrupt:
        echo(" …", nl=False)
    echo()
    return "".join(written)


def _lines(prompt: str) -> Iterator[str]:
    """Lines of the standard input; asked for with `prompt` on a terminal."""
    if not sys.stdin.isatty():
        for line in sys.stdin:
            yield line.rstrip("\r\n")
        return
    import readline  # noqa: F401 - gives `input` a history and keys to edit with

    while True:
        try:
            yield input(prompt)
        except (EOFError, KeyboardInterrupt):
            echo()
            return


def _obey(conversation: Conversation, line: str) -> bool:
    """Do what a line that begins with `/` says; False to leave."""
    word, _, rest = line.partition(" ")
    if word == "/exit":
        return False
    if word == "/clear":
        conversation.messages.clear()
    elif word == "/system" and conversation.model.template is not None:
        conversation.messages[:] = [{"role": "system", "content": rest}] if rest else []
    elif word == "/seed" and rest.strip().isdecimal():
        conversation.sampling = replace(conversation.sampling, seed=int(rest) % 2**31)
    else:
        echo(HELP, err=True)
    return True
