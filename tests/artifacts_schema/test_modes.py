"""Shared stores: the modes of all that is made in them, by two users of one group with umasks 022
and 077, and what a user outside the group sees."""

from __future__ import annotations

import grp
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from artifacts_schema.errors import StoreError, UsageError
from artifacts_schema.store import Store, modes
from artifacts_schema.store.modes import share_folder, wrong_modes
from artifacts_schema.store.sharing import check_modes, make_shared_store

WRITERS = """
import logging, sys
from pathlib import Path
import duckdb, numpy, pyarrow, pyarrow.parquet, torch
from safetensors.torch import save_file
from stages.training.atomic_dir import write_atomic_dir
folder = Path(sys.argv[1])
(folder / "deep" / "er").mkdir(parents=True)
(folder / "deep" / "er" / "plain").write_text("x")
logging.FileHandler(folder / "log.txt").emit(logging.makeLogRecord({"msg": "x"}))
numpy.save(folder / "a.npy", numpy.zeros(3))
pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), str(folder / "a.parquet"))
save = lambda path: save_file({"a": torch.zeros(3)}, path)  # By itself it makes a file 600.
write_atomic_dir(folder / "checkpoint", {"a.safetensors": save}, {})
duckdb.connect(str(folder / "a.duckdb")).execute("create table t as select 1")
duckdb.sql(f"copy (select 1 as a) to '{folder}/copied.parquet'")
import fasttext
Path(folder, "words.txt").write_text("a b c d e f g\\n" * 50)
fasttext.train_unsupervised(str(folder / "words.txt"), dim=2, minCount=1, bucket=10, thread=1,
                            verbose=0).save_model(str(folder / "a.bin"))
"""
APPEND = """
import sys
from pathlib import Path
for path in Path(sys.argv[1]).rglob("*"):
    if path.is_file():
        with path.open("rb" if path.parent.name == "checkpoint" else "ab") as file:
            file.read() if file.mode == "rb" else file.write(b"more")
"""
PLAIN = """
import sys
from pathlib import Path
folder = Path(sys.argv[1])
(folder / "deep").mkdir(parents=True)
(folder / "deep" / "file").write_text("x")
"""


@pytest.fixture
def shared(team, team_folder):
    """The folder of a store that bob, whose umask leaves the group nothing, made for the group."""
    team.bob.run("store", "init", str(team_folder / "store"), "--group", team.name)
    return team_folder / "store"


def all_modes(folder):
    """(mode, group) of each kind: folders, then files."""
    paths = [folder, *folder.rglob("*")]
    status = [path.lstat() for path in paths]
    return tuple(
        {(stat.S_IMODE(one.st_mode), one.st_gid) for one in status if is_kind(one.st_mode)}
        for is_kind in (stat.S_ISDIR, stat.S_ISREG)
    )


def test_what_libraries_write_is_the_groups_under_any_umask(team, shared):
    for user in (team.alice, team.bob):
        user.python_run("-c", WRITERS, str(shared / user.name))
    files = {(0o660, team.group), (0o440, team.group)}  # 440: the checkpoint.
    assert all_modes(shared) == ({(0o2770, team.group)}, files)
    assert len(list((shared / team.bob.name).rglob("*"))) == 13
    team.alice.python_run("-c", APPEND, str(shared / team.bob.name))
    team.bob.python_run("-c", APPEND, str(shared / team.alice.name))
    assert check_modes(Store.open(str(shared))) == []


def test_a_store_without_a_group_is_made_as_before(team, team_folder):
    team.alice.run("store", "init", str(team_folder / "own"))
    mark = team_folder / "own" / "ingot-store.json"
    assert stat.S_IMODE((team_folder / "own").stat().st_mode) == 0o755
    assert stat.S_IMODE(mark.stat().st_mode) == 0o644
    assert json.loads(mark.read_text()).keys() == {"format", "schema"}
    assert check_modes(Store.open(str(team_folder / "own"))) == []


def test_a_user_outside_the_group_reads_nothing_and_is_told_once(team, shared):
    team.bob.python_run("-c", PLAIN, str(shared / "inner"))
    known = ["", "ingot-store.json", "inner", "inner/deep/file"]
    reading = (
        "import os, sys\n"
        "for path in sys.argv[1:]:\n"
        "    try:\n"
        "        os.listdir(path) if os.path.isdir(path) else open(path).read()\n"
        "    except PermissionError:\n"
        "        print('denied')\n"
    )
    printed = team.carol.python_run("-c", reading, *(str(shared / path) for path in known))
    assert printed.split() == ["denied"] * len(known)
    for command in (["ls"], ["gc"], ["run", "quickstart"]):
        lines = team.carol.run(*command, "--store", str(shared), ok=False).splitlines()
        assert len(lines) == 1
        assert f"the group '{team.name}', {team.carol.name} is no member" in lines[0]
        assert f"usermod -aG {team.name} {team.carol.name}" in lines[0]


