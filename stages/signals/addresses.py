"""E-mail and IP addresses in a text.

The shapes are those of datatrove's PII formatter with differences that each harm less text, or find
more of it:

- the name of an e-mail address may hold letters of any script (RFC 6531), and so may its domain,
  which must end in a top-level domain of the public suffix list (`tld` carries it) or in a name of
  local networks: `lodash@4.17.21`, `icon@2x.png` and `W@x.shape` are none. In scripts without
  spaces between words an ASCII name begins after the last character of these;
- `/`, `=` and quotes part words, so that an address in a URL or in code is found without what
  stands before it;
- what stands between `://` and the host is a login, and `git@github.com:` an account of everybody;
- an IPv4 address must not touch a letter or digit, nor be part of a longer dotted number
  ("1.2.3.4.5" is a section, "v1.2.3.4" a version), and no word before it may say that it is a
  version. With at most six digits it needs a word about addresses before it, unless its four parts
  are equal: on crawled pages nearly all of these are versions ("4.4.2.8"), and of all addresses one
  in 700 is so short;
- the resolvers of DNS that everybody uses (`8.8.8.8`) are nobody's address;
- IPv6 addresses are found as well: global unicast (2000::/3), and others that are written in full.

Time is linear in the text.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from string import ascii_letters, digits

_LOCAL = frozenset("._%+-'~" + ascii_letters + digits)
_LONGEST_LOCAL = 64
"""Characters of the part before the '@' (RFC 5321, 4.5.3.1.1)."""

_AT = re.compile(r"@(?=[^\W_]|\[)")
_SPACED = re.compile(r"[\w.%+'~-]")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Scripts whose words touch each other: Thai, Lao, Burmese, Khmer, Chinese, Japanese; and Korean,
whose particles do."""

_LONGEST_UNSPACED = 4
_UNSPACED_NAME = re.compile(rf"(?:\A|(?<=[^\w]))({_UNSPACED.pattern}{{1,{_LONGEST_UNSPACED}}})\Z")
"""A name in such a script before a number: `佐藤84@…`."""

_DOMAIN_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_IPV4 = r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}"
_IPV6 = (
    r"[23][0-9A-Fa-f]{3}(?::[0-9A-Fa-f]{0,4}){2,7}"
    r"|[1-9A-Fa-f][0-9A-Fa-f]{3}(?::[0-9A-Fa-f]{1,4}){7}"
)
_HOST_NUMBER = re.compile(rf"\[{_IPV4}\]")
"""RFC 5321 writes a host's address in brackets; `root@8.8.8.8` is a login at an address."""

_DOMAIN = re.compile(rf"(?:{_DOMAIN_LABEL}\.)+{_DOMAIN_LABEL}")
_ANY_DOMAIN = re.compile(r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W_](?:[\w-]{0,61}[^\W_])?")
_NO_DOMAIN = re.compile(r"v?[0-9]+\.[0-9]+(?:\.|\Z)|[1-9](?:\.[0-9])?x\.")
"""A version (`react@18.2.0-rc.dev`), and a picture for dense screens (`icon@2x.png`)."""

_LOGIN = re.compile(r"(?<!mailto)://[^\s/?#\"'<>]{0,64}\Z")
_LONGEST_SCHEME = 3 + _LONGEST_LOCAL
_SHARED_ACCOUNTS = frozenset(("git", "hg", "svn", "cvs", "bzr"))
_NOBODYS = (
    *(
        ".localdomain",
        ".example",
        ".example.com",
        ".example.net",
        ".example.org",
        ".example.edu",
        ".test",
    ),
    *(".invalid", ".localhost", ".local", ".internal"),
)
"""What RFC 2606, 6761 and 6762 and ICANN (`internal`) reserve: no letter reaches anybody there."""

_SAMPLE = re.compile(
    r"(?:(?:your|my|user|some|first|full)?[._-]?(?:name|user(?:name)?|e?mail|you|me|someone|address|id|login"
    r"|account|person|john\.?doe|jane\.?doe))@(?:(?:your|my|some|the)-?(?:domain|company|organi[sz]ation"
    r"|email|mail|site|website|provider|host|server|business|firm|school)|domain|company|email|foo|bar)"
    r"\.(?:com|org|net|tld|edu|io|co)",
    re.IGNORECASE,
)
"""What forms show as an address: `name@domain.com`, `you@company.com`."""

