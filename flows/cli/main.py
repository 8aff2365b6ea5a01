"""`ingot`: the group of all commands. It imports a command's module only when that command runs."""

from __future__ import annotations

import errno
import io
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

import click

from artifacts_schema.errors import OneLine, is_utf8
from flows.cli.output import echo, echo_error

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("flows.cli.init", "Write a recipe for a folder of your data."),
    "run": ("flows.cli.run", "Bring a recipe up to date."),
    "plan": ("flows.cli.run", "Say what a run would do, step by step, and why."),
    "recipes": ("flows.cli.run", "List the recipes that come with Ingot."),
    "watch": ("flows.cli.watch", "Follow a run in progress, here or elsewhere."),
    "runs": ("flows.cli.listing", "List the runs of a store."),
    "report": ("flows.cli.report", "Write a run as one HTML page to show to a colleague."),
    "metrics": ("flows.cli.metrics", "Print metrics of runs for Prometheus, or serve them."),
    "dask": ("flows.cli.dask", "Start a Dask cluster for data stages, here or on Slurm."),
    "doctor": ("flows.cli.doctor", "Check that a profile's pools can run its steps."),
    "stage": ("flows.cli.stage", "Run one stage by itself, or list the stages."),
    "snapshot": ("flows.cli.snapshot", "Pin files from outside under a name."),
    "ls": ("flows.cli.listing", "List artifacts and their names."),
    "show": ("flows.cli.listing", "Show everything an artifact says about itself."),
    "lineage": ("flows.cli.listing", "Show what an artifact was made of, or what was made of it."),
    "croissant": ("flows.cli.croissant", "Describe a data set as Croissant metadata."),
    "trace": ("flows.cli.trace", "Follow an artifact, or a training step, back to its records."),
    "show-masks": ("flows.cli.masks", "Show which tokens of conversations are learnt."),
    "account": ("flows.cli.training", "Show the tokens that a run plans to read, or has read."),
    "preflight": ("flows.cli.training", "Check a pretraining run before it starts, and time it."),
    "prove-resume": ("flows.cli.training", "Kill training, resume it, compare every bit."),
    "extend": ("flows.cli.continued", "Write the recipe that continues a run for longer."),
    "branch": ("flows.cli.continued", "Write the recipe that leaves a run at a checkpoint."),
    "why": ("flows.cli.why", "Follow a document from its record to its verdict and tokens."),
    "what-if": ("flows.cli.what_if", "Decide again with other thresholds, in memory."),
    "presets": ("flows.cli.presets", "List the rule presets, or how they judge a corpus."),
    "tasks": ("flows.cli.tasks", "List evaluation tasks, show one, write it for lm-eval."),
    "compare": ("flows.cli.compare", "Say which scores of two evaluations differ beyond chance."),
    "curves": ("flows.cli.curves", "Say which scores follow training, and which fell."),
    "gaps": ("flows.cli.gaps", "Say which parts of an evaluation lag: languages, subjects, …"),
    "compare-forms": ("flows.cli.compare_forms", "Say what the forms of a release cost."),
    "overlap": ("flows.cli.overlap", "Say how much of one corpus lies in another."),
    "chat": ("flows.cli.chat", "Talk to a checkpoint or a release."),
    "collect": ("flows.cli.collect", "Let people rank a model's answers; make pairs of them."),
    "serve": ("flows.cli.serve", "Let programs and a page talk to a model: OpenAI's protocol."),
    "complete": ("flows.cli.chat", "Let a checkpoint or a release continue a text."),
    "forget": ("flows.cli.forget", "List what holds a document, and exclude it from now on."),
    "cost": ("flows.cli.cost", "Say what artifacts cost, by stage, recipe, person or month."),
    "verify": ("flows.cli.maintenance", "Check that bytes in the store are what was committed."),
    "verify-release": ("flows.cli.release", "Repeat the check of a released folder, anywhere."),
    "disclose": ("flows.cli.disclose", "Draft what laws ask about training data."),
    "publish": ("flows.cli.publish", "Put a release or data set on the Hugging Face Hub."),
    "gc": ("flows.cli.maintenance", "Remove what nothing refers to."),
    "store": ("flows.cli.store", "Make a store, also one for a team; check its modes."),
    "schedule": ("flows.cli.server", "Run a recipe by the clock, or at new snapshots."),
    "notify": ("flows.cli.notify", "Send messages about runs: webhook, Slack, e-mail."),
    "up": ("flows.cli.server", "Start the local Prefect server, worker and forms."),
    "deploy": ("flows.cli.server", "Register forms and a work pool for a profile."),
    "down": ("flows.cli.server", "Stop what `ingot up` started."),
    "completion": ("flows.cli.install", "Let your shell complete commands, options and recipes."),
    "constraints": ("flows.cli.install", "Print the file of the versions that were tested."),
}
"""Command → the module that holds it as a function of that name, and its line in the help."""

