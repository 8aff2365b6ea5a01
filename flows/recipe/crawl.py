"""Common Crawl by the id of a crawl: how ids look, and where the list of a crawl's files lies.

    CC-MAIN-2024-33    crawl-data/CC-MAIN-2024-33/{warc,wet,wat}.paths.gz
    CC-NEWS-2024-08    crawl-data/CC-NEWS/2024/08/warc.paths.gz
    CC-MAIN-2012       crawl-data/CC-MAIN-2012/arc.paths.gz     (the three crawls before WARC)

The layout is the one that https://commoncrawl.org/get-started describes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

SITES = {"https": "https://data.commoncrawl.org", "s3": "s3://commoncrawl"}
"""Where Common Crawl publishes; the bucket is read with credentials of AWS only."""
RECORDS = ("warc", "wet", "wat")
"""Pages as they were captured, their extracted text, their metadata."""
CRAWLS = "https://index.commoncrawl.org lists all crawls"
FORMS = f"ids look like CC-MAIN-2024-33 (year, week) and CC-NEWS-2024-08 (year, month); {CRAWLS}"
_WEEKLY = re.compile(r"CC-MAIN-20\d\d-(?:0[1-9]|[1-4]\d|5[0-3])")
_NEWS = re.compile(r"CC-NEWS-(20\d\d)-(0[1-9]|1[0-2])")
_ARC = ("CC-MAIN-2008-2009", "CC-MAIN-2009-2010", "CC-MAIN-2012")


def is_crawl_id(text: str) -> bool:
    """Whether `text` has the form of an id; whether there is such a crawl, its site knows."""
    return text in _ARC or any(form.fullmatch(text) for form in (_WEEKLY, _NEWS))


def crawl_problems(values: Mapping[str, Any]) -> Iterator[tuple[str, str, str | None]]:
    """(field, what is wrong, hint) of an entry that names a crawl."""
    crawl = values["crawl"]
    if not isinstance(crawl, str) or not is_crawl_id(crawl):
        yield "crawl", f"{crawl!r} is no crawl's id{_meant(crawl)}", FORMS
        crawl = ""
    records, known = values.get("records", "warc"), _records_of(crawl)
    if records not in known:
        has = ", ".join(RECORDS) if known == RECORDS else f"{known[0]}, all that {crawl} has"
        yield "records", f"expected {has}, got {records!r}", None
    via = values.get("via", "https")
    if via not in SITES:
        yield "via", f"expected {' or '.join(SITES)}, got {via!r}", None
    elif "mirror" in values and "via" in values:
        yield "mirror", "stands beside via, and one of them says where the crawl lies", None
    if "first" not in values and "share" not in values:
        yield (
            "",
            "a whole crawl is tens of thousands of files and up to 100 TB: say how many",
            "`first` 10 takes ten files, `share` 0.001 every thousandth, `share` 1 all",
        )


def crawl_site(values: Mapping[str, Any]) -> str:
    """The address that the list's paths begin at: a mirror, or Common Crawl's own."""
    return str(values.get("mirror") or SITES[values.get("via", "https")])


def crawl_list(crawl: str, records: str) -> str:
    """Where the list of a crawl's files lies, below its site."""
    news = _NEWS.fullmatch(crawl)
    folder = f"CC-NEWS/{news[1]}/{news[2]}" if news else crawl
    return f"crawl-data/{folder}/{'arc' if crawl in _ARC else records}.paths.gz"


def _records_of(crawl: str) -> tuple[str, ...]:
    """News and the crawls before 2013 have no extracted text and no metadata files."""
    return ("warc",) if crawl in _ARC or _NEWS.fullmatch(crawl) else RECORDS


def _meant(crawl: Any) -> str:
    """The id that was meant, where it differs by case or a missing zero."""
    parts = str(crawl).strip().upper().replace("_", "-").split("-")
    likely = "-".join([*parts[:-1], parts[-1].zfill(2)])
    return f", did you mean '{likely}'?" if is_crawl_id(likely) else ""