_SLOT_AFTER = re.compile(r" ?<-|\$\w|\[\[")
"""Slots of R's objects: `object@slot.name <- 1`."""

_HANDLE_BEFORE = re.compile(r"(?:\A|(?<![\w.%+-]))@\Z")
"""`@ann@instance` names an account of the Fediverse."""

_OBJECT = re.compile(
    r"[0-9a-f]{5,8}\.[a-z]\w{0,60}\((?:\w{1,80}\.(?:java|kt|scala|groovy)|Native|Unknown|\))"
)
"""A frame of a stack trace in Java: `Task@5bb765b.run(Pool.java:95)`."""

_LOCAL_DOMAINS = frozenset(
    ("corp", "example", "home", "internal", "intranet", "lan", "local", "localdomain", "private")
)


@cache
def _top_level_domains() -> frozenset[str]:
    """Last labels of the rules of the public suffix list, and names that local networks use."""
    rules = files("tld").joinpath("res/effective_tld_names_public_only.dat.txt")
    lines = rules.read_text(encoding="utf-8").splitlines()
    names = {line.strip().rsplit(".", 1)[-1].lower() for line in lines if line[:2] != "//"}
    return frozenset(names | _LOCAL_DOMAINS) - {""}


def find_emails(text: str) -> Iterator[tuple[int, int]]:
    """Places of e-mail addresses, around each '@'. A text without any costs nothing."""
    free = 0
    for mark in _AT.finditer(text):
        at = mark.start()
        start = _local_start(text, max(free, at - _LONGEST_LOCAL), at)
        end = _domain_end(text, at + 1) if start < at else 0
        if not end:
            continue
        if _LOGIN.search(text, max(0, at - _LONGEST_SCHEME), start):
            continue
        if text[start:at] in _SHARED_ACCOUNTS and text[end : end + 1] in (":", "/"):
            continue
        if _HANDLE_BEFORE.search(text, max(0, start - 2), start) or _OBJECT.match(text, at + 1):
            continue
        if f".{text[at + 1 : end].lower()}".endswith(_NOBODYS):
            continue
        if _SAMPLE.fullmatch(text, start, end) or _SLOT_AFTER.match(text, end):
            continue
        yield start, end
        free = end
    yield from _find_obscured(text)


_MARKS = ("at)", "at]", "at}", "at>", "AT)", "AT]", " AT ", "@)", "@]", "#64;", "-at-")
_MARK = re.compile(
    r"\s?[\[({<]\s?(?:at|@|ät|arroba)\s?[\])}>]\s?|(?-i:(?P<loud>\sAT\s))|&#0?64;|\s-at-\s",
    re.IGNORECASE,
)
_LOCAL_BEFORE = re.compile(r"(?<![\w.@+-])[A-Za-z0-9][\w.+-]{0,63}\Z")
_POINT = (
    r"(?:\s?[\[({<]\s?(?:dot|\.|punkt|punto|point|ponto)\s?[\])}>]\s?|(?-i:\sDOT\s)|\s?-dot-\s?)"
)
_OBSCURED_DOMAIN = re.compile(
    rf"{_DOMAIN_LABEL}(?:(?:{_POINT}|\.){_DOMAIN_LABEL}){{1,5}}", re.IGNORECASE
)
_EXAMPLE_DOMAIN = re.compile(r"\b(?:example|domain|foo)\b", re.IGNORECASE)
_SPELLED = re.compile(_POINT, re.IGNORECASE)
_ARCHIVED = re.compile(
    r"(?P<local>(?<![\w.@+-])[A-Za-z0-9][\w.+-]{0,63}) at "
    rf"(?P<domain>(?:{_DOMAIN_LABEL}\.){{1,5}}[A-Za-z]{{2,12}})"
    r"(?P<after>>| wrote:| writes:| \(|$)?",
    re.MULTILINE,
)
_SENDER_BEFORE = re.compile(
    r"(?:^|\n|\W)(?:from|to|cc|e?-?mail|reply-to|contact)\s?:\s?[\"'(<]?\Z|<\Z", re.IGNORECASE
)


def _places(text: str, literals: Sequence[str]) -> Iterator[int]:
    """Where any of the literals begins: a search by a literal is the fastest."""
    for literal in literals:
        place = text.find(literal)
        while place >= 0:
            yield place
            place = text.find(literal, place + 1)


