"""`ingot doctor` without pools: whether this machine and the store can run recipes.

Each check says what was seen and, where something is wrong, what to do. What only some need (a
compiler, a GPU, tested versions) is unknown rather than failed where it is missing.
"""

from __future__ import annotations

import os
import platform
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, distributions, requires, version
from pathlib import Path
from tempfile import TemporaryDirectory

from artifacts_schema.config import format_bytes
from artifacts_schema.errors import IngotError
from artifacts_schema.store import Store, layout
from artifacts_schema.store.cache import cache_folder
from artifacts_schema.store.modes import explain_denied
from artifacts_schema.store.sharing import check_modes, mending_hint, recorded_group
from flows.recipe.dispatch import Check
from ingot_entry import CONSTRAINTS
from stages.engine.allotment import available_cores, available_memory
from stages.engine.probe import try_store

OLDEST, NEWEST = (3, 11), (3, 13)
"""Versions of Python that pyproject.toml names; the tests run on the oldest."""
LEAST_MEMORY = 4_000_000_000
"""Bytes: the quickstart's largest step takes about 2 GB, and the system and a server the rest."""
LEAST_DISK = 5_000_000_000
"""Bytes: a small recipe writes under 1 GB; a step that finds the disk full has worked in vain."""
_CAUSES = {
    "hard link": "a commit is a hard link: keep the store on a file system that has them, or in a "
    "bucket",
    "create once": "two runs could overwrite each other there: use another file system",
}


def check_machine(url: str) -> Iterator[Check]:
    """Python, packages, cores, memory, GPU, compiler, cache and store, each as far as it can be."""
    yield _check_python(sys.version_info[:2])
    yield _check_versions()
    yield _check_extras()
    yield Check("cores", True, str(available_cores()))
    yield _check_memory(available_memory())
    yield _check_gpu()
    yield _check_compiler()
    yield check_disk("cache disk", cache_folder(), "set INGOT_CACHE to a folder on a larger disk")
    yield from check_store(url)


def _check_python(version: tuple[int, ...]) -> Check:
    text = f"{platform.python_version()} at {sys.executable}"
    if version < OLDEST:
        return Check("Python", False, text, "install Python 3.11 or newer")
    if version > NEWEST:
        hint = f"made for versions up to {NEWEST[0]}.{NEWEST[1]}; use one if something fails"
        return Check("Python", None, text, hint)
    return Check("Python", True, text)


def _check_versions() -> Check:
    """Installed packages against the versions that were tested together."""
    tested = {
        _plain_name(name): value
        for name, value in re.findall(r"^([\w.-]+)==(\S+)", CONSTRAINTS.read_text(), re.M)
    }
    installed = {_plain_name(one.name): one.version for one in distributions()}
    other = [
        f"{name} {installed[name]} (tested: {value})"
        for name, value in tested.items()
        if name in installed and installed[name].partition("+")[0] != value
    ]
    count = sum(name in installed for name in tested)
    if other:
        text = f"{len(other)} of {count} packages are not as tested: {', '.join(other[:3])}"
        hint = 'pip install -c "$(ingot constraints)"; other versions may make other bytes'
        return Check("versions", None, text, hint)
    return Check("versions", True, f"{count} packages as tested, Ingot {version('ingot')}")


def _plain_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _check_extras() -> Check:
    """Extras whose packages are there."""
    needs: dict[str, list[bool]] = {}
    for line in requires("ingot") or []:
        matched = re.match(r"([\w.-]+)[^;]*; extra == ['\"]([\w-]+)['\"]", line)
        if matched and matched[2] not in ("all", "dev"):
            needs.setdefault(matched[2], []).append(_is_installed(matched[1]))
    present = [extra for extra, installed in sorted(needs.items()) if all(installed)]
    return Check("extras", True, ", ".join(present) or "none")


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def _check_memory(memory: int) -> Check:
    if memory < LEAST_MEMORY:
        hint = (
            f"the quickstart needs {format_bytes(LEAST_MEMORY)}: run one step at a time (--jobs 1)"
        )
        return Check("memory", False, format_bytes(memory), hint)
    return Check("memory", True, format_bytes(memory))


