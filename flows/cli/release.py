"""`ingot verify-release`: repeat the check by which a release was made."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import click

from flows.cli.options import json_option
from flows.cli.output import echo, print_json


@click.command("verify-release")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--python", metavar="PATH",
    help="Load it by this Python, which has torch and transformers; with --gguf, llama-cpp-python.",
)  # fmt: skip
@click.option(
    "--gguf", metavar="FILE", type=click.Path(path_type=Path),
    help="Compare what llama.cpp makes of this file with the certificate.",
)  # fmt: skip
@json_option
def verify_release(folder: Path, python: str | None, gguf: Path | None, as_json: bool) -> None:
    """Compare every file of a released FOLDER with its certificate, then what it computes.

    A fresh process loads the certified files by torch and transformers alone: logits, token ids,
    chat and the tokens that the model goes on with are those that Ingot computed. Code in the
    folder is never run. Files that differ are named one by one, and then nothing is loaded.

    With --gguf it is a GGUF file of the same model that is compared with the certificate of FOLDER:
    token ids by llama.cpp must be equal, and logits of a file of type F32 within 2e-4.
    """
    chosen = None if python is None else os.path.abspath(python)
    if gguf is not None:
        _verify_gguf(folder, gguf, chosen, as_json)
        return
    from stages.export.certificate import repeat_check

    result = repeat_check(folder, chosen)
    if as_json:
        print_json(asdict(result))
        return
    echo(f"files       {result.files} as certified, {result.bytes:,} bytes")
    for name in result.uncertified:
        echo(f"            {name}: not in the certificate, not loaded")
    compared = "scores" if result.generation == "none" else "logits"
    echo(f"{compared}      {result.logit_difference:.1e} apart on {result.tokens} tokens")
    echo("token ids   equal")
    echo("chat        equal")
    echo(f"generation  {result.generation}")
    if result.form is not None:
        echo(f"weights     {result.form} (matrices of layers)")
    echo(f"by          transformers {result.transformers}, torch {result.torch}")


def _verify_gguf(folder: Path, file: Path, python: str | None, as_json: bool) -> None:
    from stages.export.gguf_check import check_gguf

    result = check_gguf(folder, file, python)
    if as_json:
        print_json(asdict(result))
        return
    echo(f"type        {result.type}")
    echo(f"token ids   equal, {result.texts} texts")
    echo(f"logits      {result.logit_difference:.1e} apart on {result.tokens} tokens")