def _find_obscured(text: str) -> Iterator[tuple[int, int]]:
    """Addresses with a spelled sign: `ann [at] corp [dot] com`; ` at ` where a sender is named."""
    for place in _places(text, _MARKS):
        mark = _MARK.search(text, max(0, place - 3), place + 6)
        if mark is not None:
            local = _LOCAL_BEFORE.search(text, max(0, mark.start() - _LONGEST_LOCAL), mark.start())
            domain = _OBSCURED_DOMAIN.match(text, mark.end())
            if local is None or domain is None:
                continue
            if mark["loud"] and not _SPELLED.search(domain[0]):
                continue
            last = re.split(r"[\W_]+", domain[0])[-1].lower()
            if last in _top_level_domains() and not _EXAMPLE_DOMAIN.search(domain[0]):
                yield local.start(), domain.end()
    if " at " in text and (" wrote:" in text or "rom:" in text or "ail" in text):
        for place in _places(text, (" at ",)):
            local = _LOCAL_BEFORE.search(text, max(0, place - _LONGEST_LOCAL), place)
            match = _ARCHIVED.match(text, local.start()) if local else None
            if match is None or match.end("local") != place:
                continue
            if match["domain"].rpartition(".")[2].lower() not in _top_level_domains():
                continue
            if _EXAMPLE_DOMAIN.search(match["domain"]):
                continue
            is_sender = _SENDER_BEFORE.search(text, max(0, match.start() - 12), match.start())
            if is_sender or match["after"] in (" wrote:", " writes:"):
                yield match.start(), match.end("domain")


def _local_start(text: str, least: int, at: int) -> int:
    """Where the name before the '@' begins; `at` without one."""
    start = at
    while start > least and text[start - 1] in _LOCAL:
        start -= 1
    if start > least and not text[start - 1].isascii() and _SPACED.match(text[start - 1]):
        start = _foreign_start(text, least, start, at)
    start = max(start, text.rfind("..", start, at) + 2 if ".." in text[start:at] else start)
    while start < at and not (text[start].isalnum() or text[start] == "_"):
        start += 1
    return at if at and text[at - 1] == "." else start


def _foreign_start(text: str, least: int, start: int, at: int) -> int:
    """The beginning of a name whose part in ASCII begins at `start` and touches other letters."""
    unspaced = _UNSPACED.match(text[start - 1]) is not None
    if unspaced and start < at:
        name = _UNSPACED_NAME.search(text, max(least, start - _LONGEST_UNSPACED - 1), start)
        return name.start(1) if name and text[start:at].isdecimal() else start
    while start > least and _SPACED.match(text[start - 1]):
        if not unspaced and _UNSPACED.match(text[start - 1]):
            break
        start -= 1
    return start


def _domain_end(text: str, start: int) -> int:
    """Where the domain at `start` ends; 0 if none is there."""
    number = _HOST_NUMBER.match(text, start)
    if number is not None:
        return number.end()
    if _NO_DOMAIN.match(text, start):
        return 0
    for shape in (_DOMAIN, _ANY_DOMAIN):
        match = shape.match(text, start)
        end = _known_end(match) if match else 0
        if end:
            return end
    return 0


def _known_end(match: re.Match[str]) -> int:
    """The end of the domain in a match: its last label, or what it begins with, must be known.

    A sentence may follow without a space (`a@b.com.Then`), in scripts without spaces at once.
    """
    known, labels = _top_level_domains(), match[0].split(".")
    while len(labels) > 1:
        last = labels[-1].lower()
        end = match.start() + len(".".join(labels))
        if last in known or last.startswith("xn--"):
            return end
        for cut in range(min(len(last), 12), 0, -1):
            if not last.isascii() and last[:cut] in known and _UNSPACED.match(last[cut : cut + 1]):
                return end - len(last) + cut
        if not labels[-1][:1].isupper():
            return 0
        labels.pop()
    return 0


