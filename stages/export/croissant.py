"""Croissant metadata (MLCommons, version 1.0) in the folder of a data set.

Each Parquet file is a FileObject with its sha256; the files of a source are a FileSet and a
RecordSet, as they are a configuration for `datasets`. Paths are relative to the folder, so the
metadata holds wherever the folder lies. What nobody but its publisher knows is left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from artifacts_schema.file_table import File
from artifacts_schema.identity import short
from artifacts_schema.kinds import KINDS
from stages.export.config import DatasetConfig

CROISSANT = "croissant.json"
CONFORMS_TO = "http://mlcommons.org/croissant/1.0"
PARQUET = "application/x-parquet"
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{
        term: f"cr:{term}"
        for term in (
            *("citeAs", "column", "equivalentProperty", "extract", "field", "fileObject"),
            *("fileProperty", "fileSet", "format", "includes", "isLiveDataset", "jsonPath", "key"),
            *("md5", "parentField", "path", "recordSet", "references", "regex", "repeated"),
            *("replace", "samplingRate", "separator", "source", "subField", "transform"),
        )
    },
}
"""The context of the specification, whose terms a reader may expect."""


def describe_dataset(
    config: DatasetConfig, description: str, facts: Mapping[str, Any], files: Iterable[File]
) -> dict[str, Any]:
    """The metadata of a data set with these `files` of Parquet; `facts` are its `dataset.json`."""
    files = sorted(files, key=lambda file: file.path)
    digest = hashlib.sha256("".join(file.sha256 for file in files).encode()).hexdigest()
    table = KINDS["dataset"].tables["data/*/*.parquet"]
    texts = {column.name: column.description for column in table.columns}
    sources = facts["sources"]
    value: dict[str, Any] = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": config.name,
        "description": description,
        "license": config.license,
        "inLanguage": list(config.languages),
        "version": f"1.0.0+{short(digest)}",
        "isBasedOn": [
            {
                "@type": "sc:CreativeWork",
                "name": f"{one['stage']}/{short(one['key'])}",
                "identifier": one["digest"],
            }
            for one in facts["made_of"]
        ],
        "distribution": [
            *map(_file_object, files),
            *(_file_set(source, one["name"]) for source, one in sources.items()),
        ],
        "recordSet": [
            _record_set(source, one["name"], table.arrow(), texts)
            for source, one in sources.items()
        ],
    }
    return {name: item for name, item in value.items() if item not in ([], None)}


def _file_object(file: File) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": file.path,
        "name": file.path,
        "contentUrl": file.path,
        "contentSize": f"{file.bytes} B",
        "encodingFormat": PARQUET,
        "sha256": file.sha256,
    }


def _file_set(source: str, name: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": f"{name}-files",
        "name": f"{name}-files",
        "description": f"Documents of the source {source}.",
        "encodingFormat": PARQUET,
        "includes": f"data/{name}/*.parquet",
    }


def _record_set(
    source: str, name: str, schema: pa.Schema, texts: Mapping[str, str]
) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": f"Documents of the source {source}.",
        "key": {"@id": f"{name}/id"},
        "field": [describe_column(name, f"{name}-files", column, texts) for column in schema],
    }


def describe_column(
    record_set: str, file_set: str, column: pa.Field, texts: Mapping[str, str]
) -> dict[str, Any]:
    """A field for a column; a struct, or list of structs, has its members as sub-fields.

    Members that are structs themselves are left to the description, which names the Arrow type:
    Croissant has no record within a record.
    """
    source = {"fileSet": {"@id": file_set}, "extract": {"column": column.name}}
    metadata = column.metadata or {}
    text = texts.get(column.name) or metadata.get(b"description", b"").decode() or column.name
    value: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{record_set}/{column.name}",
        "name": column.name,
        "description": text,
    }
    is_list, kind = _element(column.type)
    if is_list:
        value["repeated"] = True
    if not pa.types.is_struct(kind):
        return {**value, "dataType": data_type(kind), "source": source}
    value["description"] = f"{text} Arrow type: {column.type}."
    value["subField"] = [
        {
            "@type": "cr:Field",
            "@id": f"{record_set}/{column.name}/{member.name}",
            "name": member.name,
            "dataType": data_type(member.type),
            "source": {**source, "transform": {"jsonPath": member.name}},
        }
        for member in kind
        if not pa.types.is_nested(member.type)
    ]
    return value


def _element(kind: pa.DataType) -> tuple[bool, pa.DataType]:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return True, kind.value_type
    return False, kind


def data_type(kind: pa.DataType) -> str:
    """Croissant's type of a value of an Arrow type."""
    types = pa.types
    if types.is_boolean(kind):
        return "sc:Boolean"
    if types.is_integer(kind):
        return "sc:Integer"
    if types.is_floating(kind) or types.is_decimal(kind):
        return "sc:Float"
    if types.is_date(kind):
        return "sc:Date"
    return "sc:DateTime" if types.is_timestamp(kind) else "sc:Text"
