"""A pinned list of source files."""

from artifacts_schema.kinds.schema import Kind

SNAPSHOT = Kind(
    name="snapshot",
    version=1,
    description="Files from outside: name, size, checksum of each; where they lie is not hashed.",
    files={
        "snapshot.json": '{"name", "files": [{"name", "bytes", "sha256"}]}, sorted by file name; '
        'a file behind a URL has its server\'s "etag" instead of "sha256".',
        "files/*": "The files themselves, where the snapshot carries them (made by `sample`).",
    },
)
