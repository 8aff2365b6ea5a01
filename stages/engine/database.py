"""How DuckDB is opened here: one thread, bounded memory, no extensions from the network."""

from __future__ import annotations

from pathlib import Path


def database_settings(
    memory: int | str, overflow: str | Path
) -> dict[str, str | bool | int | float | list[str]]:
    """The `config` of `duckdb.connect`: `memory` in bytes, or as DuckDB writes it (`1GB`).

    What does not fit goes to the folder `overflow`.
    """
    return {
        "threads": 1,
        "memory_limit": memory if isinstance(memory, str) else f"{memory >> 20}MiB",
        "temp_directory": str(overflow),
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