# A pattern that starts with a literal is searched many times faster than any other: so the points
# and colons of addresses are looked for first, and then the characters around each.
_ADDRESS_SHAPES = (
    (
        re.compile(r"\.(?=[0-9]{1,3}\.[0-9])"),
        re.compile(r"[0-9]{1,3}\Z"),
        re.compile(_IPV4),
        re.compile(r"[A-Za-z0-9]\Z|[0-9]\.\Z"),
        re.compile(r"[A-Za-z0-9]|\.[0-9]|-[0-9]+[A-Za-z]"),
    ),
    (
        re.compile(r":(?=[0-9A-Fa-f]{0,4}:)"),
        re.compile(r"[0-9A-Fa-f]{4}\Z"),
        re.compile(_IPV6),
        re.compile(
            r"[\w.]\Z|(?<!ip)(?<!ip6)(?<!v6)(?<!addr)(?<!dress)(?<!host)(?<!peer)(?<!rom):\Z"
        ),
        re.compile(r"[A-Za-z0-9]|:(?![0-9]{2,5}(?![0-9A-Fa-f:]))|\.[0-9]"),
    ),
)
_SHORT_ADDRESS = 6
_LOOK_BACK = 40
_ADDRESS_WORDS = re.compile(
    r"(?<![^\W_])(?:ip(?:v4)?|addr(?:ess)?|adresse|dirección|server|host(?:name)?|dns|ping|login"
    r"|logged|from"
    r"|client|user|proxy|router|gateway|remote|peer|src|dst|nameserver|allow|deny|ban(?:ned)?"
    r"|block(?:ed)?"
    r"|ssh|scp|https?|nmap|traceroute|whois|connect(?:ed)?|\w{1,20}(?-i:Address|Addr|Host|Ip|IP))"
    r"(?![^\W_])[^0-9<>@]{0,30}\Z",
    re.IGNORECASE,
)
_VERSION_WORDS = re.compile(
    r"(?<![\w.-])(?:\w*version\w{0,3}|versión|versão|verze|wersj[aiąę]|верси[яиюей]|sürüm|release|build|firmware|driver|revision|rev|ver|patch|update|sdk"
    r"|package|assembly|section|clause|chapter|article|paragraph|figure|table|annex|appendix"
    r"|abschnitt"
    r"|absatz|kapitel|abb|tab|art|sec|ch|oid|schema|patch)(?:[ .]?(?:no|nr|number|is))?\b"
    r"[\s\"'=:.#(-]{0,4}\Z|[§¶] ?\Z|(?:版本|バージョン|버전)[号番호]?[\s:：は是]{0,2}\Z|version>\Z"
    r"|(?<![:\w])[A-Z][A-Za-z]{2,20}/\Z",
    re.IGNORECASE,
)
"""Words right before a version, and products of HTTP's `User-Agent` (`Chrome/120.0.6099.109`)."""


def find_ip_addresses(text: str) -> Iterator[tuple[int, int]]:
    """Places of public addresses, those of IPv4 first."""
    for middle, beginning, shape, touching_before, touching_after in _ADDRESS_SHAPES:
        free = 0
        for mark in middle.finditer(text):
            begun = beginning.search(text, max(free, mark.start() - 4), mark.start())
            match = shape.match(text, begun.start()) if begun else None
            if match is None:
                continue
            if touching_after.match(text, match.end()) and not _PORT_AFTER.match(text, match.end()):
                continue
            start, end = match.span()
            if touching_before.search(text, max(start - 2, 0), start):
                continue
            if _is_public(match[0]) and not _is_version(text, start, match[0]):
                yield start, end
                free = end


_PORT_AFTER = re.compile(r"\.[0-9]{1,5}(?: [<>] |:[ \n])")
"""A port as `tcpdump` writes it: `192.0.2.1.443 > …`."""

_RESOLVERS = frozenset(
    (
        *("8.8.8.8", "8.8.4.4", "1.1.1.1", "1.0.0.1", "9.9.9.9", "149.112.112.112"),
        *("208.67.222.222", "208.67.220.220", "4.2.2.1", "4.2.2.2", "94.140.14.14"),
        *("2001:4860:4860::8888", "2001:4860:4860::8844", "2606:4700:4700::1111"),
        *("2606:4700:4700::1001", "2620:fe::fe"),
    )
)
"""Public DNS of Google, Cloudflare, Quad9, OpenDNS, Lumen and AdGuard."""


def _is_public(address: str) -> bool:
    if address.lower() in _RESOLVERS:
        return False
    try:
        number = ipaddress.ip_address(address)
    except ValueError:
        return False
    return number.is_global and not number.is_multicast


