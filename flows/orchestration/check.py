"""`python -P -m flows.orchestration.check`: would this run be refused? Reads and prints JSON.

Stdin: `{"entrypoint": …, "parameters": {…}}` of a deployment; stdout: `{"problem": text or null}`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from artifacts_schema.errors import IngotError
from artifacts_schema.store import Store
from flows.orchestration.forms import check_recipe, stage_spec
from flows.recipe.pipeline import store_to_read

PIPELINE = "flows.orchestration.flow.pipeline"
STAGES = "flows.orchestration.stage_flow."
"""Where Prefect finds the flows; a stage's is named after it."""


def problem_of(entrypoint: str, parameters: Mapping[str, Any]) -> str | None:
    """What is wrong with the parameters of a run; None if it would start."""
    place = readable = str(parameters["store"])
    try:
        with store_to_read(place) as readable:
            if entrypoint == PIPELINE:
                check_recipe({**parameters, "store": readable})
            elif entrypoint.startswith(STAGES):
                values = {name: value for name, value in parameters.items() if name != "store"}
                stage_spec(Store.open(readable), entrypoint.removeprefix(STAGES), values)
    except IngotError as error:
        return str(error).replace(readable, place)
    return None


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print(json.dumps({"problem": problem_of(asked["entrypoint"], asked["parameters"])}))
