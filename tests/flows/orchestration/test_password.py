"""The password of the local servers: a file that nobody else can read, write or plant."""

from __future__ import annotations

import os
import stat

import pytest

from artifacts_schema.errors import IngotError
from flows.orchestration import local_state, reports


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    monkeypatch.setenv("INGOT_HOME", str(folder))
    return folder


def test_it_is_private_from_the_start_random_and_kept():
    before = os.umask(0)
    try:
        made = local_state.make_password()
    finally:
        os.umask(before)
    file = local_state.password_file()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [path.name for path in file.parent.iterdir()] == ["password"]
    assert local_state.make_password() == local_state.read_password() == made
    file.unlink()
    assert local_state.make_password() != made


def test_a_missing_one_is_said_and_not_made_by_reading():
    with pytest.raises(IngotError, match="ingot down") as caught:
        local_state.read_password()
    assert caught.value.where == str(local_state.password_file())
    assert not local_state.password_file().exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_one_that_others_can_read_or_write_is_refused(mode):
    local_state.make_password()
    local_state.password_file().chmod(mode)
    with pytest.raises(IngotError) as caught:
        local_state.make_password()
    assert caught.value.where == str(local_state.password_file())


def test_a_link_a_pipe_and_what_ingot_did_not_write_are_refused(tmp_path):
    made, file = local_state.make_password(), local_state.password_file()
    elsewhere = tmp_path / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    with pytest.raises(IngotError):
        local_state.make_password()
    file.unlink()
    os.mkfifo(file, 0o600)
    with pytest.raises(IngotError):  # It does not wait for somebody to write.
        local_state.read_password()
    for text in ("", "ingot:", "ingot:short", made.partition(":")[2], f"{made}é", "x\ny:z" * 20):
        file.unlink()
        file.write_text(text)
        file.chmod(0o600)
        with pytest.raises(IngotError) as caught:
            local_state.read_password()
        assert caught.value.where == str(file)


def test_a_folder_in_which_others_write_is_refused(home):
    local_state.make_password()
    for mode in (0o777, 0o770, 0o1777):
        home.chmod(mode)
        with pytest.raises(IngotError, match=f"chmod go-w {home}"):
            local_state.read_password()


def test_a_folder_that_others_can_read_is_closed(home):
    home.mkdir()
    home.chmod(0o755)
    (home / "reports").mkdir(mode=0o755)
    reports.reports_folder()
    assert [stat.S_IMODE(place.stat().st_mode) for place in (home, home / "reports")] == [0o700] * 2


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder away")
def test_a_folder_of_another_user_keeps_its_mode(home):
    home.mkdir()
    home.chmod(0o755)
    os.chown(home, 65534, 65534)
    assert stat.S_IMODE(local_state.home().stat().st_mode) == 0o755


def test_one_of_another_user_is_refused(monkeypatch):
    local_state.make_password()
    monkeypatch.setattr(local_state.os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(IngotError, match="others can"):
        local_state.read_password()


def test_only_the_whole_password_is_one():
    made = local_state.make_password()
    _, _, secret = made.partition(":")
    for given in (made, f"somebody:{made}", f":{made}"):
        assert local_state.is_password(local_state.authorization(given), made)
    wrong = ("", ":", "ingot:", secret, made[:-1], f"{made}x", f"ingot:é{secret}", f"x:{secret}")
    for given in wrong:
        assert not local_state.is_password(local_state.authorization(given), made)
    whole = local_state.authorization(made)
    for header in (
        None,
        "",
        "Basic",
        "Basic é",
        whole.replace("Basic", "Bearer"),
        made,
        f"{whole}!",
    ):
        assert not local_state.is_password(header, made)


def test_a_fingerprint_gives_nothing_away():
    made = local_state.make_password()
    assert local_state.fingerprint(made) == local_state.fingerprint(made)
    assert local_state.fingerprint(made) not in made
    assert made.partition(":")[2] not in local_state.fingerprint(made)