_FEW_VERSIONS = 32
"""Above this a first part is hardly a version's, and most networks lie there."""

_FILE_BEFORE = re.compile(r"[A-Za-z][A-Za-z0-9]*[_-]\Z")
_ADDRESS_NAME = re.compile(
    r"(?:\b|_)(?:ip|addr|host|from|by|client|server|node)[_-]\Z", re.IGNORECASE
)
_MOST_OF_SECOND = 48
"""The second part of a version is hardly ever above this; of an address it mostly is."""

_LINE_REACH = 120
_PACKAGE_BEFORE = re.compile(
    r"[\w\])]\s?(?:[=~!<>]=|===)\s?\Z|~> ?\Z|\bgem\s{1,4}[\"'][\w-]{1,60}[\"'],\s{0,4}[\"']\Z"
    r"|version\W{1,3}[0-9.]{7,20}-\Z|version\W{1,12}(?://|#|--) ?\w{0,12}:? ?\Z",
    re.IGNORECASE,
)
_INSTALLED = re.compile(r"\binstalled?\b[^\n]{0,100}[A-Za-z]-\Z", re.IGNORECASE)
_VERSION_EARLIER = re.compile(
    r"(?:version|firmware|release|build|driver|upgraded? to|updated? to)\W{1,4}v?[0-9]{1,4}"
    r"(?:\.[0-9]{1,5}){2,3}(?![0-9.]*[0-9])[^\n]{0,80}\Z",
    re.IGNORECASE,
)
_ADDRESS_RIGHT_BEFORE = re.compile(
    r"(?:\bip(?:v4)?|address|addr|hosts?|server|from|at|on|client|peer|remote|proxy|gateway|by"
    r"|connect\w{0,5} to|via|//|@)\W{0,4}\Z",
    re.IGNORECASE,
)


def _follows_version(text: str, start: int) -> bool:
    """Whether a sign of a package, or another version in the line, says that a number is one."""
    first = max(text.rfind("\n", max(0, start - _LINE_REACH), start) + 1, start - _LINE_REACH, 0)
    line = text[first:start]
    if _PACKAGE_BEFORE.search(line) or (line[-1:] == "-" and _INSTALLED.search(line)):
        return True
    return _VERSION_EARLIER.search(line) is not None and not _ADDRESS_RIGHT_BEFORE.search(line)


_ADDRESS_SIGN_BEFORE = re.compile(
    r"://\Z|\b(?:ssh|scp|sftp|rsync|mosh|ping6?|telnet|nc|curl|wget|whois|dig|nmap|mysql)\b[^\n]{0,60}\Z"
    r"|[0-9]{2}:[0-9]{2}(?::[0-9]{2})?[^\s]{0,12} {1,2}(?:[\[(]|\w{1,12} )?\Z"
    r"|(?-i:\b(?:IN|IP) {1,8}A? {0,8}\Z)|(?:[~!][\w-]{1,20}|\b(?:root|admin|ubuntu|debian|centos|deploy|user|pi|ec2-user|opc|vagrant))@\Z|\bA(?: record)?\b\W{1,4}\Z|[a-z0-9-]\.[a-z]{2,10}\W{0,2} [\[(]\Z"
    r"|forwarded[\w-]{0,6}\W{0,4}(?:[0-9.]{7,15}, ?){0,4}\Z|\b(?:tcp|udp)\b[^\n]{0,40}\Z|ip[46]?:\Z"
    r"|[0-9] {1,3}\Z|\w \[\Z|[0-9]\.[0-9]{1,3}-\Z|(?<![a-z])(?:addr|ip|host)[\"'\])]{0,2}\s?(?:=>|=|:)\s?[\"']?\Z|\blisten\w{0,8}\W{1,4}\Z",
    re.IGNORECASE,
)
"""What an address has before it in logs, commands, zone files and headers."""

_ADDRESS_SIGN_AFTER = re.compile(
    r":[0-9]{2,5}(?![0-9.])|/[0-9]{1,2}(?![0-9.])|#[0-9]{2,5}|[ \t]+(?:- [\w-]{1,20} \[|\[|[a-z0-9-]{1,40}\.[a-z]{2,10}\b)"
    r"|-[0-9]{1,3}(?:\.[0-9]{1,3}){3}|\)? (?:tried|attempted|requested|was blocked|is blocked|banned|edited|joined|left|connected|logged|quit)\b|\]?(?: \(may be forged|, ?(?:10|127|172|192)\.)"
)
"""A port, a network, the next fields of a log or of a table of hosts."""

