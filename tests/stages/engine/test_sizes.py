from __future__ import annotations

import pytest

from artifacts_schema.config import format_bytes, parse_size


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("2GiB", 2 * 1024**3),
        ("2GB", 2 * 1000**3),
        (" 1.5 KiB ", 1536),
        ("500 MB", 500_000_000),
        ("0.1TiB", 109_951_162_777),
        ("64MiB", 1 << 26),
    ],
)
def test_sizes_are_counted_by_thousands_or_by_1024(size: str, expected: int) -> None:
    assert parse_size(size) == expected


@pytest.mark.parametrize("size", ["", "2", "GiB", "2G", "2gib", "-2GiB", "2,5GiB", "2GiB 3MiB"])
def test_what_is_no_size_is_refused_with_an_example(size: str) -> None:
    with pytest.raises(ValueError, match=f"'{size}'.*2GiB"):
        parse_size(size)


@pytest.mark.parametrize("size", ["0GiB", "0.0001KB"])
def test_no_memory_is_refused(size: str) -> None:
    with pytest.raises(ValueError, match="no memory at all"):
        parse_size(size)


def test_sizes_are_read_in_steps_of_a_thousand() -> None:
    assert [format_bytes(n) for n in (0, 999, 1500, 38.2e6, 1.5e9, 2.5e12)] == [
        "0 B", "999 B", "1.5 kB", "38.2 MB", "1.5 GB", "2.5 TB",
    ]  # fmt: skip
