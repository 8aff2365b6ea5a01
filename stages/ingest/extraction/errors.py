"""Why a page is not extracted."""

from __future__ import annotations


class PageTooLarge(Exception):
    """A page over a budget: `reason` is `too_many_nodes` or `too_deep`, `detail` a few words."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail

    def __reduce__(self) -> tuple[type[PageTooLarge], tuple[str, str]]:
        return type(self), (self.reason, self.detail)