_MORE_ADDRESS_WORDS = re.compile(
    r"(?<![^\W_])(?:ip-?\w{0,8}|rechner|knoten|node|vps|designates|machine|box|endpoint|network|subnet|cidr|spam\w{0,4}"
    r"|range|direcci[oó]n|indirizzo|endere[cç]o|adres|hôte|servidor|serveur|serwer|адрес|сервер|с|attack\w{0,3}|scan\w{0,4}|visitor|remoteip|\w{1,20}_ip|ipaddress)"
    r"(?![^\W_])[^0-9<>@]{0,30}\Z|(?:地址|来自|接続元|服务器|サーバー?|주소)[^0-9<>@]{0,12}\Z|<(?:ip|host|addr)\w{0,8}>\Z"
    r"|Contributions/\Z|Contributions/[0-9.]{7,15}\|\Z",
    re.IGNORECASE,
)
_LINE_END = re.compile(r"[ \t]*(?:\Z|\n(?![ \t]*[-=*]))")
_SIGN_REACH = 80
_NEIGHBOUR = re.compile(
    r"(?<![0-9.A-Za-z/-])(?:3[3-9]|[4-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])\.[0-9]{1,3}\.[0-9]{1,3}"
    r"\.[1-9][0-9]{0,2}(?![0-9.])"
)
_NEIGHBOUR_REACH = 160
"""Near an address whose first part no version has, a number is an address, too."""


def _has_sign_of_address(text: str, start: int, end: int) -> bool:
    """Whether something around a number that has the form of a version says that it is an address."""
    near = text[max(0, start - _SIGN_REACH) : start]
    line = near.rsplit("\n", 1)[-1]
    return (
        (_ADDRESS_WORDS.search(near) or _PLACE_BEFORE.search(near)) is not None
        and not _CHANGED.search(line)
        or _MORE_ADDRESS_WORDS.search(near) is not None
        or _ADDRESS_SIGN_BEFORE.search(line) is not None
        or (not line and start > 0 and _LINE_END.match(text, end) is not None)
        or _NEIGHBOUR.search(text, max(0, start - _NEIGHBOUR_REACH), start) is not None
        or _NEIGHBOUR.search(text, end, end + _NEIGHBOUR_REACH) is not None
        or (_ADDRESS_SIGN_AFTER.match(text, end) is not None and not near.endswith(":"))
    )


_PLACE_BEFORE = re.compile(r"\b(?:at|from|by|via)\W{1,4}\Z", re.IGNORECASE)
_CHANGED = re.compile(
    r"(?:upgrad|downgrad|updat|bump|migrat|chang|fix(?:ed)?|broken?|works?|tested)\w{0,4}\b[^\n]{0,40}(?:from|to|in|on|with|by)\W{1,3}\Z|changelog\W{1,3}\Z",
    re.IGNORECASE,
)


def _is_version(text: str, start: int, address: str) -> bool:
    """Whether a word says so, or four short numbers have none before that speaks of an address.

    Four that count up (`1.2.3.4`) are what people type who need any.
    """
    parts = address.split(".")
    if len(parts) != 4:
        return False
    if text.startswith(".in-addr", start + len(address)):
        return True
    if _VERSION_WORDS.search(text, max(0, start - _LOOK_BACK), start):
        return True
    is_equal = len(set(parts)) == 1
    if (
        int(parts[0]) < _FEW_VERSIONS
        and not is_equal
        and (
            _follows_version(text, start)
            or (
                _FILE_BEFORE.search(text, max(0, start - _LOOK_BACK), start) is not None
                and not _ADDRESS_NAME.search(text, max(0, start - 12), start)
            )
            or (
                int(parts[1]) <= _MOST_OF_SECOND
                and not _has_sign_of_address(text, start, start + len(address))
            )
        )
    ):
        return True
    if is_equal or (len("".join(parts)) > _SHORT_ADDRESS and max(map(int, parts)) >= _FEW_VERSIONS):
        return False
    if parts == [str(int(parts[0]) + step) for step in range(4)]:
        return True
    return not _has_sign_of_address(text, start, start + len(address))
