"""Passwords by the command or call that they are an argument of, without a name.

`curl -u ann:…`, `auth=("ann", "…")`, `IDENTIFIED BY '…'`, `unzip -P …`; those in addresses are in
`url_passwords.py`. Where the place is certain and the value in quotes, words and numbers alone are
passwords as well. Time is linear in the text: what is matched has a bounded length.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from stages.signals.device_logins import (
    DEVICE_SHAPES,
    GATED_DEVICE_SHAPES,
    OF_CALLS,
    OF_COMMANDS,
    READERS,
)
from stages.signals.literals import Literals, Triples
from stages.signals.named_values import GROUPS, WORDS_APART
from stages.signals.outputs import Span
from stages.signals.secret_values import (
    has_two_digits,
    is_chosen_number,
    is_chosen_words,
    is_grouped,
    is_password,
    is_phrase,
    is_placeholder,
    is_strong_password,
    is_words_apart,
)

_WHO = r"[^\s:\"'`/|]{1,40}"
_SURE = rf"[\"']?(?P<sure>(?<=[\"']){WORDS_APART}(?=[\"'])|[^\s\"'`<>|]{{6,64}})"
_ARGUMENT = r"(?:[\"'][^\n\"']{0,120}[\"']|[\w.$>-]{1,40}(?:\([^()\n]{0,30}\))?)"
_LITERAL = rf"[\"'](?P<sure>{GROUPS}|{WORDS_APART}|[^\s\"'<>]{{6,64}})[\"']"
_PAIR = (
    rf"\s{{0,2}}[=:(]\s{{0,2}}[(\[]?\s{{0,2}}{_ARGUMENT},\s{{0,3}}"
    rf"[\"'](?P<call>{GROUPS}|[^\s\"'<>]{{6,64}})[\"']"
)
_STATED = (
    r"\w{0,12}(?:\s(?:for|to|of|from|on|at|für|pour|para)\s[\w .]{1,30}?)?"
    rf"(?:\s?[:=]|\s(?:is|are|ist|sind|to|with|using|as|-|–|->|→))?\s{{1,2}}`?{_WHO}`?\s?[/"
    rf"|:]\s?`?(?!\S{{1,64}} [/|] )(?P<loose>[^\s\"'`<>|]{{8,64}})"
)
_LOOSE = r"[\"'`]?(?P<loose>[^\s\"'`<>|]{8,64})"
_LONGEST = 14
"""Bytes of a hint that are searched: the table of all hints is as wide as the longest one."""

_Shapes = tuple[tuple[str, re.Pattern[str]], ...]


def _shapes(**shapes: str) -> _Shapes:
    """What the search looks for first, in small letters, and the command or call with it."""
    return tuple(
        (hint[: _LONGEST if hint.isascii() else _LONGEST // 2], re.compile(shape, re.IGNORECASE))
        for hint, shape in shapes.items()
    )


_FLAG = re.compile(r" (?:-(?:-(?:\w{3,5}-)?(?:user|creds)|[pPuUawbhSAXkK])|/p:)")
_COMMANDS = _shapes(
    **{
        "curl": rf"curl\s[^\n|;]{{0,80}}?(?:-u|--user)[ =]?[\"']?(?:{_WHO})?:{_SURE}",
        "creds": rf"creds[ =][\"']?{_WHO}:{_SURE}",
        " -a ": rf" -a [\"']?{_WHO}:{_LOOSE}",
        "-user ": rf"-user [\"']?[^\s:\"'`/|.]{{1,40}}:{_LOOSE}",
        "mysql": rf"mysql\w*\s[^\n|;]{{0,80}}?\s(?-i:-p){_SURE}",
        "zip ": rf"zip (?:-[\w-]{{1,12}} ){{0,3}}(?-i:-P) ?{_SURE}",
        "7z": rf"7za? (?:[\w.*/-]{{1,40}} ){{1,3}}?(?-i:-p){_SURE}",
        "rar ": rf"rar (?:[\w.*/-]{{1,60}} ){{1,3}}?(?-i:-h?p){_SURE}",
        "pass:": rf"pass:{_SURE}",
        "docker login": rf"docker login [^\n|;]{{0,80}}?(?-i:-p) {_SURE}",
        "redis-cli": rf"redis-cli [^\n|;]{{0,60}}?(?-i:-a) {_SURE}",
        "mongo": rf"mongo\w{{0,8}} [^\n|;]{{0,80}}?(?-i:-p) ?{_SURE}",
        "ldap": rf"ldap\w{{1,10}} [^\n|;]{{0,120}}?(?-i:-w) {_SURE}",
        "sqlcmd": rf"sqlcmd [^\n|;]{{0,80}}?(?-i:-P) ?{_SURE}",
        " -u ": rf" (?-i:-U) [\"']?[^\s%\"']{{1,40}}%{_SURE}",
        "plink": rf"plink [^\n|;]{{0,80}}?-pw {_SURE}",
        "lftp": rf"lftp [^\n|;]{{0,40}}?-u [\"']?[^\s,]{{1,40}},{_SURE}",
        " -u": (
            rf" -u ?[\"']?{_WHO}[\"']? (?:[^\n|;]{{0,60}}? )?(?-i:-p|-P) ?"
            rf"(?!\S{{1,64}} [<>] ){_SURE}"
        ),
        "--user": (
            rf"--user(?:name)?[ =][\"']?{_WHO}[\"']? (?:[^\n|;]{{0,60}}? )?(?-i:-p|-P) ?{_SURE}"
        ),
        "snmp": rf"snmp\w{{0,8}} [^\n|;]{{0,80}}?(?-i:-[AXcC]) {_SURE}",
        " -x ": rf" (?-i:-A \S{{6,64}}(?: -[xa] \w{{2,7}})? -X) {_SURE}",
        "openssl ": rf"openssl [^\n|;]{{0,80}}? (?-i:-k|-K) {_SURE}",
        "freerdp": rf"freerdp [^\n|;]{{0,80}}?/p:{_SURE}",
    }
)
"""Commands whose password follows a flag: searched where any of the flags is."""

_QUOTED_ARGUMENTS = ('("', "('", '")', "')", "', {", '".to', '(b"')
_TWO = rf"\({_ARGUMENT}, ?{_LITERAL}"
_THREE = rf"\({_ARGUMENT}, ?{_ARGUMENT}, ?{_LITERAL}"
_CALLS = _shapes(
    **{
        "mysql": rf"mysql\w{{0,4}}(?:\.|_p?)connect{_THREE}",
        "mysqli(": rf"mysqli{_THREE}",
        "connect(": rf"connect\({_ARGUMENT}, ?(?:[0-9]{{2,5}}, ?)?{_ARGUMENT}, ?{_LITERAL}",
        "sequelize(": rf"sequelize{_THREE}",
        "sta.config(": rf"sta\.config{_TWO}",
        ".connect(": rf"(?:(?<=wlan)|(?<=wifi)|(?<=sta_if)|(?<=station)).connect{_TWO}",
        ".basic(": rf"\.basic{_TWO}",
        "protect": r"protect[ (][\"'](?P<loose>[^\s\"']{8,64})",
        "bcrypt.": rf"bcrypt\.\w{{2,20}}\(\s?b?{_LITERAL}",
        "_bind": rf"_bind\w{{0,4}}\((?:{_ARGUMENT}, ?){{1,2}}{_LITERAL}",
        "ftp(": rf"ftp{_THREE}",
        "plainauth(": rf"plainauth{_THREE}",
        "login(": rf"login{_THREE}",
        "database(": rf"database{_THREE}",
        "oracle": rf"oracle\w{{0,3}}\.connect\({_ARGUMENT}, ?{_LITERAL}",
        "username_pw_set": rf"username_pw_set{_TWO}",
        "cookieparser(": rf"cookieparser\({_LITERAL}",
        "load(": rf"load{_TWO}\.tochararray",
        "pdo(": rf"PDO{_THREE}",
        "getconnection(": rf"getConnection{_THREE}",
        "wifi.begin": rf"wifi\.begin{_TWO}",
        "softap(": rf"softap{_TWO}",
        "auth": rf"auth\w{{0,20}}{_PAIR}",
        "sign": rf"sign_?in\w{{0,30}}{_TWO}",
        "user(": rf"user\({_ARGUMENT}, ?(?:{_ARGUMENT}, ?)?{_LITERAL}",
        "login": rf"login{_PAIR}",
        "cred": rf"credentials?\w{{0,20}}{_PAIR}",
    }
)
"""Calls with the password as a literal: searched where a literal is an argument."""

_ORACLE = r"[\w$.-]{1,40}/(?P<sure>[^\s@\"'/]{6,64})@"
_CISCO = rf"username (?!(?:and|or|und|et|y)\b){_WHO} (?:privilege [0-9]{{1,2}} )?"
_PGPASS = rf"[\w*-]{{1,40}}:[\w.*-]{{1,40}}:{_SURE}"
_STATEMENTS = _shapes(
    **{
        "net use": r"net user? [^\s]{1,80}(?: \\\\[^\s]{1,80})?(?: /user:\S{1,40})?"
        r" [\"']?(?P<sure>[^\s\"'`<>|/]{6,64})",
        "identified": rf"identified (?:with \w+ )?by {_SURE}",
        "securestring": rf"securestring (?:-String )?(?!-[A-Za-z]){_SURE}",
        "login": (
            rf"(?<!no)login(?:{_STATED}|(?<=[^\w/]/login) (?P<of_user>[^\s=\"'`<>|]{{8,64}})"
            rf"|(?-i:(?<=[0-9] LOGIN)) \"?{_WHO}\"? \"?(?P<using>[^\s\"'`<>|]{{8,64}}))"
        ),
        "cred": rf"cred{_STATED}",
        "inlog": rf"inlog{_STATED}",
        "account": (
            r"accounts?(?: (?:for|to|of|from|on|at|after|in) [\w .]{1,30}?)?:\s{1,2}"
            r"`?[^\s:\"'`/|]{1,40}`? / `?(?P<loose>[^\s\"'`<>|]{8,64})"
        ),
        "zugang": rf"zugang{_STATED}",
        "wlan": (
            r"wlan\b[^\n]{1,60}?\b(?:schl(?:ü|ue)ssel|key)\s?[:=]\s?[\"'`]?"
            r"(?P<sure>[^\s\"'`<>|]{8,63})"
        ),
        "identifiant": rf"identifiant{_STATED}",
        "temporary password": (
            r"temporary password is generated for [\w.@'-]{3,60}: (?P<sure>\S{6,64})"
        ),
        "masterauth": rf"masterauth {_LOOSE}",
        "schtasks": rf"schtasks [^\n]{{0,160}}?/rp {_LOOSE}",
        "snmp-server": rf"snmp-server user [^\n]{{0,60}}? auth (?:md5|sha)[\w-]{{0,4}} {_LOOSE}",
        "isakmp key": rf"isakmp key (?:[06] )?{_LOOSE}",
        "-server ": rf"(?:(?<=radius)|(?<=tacacs))-server [^\n]{{0,80}}?\b(?:key|secret) "
        rf"(?:[07] )?{_LOOSE}",
        "community ": rf"(?:(?<=snmp-server )|(?<=ro)|(?<=rw))community (?:string )?{_LOOSE}",
        " on >": rf" on >{_LOOSE}",
        "auth ": rf"auth (?:(?-i:(?<=AUTH ))(?:default )?{_LOOSE}|"
        rf"[\"']?{_WHO}:(?P<of_user>[^\s\"'`<>|]{{8,64}}))",
        "-key ": rf"(?:(?<=digest)-key [0-9]{{1,3}} md5|(?<=tication)-key) (?:[07] )?{_LOOSE}",
        "access code": rf"access code(?: is|:) {_LOOSE}",
        "log in ": rf"log in (?:as|with|using) {_WHO}(?: ?[/:] ?| (?:with|and|using"
        rf"|password) ){_LOOSE}",
        "connect ": (
            r"connect (?:to \w{1,20} user \w{1,30} using [\"']?(?P<using>[^\s\"'`<>|]{6,64})"
            r"|[\w$]{1,30}/(?P<loose>[^\s@\"'/]{8,64})(?=@|\s|\Z))"
        ),
        "shared-key": rf"shared-key[ =](?:ascii-text |local |remote )?{_LOOSE}",
        "wpa": rf"wpa[23]?(?:[ -]psk)?[ -](?:key|psk|passphrase)\s?[:=]\s?{_LOOSE}",
        "sqlplus": (r"sqlplus (?:-\w{1,8} )?[^\s/]{1,40}/(?P<sure>[^\s@\"'/]{6,64})(?=\s|\Z)"),
        "chpasswd:": (
            r"chpasswd:\s{1,8}(?:list|users):\s?\|?\s{1,12}(?:- )?[\w.-]{1,32}:"
            r"(?P<sure>[^\s:\"']{6,64})"
        ),
        "option key ": rf"option key {_LITERAL}",
        "]:587 ": r"\]:587 [^\s:]{1,60}:(?P<sure>[^\s:\"']{6,64})(?=\s|\Z)",
        "4j_auth": rf"4j_auth[=:]\s?[\"']?neo4j/{_SURE}",
        "cookievalidationkey": rf"cookievalidationkey[\"']?\s?(?:=>|[:=])\s?{_LITERAL}",
        "ssid": (
            rf"ssid[\"']?\s?[:=]\s?[^\n]{{1,40}}[\n,;|/] ?"
            rf"(?:key|code|clave|cl[ée]|chiave|ключ|schlüssel)\s?[:=]\s?{_LOOSE}"
        ),
        ': eap "': rf": eap {_LITERAL}",
        "rootpw": rf"rootpw (?:--plaintext )?{_SURE}",
        "pragma key": rf"pragma key ?= ?{_LITERAL}",
        "add_user": rf"add_user {_WHO} {_SURE}",
        "cwjap": r'cwjap\w{0,8}="[^"\n]{1,32}","(?P<sure>[^\s"]{6,64})"',
        "wifi:": r"wifi:(?:[TSHE]:[^;\n]{0,40};){1,4}P:(?P<exact>[^\s;]{8,64});",
        "u: ": rf"(?<![a-z])u: ?{_WHO}\s{{1,3}}p: ?{_SURE}",
        "ascii 0": rf"ascii 0 {_SURE}",
        "uci set ": rf"uci set [\w.@\[\]-]{{1,60}}\.(?:key|password|psk)={_SURE}",
        "+login ": rf"\+login {_WHO} {_SURE}",
        "createuser ": rf"createuser \S{{1,40}} (?:md5|sha[\w-]{{0,4}}) {_SURE}",
        '" aes ': rf"(?<=\S)\" aes\w{{0,4}} {_SURE}",
        '" des ': rf"(?<=\S)\" des {_SURE}",
        "define(": (
            r"define\(\s?[\"'](?:(?:secure_|logged_in_)?auth|nonce)_(?:key|salt)[\"'],\s{1,12}"
            rf"{_LITERAL}"
        ),
        "nickserv": rf"nickserv(?::| identify| register)(?: identify)? "
        rf"(?:[\w-]{{1,20}} (?!\S{{1,40}}@))?{_SURE}",
        ":5432:": f":5432:{_PGPASS}",
        ":3306:": f":3306:{_PGPASS}",
        ":*:": rf":\*:{_PGPASS}",
        "basic: ": rf"basic: [\"']?[\w.@-]{{1,40}}:{_SURE}",
        "basic_auth": rf"basic_auth(?:entication)?[\s(]{{1,2}}{_ARGUMENT}, ?(?:Some\()?{_LITERAL}",
        '"*" "': r'"\*" "(?P<sure>[^\s"]{6,64})"[ \t]{1,8}"?[*0-9]',
        '" * "': r'" \* "(?P<sure>[^\s"]{6,64})"',
    }
)
"""Commands and prose without a flag."""

_GATED: tuple[tuple[str, _Shapes], ...] = (
    (
        "pass",
        _shapes(
            **{
                "passwd -": rf"passwd (?:-\w )?-\w{{0,4}}b\w{{0,3}} "
                rf"(?:\S{{1,60}} )?[^\s-]\S{{0,40}} {_SURE}",
                "enable password": (
                    rf"enable password (?:level [0-9]{{1,2}} )?(?:[078] )?(?!.{{0,40}} ){_SURE}"
                ),
                "wpa_passphrase": rf"wpa_passphrase [\"']?[^\s\"']{{1,32}}[\"']? {_SURE}",
                "the pass is": rf"the pass is {_LOOSE}",
                "pass for ": (
                    r"pass for (?:the |my |our |this )?(?:\w{1,16} )?(?:zip|rar|archive|files?"
                    rf"|wi-?fi|login|account|server|db|database|ftp|vpn|pdf|link|site|admin|root"
                    rf"|user)(?: is|:| =) {_LOOSE}"
                ),
                "generic-password": rf"generic-password [^\n|;]{{0,80}}? -w {_LOOSE}",
                "change_password": rf"change_password {_WHO} {_SURE}",
                "storepass": rf"storepass(?:word)?[ =:]{{1,3}}{_SURE}",
                "keypass": rf"keypass(?:word)?[ =:]{{1,3}}{_SURE}",
                "emailandpassword(": rf"emailandpassword\((?:{_ARGUMENT}, ?){{1,2}}{_LITERAL}",
                "password_": rf"password_(?:hash|verify)\({_LITERAL}",
                "make_password(": rf"make_password\({_LITERAL}",
                "auth_password(": rf"auth_password{_THREE}",
                "strcmp(": rf"strcmp\(\s?\w{{0,12}}(?:pass\w{{0,6}}|pwd?), ?{_LITERAL}",
                "{password,": rf"\{{password, ?{_LITERAL}",
                "username": rf"{_CISCO}password (?:[05789] )?{_SURE}",
            }
        ),
    ),
    (
        "secret",
        _shapes(
            **{
                "enable secret": rf"enable secret (?:level [0-9]{{1,2}} )?{_LOOSE}",
                "secret": rf"secret [0589] {_SURE}",
                "*": rf"\*[\"']?[ \t]{{1,8}}{_SURE}[\"']?[ \t]{{1,8}}[\"']?(?:\*"
                rf"|[0-9.]{{7,15}})[\"']?[ \t]{{0,8}}(?=\n|\Z)",
                "username": rf"{_CISCO}secret (?:[05789] )?{_SURE}",
            }
        ),
    ),
    (
        "assword",
        _shapes(
            assword=(
                r"assword[:?]?[^\n]{0,12}[\"']\s?\{?\s{0,8}send(?:line)? (?:-- )?\""
                r"(?P<sure>[^\s\"\\]{6,64})"
            ),
        ),
    ),
    ("loginmodule", _shapes(user_=rf"(?<=\s)user_\w{{1,30}}=[\"']{_SURE}")),
    (
        "ftp",
        _shapes(user=rf"(?:(?<=\n)|(?<=ftp> ))user [\w.@-]{{1,40}} {_LOOSE}(?=\r?\n|\Z)"),
    ),
    (
        "credential",
        _shapes(
            **{
                "y.credentials": rf"(?<=securit)y\.credentials[\"']?\s?[=:,]\s?{_SURE}",
                "y_credentials": rf"(?<=securit)y_credentials[\"']?\s?[=:,]\s?{_SURE}",
                "bindcredential": rf"bindcredentials?\s?[=:]\s?{_SURE}",
            }
        ),
    ),
    (
        "jwt.",
        _shapes(
            **{
                "jwt.": (
                    r"jwt\.(?:sign|verify|encode|decode)\(\s{0,20}(?:\{[^{}]{0,200}\}"
                    r"|[\w.$\[\]()\"']{1,60})"
                    rf",\s{{0,20}}{_LITERAL}"
                ),
            }
        ),
    ),
    (
        "@",
        _shapes(
            **{
                "sqlplus": r"sqlplus (?:-\w{1,8} )?[^\s/]{1,40}/(?P<sure>[^\s@\"'/]{6,64})@",
                "thin:": f"thin:{_ORACLE}",
                "connect(": rf"connect\([\"']{_ORACLE}",
                "exp ": f"exp {_ORACLE}",
                "imp ": f"imp {_ORACLE}",
                "pdp ": f"pdp {_ORACLE}",
                "dsn: ": f"dsn: {_ORACLE}",
            }
        ),
    ),
    (
        "|",
        _shapes(
            **{
                hint: (
                    rf"{hint} (?:-\w )?(?:['\"]?%s(?:\\n)?['\"]? )?[\"']?"
                    r"(?P<sure>[^\s\"'|\\]{6,64})(?:(?:\\n|; ?echo )(?P=sure)(?:\\n)?)?"
                    rf"[\"']?\)? ?\| ?(?:sudo )?(?:{READERS})"
                )
                for hint in ("echo", "printf", "yes")
            },
        ),
    ),
)
"""The same, searched only in a text that has what all of a group have."""

_DEVICES = (
    *(("", *one) for one in _shapes(**DEVICE_SHAPES)),
    *((gate, *one) for gate, gated in GATED_DEVICE_SHAPES.items() for one in _shapes(**gated)),
)
_GATED_SHAPES = [
    *(("", *one) for one in _STATEMENTS),
    *_DEVICES,
    *((gate, *one) for gate, gated in _GATED for one in gated),
    *((OF_CALLS, *one) for one in _CALLS),
    *((OF_COMMANDS, *one) for one in _COMMANDS),
]
_HINTS = Literals([hint.encode() for _, hint, _ in _GATED_SHAPES])
_BY_GATE: dict[str, list[int]] = defaultdict(list)
for _number, _gated in enumerate(_GATED_SHAPES):
    _BY_GATE[_gated[0]].append(_number)

_PIPED = re.compile(
    r"(?:echo|printf) (?:-\w )?[\"']?(?:[\w.-]{1,32}:)?(?P<piped>[^\s\"'|]{6,64})[\"']?"
    r"\s{0,2}\|\s{0,2}(?:sudo )?"
    r"(?:ch|-S|(?:docker|podman|helm|az|gh|oc)\b[^\n|]{0,80}--)?\Z"
)
_SUDO = re.compile(r"(?<=[|])\s{0,2}sudo (?:-\w{1,8} ){0,2}?-\w{0,4}S")


def find_login_calls(text: str, lowered: str, triples: Triples | None) -> Iterator[Span]:
    """Passwords of commands and calls; `lowered` is the text in small letters, of equal length.

    `triples` are those of the text, with capitals as small letters.
    """
    is_shell = _FLAG.search(text) is not None
    is_call = any(sign in text for sign in _QUOTED_ARGUMENTS)
    gates = {"": True, OF_CALLS: is_call, OF_COMMANDS: is_shell}
    numbers = _HINTS.choose(triples)
    if triples is None:  # A short text: all of each group whose common sign it has.
        numbers = [
            number
            for gate, group in _BY_GATE.items()
            if gates.setdefault(gate, gate in lowered)
            for number in group
        ]
    for number in numbers:
        gate, hint, shape = _GATED_SHAPES[number]
        if gate not in gates:
            gates[gate] = gate in lowered
        if not gates[gate]:
            continue
        place = lowered.find(hint)
        while place >= 0:
            match = shape.match(text, place)
            if match is not None:
                yield from read_argument(text, match)
            place = lowered.find(hint, place + 1)
    place = lowered.find("sudo -") if is_shell else -1
    while place >= 0:
        if _SUDO.match(text, place - 2) or _SUDO.match(text, place - 1):
            yield from find_piped(text, place)
        place = lowered.find("sudo -", place + 1)


_SURE_CALL = re.compile(r"@|basic|connect|login|credential", re.IGNORECASE)


def read_argument(text: str, match: re.Match[str]) -> Iterator[Span]:
    """The password that a command or a call has; a loose one must stand out of prose."""
    group = match.lastgroup or "sure"
    begin = match.start(group)
    is_quoted = text[begin - 1] in "\"'"
    value = match[group] if is_quoted or group == "exact" else cut_bare(match[group])
    after = text[begin + len(value) : begin + len(value) + 1]
    if is_quoted and group != "exact" and after not in ('"', "'", "\\"):
        return
    is_loose = group in ("loose", "of_user", "using")  # They must stand out of prose.
    if group == "exact":
        is_found = not is_placeholder(value)
    elif " " in value:
        is_found = is_grouped(value) or is_words_apart(value, fewest=3)
    else:
        is_found = is_strong_password(value) if is_loose else is_password(value)
        is_found = is_found or (is_loose and (is_phrase(value) or has_two_digits(value)))
    begins = text[max(0, match.start() - 6) : begin]
    if not is_found and (group == "sure" or (group == "call" and _SURE_CALL.search(begins))):
        is_found = is_chosen_words(value) and (is_quoted or after in (" ", "\n", "", "@", "'"))
        is_found = is_found or (is_quoted and is_chosen_number(value))
    if is_found:
        yield Span(begin, begin + len(value), "password", "<secret:password>")
        yield from _find_repeated(text, begin + len(value), value)


def _find_repeated(text: str, end: int, value: str) -> Iterator[Span]:
    """The same password right after the first, where a program wants it twice."""
    for joint in ("\\n", " ", "; echo "):
        if text.startswith(joint + value, end):
            start = end + len(joint)
            yield Span(start, start + len(value), "password", "<secret:password>")


def find_piped(text: str, place: int) -> Iterator[Span]:
    """The password in `echo "ann:…" | chpasswd`, with the end of the command at `place`."""
    piped = _PIPED.search(text, max(0, place - 160), place)
    if piped is not None and (is_password(piped["piped"]) or is_chosen_words(piped["piped"])):
        yield Span(*piped.span("piped"), "password", "<secret:password>")


_CUT = re.compile(
    r"(?:,|(?<!&amp);|[\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef])|&[\w-]+=|\?[A-Z]\w+=|(?:\*\*"
    r"|__)(?=[.,;:)]{0,2}\Z)"
    r"|%26|&quot;|&#(?:x27|39|34);|&[lg]t;|\\[nrt\"']|/>|\)[.,;]?\Z|\|\Z|\Z"
)


def cut_bare(value: str) -> str:
    """A value without quotes up to where the next field, markup or the sentence goes on."""
    cut = _CUT.search(value, 1)
    return (value[: cut.start()] if cut else value).rstrip(".:)]}\\")