def test_modes_changed_by_hand_are_named_by_doctor_with_the_command_that_mends_them(team, shared):
    made = (
        f"import os; os.mkdir({str(shared / 'data')!r}); os.chmod({str(shared / 'data')!r}, 0o755)"
    )
    team.alice.python_run("-c", made)
    team.bob.python_run("-c", f"import os; os.chmod({str(shared / 'ingot-store.json')!r}, 0o644)")
    os.mkdir(shared / "copied")
    os.chown(shared / "copied", -1, 0)
    os.removexattr(shared / "copied", "system.posix_acl_default")
    printed = team.bob.run("doctor", "--json", "--store", str(shared), ok=False)
    (check,) = (one for one in json.loads(printed)["checks"] if one["name"] == "store modes")
    assert check["text"].split("; ") == [
        "copied: group root, not " + team.name,
        "data: mode 755, not 2770",
        "ingot-store.json: mode 644, not 660",
    ]
    people = ", ".join([team.alice.name, team.bob.name])
    command = f"ingot store check --repair --store {shared}"
    assert check["hint"] == f"as {people} or root: {command}"

    arguments = command.split()[1:]
    assert "data: mode 755" in team.bob.run(*arguments, ok=False)  # It is alice's.
    assert "data" not in team.alice.run(*arguments, ok=False)
    left = check_modes(Store.open(str(shared)))
    assert [(one.path, one.owner) for one in left] == [("copied", 0)]
    assert check_modes(Store.open(str(shared)), mend=True) == []  # As root.
    assert all_modes(shared) == ({(0o2770, team.group)}, {(0o660, team.group)})
    team.bob.python_run("-c", PLAIN, str(shared / "copied" / "new"))
    assert check_modes(Store.open(str(shared))) == []


def test_rights_of_others_are_found_on_the_stores_own_folder_too(team, shared):
    shared.chmod(0o2775)
    (wrong,) = check_modes(Store.open(str(shared)))
    assert str(wrong) == "its folder: mode 2775, not 2770"


def test_a_store_that_is_there_is_given_to_a_group(team, team_folder):
    place = str(team_folder / "store")
    team.alice.run("store", "init", place)
    team.alice.python_run("-c", PLAIN, f"{place}/inner")
    (team_folder / "store" / "inner" / "deep" / "file").chmod(0o400)
    assert "only its owner" in team.bob.run("store", "init", place, "--group", team.name, ok=False)
    team.alice.run("store", "init", place, "--group", team.name)
    folders, files = all_modes(team_folder / "store")
    assert folders == {(0o2770, team.group)}
    assert files == {(0o660, team.group), (0o440, team.group)}  # As its owner has it.


def test_links_are_not_followed_by_a_repair(team, shared, team_folder):
    outside = team_folder / "outside"
    outside.mkdir(mode=0o700)
    (shared / "folder").symlink_to(outside)
    (shared / "file").symlink_to(shutil.copy2(__file__, outside / "file"))
    before = outside.stat(), (outside / "file").stat()
    assert check_modes(Store.open(str(shared)), mend=True) == []
    assert (outside.stat(), (outside / "file").stat()) == before


def test_a_folder_that_the_checker_may_not_enter_is_named(team, shared):
    team.bob.python_run("-c", f"import os; os.mkdir({str(shared / 'own')!r}, 0o700)")
    printed = team.alice.run("store", "check", "--store", str(shared), ok=False)
    assert f"own: mode 2700, not 2770; {team.bob.name} owns it" in printed


def test_groups_that_cannot_share_are_refused_with_what_to_do(team, team_folder):
    place = str(team_folder / "store")
    printed = team.bob.run("store", "init", place, "--group", f"{team.name}x", ok=False)
    assert f"no group '{team.name}x' on this machine" in printed
    assert f"groupadd {team.name}x" in printed
    printed = team.carol.run("store", "init", place, "--group", team.name, ok=False)
    assert f"usermod -aG {team.name} {team.carol.name}; then log in again" in printed
    assert not os.path.exists(place)


def test_a_session_older_than_the_membership_is_told_to_log_in_again(team, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: team.bob.id)
    monkeypatch.setattr(os, "getgroups", list)
    with pytest.raises(UsageError) as refused:
        modes.find_group(team.name)
    assert refused.value.hint == "you were added after this session began: log in again"


def test_a_bucket_is_refused():
    with pytest.raises(UsageError, match="a bucket has no groups") as refused:
        make_shared_store("s3://bucket/store", "users")
    assert refused.value.where == "--group"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")
def test_a_file_system_that_does_not_keep_modes_is_refused(tmp_path):
    """ramfs has modes and no ACLs, so that umasks would decide."""
    group = grp.getgrgid(1).gr_name
    mounted = 'mount -t ramfs none $1 || exit 9; shift; exec "$@"; '
    program = f"from artifacts_schema.store.sharing import *; make_shared_store('store', {group!r})"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", f"cd / && {mounted}", "sh", str(tmp_path),
         "sh", "-c", 'cd "$0" && "$1" -c "$2"; ls "$0"',
         str(tmp_path), sys.executable, program],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    if done.returncode == 9 or "unshare" in done.stderr:
        pytest.skip(f"cannot mount here: {done.stderr}")
    assert "StoreError: store: the file system does not keep a group's modes: mode 2700" in (
        done.stderr
    )
    assert done.stdout == ""  # Nothing is left.


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to choose a group")
def test_a_folder_that_cannot_be_shared_stays_as_it_was(tmp_path, monkeypatch):
    tmp_path.chmod(0o750)
    before = tmp_path.stat()
    monkeypatch.setattr(os, "setxattr", lambda *_: (_ for _ in ()).throw(OSError(95, "no ACLs")))
    with pytest.raises(StoreError, match="does not keep"):
        share_folder(tmp_path, 1)
    after = tmp_path.stat()
    assert (after.st_mode, after.st_gid) == (before.st_mode, before.st_gid)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to choose a group")
def test_what_vanishes_during_a_check_is_no_problem(tmp_path, monkeypatch):
    share_folder(tmp_path, 1)
    (tmp_path / "a").touch()
    listed = os.listdir
    monkeypatch.setattr(os, "listdir", lambda place: [*listed(place), "gone"])
    assert wrong_modes(tmp_path, 1) == []
