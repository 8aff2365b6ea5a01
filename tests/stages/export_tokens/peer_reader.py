"""What another trainer's own reader finds in a dataset: JSON lines.

    PYTHON peer_reader.py megatron PREFIX OUT DATA_PATH…
    PYTHON peer_reader.py nanotron FOLDER OUT LENGTH TOKEN_BYTES PACKAGES
    PYTHON peer_reader.py mosaicml FOLDER OUT

Run by the Python of an environment that has the reader. The first line is what the data says of
itself; each other one is a document (megatron) or a sample of tokens.
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


def read_megatron(prefix: str, *data_path: str) -> Iterator[Any]:
    """Both of Megatron-LM's ways to read: mapped, and read; they must agree."""
    from megatron.core.datasets.indexed_dataset import IndexedDataset
    from megatron.core.datasets.utils import get_blend_from_list

    ways = [IndexedDataset(prefix, mmap=mmap) for mmap in (True, False)]
    mapped, read = ([one[number].tolist() for number in range(len(one))] for one in ways)
    assert mapped == read
    yield {
        "dtype": ways[0].index.dtype.__name__,
        "document_indices": ways[0].document_indices.tolist(),
        "blend": get_blend_from_list(list(data_path)),
    }
    yield from mapped


def read_nanotron(folder: str, length: str, token_bytes: str, packages: str) -> Iterator[Any]:
    """The dataset that nanotron trains on; LENGTH is its sequence length, one less than a row.

    PACKAGES is a folder that has torch, which the environment borrows.
    """
    sys.path.append(packages)
    from datatrove.utils.dataset import DatatroveFolderDataset

    dataset = DatatroveFolderDataset(
        folder, int(length), token_size=int(token_bytes), return_positions=True
    )
    yield {"rows": len(dataset)}
    for number in range(len(dataset)):
        row = dataset[number]
        yield {name: row[name].tolist() for name in ("input_ids", "positions")}


def read_mosaicml(folder: str) -> Iterator[Any]:
    """MosaicML Streaming's dataset, in the order of its files."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    from loader_peers import StandIn  # type: ignore[import-not-found]

    sys.meta_path.append(StandIn())
    from streaming import StreamingDataset

    dataset = StreamingDataset(local=folder, remote=None, shuffle=False, batch_size=1)
    yield {"rows": len(dataset)}
    for number in range(len(dataset)):
        yield dataset[number]["tokens"].tolist()


if __name__ == "__main__":
    peer, place, out, *arguments = sys.argv[1:]
    readers: dict[str, Callable[..., Iterator[Any]]] = {
        "megatron": read_megatron,
        "nanotron": read_nanotron,
        "mosaicml": read_mosaicml,
    }
    with open(out, "w") as lines:
        for line in readers[peer](place, *arguments):
            lines.write(json.dumps(line) + "\n")
