"""IP addresses in a text, and what tells them from versions of four parts.

- an IPv4 address must not touch a letter or digit, nor be part of a longer dotted number
  ("1.2.3.4.5" is a section, "v1.2.3.4" a version), and no word before it may say that it is a
  version. With at most six digits it needs a word about addresses before it, unless its four parts
  are equal: on crawled pages nearly all of these are versions ("4.4.2.8"), and of all addresses one
  in 700 is so short;
- the resolvers of DNS that everybody uses (`8.8.8.8`) are nobody's address;
- IPv6 addresses are found as well: global unicast (2000::/3), and others that are written in full.

A number that has the form of a version (the first part below 32, the second up to 48) is an address
only where something around it says so: a word, a command, a port, a field of a log, an address near
it. Of random addresses three in a hundred have this form. Time is linear in the text.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from stages.signals.named_values import find_head

IPV4 = r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}"
_IPV6 = (
    r"[23][0-9A-Fa-f]{3}(?::[0-9A-Fa-f]{0,4}){2,7}(?<![0-9A-Fa-f]:)"
    r"|[1-9A-Fa-f][0-9A-Fa-f]{3}(?::[0-9A-Fa-f]{1,4}){7}"
)

# A pattern that starts with a literal is searched many times faster than any other: so the points
# and colons of addresses are looked for first, and then the characters around each.
_ADDRESS_SHAPES = (
    (
        re.compile(r"\.(?=[0-9]{1,3}\.[0-9])"),
        re.compile(r"[0-9]{1,3}\Z"),
        re.compile(IPV4),
        re.compile(r"[A-Za-z0-9]\Z|[0-9]\.\Z"),
        re.compile(r"[A-Za-z0-9]|\.[0-9]|-[0-9]+[A-Za-z]"),
    ),
    (
        re.compile(r":(?=[0-9A-Fa-f]{0,4}:)"),
        re.compile(r"[0-9A-Fa-f]{4}\Z"),
        re.compile(_IPV6),
        re.compile(
            # A colon behind a letter that is no digit joins a name and its address.
            r"[\w.]\Z|(?<![g-zG-Z])(?<!ip6)(?<!v6):\Z"
        ),
        re.compile(r"[A-Za-z0-9]|:(?![0-9]{2,5}(?![0-9A-Fa-f:])|[^0-9A-Fa-f:]|\Z)|\.[0-9]"),
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
    r"(?<![\w.-])(?:\w*version\w{0,3}|versión|versão|verze|wersj[aiąę]|верси[яиюей]|sürüm|release"
    r"|build|java|j(?:re|dk)|player|firmware|driver|revision|rev|ver|patch|update|sdk"
    r"|package|assembly|section|clause|chapter|article|paragraph|figure|table|annex|appendix"
    r"|abschnitt"
    r"|absatz|kapitel|abb|tab|art|sec|ch|oid|schema|patch)(?:[ .]?(?:no|nr|number|is))?\b"
    r"[\s\"'=:.#(-]{0,4}\Z|[§¶] ?\Z|(?:版本|バージョン|버전)[号番호]?[\s:：は是]{0,2}\Z|version>\Z"
    r"|(?<![:\w])(?!check/|host/|whois/|lookup/|tcp/|udp/)[A-Z][A-Za-z]{2,20}/\Z"
    r"|\.so\.\Z|[\w\])]==\Z|patch ?set \Z"
    r"|(?:driver|firmware|bios|chipset|codec) from (?:[0-9.]{3,24} to )?\Z"
    r"|\b(?:chrom\w{0,9}|webview2?|cef|brave|vivaldi|opera|skype(?: for \w{2,12})?|sql server|db2"
    r"|game client|launcher|cpv|ncm|unspsc|окпд2?|оквэд2?|nace|naics|(?<!:)lib[a-z]{2,12}"
    r"|oracle database)\W{1,4}(?:v\W{1,3})?\Z",
    re.IGNORECASE,
)
"""Words right before a version, and products of HTTP's `User-Agent` (`Chrome/120.0.6099.109`).

