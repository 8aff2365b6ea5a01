"""The console script `ingot`: puts Ingot's packages before others of the same names, then runs it.

`flows`, `stages` and `pools` are words that a project may use for folders of its own. A folder in
PYTHONPATH comes before installed packages, so its `flows/` would be imported instead of Ingot's.
This module has a name that no project uses and imports nothing of either until that is settled.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("artifacts_schema", "stages", "flows", "pools")
ROOT = Path(__file__).resolve().parent
"""The folder that holds Ingot's packages: site-packages, or a checkout."""
CONSTRAINTS = ROOT / "flows" / "constraints.txt"
"""The versions that were tested together."""


def prefer_own_packages() -> None:
    """Make ROOT the first place of imports, here and in child processes, if others would win.

    Without such a conflict nothing changes: site-packages would come before the standard library.
    """
    if all(_is_own(name) for name in PACKAGES):
        return
    sys.path.insert(0, str(ROOT))
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *([inherited] if inherited else [])])


def _is_own(name: str) -> bool:
    """Whether an import of `name` would find Ingot's package; imports nothing."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return False
    if spec is None or spec.origin is None:
        return False
    return os.path.realpath(spec.origin) == str(ROOT / name / "__init__.py")


def main() -> None:
    """Run the command line. `ingot constraints` answers before any dependency is installed."""
    if sys.argv[1:] == ["constraints"]:
        print(CONSTRAINTS)
        return
    prefer_own_packages()
    try:
        from flows.cli.main import main as run
    except ModuleNotFoundError as error:
        install = 'pip install ingot-….whl -c "$(ingot constraints)"'
        sys.exit(f"error: Ingot's library '{error.name}' is not installed ({install})")
    run()


if __name__ == "__main__":
    main()
