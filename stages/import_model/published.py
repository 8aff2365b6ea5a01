"""The tensors of a published model, in one file or in several, each read when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from torch import Tensor

from artifacts_schema.errors import InputError
from stages.import_model.files import INDEX, ModelFiles
from stages.import_model.safetensors_file import Entry, SafetensorsFile


class Published(Mapping[str, Tensor]):
    """Tensors by name, in their own types. Nothing is kept: each look-up reads the file."""

    def __init__(self, place: Mapping[str, SafetensorsFile]) -> None:
        self.place = place

    def __getitem__(self, name: str) -> Tensor:
        return self.place[name].read(name)

    def __contains__(self, name: object) -> bool:
        return name in self.place  # Mapping's own would read the tensor.

    def __iter__(self) -> Iterator[str]:
        return iter(self.place)

    def __len__(self) -> int:
        return len(self.place)

    def entry(self, name: str) -> Entry:
        """Type and shape of a tensor, from the header alone."""
        return self.place[name].entries[name]


@contextmanager
def opened(files: ModelFiles) -> Iterator[Published]:
    """All tensors, until the block ends.

    InputError if two files have one tensor, or if the index says otherwise than the files.
    """
    with ExitStack() as stack:
        place: dict[str, SafetensorsFile] = {}
        for name, source in files.weights.items():
            file = stack.enter_context(source.open())
            shard = SafetensorsFile(file, bytes=source.bytes, where=source.name)
            for tensor in shard.entries:
                if tensor in place:
                    first = place[tensor].where
                    raise InputError(f"'{tensor[:80]}' is in {first} too", where=source.name)
                if files.placed is not None and files.placed.get(tensor) != name:
                    raise _disagree(tensor, files.placed.get(tensor), name)
                place[tensor] = shard
        for tensor, name in (files.placed or {}).items():
            if tensor not in place:
                raise _disagree(tensor, name, None)
        yield Published(place)


def _disagree(tensor: str, told: str | None, found: str | None) -> InputError:
    return InputError(
        f"places '{tensor[:80]}' in {told or 'no file'}, it is in {found or 'none'}",
        where=INDEX,
        hint="the files are not of one model; pin them again",
    )
