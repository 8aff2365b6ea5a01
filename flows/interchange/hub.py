"""Publishing to the Hugging Face Hub: one commit, whose parent is the one that the plan saw.

By `huggingface_hub`, which sends a large file only if the Hub does not hold its bytes: what was cut
goes on where it was, and nobody sees a repository that is half of each. The token is found as the
Hub's own tools find theirs (HF_TOKEN, `hf auth login`), or in a file; no message holds it.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from artifacts_schema.errors import IngotError, InputError, UsageError
from artifacts_schema.files import open_regular
from artifacts_schema.store import Store, layout
from flows.interchange.publication import (
    CARD,
    PublicationPlan,
    Remote,
    RemoteFile,
    Target,
)
from stages.engine.web import endpoint, is_network_error

SECONDS = 30.0
"""How long a question to the Hub may take."""
_ATTRIBUTES = ".gitattributes"


class Hub:
    """The Hub, as one of its users."""

    def __init__(self, token_file: str | None = None) -> None:
        from huggingface_hub import HfApi

        self._token = _read_token(token_file) if token_file is not None else None
        self._api = HfApi(endpoint=endpoint(), token=self._token)

    def look(self, target: Target, repo_type: str) -> Remote | None:
        """The repository as it is; None if there is none that this user may see."""
        from huggingface_hub.errors import RepositoryNotFoundError

        with self._errors(target):
            try:
                repository = self._api.repo_info(
                    target.repo, repo_type=repo_type, files_metadata=True, timeout=SECONDS
                )
            except RepositoryNotFoundError:
                return None
        files = {
            one.rfilename: RemoteFile(
                int(one.size or 0), None if one.lfs is None else one.lfs.sha256, one.blob_id
            )
            for one in getattr(repository, "siblings", None) or ()
            if one.rfilename != _ATTRIBUTES
        }
        return Remote(str(repository.sha), bool(repository.private), files)

    def publish(self, plan: PublicationPlan, message: str) -> str:
        """Make the repository what the plan says; returns its new commit.

        InputError for a plan with problems; IngotError if the Hub refuses, or is not reached: then
        the repository is as it was, and what was sent need not be sent again.
        """
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        if plan.problems:
            raise InputError("; ".join(plan.problems), where=plan.target.repo)
        repo, kind = plan.target.repo, plan.repo_type
        operations: list[Any] = [
            CommitOperationAdd(file.path, plan.card if file.path == CARD else str(file.local))
            for file in plan.to_send
        ]
        operations += [CommitOperationDelete(path) for path in plan.removed]
        with self._errors(plan.target):
            head = None if plan.remote is None else plan.remote.head
            if head is None:
                self._api.create_repo(repo, repo_type=kind, private=plan.private)
                head = self._api.repo_info(repo, repo_type=kind, timeout=SECONDS).sha
            made = self._api.create_commit(
                repo, operations, commit_message=message, repo_type=kind, parent_commit=head
            )
        return str(made.oid)

    @contextmanager
    def _errors(self, target: Target) -> Iterator[None]:
        """Turn errors of the Hub's library into an IngotError without a token or a URL's query."""
        from huggingface_hub import errors

        def problem(what: str, hint: str) -> IngotError:
            return IngotError(what, where=target.repo, hint=hint)

        again = "the same command goes on; what was sent is not sent again"
        try:
            yield
        except IngotError:
            raise
        except errors.OfflineModeIsEnabled:
            raise problem("the Hub is not asked", "HF_HUB_OFFLINE is set") from None
        except errors.LocalTokenNotFoundError:
            raise problem(
                "there is no token", "`hf auth login`, HF_TOKEN or --token-file"
            ) from None
        except errors.HfHubHTTPError as error:
            status = getattr(error.response, "status_code", 0)
            if status in (401, 403):
                hint = "a token that may write there: `hf auth login`, HF_TOKEN or --token-file"
                raise problem(f"the Hub refuses this user ({status})", hint) from None
            if status in (409, 412):
                hint = "somebody else wrote to it meanwhile: look at the plan again"
                raise problem(f"the repository has changed ({status})", hint) from None
            raise problem(f"the Hub answered {status or 'an error'}", again) from None
        except Exception as error:
            cause: BaseException | None = error
            while cause is not None:
                if is_network_error(cause):
                    raise problem(f"{endpoint()} is not reached, or went away", again) from None
                if isinstance(cause, errors.HfHubHTTPError):
                    status = getattr(cause.response, "status_code", "an error")
                    raise problem(f"the Hub answered {status}", again) from None
                cause = cause.__cause__
            if isinstance(error, RuntimeError | ValueError):
                raise problem(f"the upload failed: {type(error).__name__}", again) from None
            raise


def _read_token(path: str) -> str:
    """The token in a file that only its owner can read; UsageError for any other file."""
    try:
        with open_regular(os.path.expanduser(path)) as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            token = file.read(4096).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--token-file: it cannot be read: {error}", where=path) from None
    if mode & 0o077:
        raise UsageError("--token-file: others can read it", where=path, hint="chmod 600")
    if not token or not token.isascii() or any(one.isspace() for one in token):
        raise UsageError("--token-file: it holds no token", where=path)
    return token


def read_record(store: Store, target: Target) -> dict[str, Any] | None:
    """What the store last published to a repository; None if nothing, or if that is unreadable."""
    try:
        record = json.loads(store.backend.read(layout.published(target.organisation, target.name)))
    except (FileNotFoundError, ValueError):
        return None
    return record if isinstance(record, dict) else None


def write_record(store: Store, plan: PublicationPlan, revision: str) -> None:
    """Name the artifact and its repository's commit in the store; unhashed, as names are."""
    target = plan.target
    store.name(target.ref, plan.manifest)
    record = {
        "repo": target.repo,
        "type": plan.repo_type,
        "revision": revision,
        "stage": plan.manifest.stage,
        "key": plan.manifest.key,
        "output": plan.output,
        "digest": plan.digest,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    store.backend.replace(
        layout.published(target.organisation, target.name),
        json.dumps(record, indent=1, sort_keys=True).encode(),
    )