Also classes of goods and trades, which have four numbers as well.
"""


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
            if touching_before.search(
                text, max(start - 2, 0), start
            ) and not _ESCAPED_BEFORE.search(text, max(start - 8, 0), start):
                continue
            if (
                is_public(match[0])
                and not _is_network(text, start, end)
                and not _is_version(text, start, match[0])
                and not _is_on_path(text, start, end)
            ):
                yield start, end
                free = end
    yield from _find_defanged(text)


_DOT = r"(?:\.| \(dot\) | \[dot\] |\[\.\]|\(\.\)|\{\.\}|\[dot\]|\(dot\)|\\\.)"
_DEFANGED = re.compile(
    rf"(?<![0-9A-Za-z])(?<![0-9]\.)(?:[0-9]{{1,3}}{_DOT}){{3}}[0-9]{{1,3}}(?![0-9A-Za-z])"
)
_SPELLED_DOT = re.compile(r"[^0-9]+")
_DEFANGED_LITERALS = ("[.]", "(.)", "{.}", "[dot]", "(dot)", "\\.")
_DEFANGED_REACH = 24


def _find_defanged(text: str) -> Iterator[tuple[int, int]]:
    """Addresses that reports write so that nobody follows them: `198[.]51[.]100[.]7`.

    And those of regular expressions, in which a dot is escaped.
    """
    free = 0
    for literal in _DEFANGED_LITERALS:
        place = text.find(literal)
        while place >= 0:
            match = _DEFANGED.search(
                text, max(0, place - _DEFANGED_REACH), place + 2 * _DEFANGED_REACH
            )
            if match is not None and match.start() < place < match.end() and place >= free:
                plain = _SPELLED_DOT.sub(".", match[0])
                if is_public(plain) and (
                    literal != "\\." or not _is_version(text, match.start(), plain)
                ):
                    yield match.span()
                    free = match.end()
            place = text.find(literal, max(place + 1, free if free > place else 0))
        free = 0


_ESCAPED_BEFORE = re.compile(
    r"(?:\\[nrt]|\x1b\[[0-9;]{0,5}m|[%=]3D|%(?:3A|2C|5B)"
    r"|\\u003[cdeCDE])\Z"
)
"""What escapes a blank or a sign before a value."""

_PATH_BEFORE = re.compile(r"[0-9MmLlHhVvCcSsQqTtAaZz .,-]{8}\Z")
_PATH_AFTER = re.compile(r"[0-9MmLlHhVvCcSsQqTtAaZz .,-]{8}")
_DECIMAL = re.compile(r"(?<![0-9.])[0-9]{0,4}\.[0-9]{1,3}(?![0-9.])|(?<![0-9])\.[0-9]")
_PATH_REACH = 16


def _is_on_path(text: str, start: int, end: int) -> bool:
    """Whether a number is decimals of a drawing (SVG) that touch each other: `2.61.23.24`.

    On both sides are nothing but numbers and commands of a path, decimals among them.
    """
    before, after = text[max(0, start - _PATH_REACH) : start], text[end : end + _PATH_REACH]
    if _PATH_BEFORE.search(before) is None or _PATH_AFTER.match(after) is None:
        return False
    return _DECIMAL.search(before[1:]) is not None or _DECIMAL.search(after[:-1]) is not None


_PORT_AFTER = re.compile(r"\.[0-9]{1,5}(?: [<>] |:[ \n])")
"""A port as `tcpdump` writes it: `192.0.2.1.443 > …`."""

_RESOLVERS = frozenset(
    (
        *("8.8.8.8", "8.8.4.4", "1.1.1.1", "1.0.0.1", "9.9.9.9", "149.112.112.112"),
        *("208.67.222.222", "208.67.220.220", "4.2.2.1", "4.2.2.2", "94.140.14.14"),
        *("114.114.114.114", "114.114.115.115", "223.5.5.5", "223.6.6.6", "119.29.29.29"),
        *("77.88.8.8", "77.88.8.1", "94.140.15.15", "64.6.64.6", "64.6.65.6", "8.26.56.26"),
        *("2001:4860:4860::8888", "2001:4860:4860::8844", "2606:4700:4700::1111"),
        *("2606:4700:4700::1001", "2620:fe::fe"),
    )
)
"""Public DNS of Google, Cloudflare, Quad9, OpenDNS, Lumen and AdGuard."""


_PADDED = re.compile(r"[0-9]{3}(?:\.[0-9]{3}){3}")
"""Parts filled up with zeros: `091.007.100.012`."""

_DOCUMENTED = re.compile(r"3fff:(?::|0?[0-9a-f]{1,3}:)", re.IGNORECASE)
"""RFC 9637: the second block of IPv6 for documentation."""


def is_public(address: str) -> bool:
    """Whether text is the address of one machine in the public network, and not everybody's."""
    if address.lower() in _RESOLVERS or _DOCUMENTED.match(address):
        return False
    if _PADDED.fullmatch(address):
        address = ".".join(str(int(part)) for part in address.split("."))
    try:
        number = ipaddress.ip_address(address)
    except ValueError:
        return False
    return number.is_global and not number.is_multicast


