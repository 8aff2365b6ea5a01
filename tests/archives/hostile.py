"""Pages and members that are built to cost more than they give. Sizes are parameters."""

from __future__ import annotations

from archives.defect import Defect, Outcome, document, rejected
from archives.records import SENTENCES, gz, http, page, warc


def links(number: int = 1_000_000) -> bytes:
    """A page of so many links."""
    return warc(http("<!doctype html><title>l</title>" + "<a href>l" * number))


def nested(depth: int = 50_000, tag: str = "div") -> bytes:
    """A page of so many nested tags."""
    return warc(http(f"<!doctype html>{f'<{tag}>' * depth}{SENTENCES[0]}"))


def one_tag(size: int = 100_000_000, form: str = "attribute") -> bytes:
    """A page that is one tag of so many bytes: a name, a value, or as many attributes as fit."""
    inside = {
        "name": "a" * size,
        "attribute": "p title='" + "a" * size + "'",
        "attributes": "p " + "".join(f"a{n} " for n in range(size // 8)),
        "open": 'p title="' + "a" * size,
    }[form]
    return warc(http(f"<!doctype html><{inside}>" + page()))


def member_bomb(size: int = 100 << 20) -> bytes:
    """A gzip member with a record of so many zeros."""
    return gz(warc(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + bytes(size)))


DEFECTS = [
    Defect("million_links", "10^6 links.", links, rejected("too_many_nodes")),
    *(
        Defect(f"deep_{tag}", f"50,000 nested {tag} tags.", lambda tag=tag: nested(tag=tag),
               rejected("too_deep"))
        for tag in ("div", "b", "table", "blockquote")
    ),
    Defect("deep_enough", "100 nested tags: deeper than most, and a page.",
           lambda: nested(100), document()),
    Defect("tag_over_the_limit", "One tag of 11 MB (100 MB at full size).",
           lambda: one_tag(11_000_000), rejected("too_large")),
    *(
        Defect(f"tag_{form}", f"One tag of 4 MB ({form}), then a page.",
               lambda form=form: one_tag(4_000_000, form), outcome)
        for form, outcome in (("name", document()), ("attribute", document()),
                              ("open", rejected("no_text")))
    ),
    Defect("tag_attributes", "One tag of 500,000 attributes: parsers compare each with all others.",
           lambda: one_tag(4_000_000, "attributes"), rejected("too_many_nodes")),
    Defect("comments", "100,000 comments before the page.",
           lambda: warc(http("<!---->" * 100_000 + page())), document()),
    Defect("comment_without_end", "A comment that never ends.",
           lambda: warc(http("<html><body><!--" + page())), rejected("no_text")),
    Defect("script_without_end", "A script that never ends.",
           lambda: warc(http("<html><body><script>" + page())), rejected("no_text")),
    Defect("entities", "100,000 references that are none.",
           lambda: warc(http(page([*SENTENCES, "&#x110000;&#0;&notanentity;" * 100_000]))),
           document()),
    Defect("only_script", "A page that is a script.",
           lambda: warc(http("<html><body><script>x()</script></body></html>")),
           rejected("no_text")),
    Defect("nul_in_page", "NUL inside the words of a page.",
           lambda: warc(http(page(["One\0word and a few more of them.", *SENTENCES]))),
           document()),
    Defect("member_bomb", "100 MiB of zeros in one gzip member.", member_bomb,
           Outcome(rejected={"expansion": 1}), "plain", True, ".warc.gz"),
]  # fmt: skip
