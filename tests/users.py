"""Two users of one group and one outside it, as users of this machine: who runs what in a store.

They are made with `useradd` and removed at the end, so this needs root.
"""

from __future__ import annotations

import grp
import os
import pwd
import secrets
import shutil
import signal
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parents[1]
SKIPPED = ("test", "idlelib", "tkinter", "site-packages", "ensurepip")
"""Of Python's own library, what is not copied for the users."""


SECONDS = 1_800
"""For one command of a user, on a machine that others use too."""


@dataclass(frozen=True)
class User:
    """A user who runs programs here, with a home and a cache of their own."""

    name: str
    umask: int
    python: str
    folder: Path
    """Holds the homes; everybody may enter it."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Further variables of the environment."""

    @property
    def id(self) -> int:
        """The user id."""
        return pwd.getpwnam(self.name).pw_uid

    @property
    def home(self) -> Path:
        """The home folder, which nobody else may enter."""
        return self.folder / self.name

    @property
    def environment(self) -> dict[str, str]:
        """What the user's programs find: the copied interpreter's library, and this program."""
        return {
            "PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8",
            "LD_LIBRARY_PATH": str(Path(self.python).parents[1] / "lib"),
            "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE / "tests")]),
            "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", **self.variables,
        }  # fmt: skip

    def start(
        self, arguments: Sequence[str], *, sink: Any = subprocess.PIPE, **options: Any
    ) -> subprocess.Popen[str]:
        """Start a program in the user's own groups, umask, home and environment.

        What it prints goes to `sink`.
        """
        about = pwd.getpwnam(self.name)
        return subprocess.Popen(
            arguments, cwd=self.home, env=self.environment, text=True, umask=self.umask,
            user=about.pw_uid, group=about.pw_gid,
            extra_groups=os.getgrouplist(self.name, about.pw_gid),
            stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT, **options,
        )  # fmt: skip

    def run(self, *arguments: str, ok: bool = True, **options: Any) -> str:
        """Run `ingot` to its end; returns what it printed."""
        return self.python_run("-P", "-m", "ingot_entry", *arguments, ok=ok, **options)

    def python_run(self, *arguments: str, ok: bool = True, **options: Any) -> str:
        """Run Python to its end; returns what it printed."""
        process = self.start([self.python, *arguments], **options)
        printed, _ = process.communicate(timeout=SECONDS)
        assert (process.returncode == 0) == ok, f"{self.name}: {process.returncode}\n{printed}"
        return printed


@dataclass(frozen=True)
class Team:
    """`alice` and `bob` are members of the group `name`, `carol` is not."""

    name: str
    alice: User
    bob: User
    carol: User
    folder: Path

    @property
    def group(self) -> int:
        """The group id."""
        return grp.getgrnam(self.name).gr_gid


@contextmanager
def make_team() -> Iterator[Team]:
    """The users, while the block runs; skips where this machine cannot have them."""
    if os.geteuid() != 0 or shutil.which("useradd") is None:
        pytest.skip("needs root and useradd, to be two users")
    mark = secrets.token_hex(3)
    group, names = f"ingot-t{mark}", [f"ingot-{letter}{mark}" for letter in "abc"]
    folder = Path(tempfile.mkdtemp(prefix="ingot-users-"))
    folder.chmod(0o755)
    try:
        _run("groupadd", group)
        for name, groups in zip(names, ([group], [group], []), strict=True):
            _run("useradd", "--no-create-home", *(["-G", group] if groups else []), name)
            (folder / name).mkdir(mode=0o700)
            os.chown(folder / name, pwd.getpwnam(name).pw_uid, pwd.getpwnam(name).pw_gid)
        python = _python_for_all(folder)
        umasks = (0o022, 0o077, 0o022)
        alice, bob, carol = (User(n, u, python, folder) for n, u in zip(names, umasks, strict=True))
        tried = carol.start([python, "-c", "import ingot_entry"])
        printed, _ = tried.communicate()
        if tried.returncode != 0:
            pytest.skip(f"other users cannot run this program: {printed}")
        yield Team(group, alice, bob, carol, folder)
    finally:
        _end_processes_of(names)
        for name in names:
            subprocess.run(["userdel", name], check=False, capture_output=True)
        subprocess.run(["groupdel", group], check=False, capture_output=True)
        shutil.rmtree(folder)


def _end_processes_of(names: Sequence[str]) -> None:
    """Kill what a test that failed left: a user with processes cannot be removed."""
    numbers = set()
    for name in names:
        with suppress(KeyError):
            numbers.add(pwd.getpwnam(name).pw_uid)
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if process.stat().st_uid in numbers:
                os.kill(int(process.name), signal.SIGKILL)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"{command[0]} does not work here: {done.stderr.strip()}")


def _python_for_all(folder: Path) -> str:
    """An interpreter that all users may run, with the packages of this one.

    One below a home is copied, without most of its library, since nobody else may enter there.
    """
    base = Path(sys.base_prefix)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    copy = folder / "python"
    shutil.copytree(
        base / "lib" / version, copy / "lib" / version, symlinks=True,
        ignore=lambda _, names: [n for n in names if n in SKIPPED or n.startswith("config-")],
    )  # fmt: skip
    for library in (base / "lib").glob("libpython*"):
        shutil.copy2(library, copy / "lib", follow_symlinks=False)
    (copy / "bin").mkdir()
    shutil.copy2(os.path.realpath(sys.executable), copy / "bin" / "python3")
    added = "".join(f"site.addsitedir({place!r})\n" for place in site.getsitepackages())
    (copy / "lib" / version / "sitecustomize.py").write_text(f"import site\n{added}")
    return str(copy / "bin" / "python3")
