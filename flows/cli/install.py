"""`ingot completion` and `ingot constraints`: what is set up around an installed Ingot."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from artifacts_schema.errors import UsageError
from flows.cli.options import debug_option
from flows.cli.output import echo

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_INGOT_COMPLETE"
STARTUP = {"bash": ".bashrc", "zsh": ".zshrc"}
"""Where a shell reads what to load; fish loads a folder of completions by itself."""
_ZSH_HEAD = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n"
"""click's script calls `compdef`, which a bare zsh does not have."""


@click.command("constraints")
@debug_option
def constraints() -> None:
    """Print the file of the versions that were tested together, for `pip install -c`."""
    from ingot_entry import CONSTRAINTS

    echo(str(CONSTRAINTS))


@click.command("completion")
@click.argument("action", type=click.Choice(["install", "print"]))
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@debug_option
def completion(action: str, shell: str | None) -> None:
    """Install or print the script by which a shell completes commands, options and recipes.

    SHELL is that of $SHELL where none is named. `install` writes the script, for fish to its own
    folder, else to Ingot's folder with a line in .bashrc or .zshrc that loads it.
    """
    shell = shell or _own_shell()
    script = completion_script(shell)
    if action == "print":
        echo(script, nl=False)
        return
    path, startup = install_script(shell, script)
    echo(f"wrote {path}" + (f"; {startup} loads it" if startup else ""))
    echo("new shells complete: ingot <Tab>")


def _own_shell() -> str:
    name = Path(os.environ.get("SHELL", "")).name
    if name not in SHELLS:
        what = f"$SHELL is '{name}'" if name else "$SHELL is not set"
        raise UsageError(what, hint=f"name the shell: {', '.join(SHELLS)}")
    return name


def completion_script(shell: str) -> str:
    """click's script for one of SHELLS."""
    from flows.cli.main import main

    kind = get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    # Not `source()`: click would run bash for its version, and print to this terminal.
    complete = kind(main, {}, "ingot", VARIABLE)
    script = complete.source_template % complete.source_vars()
    return _ZSH_HEAD + script.lstrip() if shell == "zsh" else script.lstrip()


def install_script(shell: str, script: str) -> tuple[Path, Path | None]:
    """Write a script where its shell will load it; returns its path and the startup file.

    A startup file gets one line, once; its other lines stay as they are.
    """
    from flows.orchestration.local_state import home

    if shell == "fish":
        config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        path = config / "fish" / "completions" / "ingot.fish"
    else:
        path = home() / f"completion.{shell}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script, encoding="utf-8")
    if shell == "fish":
        return path, None
    folder = os.environ.get("ZDOTDIR") if shell == "zsh" else None
    startup = Path(folder or Path.home()) / STARTUP[shell]
    line = f'[ -r "{path}" ] && . "{path}"'
    before = startup.read_text(encoding="utf-8") if startup.exists() else ""
    if line not in before.splitlines():
        gap = "\n" if before and not before.endswith("\n") else ""
        with startup.open("a", encoding="utf-8") as file:
            file.write(f"{gap}# Completion of `ingot`\n{line}\n")
    return path, startup
