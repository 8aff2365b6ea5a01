"""Actions in a forked copy of this process, where everything is imported already."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable

from artifacts_schema.errors import LeaseLost

LOST = 7
"""Exit code of a fork that ended with LeaseLost."""


def fork(action: Callable[[], object]) -> int:
    """Run `action` in a forked child; its process id. It exits with 3 after an exception."""
    child = os.fork()
    if child == 0:
        code = 3
        try:
            action()
            code = 0
        except LeaseLost:
            code = LOST
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return child


def ended(child: int) -> int:
    """Wait for a child's end; its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def in_fork(action: Callable[[], object]) -> int:
    """Run `action` in a forked child to its end; its exit code."""
    return ended(fork(action))
