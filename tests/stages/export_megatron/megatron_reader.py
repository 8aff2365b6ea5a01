"""Every document of a dataset as Megatron-LM's own IndexedDataset reads it: JSON lines.

    PYTHON_WITH_MEGATRON megatron_reader.py PREFIX OUT

The first line tells what the index says of itself: type of ids, documents, blend of `--data-path`.
"""

import json
import sys

from megatron.core.datasets.indexed_dataset import IndexedDataset
from megatron.core.datasets.utils import get_blend_from_list

prefix, out, *data_path = sys.argv[1:]
for mmap in (True, False):
    dataset = IndexedDataset(prefix, mmap=mmap)
    with open(f"{out}.{'mapped' if mmap else 'read'}", "w") as lines:
        head = {
            "dtype": dataset.index.dtype.__name__,
            "document_indices": dataset.document_indices.tolist(),
            "blend": get_blend_from_list(data_path),
        }
        lines.write(json.dumps(head) + "\n")
        for number in range(len(dataset)):
            lines.write(json.dumps(dataset[number].tolist()) + "\n")