def _check_gpu() -> Check:
    """torch is imported only where there is a device: that takes seconds."""
    has_device = Path("/dev/nvidiactl").exists() or Path("/dev/kfd").exists()
    if not has_device and shutil.which("nvidia-smi") is None:
        return Check("GPU", True, "none: training runs on the CPU")
    import torch

    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
        return Check("GPU", True, ", ".join(names))
    hint = "install a build of torch for it, and a driver that fits (nvidia-smi)"
    return Check("GPU", False, f"there is one that torch {torch.__version__} does not see", hint)


def _check_compiler() -> Check:
    compiler = next(
        (path for name in ("c++", "g++", "clang++") if (path := shutil.which(name))), None
    )
    if compiler is None:
        hint = "only torch.compile and the extra kenlm need one (Debian: apt-get install g++)"
        return Check("compiler", None, "no C++ compiler", hint)
    return Check("compiler", True, compiler)


def check_disk(name: str, folder: Path, hint: str) -> Check:
    """Free space where `folder` is, or will be."""
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    text = f"{format_bytes(free)} free at {place}"
    if free < LEAST_DISK:
        return Check(name, False, text, f"{hint} ({format_bytes(LEAST_DISK)} at least)")
    return Check(name, True, text)


def check_store(url: str) -> Iterator[Check]:
    """What a run needs of the store: space, permissions, and every operation tried once.

    Where there is no store in a folder yet, a temporary one beside it is tried.
    """
    if "://" not in url:
        yield check_disk("store disk", Path(url), "name a store on a larger disk: --store")
        yield check_permissions(url)
    try:
        with _store_to_try(url) as (store, note):
            key = secrets.token_hex(32)
            wrong = try_store(store.backend, layout.work(key, "doctor"))
            store.backend.remove(layout.work(key))
    except (IngotError, OSError) as error:
        what = error.what if isinstance(error, IngotError) else error.strerror or str(error)
        hint = getattr(error, "hint", None) or "name a store that you may write: --store"
        yield Check("store", False, f"{url}: {what}", hint)
        return
    failed = {name: text for name, text in wrong.items() if text}
    if failed:
        name, text = next(iter(failed.items()))
        hint = _CAUSES.get(name, "the store must be there for reading and writing")
        yield Check("store", False, f"{url}: {', '.join(failed)}: {text}", hint)
        return
    yield Check("store", True, f"{url}{note}: {', '.join(wrong)}")


@contextmanager
def _store_to_try(url: str) -> Iterator[tuple[Store, str]]:
    """The store, or a temporary one beside where it would be, with a note of that."""
    folder = Path(url)
    if "://" in url or explain_denied(folder) or (folder.exists() and any(folder.iterdir())):
        yield Store.open(url, create=False), ""
        return
    parent = folder.absolute()
    while not parent.is_dir():
        parent = parent.parent
    with TemporaryDirectory(prefix=".ingot-doctor-", dir=parent) as place:
        yield Store.open(place), " (none yet, a run makes it)"


def check_permissions(url: str) -> Check:
    """Whoever may write a store may change what it holds.

    Of a store that a group shares, every folder and file is looked at.
    """
    folder = Path(url)
    if not folder.exists():
        return Check("store modes", True, "no store yet")
    mode = stat.S_IMODE(folder.stat().st_mode)
    text = f"{mode:03o}"
    with suppress(
        IngotError
    ):  # That there is none here, or that it is denied, says the next check.
        store = Store.open(url, create=False)
        if (group := recorded_group(store)) is not None:
            return _check_shared(store, group)
    if denied := explain_denied(folder):
        return Check("store modes", False, denied.what, denied.hint or "")
    if mode & stat.S_IWOTH:
        return Check(
            "store modes", False, f"{text}: anybody may write there", f"chmod o-w {folder}"
        )
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return Check(
            "store modes", False, f"{text}: you may not write there", f"chmod u+rwx {folder}"
        )
    return Check("store modes", True, text)


_NAMED = 3
"""Wrong modes that a check names; `ingot store check` lists all."""


def _check_shared(store: Store, group: str) -> Check:
    """Whether every member of the group, and nobody else, can use what is in a store."""
    wrong = check_modes(store)
    if not wrong:
        return Check("store modes", True, f"shared by the group {group}; every folder and file is")
    more = f"; and {len(wrong) - _NAMED:,} more" if len(wrong) > _NAMED else ""
    text = "; ".join(map(str, wrong[:_NAMED])) + more
    return Check("store modes", False, text, mending_hint(store, wrong))
