import os

import pytest

from artifacts_schema.errors import StoreError
from stages.training.atomic_dir import SEAL, IncompleteDir, read_atomic_dir, write_atomic_dir


def write(text):
    return lambda path: path.write_text(text)


def test_a_sealed_folder_gives_its_facts_back(tmp_path):
    write_atomic_dir(tmp_path / "a", {"x": write("1"), "y": write("2")}, {"step": 3})
    assert read_atomic_dir(tmp_path / "a") == {"step": 3}


def test_an_unfinished_folder_is_told_from_a_whole_one(tmp_path):
    write_atomic_dir(tmp_path / "a", {"x": write("1")}, {})
    (tmp_path / "a" / SEAL).unlink()
    with pytest.raises(IncompleteDir, match="never finished"):
        read_atomic_dir(tmp_path / "a")
    with pytest.raises(IncompleteDir, match="never finished"):
        read_atomic_dir(tmp_path / "missing")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "x").write_text("2"), "x is damaged"),
        (lambda f: os.truncate(f / "x", 0), "x is damaged"),
        (lambda f: (f / "x").unlink(), "x is missing"),
        (lambda f: os.truncate(f / SEAL, 5), f"{SEAL} is damaged"),
        (lambda f: (f / SEAL).write_text("[]"), f"{SEAL} is damaged"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, damage, message):
    write_atomic_dir(tmp_path / "a", {"x": write("1")}, {})
    damage(tmp_path / "a")
    with pytest.raises(IncompleteDir, match=message):
        read_atomic_dir(tmp_path / "a")


def test_a_full_disk_leaves_nothing_behind(tmp_path):
    def full(path):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match="no space"):
        write_atomic_dir(tmp_path / "a", {"x": full}, {})
    assert not (tmp_path / "a").exists()


def test_sealing_again_replaces_what_lay_there(tmp_path):
    write_atomic_dir(tmp_path / "a", {"x": write("1"), "old": write("1")}, {})
    write_atomic_dir(tmp_path / "a", {"x": write("2")}, {"n": 2})
    assert read_atomic_dir(tmp_path / "a") == {"n": 2}
    assert not (tmp_path / "a" / "old").exists()
