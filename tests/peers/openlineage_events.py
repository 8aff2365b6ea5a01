"""Runs under a Python with openlineage-python: whether its classes take each event as it is.

`python openlineage_events.py FILE`: lines of JSON. Each event and facet is built again from its
parts by the class that its schema's URL names, which checks them, and written out by the package's
own serializer. Prints the number of events and facets; fails at the first that comes out otherwise.
"""

import importlib
import json
import pathlib
import pkgutil
import sys

import attr
from openlineage.client import event_v2, generated, set_producer
from openlineage.client.serde import Serde


def classes():
    """URL of a schema → the class of the package that states it."""
    by_url = {}
    for module in pkgutil.iter_modules(generated.__path__):
        content = vars(importlib.import_module(f"{generated.__name__}.{module.name}"))
        for value in content.values():
            if attr.has(value) and hasattr(value, "_get_schema"):
                by_url[value._get_schema()] = value
    return by_url


def build(kind, values):
    """The facet of class `kind`; a field that it does not know is a TypeError."""
    known = {key: value for key, value in values.items() if key not in ("_producer", "_schemaURL")}
    return kind(**known, producer=values["_producer"])


def facets(values, by_url):
    built = {}
    for name, facet in values.items():
        built[name] = build(by_url[facet["_schemaURL"]], facet)
    return built


def data_set(kind, values, by_url):
    parts = {k: facets(v, by_url) for k, v in values.items() if k.lower().endswith("facets")}
    return kind(namespace=values["namespace"], name=values["name"], **parts)


def without_empty(value):
    """As the serializer writes it: without empty lists and mappings."""
    if isinstance(value, dict):
        pairs = ((key, without_empty(one)) for key, one in value.items())
        return {key: one for key, one in pairs if one not in (None, [], {})}
    if isinstance(value, list):
        return [without_empty(one) for one in value]
    return value


def main():
    by_url, events, count = classes(), 0, 0
    for line in pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        value = json.loads(line)
        set_producer(value["producer"])
        event = event_v2.RunEvent(
            eventType=event_v2.RunState[value["eventType"]],
            eventTime=value["eventTime"],
            producer=value["producer"],
            run=event_v2.Run(value["run"]["runId"], facets(value["run"]["facets"], by_url)),
            job=event_v2.Job(
                value["job"]["namespace"],
                value["job"]["name"],
                facets(value["job"]["facets"], by_url),
            ),
            inputs=[data_set(event_v2.InputDataset, one, by_url) for one in value["inputs"]],
            outputs=[data_set(event_v2.OutputDataset, one, by_url) for one in value["outputs"]],
        )
        again = json.loads(Serde.to_json(event))
        assert without_empty(again) == without_empty(value), (again, value)
        events += 1
        count += line.count('"_schemaURL"')
    print(events, count)


if __name__ == "__main__":
    main()
