"""E-mail addresses in a text.

The shapes are those of datatrove's PII formatter with differences that each harm less text, or find
more of it:

- the name of an e-mail address may hold letters of any script (RFC 6531), and so may its domain,
  which must end in a top-level domain of the public suffix list (`tld` carries it) or in a name of
  local networks: `lodash@4.17.21`, `icon@2x.png` and `W@x.shape` are none. In scripts without
  spaces between words an ASCII name begins after the last character of these;
- `/`, `=` and quotes part words, so that an address in a URL or in code is found without what
  stands before it;
- what stands between `://` and the host is a login, and `git@github.com:` an account of everybody;
- nor is a login at a host (`ssh -p 22 ann@host`, `ann@host:/srv`) or the number of a message
  (`Message-ID: <…@…>`) an address that mail reaches;

Time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from string import ascii_letters, digits

from stages.signals.ip_addresses import IPV4, is_public
from stages.signals.obscured_addresses import find_obscured_emails
from stages.signals.sample_addresses import is_sample, is_top_level

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
_HOST_NUMBER = re.compile(rf"\[{IPV4}\]")
"""RFC 5321 writes a host's address in brackets; `root@8.8.8.8` is a login at an address."""

_DOMAIN = re.compile(rf"(?:{_DOMAIN_LABEL}\.)+{_DOMAIN_LABEL}")
_ANY_DOMAIN = re.compile(r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W_](?:[\w-]{0,61}[^\W_])?")
_NO_DOMAIN = re.compile(r"v?[0-9]+\.[0-9]+(?:\.|\Z)|[1-9](?:\.[0-9])?x\.")
"""A version (`react@18.2.0-rc.dev`), and a picture for dense screens (`icon@2x.png`)."""

_LOGIN = re.compile(r"(?<!mailto)://[^\s/?#\"'<>]{0,64}\Z")
_LONGEST_SCHEME = 3 + _LONGEST_LOCAL
_SHARED_ACCOUNTS = frozenset(("git", "hg", "svn", "cvs", "bzr"))
_MESSAGE_NUMBER_BEFORE = re.compile(
    r"(?:\buid(?:;[^:\n]{1,60})?|(?:message|content|thread|msg)[_-]?id)\"?"
    r"[:=> ]{1,3}[\"']?\s{0,4}<?\Z"
    r"|(?:in[_-]reply[_-]to|references)\"?[:=> ]{1,3}[\"']?\s{0,4}"
    r"(?:<[^<>\s]{1,200}>[\s,]{0,12}){0,9}<?\Z",
    re.IGNORECASE,
)
"""The header fields of RFC 5322, 3.6.4, and the UID of a calendar's entry (RFC 5545), whose values
look like addresses."""

_ALGORITHM = re.compile(r"[\w-]+@(?:openssh\.com|libssh\.org)")
_MAIL_OF_PROJECT = re.compile(r"[a-z]+@|openssh-[a-z-]+@")
"""SSH names algorithms so (RFC 4251, 6): `aes128-gcm@openssh.com`."""

_MASKED = re.compile(r"x+@x+(?:\.x+)+", re.IGNORECASE)
_FORGES = re.compile(r"(?:github|gitlab|bitbucket|gitee|codeberg)\.(?:com|org)\Z", re.IGNORECASE)

_SENT_NUMBER = re.compile(
    r"[0-9]{8,14}\.[0-9]{1,7}-[0-9]{1,3}-|[0-9A-F]{8}\.[0-9A-F]{6,8}@|(?=[a-z]*[0-9])[0-9a-z]{6}\$[0-9a-z]{3,4}\$"
)
"""How `git send-email`, Mozilla and servers of news begin the number of a message."""

_NUMBER_REACH = 600
_REMOTE_COMMAND = re.compile(
    r"(?<![\w/.@-])(?:ssh|scp|sftp|rsync|mosh|autossh|sshfs|ssh-copy-id|sshpass|ProxyJump)\s[^\n|;]{0,200}\Z"
)
_REMOTE_REACH = 220
_REMOTE_PATH = re.compile(r":(?:/|~|[\w.-]{1,60}(?:/[\w.-]{1,60}){1,8}\.git\b)")
"""What follows a host in the commands of SSH: `:/srv/www`, `:~/`, `:group/project.git`."""

_ACCOUNT_LINE = re.compile(r"[\w.-]{1,32}:[x*!]{0,2}:[0-9]{1,10}:[0-9]{1,10}:")
"""A line of `/etc/passwd`: its comment may hold an address, and a path follows."""

_SLOT_AFTER = re.compile(r" ?<-|\$\w|\[\[")
"""Slots of R's objects: `object@slot.name <- 1`."""

_HANDLE_BEFORE = re.compile(r"(?:\A|(?<![\w.%+-]))[@!]\Z|\bacct:\Z")
"""`@ann@instance` and `!group@instance` are of the Fediverse, and so is what `acct:` names."""

_SLOT_BEFORE = re.compile(r"@\w{1,30}\$\Z")
_OF_MESSENGER = re.compile(r"[0-9]{8,15}@(?:c\.us|s\.whatsapp\.net)")
"""A telephone number, as WhatsApp addresses it."""

