"""What describes the exported sources together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from artifacts_schema.errors import CorruptArtifact
from stages.export_megatron.token_files import Packed

if TYPE_CHECKING:
    from stages.engine import ShardResult


def dataset_table(packed: Packed, written: Sequence[ShardResult]) -> dict[str, Any]:
    """The content of dataset.json.

    `data_path` is what follows --data-path: for each source its tokens as weight, and its prefix,
    to be put behind the path of this folder. Megatron scales weights to a sum of one.
    """
    sources = {
        source.name: result.value for source, result in zip(packed.sources, written, strict=True)
    }
    return {
        **{name: value for name, value in packed.facts.items() if name != "dtype"},
        "sources": sources,
        "data_path": [
            word for one in sources.values() for word in (str(one["tokens"]), one["prefix"])
        ],
    }


def drop_counts(packed: Packed, written: Sequence[ShardResult]) -> dict[str, Any]:
    """What `conserve` takes: documents that were packed, exported, and left out whole by `pack`.

    CorruptArtifact if a source holds more documents than its shards.json says.
    """
    stated = exported = 0
    for source, result in zip(packed.sources, written, strict=True):
        found = result.value["documents"]
        if found > source.documents:
            raise CorruptArtifact(
                f"{found:,} documents of source '{source.name}' in the index tables, "
                f"{source.documents:,} in shards.json",
                hint="pack again",
            )
        stated, exported = stated + source.documents, exported + found
    return {
        "records_in": stated,
        "out": exported,
        "dropped": {"left out by pack": stated - exported},
    }