_PREFIX_LENGTH = re.compile(r"/([0-9]{1,3})(?![0-9.])")
_MASK_AFTER = re.compile(
    r"[ \t]{1,12}(?:(?:net)?mask[ \t:=]{1,4})?"
    r"(?:255\.|0\.[0-9]{1,3}\.[0-9]{1,3}\.(?:255|[136]?[1-7]))"
    r"| ?[-\u2013] ?[0-9.]{5,11}\.255(?![0-9.])"
)
_RANGE_BEFORE = re.compile(r"\.0 ?[-\u2013] ?\Z")
"""What stands beside the first and the last address of a network: its mask, the other one."""


def _is_network(text: str, start: int, end: int) -> bool:
    """Whether a prefix length, a mask or a range says that an address is that of a network."""
    if text.endswith(".0", start, end) and _MASK_AFTER.match(text, end):
        return True
    if text.endswith(".255", start, end) and _RANGE_BEFORE.search(text, max(0, start - 5), start):
        return True
    prefix = _PREFIX_LENGTH.match(text, end)
    try:
        return prefix is not None and (
            ipaddress.ip_network(text[start:end] + prefix[0]).num_addresses > 1
        )
    except ValueError:  # An address with a bit behind the prefix, or no length at all.
        return False


_FEW_VERSIONS = 32
"""Above this a first part is hardly a version's, and most networks lie there."""

_FILE_BEFORE = re.compile(r"[A-Za-z][A-Za-z0-9]*[_-]\Z")
_ADDRESS_NAME = re.compile(
    r"(?:\b|_)(?:ip|addr|host|from|by|client|server|node)[_-]\Z", re.IGNORECASE
)
_MOST_OF_SECOND = 48
"""The second part of a version is hardly ever above this; of an address it mostly is."""

_CLIENT_BEFORE, _CLIENT_PORT = re.compile(r"[\w-]/\Z"), re.compile(r":[0-9]{4,5}(?![0-9.])")
"""A client of a server with its port, as OpenVPN logs it: `ann/198.51.100.7:40312`."""

_TERMINAL_BEFORE = re.compile(r"\b(?:pts/|tty)[0-9]{1,3} {1,12}\(?\Z")
"""The terminal of a user, as `who` and `w` list it with the address."""

_LINE_REACH = 120
_PACKAGE_BEFORE = re.compile(
    r"[\w\])]\s?(?:[=~!<>]=|===)\s?\Z|~> ?\Z|\bgem\s{1,4}[\"'][\w-]{1,60}[\"'],\s{0,4}[\"']\Z"
    r"|version\W{1,3}[0-9.]{7,20}-\Z|version\W{1,12}(?://|#|--) ?\w{0,12}:? ?\Z",
    re.IGNORECASE,
)
_TAGGED, _TAG_AFTER = re.compile(r"[\w)]:\Z"), re.compile(r"-[a-z]{3,}")
"""A tag of an image, such as `router:5.8.4.2-alpine`."""

