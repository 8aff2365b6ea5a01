"""The language of every token of token shards, from their index tables.

Shapes: B rows of L tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from artifacts_schema.errors import CorruptArtifact
from stages.training.groups import spoken
from stages.training.shard_index import index_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.engine import Input
    from stages.training.shard_tables import ShardTables

Pieces = tuple[NDArray[np.int32], NDArray[np.unsignedinteger]]
"""[rows + 1] the first piece of each row of a file; the language of each piece."""


class ShardLanguages:
    """The language of each piece, as a position among those that its source has.

    An index table is read once, when a row of its file is first asked for; those of a source in one
    language never are. What is read stays in memory: a byte a piece and four a sequence.
    """

    def __init__(self, inputs: Sequence[Input], tables: ShardTables) -> None:
        self._inputs, self._tables = inputs, tables
        self._names = [spoken(tables.languages[source]) for source in tables.sources]
        self._known: dict[int, Pieces] = {}

    def of(
        self,
        sources_B: NDArray[np.int64],
        files_B: NDArray[np.int64],
        lines_B: NDArray[np.int64],
        documents_BL: NDArray[np.integer],
    ) -> NDArray[np.int64]:
        """[B, L] The language of each token of these rows of files; any in padding.

        CorruptArtifact where an index table does not fit its file.
        """
        found_BL = np.zeros(documents_BL.shape, dtype=np.int64)
        for file in np.unique(files_B).tolist():
            rows = np.flatnonzero(files_B == file)
            names = self._names[sources_B[rows[0]]]
            if len(names) < 2:
                continue
            first, languages = self._of_file(file, names)
            pieces_BL = np.maximum(documents_BL[rows], 0) + first[lines_B[rows]][:, None]
            beyond = pieces_BL.max(axis=1) >= first[lines_B[rows] + 1]
            if beyond.any():
                line = int(lines_B[rows[np.argmax(beyond)]])
                raise self._corrupt(file, f"sequence {line} has more documents than it names")
            found_BL[rows] = languages[pieces_BL]
        return found_BL

    def _of_file(self, file: int, names: Sequence[str]) -> Pieces:
        if file not in self._known:
            self._known[file] = self._read(file, names)
        return self._known[file]

    def _read(self, file: int, names: Sequence[str]) -> Pieces:
        import pyarrow as pa
        import pyarrow.compute as pc

        given = self._inputs[self._tables.input_of[file]]
        table = given.read_table(index_of(self._tables.paths[file]), ["sequence", "language"])
        lines = table["sequence"].to_numpy()
        if (np.diff(lines) < 0).any():
            raise self._corrupt(file, "its sequences are not in order")
        declared = pc.fill_null(table["language"], "")
        places = pc.index_in(declared, value_set=pa.array(names, declared.type))
        if places.null_count:
            strange = declared.filter(pc.is_null(places))[0].as_py()
            raise self._corrupt(file, f"language '{strange}' is none of shards.json")
        first = np.searchsorted(lines, np.arange(self._tables.sequences[file] + 1))
        return first.astype(np.int32), places.to_numpy().astype(np.min_scalar_type(len(names)))

    def _corrupt(self, file: int, what: str) -> CorruptArtifact:
        given = self._inputs[self._tables.input_of[file]]
        path = index_of(self._tables.paths[file])
        return CorruptArtifact(what, where=f"{given.output}/{path}", hint="pack again")
