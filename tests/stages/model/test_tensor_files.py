"""Files of tensors: bytes of the library, plans of Hugging Face, and what a reader refuses."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from ranks import run_ranks
from safetensors.torch import load_file, save

from artifacts_schema.errors import CorruptArtifact
from stages.model.tensor_files import (
    TensorSpec,
    has_tensors,
    index_of,
    open_tensors,
    plan_files,
    specs_of,
    write_tensors,
)
from stages.parallel.ranks import CPU, Ranks

NAME, INDEX = "model.safetensors", "model.safetensors.index.json"
TENSORS = {
    "norm": torch.arange(8.0),
    "matrix": torch.arange(24.0).view(6, 4).bfloat16(),
    "half": torch.arange(6.0).half(),
    "count": torch.tensor(7),
    "scale": torch.tensor(0.5, dtype=torch.float64),
    "embedding": torch.arange(40.0).view(10, 4),
}


@dataclass
class Folder:
    """An output in a folder, with the members of an engine `Input` that are used."""

    root: Path
    full_check: bool = True
    key: str = "0123456789abcdef"
    kind: str = "checkpoint"

    def has(self, path):
        return (self.root / path).is_file()

    def read_json(self, path):
        return json.loads((self.root / path).read_bytes())

    def local_path(self, path):
        if self.full_check:
            with open(self.root / "checked.txt", "a") as log:
                log.write(f"{path}\n")
        return self.root / path

    @contextmanager
    def open(self, path):
        with open(self.root / path, "wb") as file:
            yield file


def write(folder, tensors=TENSORS, **more):
    return write_tensors(folder.open, NAME, specs_of(tensors), tensors.get, **more)


WHOLE = {"packed": torch.ones(4, 2, dtype=torch.int32), "bytes": torch.ones(3, dtype=torch.int8)}
"""Of quantised releases."""


@pytest.mark.parametrize(
    "tensors", [TENSORS, {**TENSORS, **WHOLE}, {}], ids=["of checkpoints", "all types", "none"]
)
def test_one_file_has_the_bytes_of_the_library(tmp_path, tensors):
    assert write(Folder(tmp_path), tensors) == [NAME]
    assert (tmp_path / NAME).read_bytes() == save(tensors)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.integers(1, 40))
def test_files_are_planned_as_by_hugging_face(sizes, most):
    from huggingface_hub import split_state_dict_into_shards_factory

    specs = {f"t{i}": TensorSpec(torch.bfloat16, (size,)) for i, size in enumerate(sizes)}
    theirs = split_state_dict_into_shards_factory(
        specs,
        get_storage_size=lambda spec: spec.bytes,
        filename_pattern="model{suffix}.safetensors",
        max_shard_size=most,
    )
    assert plan_files(NAME, specs, most) == {
        file: list(names) for file, names in theirs.filename_to_tensors.items()
    }


def test_several_files_hold_all_and_the_index_says_where(tmp_path):
    folder = Folder(tmp_path)
    written = write(folder, most=60)
    files = written[:-1]
    assert written[-1] == INDEX
    assert len(files) == 4
    index = folder.read_json(INDEX)
    assert index["metadata"] == {"total_size": sum(one.nbytes for one in TENSORS.values())}
    for file in files:
        content = load_file(tmp_path / file)
        assert sum(one.nbytes for one in content.values()) <= 60 or len(content) == 1
        assert content.keys() == {name for name, at in index["weight_map"].items() if at == file}
    assert has_tensors(folder, NAME)
    assert not has_tensors(folder, "trained.safetensors")
    with open_tensors(folder, NAME) as tensors:
        assert set(tensors) == TENSORS.keys()
        for name, tensor in TENSORS.items():
            assert torch.equal(tensors[name], tensor), name
            assert tensors[name].dtype == tensor.dtype


def test_a_rank_that_writes_nothing_asks_for_the_tensors_in_the_same_order(tmp_path):
    """Gathering a tensor is done by all ranks together: in another order they would hang."""
    orders = []
    for opened in (Folder(tmp_path).open, None):
        asked = []
        write_tensors(
            opened, NAME, specs_of(TENSORS), lambda n, a=asked: a.append(n) or TENSORS[n], most=60
        )
        orders.append(asked)
    assert orders[0] == orders[1]
    assert sorted(orders[0]) == sorted(TENSORS)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda index: index.pop("weight_map"), "has no weight_map"),
        (lambda index: index.update(weight_map=["a"]), "has no weight_map"),
        (lambda index: index["weight_map"].update(norm="../x.safetensors"), "which is not there"),
        (lambda index: index["weight_map"].update(norm=3), "names 3, which is not there"),
        (lambda index: index["weight_map"].pop("half"), "first: 'half'"),
        (lambda index: index["weight_map"].update(more=index["weight_map"]["norm"]), "'more'"),
    ],
)
def test_an_index_that_does_not_fit_its_files_is_refused(tmp_path, change, complaint):
    folder = Folder(tmp_path)
    write(folder, most=60)
    index = folder.read_json(INDEX)
    change(index)
    (tmp_path / INDEX).write_text(json.dumps(index))
    with pytest.raises(CorruptArtifact, match=complaint) as caught:
        open_tensors(folder, NAME)
    assert str(caught.value.where).endswith(index_of(NAME))


def test_a_file_that_is_none_is_refused(tmp_path):
    (tmp_path / NAME).write_bytes(b"\x80\x04K\x01.")
    with pytest.raises(CorruptArtifact, match="not a safetensors file"):
        open_tensors(Folder(tmp_path), NAME)


def test_ranks_check_each_file_once(tmp_path):
    folder = Folder(tmp_path)
    files = write(folder, most=60)[:-1]

    def read():
        ranks = Ranks.from_group(CPU)
        with open_tensors(folder, NAME, ranks) as tensors:
            return float(tensors["embedding"].sum())

    assert run_ranks(2, read) == [780.0, 780.0]
    assert sorted((tmp_path / "checked.txt").read_text().split()) == files


class Vanished(Folder):
    """One whose files are gone when they are opened."""

    def has(self, path):
        return True


def test_a_file_that_is_gone_is_one_line(tmp_path):
    with pytest.raises(CorruptArtifact, match="a file of it is gone") as refused:
        open_tensors(Vanished(tmp_path, full_check=False), NAME)
    assert NAME in refused.value.where
