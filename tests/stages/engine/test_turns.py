"""Few files come from one host at a time, whatever the number of processes."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from artifacts_schema.errors import Stopped
from stages.engine.fetch import AT_ONCE, rate_limit
from stages.engine.transfers import watch_fetches

URL = "https://data.commoncrawl.org/crawl-data/a.warc.gz"


def test_one_more_than_may_waits_for_its_turn(tmp_path):
    with watch_fetches(lambda transfer: None, lambda: True):  # Who has to wait looks for a stop.
        with ExitStack() as taken:
            for _ in range(AT_ONCE):
                taken.enter_context(rate_limit(tmp_path, URL))
            with pytest.raises(Stopped), rate_limit(tmp_path, URL.replace("/a.", "/b.")):
                pass
            with (
                rate_limit(tmp_path, "https://other.example/a"),
                rate_limit(tmp_path, "s3://commoncrawl/a"),
            ):
                pass
        with rate_limit(tmp_path, URL):
            pass
