"""Runs under a Python with mlcroissant: the rows of each record set of a file of metadata.

`python croissant_rows.py FILE`: prints JSON: `errors` and `warnings` of the validation, and
by record set `records`, each a mapping from the id of a field to its value as text.
"""

import json
import logging
import sys

logging.disable(logging.CRITICAL)

import mlcroissant  # noqa: E402


def plain(value):
    """As JSON holds it; mlcroissant gives texts as bytes."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list):
        return [plain(one) for one in value]
    return None if value != value else value


def main():
    data_set = mlcroissant.Dataset(jsonld=sys.argv[1])
    issues = data_set.metadata.ctx.issues
    records = {
        one.uuid: [plain(record) for record in data_set.records(record_set=one.uuid)]
        for one in data_set.metadata.record_sets
    }
    print(
        json.dumps(
            {
                "errors": sorted(issues.errors),
                "warnings": sorted(issues.warnings),
                "records": records,
            }
        )
    )


if __name__ == "__main__":
    main()