_LABELLED = frozenset(("this", "super", "return", "break", "continue"))
_PROMPT_BEFORE, _PROMPT_AFTER = (
    re.compile(r"(?:\A|\n|\s)\[\Z"),
    re.compile(r" [~/][^\]\s]*\][#$]|:[~/]\S*[#$]"),
)
_ORACLE_BEFORE = re.compile(r"(?:sqlplus|rman|expdp|impdp|thin:)[^\n]{0,60}/\Z", re.IGNORECASE)
"""Kotlin's labels (`this@Main.name`), prompts (`[root@web ~]#`), logins at Oracle."""

_HEADER_BEFORE = re.compile(
    r"(?:(?<![\w-])(?:to|from|cc|bcc|sender|reply-to|rcpt to|mail from|return-path)"
    r":[^\n\"]{0,40}?<?|<)\Z",
    re.IGNORECASE,
)
_QUOTED_NAME = re.compile(r"(?<![\w\\])\"[A-Za-z0-9][\w .+-]{0,62}\"\Z")
"""A name in quotes (RFC 5322), where a header of mail has it."""

_ENVELOPE = re.compile(
    r"(?<![\w.+=-])(?:bounces?|srs[01]|prvs|btv1|msprvs1|return|owner|verp|fwd|errors?|mailer)[\w.+-]{0,40}[+=-]"
    r"(?:[\w.+=-]{0,60})\Z",
    re.IGNORECASE,
)
"""What carries the receiver's address in the name, with `=` for the '@': VERP, SRS, BATV."""

_OBJECT = re.compile(
    r"[0-9a-f]{5,8}\.[a-z]\w{0,60}\((?:\w{1,80}\.(?:java|kt|scala|groovy)|Native|Unknown|\))"
)
"""A frame of a stack trace in Java: `Task@5bb765b.run(Pool.java:95)`."""


def find_emails(text: str) -> Iterator[tuple[int, int]]:
    """Places of e-mail addresses, around each '@'. A text without any costs nothing."""
    free = 0
    for mark in _AT.finditer(text):
        at = mark.start()
        start = _local_start(text, max(free, at - _LONGEST_LOCAL), at)
        start = _begin_early(text, start, at) if at else at
        end = _domain_end(text, at + 1) if start < at else 0
        if not end:
            continue
        if _LOGIN.search(text, max(0, at - _LONGEST_SCHEME), start):
            continue
        if text[start:at] in _SHARED_ACCOUNTS and (
            text[end : end + 1] in (":", "/") or _FORGES.match(text, at + 1, end)
        ):
            continue
        if _ALGORITHM.fullmatch(text, start, end) and not _MAIL_OF_PROJECT.match(text, start):
            continue
        if _SLOT_BEFORE.search(text, max(0, start - 32), start):
            continue
        if _OF_MESSENGER.fullmatch(text, start, end):
            continue
        if _HANDLE_BEFORE.search(text, max(0, start - 9), start) or _OBJECT.match(text, at + 1):
            continue
        if _is_place_in_code(text, start, at, end):
            continue
        host = text[at + 1 : end]
        if _is_login(text, start, end) or _is_message_number(text, start):
            continue
        if is_sample(text[start:at], host):
            continue
        if _SLOT_AFTER.match(text, end) or _MASKED.fullmatch(text, start, end):
            continue
        yield start, end
        free = end
    yield from find_obscured_emails(text)


def _is_place_in_code(text: str, start: int, at: int, end: int) -> bool:
    """Whether an '@' belongs to a label of Kotlin, a prompt of a shell or a login at Oracle."""
    if text[start:at] in _LABELLED and text[at + 1 : at + 2].isupper():
        return True
    if _PROMPT_AFTER.match(text, end):
        return True
    return _ORACLE_BEFORE.search(text, max(0, start - 70), start) is not None


def _begin_early(text: str, start: int, at: int) -> int:
    """Where the name begins that a header quotes, or that carries another address."""
    if start == at and text[at - 1 : at] == '"':
        name = _QUOTED_NAME.search(text, max(0, at - _LONGEST_LOCAL), at)
        if name and _HEADER_BEFORE.search(text, max(0, name.start() - 60), name.start()):
            return name.start()
    if text[start - 1 : start] == "=":
        carried = _ENVELOPE.search(text, max(0, start - 100), start)
        return carried.start() if carried else start
    return start


def _is_login(text: str, start: int, end: int) -> bool:
    """Whether an address is an account at a host, as the commands of SSH take it."""
    line = text.rfind("\n", max(0, start - _REMOTE_REACH), start) + 1
    if _REMOTE_PATH.match(text, end):
        return _ACCOUNT_LINE.match(text, line, start) is None
    return _REMOTE_COMMAND.search(text, max(line, start - _REMOTE_REACH), start) is not None


def _is_message_number(text: str, start: int) -> bool:
    if _SENT_NUMBER.match(text, start):
        return True
    return _MESSAGE_NUMBER_BEFORE.search(text, max(0, start - _NUMBER_REACH), start) is not None


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
        return number.end() if is_public(number[0][1:-1]) else 0
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
    if "_" in match[0]:
        return 0
    labels = match[0].split(".")
    while len(labels) > 1:
        last = labels[-1].lower()
        end = match.start() + len(".".join(labels))
        if is_top_level(last):
            return end
        for cut in range(min(len(last), 12), 0, -1):
            if (
                not last.isascii()
                and is_top_level(last[:cut])
                and _UNSPACED.match(last[cut : cut + 1])
            ):
                return end - len(last) + cut
        if not labels[-1][:1].isupper():
            return 0
        labels.pop()
    return 0
