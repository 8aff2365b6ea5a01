"""Few files come from one host at a time, whatever the number of processes."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from artifacts_schema.errors import Stopped
from stages.engine.transfers import watched
from stages.engine.turns import AT_ONCE, turn

URL = "https://data.commoncrawl.org/crawl-data/a.warc.gz"


def test_one_more_than_may_waits_for_its_turn(tmp_path):
    with watched(lambda transfer: None, lambda: True):  # Who has to wait looks for a stop.
        with ExitStack() as taken:
            for _ in range(AT_ONCE):
                taken.enter_context(turn(tmp_path, URL))
            with pytest.raises(Stopped), turn(tmp_path, URL.replace("/a.", "/b.")):
                pass
            with turn(tmp_path, "https://other.example/a"), turn(tmp_path, "s3://commoncrawl/a"):
                pass
        with turn(tmp_path, URL):
            pass
