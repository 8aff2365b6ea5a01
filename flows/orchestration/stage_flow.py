"""The flow of a single stage, with the fields of the stage's form as its parameters.

Prefect binds the parameters of a run to the signature of the flow, so each stage has a flow of its
own: `flows.orchestration.stage_flow.NAME`, made when Prefect asks for it.
"""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import Any

from prefect import flow
from prefect.flows import Flow
from prefect.runtime import flow_run

from artifacts_schema.errors import UsageError
from artifacts_schema.store import Store
from flows.orchestration.flow import run_name, run_spec
from flows.orchestration.forms import NAME_FIELD, inputs_of, stage_form, stage_spec
from stages.engine.registry import stage_named


def stage_flow(name: str) -> Flow[..., dict[str, str]]:
    """The flow `stage` of the stage called `name`."""

    def run(**values: Any) -> dict[str, str]:
        store = Store.open(values.pop("store"))
        wanted = values.pop(NAME_FIELD, None)
        spec = stage_spec(store, name, values)
        made = run_spec(store, spec)
        while wanted:
            manifest = store.manifest(spec.stage, spec.key)
            if manifest is not None and store.name(wanted, manifest):
                break
            made = run_spec(store, spec)  # Collected before it was named.
        return made

    def named() -> str:
        return run_name(" ".join([name, *inputs_of(flow_run.parameters)]))

    stage = stage_named(name)
    fields = stage_form(stage, "").fields
    run.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter(key, Parameter.KEYWORD_ONLY, default=None) for key in fields]
    )
    run.__doc__ = stage.__doc__
    return flow(name="stage", flow_run_name=named, persist_result=False, retries=0)(run)


def __getattr__(name: str) -> Any:
    try:
        return stage_flow(name)
    except UsageError as error:
        raise AttributeError(str(error)) from None