_INSTALLED = re.compile(r"\binstalled?\b[^\n]{0,100}[A-Za-z]-\Z", re.IGNORECASE)
_VERSION_EARLIER = re.compile(
    r"(?:version|firmware|release|build|driver|oracle database|upgraded? to|updated? to)\W{1,4}v?"
    r"[0-9]{1,4}"
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
    r"://(?:[^\s/@]{1,60}@)?\Z|/dev/(?:tcp|udp)/\Z|/(?:check|host|ip|whois|lookup)/\Z|['`]@['`]\Z"
    r"|\{unsigned\w{0,4}\|\Z|::ffff:\Z|\] found \Z"
    r"|(?:socket|inet_\w{4,5}|connect|dial)\w{0,12}\((?:\w{1,12}, ?)?\(?[\"']\Z"
    r"|\b(?:ssh|scp|sftp|rsync|mosh|ping6?|telnet|nc|curl|wget|whois|dig|nmap"
    r"|mysql\w{0,6}|psql|pg_dump|redis-cli|mongo\w{0,8})\b[^\n]{0,60}\Z|\binet \Z"
    r"|(?<![a-z])(?:rhost|(?:src|dst|client|remote|source|dest|public|external)_?ip)[\"']?\s?[=:]"
    r"\s?[\"']?\Z|\bposted by [\w ]{1,30} \(\Z"
    r"|[0-9]{2}:[0-9]{2}(?::[0-9]{2})?[^\s]{0,12} {1,2}(?:[\[(]|\w{1,12} )?\Z"
    r"|(?-i:\b(?:IN|IP) {1,8}A? {0,8}\Z)|(?:[~!][\w-]{1,20}|\b(?:root|admin|ubuntu|debian|centos"
    r"|deploy|user|pi|ec2-user|opc|vagrant))@\Z|\bA(?: record)?\b\W{1,4}\Z"
    r"|[a-z0-9-]\.[a-z]{2,10}\W{0,2} [\[(]\Z"
    r"|forwarded[\w-]{0,6}\W{0,4}(?:[0-9.]{7,15}, ?){0,4}\Z|\b(?:tcp|udp)\b[^\n]{0,40}\Z|ip[46]?:\Z"
    r"|[0-9](?: ms)? {1,3}\Z|\w \[\Z|[0-9]\.[0-9]{1,3}-\Z"
    r"|(?<![a-z])(?:addr|ip|host)[\"'\])]{0,2}\s?(?:=>"
    r"|=|:)\s?[\"']?\Z|\blisten\w{0,8}\W{1,4}\Z",
    re.IGNORECASE,
)
"""What an address has before it in logs, commands, zone files and headers."""

_ADDRESS_SIGN_AFTER = re.compile(
    r":[0-9]{2,5}(?![0-9.])|/[0-9]{1,2}(?![0-9.])|#[0-9]{2,5}|[ \t]+(?:- [\w-]{1,20} \[|\["
    r"|[a-z0-9-]{1,40}\.[a-z]{2,10}\b)"
    r"|-[0-9]{1,3}(?:\.[0-9]{1,3}){3}|[)\]]? (?:tried|attempted|requested|posted"
    r"|was blocked|is blocked|(?:wurde|a été|fue|è stato|został) \w{4,12}"
    r"|からの|に接続|から|的(?:请求|访问|连接|登录)|에서|로 접속"
    r"|adresinden|banned|edited|joined|left|connected|logged|quit)\b"
    r"|\]?(?: \(may be forged|, ?(?:10|127|172|192)\.)|[\"']\.parse::<Ip"
)
"""A port, a network, the next fields of a log or of a table of hosts."""

