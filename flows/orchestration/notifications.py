"""Messages about runs: a webhook, Slack or e-mail, at a failure, a regression, or at every end.

An automation of Prefect's for each occasion sends them, so they come from the server. Where they go
is a secret (whoever has a webhook's URL can write there): it is read from a file of mode 0600, kept
in a block of Prefect's, which it encrypts, and printed nowhere.

A regression is a score of an evaluation that is worse than in the recipe's run before, beyond the
95 % interval of the difference, as `ingot report --against` shows it. The run that made it sends
the event `ingot.evaluation.regressed`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, cast, get_args
from urllib.parse import urlsplit

from prefect.automations import (
    AutomationCore,
    CallWebhook,
    EventTrigger,
    Posture,
    SendNotification,
)
from prefect.blocks.core import Block
from prefect.blocks.notifications import SlackWebhook
from prefect.blocks.webhook import Webhook
from prefect.client.orchestration import SyncPrefectClient
from prefect.events import Event, RelatedResource, Resource
from prefect.exceptions import ObjectNotFound
from pydantic import SecretStr

from artifacts_schema.errors import UsageError
from artifacts_schema.store.runs import Run
from flows.orchestration.deployments import FLOW_RUNS, OURS, prefect_client, send_event
from flows.orchestration.local_state import read_private
from flows.report.paired_scores import Regression

Occasion = Literal["failure", "regression", "completion"]
OCCASIONS: tuple[Occasion, ...] = get_args(Occasion)
REGRESSED = "ingot.evaluation.regressed"
_PREFIX = "ingot: notify "
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_STATE_MESSAGE = "{{ flow_run.state.message or '' }}"
_REGRESSION_MESSAGE = "{{ event.payload.message }}"


def read_target(file: Path) -> str:
    """The URL in a file that only its owner can read; UsageError if it is none that is known."""
    text = read_private(file, "the address of the messages", "chmod 600 it")
    try:
        parts = urlsplit(text)
        is_known = parts.scheme in ("http", "https", "mailto", "mailtos") and bool(parts.hostname)
    except ValueError:
        is_known = False
    if not is_known or not text.isprintable():
        raise UsageError(
            "expected a URL on one line",
            where=str(file),
            hint="https://… of a webhook, or mailtos://USER:PASSWORD@SERVER?to=ADDRESS",
        )
    return text


def notify(name: str, target: str, occasions: Sequence[Occasion]) -> None:
    """Send messages to `target` at these occasions, and at no others under this name."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"'{name}' cannot be a name: lowercase letters, digits and dashes", where="NAME"
        )
    with prefect_client() as client:
        for kind in (Webhook, SlackWebhook):
            if kind is not _block_type(target):
                _delete_block(client, kind, name)
        block = _block_type(target)(url=SecretStr(target))
        id = cast(Any, block).save(f"ingot-{name}", overwrite=True)
        for occasion in OCCASIONS:
            _remove_automations(client, _automation_name(name, occasion))
            if occasion in occasions:
                client.create_automation(
                    _automation(name, occasion, id, isinstance(block, Webhook))
                )


def stop_notifying(name: str) -> bool:
    """Remove the automations and the address under this name; whether there were any."""
    with prefect_client() as client:
        removed = [_remove_automations(client, _automation_name(name, one)) for one in OCCASIONS]
        blocks = [_delete_block(client, kind, name) for kind in (Webhook, SlackWebhook)]
    return any([*removed, *blocks])


def list_notifications() -> list[tuple[str, Occasion]]:
    """(name, occasion) of every message that is sent."""
    with prefect_client() as client:
        answer = client.request("POST", "/automations/filter", json={"limit": 200})
        answer.raise_for_status()
    names = [one["name"] for one in answer.json() if one["name"].startswith(_PREFIX)]
    pairs = [name.removeprefix(_PREFIX).rsplit(" of ", 1) for name in names]
    return sorted((name, cast(Occasion, occasion)) for name, occasion in pairs)


def report_regressions(run: Run, store: str, regressions: Sequence[Regression], id: str) -> None:
    """Send the event that scores of `run` fell; `id` is its flow run's."""
    related = {"prefect.resource.id": f"prefect.flow-run.{id}", "prefect.resource.role": "flow-run"}
    place = sha256(store.encode()).hexdigest()[:12]
    event = Event(
        event=REGRESSED,
        resource=Resource.model_validate({"prefect.resource.id": f"ingot.run.{place}.{run.name}"}),
        related=[RelatedResource.model_validate(related)],
        payload={"run": run.name, "store": store, "message": "\n".join(map(str, regressions))},
    )
    send_event(event)


def _automation_name(name: str, occasion: Occasion) -> str:
    return f"{_PREFIX}{name} of {occasion}"


def _block_type(target: str) -> type[Block]:
    """Prefect's block for Slack hands e-mail to Apprise, which sends by SMTP."""
    parts = urlsplit(target)
    is_slack = (parts.hostname or "") in ("hooks.slack.com", "hooks.slack-gov.com")
    return SlackWebhook if is_slack or parts.scheme.startswith("mailto") else Webhook


def _automation(name: str, occasion: Occasion, block: Any, is_webhook: bool) -> AutomationCore:
    message = _REGRESSION_MESSAGE if occasion == "regression" else _STATE_MESSAGE
    run = "{{ event.payload.run }}" if occasion == "regression" else "{{ flow_run.name }}"
    action: CallWebhook | SendNotification
    if is_webhook:
        fields = {"run": run, "message": message, "url": "{{ flow_run|ui_url }}"}
        parts = [f'"occasion": "{occasion}"']
        parts += [f'"{key}": {_as_json(value)}' for key, value in fields.items()]
        action = CallWebhook(block_document_id=block, payload="{" + ", ".join(parts) + "}")
    else:
        body = f"{message}\n{{{{ flow_run|ui_url }}}}"
        action = SendNotification(
            block_document_id=block, subject=f"Ingot: {occasion} of {run}", body=body
        )
    return AutomationCore(
        name=_automation_name(name, occasion),
        description=f"Sends a message at each {occasion}; made by `ingot notify`.",
        trigger=_trigger(occasion),
        actions=[action],
    )


def _as_json(template: str) -> str:
    """The same template, whose value is written as a JSON string."""
    return re.sub(r"{{ (.+) }}", r"{{ (\1)|tojson }}", template)


def _trigger(occasion: Occasion) -> EventTrigger:
    expect = {
        "failure": {"prefect.flow-run.Failed", "prefect.flow-run.Crashed"},
        "completion": {"prefect.flow-run.Completed"},
        "regression": {REGRESSED},
    }[occasion]
    ours = {} if occasion == "regression" else {"match": FLOW_RUNS, "match_related": OURS}
    return EventTrigger(
        expect=expect,
        for_each={"prefect.resource.id"},
        posture=Posture.Reactive,
        threshold=1,
        within=timedelta(0),
        **cast(Any, ours),
    )


def _remove_automations(client: SyncPrefectClient, name: str) -> bool:
    known = client.read_automations_by_name(name)
    for one in known:
        answer = client.request("DELETE", "/automations/{id}", path_params={"id": str(one.id)})
        answer.raise_for_status()
    return bool(known)


def _delete_block(client: SyncPrefectClient, kind: type[Block], name: str) -> bool:
    try:
        document = client.read_block_document_by_name(f"ingot-{name}", kind.get_block_type_slug())
    except ObjectNotFound:
        return False
    client.delete_block_document(document.id)
    return True
