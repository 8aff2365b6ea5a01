"""Ingot as a user has it: built as a wheel, installed in an environment of its own, no checkout.

The environment takes its dependencies from the one that runs the tests, by a `.pth` file: such a
file's folders come after site-packages, and their own `.pth` files (the checkout) are not read.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (
    "artifacts_schema", "stages", "flows", "pools", "ingot_entry.py", "pyproject.toml", "README.md",
    "LICENSE", "constraints.txt",
)  # fmt: skip
LEAST_SETUPTOOLS = 77
"""Of `build-system` in pyproject.toml."""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built from a copy of its files."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            skipped = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, folder / "source" / name, symlinks=True, ignore=skipped)
        else:
            shutil.copy(source, folder / "source" / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    if _has_setuptools():
        command.insert(4, "--no-build-isolation")
    subprocess.run([*command, str(folder), str(folder / "source")], check=True, timeout=240)
    (built,) = folder.glob("ingot-*.whl")
    return built


def _has_setuptools() -> bool:
    """Whether this environment can build without fetching anything."""
    try:
        import setuptools
        import wheel  # noqa: F401
    except ImportError:
        return False
    return int(setuptools.__version__.partition(".")[0]) >= LEAST_SETUPTOOLS


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel installed by pip."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*command, "--no-deps", "--no-index", str(wheel)], check=True, timeout=120)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    packages = [path for path in sys.path if path.endswith("site-packages")]
    Path(paths["purelib"], "dependencies.pth").write_text("\n".join(packages) + "\n")
    return folder


@pytest.fixture
def run_ingot(environment: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`run_ingot(*arguments, **environment)` in the test's folder: the finished process."""
    kept = ("PATH", "LANG", "LC_ALL", "TMPDIR", "OMP_NUM_THREADS")

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        inherited = {name: os.environ[name] for name in kept if name in os.environ}
        return subprocess.run(
            [str(environment / "bin" / "ingot"), *arguments],
            cwd=tmp_path, capture_output=True, text=True, timeout=3000,
            env={**inherited, "HOME": str(tmp_path), "INGOT_HOME": str(tmp_path / "home"),
                 "INGOT_CACHE": str(tmp_path / "cache"), **variables},
        )  # fmt: skip

    return run