_MORE_ADDRESS_WORDS = re.compile(
    r"(?<![^\W_])(?:ip-?\w{0,8}|rechner|knoten|node|vps|designates|machine|box|endpoint|network"
    r"|subnet|cidr|spam\w{0,4}"
    r"|range|direcci[oó]n|indirizzo|endere[cç]o|adres|hôte|servidor|serveur|serwer|адрес|сервер|с"
    r"|айпи|पता|hosts|abuse\w{0,8}|firewall|fail2ban|iptables|ufw|атак\w{0,4}|cliente?|klient\w{0,2}|клиент\w{0,2}"
    r"|usuari[oa]|utilisateur|utente|benutzer|besucher|visiteur|visitante|angreifer|attaquant"
    r"|atacante|attaccante|napastnik|aanvaller|saldırgan|gateway[46]|routers|proxies|neighbou?r|relayhost|(?:black|white|allow|deny|block)"
    r"-?list\w{0,3}|\w{1,20}_ranges|\w{1,20}IPs|node[0-9]{1,3}|ioc|c2|geoiplookup|banip|kick\w{0,3}"
    r"|[rl]ip"
    r"|attack\w{0,3}|scan\w{0,4}|visitor|remoteip|\w{1,20}_ip|ipaddress)"
    r"(?![^\W_])[^0-9<>@]{0,30}\Z|(?:地址|来自|接続元|服务器|サーバー?|주소|攻击者?|访问|登录|用户|アクセス元?|접속|서버|客户端|主机|アドレス)[^0-9<>@]{0,12}\Z|<(?:ip|host"
    r"|addr)\w{0,8}>\Z"
    r"|Contributions/\Z|Contributions/[0-9.]{7,15}\|\Z",
    re.IGNORECASE,
)
_LINE_END = re.compile(r"[ \t]*(?:\Z|\n(?![ \t]*[-=*]))")
_SIGN_REACH = 80
_NEIGHBOUR = re.compile(
    r"(?<![0-9.A-Za-z/-])(?:3[3-9]|[4-9][0-9]|1[0-9]{2}|2[0-4][0-9]"
    r"|25[0-5])\.[0-9]{1,3}\.[0-9]{1,3}"
    r"\.[1-9][0-9]{0,2}(?![0-9.])"
)
_NEIGHBOUR_REACH = 160
"""Near an address whose first part no version has, a number is an address, too."""


def _has_sign_of_address(text: str, start: int, end: int) -> bool:
    """Whether something around a number of the form of a version says that it is an address."""
    near = text[max(0, start - _SIGN_REACH) : start]
    line = near.rsplit("\n", 1)[-1]
    return (
        (
            (_ADDRESS_WORDS.search(near) or _PLACE_BEFORE.search(near)) is not None
            and not _CHANGED.search(line)
        )
        or _MORE_ADDRESS_WORDS.search(near) is not None
        or _ADDRESS_SIGN_BEFORE.search(line) is not None
        or (not line and start > 0 and _LINE_END.match(text, end) is not None)
        or _NEIGHBOUR.search(text, max(0, start - _NEIGHBOUR_REACH), start) is not None
        or _NEIGHBOUR.search(text, end, end + _NEIGHBOUR_REACH) is not None
        or (_ADDRESS_SIGN_AFTER.match(text, end) is not None and not near.endswith(":"))
        or _PORT_AFTER.match(text, end) is not None
        or _ADDRESS_HEAD.search(find_head(text, start)) is not None
    )


_ADDRESS_HEAD = re.compile(
    r"(?<![^\W_])(?:ip(?:v4)?|addr(?:ess)?|host|server)(?![^\W_])|адрес|地址|アドレス",
    re.IGNORECASE,
)
_PLACE_BEFORE = re.compile(
    r"\b(?:at|from|by|via|desde|depuis|d[ae]lla|dall[ao]|dal|da|von|vom|od|ze?|från|fra|vanaf|van"
    r"|из|от|с|din|dari|từ|desde la|depuis l')\W{1,4}\Z",
    re.IGNORECASE,
)
_CHANGED = re.compile(
    r"(?:upgrad|downgrad|updat|bump|migrat|chang|fix(?:ed)?|broken?|works?"
    r"|tested)\w{0,4}\b[^\n]{0,40}(?:from|to|in|on|with|by)\W{1,3}\Z|changelog\W{1,3}\Z",
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
    if _TERMINAL_BEFORE.search(text, max(0, start - 24), start):
        return False
    if _TAG_AFTER.match(text, start + len(address)) and _TAGGED.search(
        text[max(0, start - 2) : start]
    ):
        return True
    if _VERSION_WORDS.search(text, max(0, start - _LOOK_BACK), start):
        return not (
            _CLIENT_BEFORE.search(text, max(0, start - 2), start)
            and _CLIENT_PORT.match(text, start + len(address))
        )
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
