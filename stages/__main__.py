"""`python -P -m stages NAME --store URL --spec URI [--key K]`: run one stage, here, now.

The entry that a child process, a Slurm job or a pod runs. It needs neither flows nor Prefect. Exit
codes: 0 done or reused, 1 failed, 2 wrong spec or input, 75 stopped on request (run again to go
on).
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import traceback

from artifacts_schema.errors import (
    EXIT_FAILED,
    EXIT_OK,
    IngotError,
    InputError,
    UsageError,
    printable_lines,
)
from artifacts_schema.files import open_regular
from artifacts_schema.identity import short
from artifacts_schema.store.storage_errors import system_error
from stages.engine.spec import WAIT_POLICY


def main(arguments: list[str] | None = None) -> int:
    """Parse, run, report; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -P -m stages", description=__doc__.splitlines()[0]
    )
    parser.add_argument("name", help="the stage")
    parser.add_argument("--store", required=True, help="URL of the store")
    parser.add_argument("--spec", required=True, help="path or URL of the stage spec (JSON)")
    parser.add_argument("--key", help="the key that the spec must have here: 8 digits or more")
    parser.add_argument("--force", action="store_true", help="run even if the artifact exists")
    parser.add_argument(
        "--accept-code", action="store_true", help="continue from the work of another program"
    )
    parser.add_argument(
        "--machine",
        type=int,
        default=0,
        metavar="N",
        help="number of this machine, of a run on several: 0 starts it, the others join",
    )
    parser.add_argument(
        "--lease-wait",
        type=float,
        metavar="SECONDS",
        help="how long to wait for another run of the key, then exit 75; no limit by default",
    )
    options = parser.parse_args(arguments)
    for name, value in WAIT_POLICY.items():  # Before a library with threads is loaded.
        os.environ.setdefault(name, value)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2):
        signal.signal(number, lambda _number, _frame: stop.set())
    try:
        return _run(options, stop)
    except IngotError as error:
        print(printable_lines(f"error: {error}"), file=sys.stderr)
        return error.exit_code
    except Exception as error:
        if known := system_error(error):
            print(printable_lines(f"error: {options.name}: {known}"), file=sys.stderr)
            return known.exit_code
        print(printable_lines(traceback.format_exc().rstrip()), file=sys.stderr)
        message = f"error: {options.name} failed: {type(error).__name__}: {error}"
        print(printable_lines(message), file=sys.stderr)
        return EXIT_FAILED


def _run(options: argparse.Namespace, stop: threading.Event) -> int:
    from artifacts_schema.store import Store
    from stages.engine.runner import join_stage, run_stage
    from stages.engine.spec import StageSpec

    spec = StageSpec.from_json(_read(options.spec), where=options.spec)
    if spec.stage != options.name:
        raise UsageError(
            f"the spec is for stage '{spec.stage}', not '{options.name}'", where=options.spec
        )
    # Where this runs is no place to start a store: it may be a volume that is not mounted here.
    store = Store.open(options.store, create=False)
    if options.machine:
        if options.key is not None:
            spec.check_key(options.key)
        join_stage(store, spec, options.machine, stop=stop.is_set)
        print(f"machine {options.machine} is done with {spec.stage} {short(spec.key)}")
        return EXIT_OK
    outcome = run_stage(
        store,
        spec,
        expected_key=options.key,
        force=options.force,
        accept_code=options.accept_code,
        stop=stop.is_set,
        lease_wait=options.lease_wait,
    )
    verb = "reused" if outcome.reused else "made"
    print(f"{verb} {spec.stage} {short(outcome.manifest.key)}")
    return EXIT_OK


def _read(uri: str) -> bytes:
    from artifacts_schema.store.remote import backend_at

    folder, _, name = uri.rpartition("/")
    try:
        if "://" not in uri:
            with open_regular(uri) as file:
                return file.read()
        return backend_at(folder or ".").read(name)
    except OSError as error:
        raise InputError(f"cannot read the spec: {error}", where=uri) from None


if __name__ == "__main__":
    sys.exit(main())