NO_PATH = (errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EINVAL)
"""Errors of the system for an impossible path."""


class Commands(click.Group):
    """A group that knows its commands by table, and turns every error into one line and a code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the module of a command."""
        if name not in COMMANDS:
            return None
        command = getattr(import_module(COMMANDS[name][0]), name.replace("-", "_"))
        assert isinstance(command, click.Command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Name the nearest command when there is none of that name."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from artifacts_schema.config import did_you_mean

            raise click.UsageError(f"no command '{args[0]}'{did_you_mean(args[0], COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table, importing nothing."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> NoReturn:
        """Run, and leave with the exit code that the outcome has."""
        arguments = list(sys.argv[1:] if args is None else args)
        extra["standalone_mode"] = False
        try:
            _prepare_streams()
            _check_texts(arguments)
            code = super().main(arguments, *rest, **extra)
        except BaseException as error:
            if isinstance(error, SystemExit):
                raise
            code = _report(error, debug="--debug" in arguments)
        sys.exit(code if isinstance(code, int) else 0)


def _prepare_streams() -> None:
    """Let no character fail to be printed, and no warning reach the terminal raw."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(OneLine())


def _check_texts(arguments: Sequence[str]) -> None:
    """Raise UsageError for text from the shell that no file of Ingot's could hold.

    Such bytes reach Python as lone surrogates, and fail only where they are written as UTF-8.
    """
    from artifacts_schema.errors import UsageError

    if sys.getfilesystemencoding() != "utf-8":
        raise UsageError(
            f"the locale's encoding is {sys.getfilesystemencoding()}, not UTF-8",
            hint="set LC_ALL=C.UTF-8, or PYTHONUTF8=1",
        )
    texts = dict.fromkeys(arguments, "the command line")
    texts[os.environ.get("INGOT_STORE", "")] = "INGOT_STORE"
    with suppress(FileNotFoundError):
        texts[os.getcwd()] = "the current folder"
    for text, where in texts.items():
        if not is_utf8(text):
            raise UsageError(f"'{text}' is not UTF-8", where=where, hint="rename it")


def _report(error: BaseException, *, debug: bool) -> int:
    """Print an error in one line (its traceback too with `--debug`); returns the exit code."""
    from artifacts_schema.errors import EXIT_FAILED, EXIT_RESUME, EXIT_USAGE, IngotError

    if debug and not isinstance(error, click.ClickException | click.exceptions.Exit):
        echo("".join(traceback.format_exception(error)).rstrip(), err=True)
    if isinstance(error, IngotError):
        echo_error(error)
        return error.exit_code
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.ClickException):
        usage = getattr(error, "ctx", None)
        hint = f" (see `{usage.command_path} --help`)" if usage is not None else ""
        echo_error(f"{error.format_message().rstrip('.')}{hint}")
        return EXIT_USAGE
    if isinstance(error, KeyboardInterrupt | click.Abort):
        echo("stopped; the same command continues", err=True)
        return EXIT_RESUME
    if isinstance(error, BrokenPipeError):
        # The reader went away (`ingot ls | head`); nothing is wrong, and nothing is left to print.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    from artifacts_schema.store.storage_errors import system_error

    if known := system_error(error):
        echo_error(known)
        return known.exit_code
    if isinstance(error, OSError) and error.errno in NO_PATH:
        echo_error(f"{error.filename}: {error.strerror}")
        return EXIT_USAGE
    more = "" if debug else " (--debug shows where; this is a bug in Ingot, please report it)"
    echo_error(f"{type(error).__name__}: {error}{more}")
    return EXIT_FAILED


def _version(ctx: click.Context, _parameter: click.Parameter, is_set: bool) -> None:
    if is_set:
        from importlib.metadata import version

        echo(f"ingot {version('ingot')}")
        ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version,
    help="Show the version.",
)  # fmt: skip
def main() -> None:
    """From a raw web crawl to a released language model.

    Every command takes --store (or INGOT_STORE) and --debug; every command that reads takes --json.
    """
