"""Codes that people type: PINs, the codes of doors, safes and alarms, recovery codes.

A name (`PIN`, `door code`, `Türcode`, `code du portail`, `код домофона`, `暗証番号`) must be joined
to four digits or more by a verb, a sign, or nothing but a few words (`the gate code changed, it's
now 4816`). Postal codes of India, which are called PIN, years and numbers that count up are none.
Recovery codes are the lines of equal form below a line that speaks of them. All patterns are
bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stages.signals.literals import Literals, Triples, find_all
from stages.signals.outputs import Span

_PLACES = (
    "alarm|burglar|door|gate|garage|entry|entrance|building|lobby|lock|padlock|safe|vault|keypad"
    r"|lock ?box|key ?box|key ?safe|elevator|lift|shed|locker|security system"
    "|voicemail|unlock|mailbox|barrier|shutter|copier|printer"
)
_OF_DOOR_ROMANCE = (
    r"(?:port(?:ail|e|ão|on|al|one|a)|puerta|immeuble|entr[ée]+e|entrada|entrata|alarm[ea]|allarme"
    r"|digicode|coffre|cofre|cassaforte|caja|cancello|garage|garaje|garagem|immeuble|edificio"
    r"|prédio|local|cad(?:enas|eado)|candado|lucchetto|boîte|cuadro|trastero|barrière|barrera"
    r"|interphone|citofono|interfone|telefonillo|cassetta|condominio|condomínio|verrou|serrure)"
)
_SECRET_CODE = (
    rf"\b(?:{_PLACES})(?: [a-z]{{3,10}})?[ -](?:code|combo|combination|keypad code)(?![a-z])"
    r"|\bcomb(?:o|ination) (?:to|for|of|on) (?:the|my|our|your|his|her)\b|\bkeypad\b"
    rf"|\bcode (?:to|for) (?:the|our|my|your) (?:[a-z]{{2,10}} )?(?:{_PLACES})\b"
    r"|\b(?:tür|haustür|tor|alarm|garagen|schloss|safe|tresor|zutritts|eingangs|schließfach|deur|poort|kluis|slot|garage"
    r"|port|dörr|larm|dør|lås|nøkkelboks|nøgleboks|garasje|hoved)[ -]?(?:code|kod(?:en|e)?)\b"
    r"|\b(?:code|zahlenkombination|kombination) (?:für|zum|zur|vom|der|des|am|voor|van) "
    r"(?:die |den |das |de |het )?"
    r"(?:\w{0,10}(?:tür|tor|schloss|tresor|alarmanlage|garage|schlüsselbox|schranke|safe)|alarm|poort|deur"
    r"|kluis|sleutelkluis|voordeur|slot)\b"
    r"|\bcode d['’]acc[èe]s\b"
    r"|\b(?:code|clave|c[óo]digo|codice|combinaison|combinación|combinação|combinazione)"
    rf" (?:d[aeiou]l{{0,2}} ?(?:la |l['’]|l[ao]s? )?|dell[ao'’] ?|d['’]|da |do |pour |para "
    rf"|per )(?:la |le |el |o |a |il |l['’])?{_OF_DOOR_ROMANCE}\b"
    r"|(?:\b|(?<=adgangs))k[oó]d(?:en|e)? (?:till?|do|k|ke|na|od|za"
    r"|pro) (?:\w{2,12} )?\w{0,8}(?:bram|drzwi"
    r"|domofon|furtk|sejf|alarm|garaż|klatk|szaf"
    r"|brán|branc|dveř|dver|trezor|vrat|vhod|port|dør|dörr|lås|boks|hytt|skåp|skab|garag|garas|sykkel|cykel|kjeller|källar)\w{0,8}"
    r"|\b(?:kapu|bejárati|ajtó|széf|riasztó)\w{0,6} ?kód\w{0,3}\b|\bdigicode\b"
    r"|\bovikood\w{0,3}|\bovikoodi\w{0,3}|\bkapı (?:kodu|şifresi)|\b(?:uks|väravakood)\w{0,3} kood"
    r"|\bкод\w{0,2} (?:от |для |к |на |з |від |до )?(?:\w{3,12} )?(?:домофон|двер|подъезд"
    r"|сейф|сигнализац|калитк|ворот|замк"
    r"|під[’']їзд|хвіртк|шлагбаум|парадн|вход|врат|камер)\w{0,6}"
    r"|\bκωδικός (?:της |του )?(?:πόρτας|εισόδου|συναγερμού|θυρο\w{3,8}|χρηματοκ\w{3,8})"
    r"|(?<!\w)ה?קוד (?:ה?כניסה|לדלת|לשער|הדלת|השער|לכספת|הכספת|לאזעקה|האזעקה|לבניין)"
    r"|(?:كود|رمز|رقم) (?:الباب|البوابة|الخزنة|الدخول|العمارة|المدخل)|الرقم السري|कोड"
)
_PIN = (
    r"(?-i:(?<![A-Za-z_-])(?:SIM |ATM |Zoom |card )?P(?:IN"
    r"|UK)(?:[12](?=:))?)(?:[- ]?(?:codes?|kode[nt]?|kod(?:en|u)?|kód\w{0,2}"
    r"|код\w{0,2}))?(?![\w-])"
    r"|(?<![\w-])(?:my|your|the|his|her|our|old|new|card|phone|bank|atm|sim|debit|door"
    r"|voicemail|tablet|safe) pin(?:[ -]?(?:code|number))?(?![\w-])"
    r"|\bpin[- ]?(?:code|kode|kod)(?:n|en|t)?\b|(?<!\w)п[иі]н(?:-?\s?код\w{0,2})?(?!\w)"
    r"|(?<!\w)पिन(?: ?कोड| ?नंबर)?(?!\w)|(?<!\w)PIN(?:-?koodi\w{0,2}|-?číslo)"
    r"|\bpasscode\b|\bpasskode\b"
)
_EASTERN = (
    r"(?:門禁|门禁|[开開]門|开门|大[门門]|[门門][锁鎖]|保[险險][箱柜]|取款|支付|[银銀]行卡|[锁鎖]屏|手[机機]|解[锁鎖]|[车車]库|[单單]元[门門])的?(?:密[码碼])"
    r"|暗証番号|暗証コード|(?:オートロック|キーボックス|金庫|玄関|ダイヤルロック|南京錠|宅配ボックス)の?(?:暗証)?(?:番号|コード)"
    r"|(?:공동)?현관(?:문)? ?(?:비밀번호|비번)|도어락 ?(?:비밀번호|비번)|비번|핀 ?번호"
    r"|카드 ?비밀번호|금고 ?(?:비밀번호|비번)"
    r"|รหัส(?:ประตู|เซฟ|ตู้|เอทีเอ็ม)|mã (?:cửa|PIN|số két)|kode (?:pintu|gerbang|brankas|PIN)"
)
_DIGIT = r"[0-9\u0660-\u0669\u06f0-\u06f9]"
_VALUE = (
    r"(?<![A-Za-z0-9_.,/+€$£-])[\"'`«“„「『*]{0,2}"
    rf"(?P<value>(?-i:[A-ZА-Я]?{_DIGIT}{{4,8}}(?:[A-H]|[А-Я])?|[0-9]{{1,3}}[A-ZА-Я][0-9]{{2,5}}"
    r"|[0-9](?:-[0-9]){3,5}|[0-9]{1,2}(?:-[0-9]{1,2}){2}|[0-9]{1,4}[#*][0-9]{2,6})[#*]?)"
    r"(?![A-Za-z0-9_%/+€$£°]|[-.,:][0-9]"
    r"| ?(?:%|€|(?:kr|euros?|usd|m[lm]|kg|ft|people|characters|digits|lines|pages)\b))"
)
_WORDS = r"(?:[^\n.!?;:=0-9{}()\[\]<>|\"]|[0-9]{1,2}\.(?= )){0,60}?"
_JOINT = (
    r"(?:(?<!\w)(?:is|was|now|it['’]s|ist|lautet|war|jetzt|nun|est|sera|c['’]est|es|será|era|ahora|é|agora"
    r"|è|ora|jest|to|je|er|är|on|nu|nå|este|acum|е|є|це|это|теперь|είναι|yra|ir|është|adalah|là|ni|hai|és"
    r"|هو|هي|היא|הוא)(?: (?:now|still|just|le|la|il|el|het|de|den|jetzt|ahora|agora|nu|nå)){0,2}"
    r"|(?<!\w)(?:chang|reset|geändert|gewijzigd|veranderd|cambi|mud|alter|troc|modifi|ändra|bytt|endre|ændre"
    r"|skift|zmien|změn|zmen|измен|смен|помен|змін)\w{0,8}"
    r" (?:to|auf|in|zu|naar|a|en|para|pour|till|til|na|на)|[:=：→–—]|->|\s-)"
    r"(?: (?:ab|seit|from|since|à partir d\w{1,2}|desde|a partir de|od|fra|från|vanaf|с)"
    r" [^\W\d_]{2,12})?"
)
_SHAPE = re.compile(
    rf"(?P<name>(?P<code>{_SECRET_CODE})|(?P<pin>{_PIN}))"
    rf"(?:{_WORDS}(?P<joint>{_JOINT})\s{{1,2}}|(?P<near>[:=：]|(?: [^\W\d_]{{1,14}}){{0,2}}\s"
    rf"| [^\n.!?;:0-9]{{2,40}}, )){_VALUE}",
    re.IGNORECASE,
)
_EASTERN_SHAPE = re.compile(
    rf"(?P<name>{_EASTERN})\s?(?:[:：=]|は|が|是|为|為|係|改成了?|改[为為]|를|을|[은는이가]|คือ|là|adalah)?\s?{_VALUE}",
    re.IGNORECASE,
)
_SHARED_FILE = re.compile(
    r"(?:提取|[访訪][问問])密?[码碼]\s?(?:[:：=]|是|为)?\s?"
    r"(?P<value>(?=[a-z]{0,3}[0-9]|[a-z]{4})[a-z0-9]{4})(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_MEETING_CODE = re.compile(
    r"asscode(?: is)?[: ]{1,2}(?P<value>(?=[a-z]*[A-Z0-9])(?=[A-Z0-9]*[a-z])(?=[A-Za-z]*[0-9])"
    r"[A-Za-z0-9]{6,10})(?![\w-])"
)
_OF_LETTERS = {"asscode": _MEETING_CODE, **dict.fromkeys(("提取", "访问", "訪問"), _SHARED_FILE)}
"""Codes with letters: of a meeting by video, and of a file that is shared at Baidu."""

_MEETING = re.compile(r"zoom|meeting|webinar|webex|teams|lecture|jitsi", re.IGNORECASE)
_SECOND = re.compile(
    rf"[^\n0-9.!?]{{1,24}}(?:code|kod|kood|pin|a?larm|portail|portal|gate|door|safe|s[ae]jf|lock"
    r"|box|код|пин|замо?к|קוד|密[码碼]|番号|비번)"
    rf"[^\n0-9.!?]{{0,24}}[ \u3000-\u9fff]{_VALUE}",
    re.IGNORECASE,
)
"""A second code in the same sentence: `… is 4816, and the alarm 9427`."""

_LONGEST = 140
_OF_SECRET = re.compile(
    r"\b(?:my|your|our|his|her|their|card|phone|i?pad|iphone|door|sim|alarm|bank|app|atm|gate"
    r"|tablet|unlock\w*|passcode|voicemail|mailbox|safe|kiosk|parental|conference)\b|(?-i:PUK)",
    re.IGNORECASE,
)
"""What tells six digits from a postal code of India, which is called PIN as well."""

_OF_HARDWARE = re.compile(
    r"\b(?:gpio|diode|leds?|arduino|fpga|connector|mcu|board|header|const|int|define|static|var|let"
    r"|socket|cpu|jumper)\b",
    re.IGNORECASE,
)
_POSTAL = re.compile(r"[1-9][0-9]{5}\Z")
_FEWEST_DIGITS = 4
_COUNTED = "01234567890 09876543210"
_YEAR = re.compile(r"(?:19[0-9]{2}|20[0-3][0-9])\Z")
_CLAUSE_END = re.compile(
    r"[\"'`»”」』*]{0,2}(?:\s*\Z|\s*\n|[,.;!)，。、]|\s[-–—]|\s{2}|\s?[^\x00-\u024f])"
)
_HINTS = (
    *(
        " code",
        "-code",
        "-Code",
        "rcode",
        " comb",
        "keypad",
        "Keypad",
        "Code ",
        "tcode",
        "clave",
        "kood",
        "Kód",
        "şifre",
    ),
    *(
        "PIN",
        "PUK",
        " pin",
        "Pincode",
        "Pin-c",
        "Pinkod",
        "asscode",
        "código",
        "codice",
        "Código",
        "Codice",
        "digicode",
    ),
    *("Digicode", "kod", "Kod", "kód", "код", "Код", "пин", "Пин", "ПИН", "пін", "Пін", "ПІН"),
    *("κωδικ", "Κωδικ", "קוד", "كود", "رمز", "رقم", "पिन", "密", "暗証", "番号", "비번", "핀"),
    *("비밀번호", "รหัส", "mã ", "kode", "Kode", "提取", "访问", "訪問"),
)
_ROOTS = ("ode", "PIN", "pin", "kod", "omb", "PUK", "Pin", "odi", "eypad", "ood", "Kod", "clave")
"""One of them is in every name in ASCII: a short text is searched for them first."""

_LITERALS = Literals([hint.encode() for hint in _HINTS])
_EASTERN_HINTS = frozenset(["密", "暗証", "番号", "비번", "핀", "비밀번호", "รหัส"]) | {"mã "}
_LONGEST_NAME = 32
_DIGITS = re.compile(rf"{_DIGIT}(?:{_DIGIT}{{3}}|[-#*A-ZА-Я][0-9])|[0-9]{{2}}[#*A-ZА-Я][0-9]")


def find_entry_codes(text: str, triples: Triples | None) -> Iterator[Span]:
    """PINs, codes of doors and recovery codes; `triples` are those of `text`."""
    if triples is None and text.isascii() and not any(root in text for root in _ROOTS):
        return
    for number in _LITERALS.choose(triples):
        hint = _HINTS[number]
        for place in find_all(text, hint):
            yield from _find_code(text, place, hint)
    for number in _RECOVERY.choose(triples):
        for place in find_all(text, _RECOVERY_HINTS[number]):
            yield from _find_recovery_codes(text, place)


def _find_code(text: str, place: int, hint: str) -> Iterator[Span]:
    """The code whose name has a hint at `place`."""
    if hint in _OF_LETTERS:
        match = _OF_LETTERS[hint].match(text, place)
        if match is not None and (hint != "asscode" or _is_of_meeting(text, place)):
            yield Span(*match.span("value"), "password", "<secret:password>")
            return
    if not _DIGITS.search(text, place, place + _LONGEST):
        return
    shape = _EASTERN_SHAPE if hint in _EASTERN_HINTS else _SHAPE
    first, stop = max(0, place - _LONGEST_NAME), min(len(text), place + _LONGEST)
    for match in shape.finditer(text, first, stop):
        if match.start() > place + 1:
            return
        is_sure = shape is _EASTERN_SHAPE or _is_joined(text, match)
        if match.end("name") > place and is_sure and _is_code(match["value"]):
            yield Span(*match.span("value"), "password", "<secret:password>")
            second = _SECOND.match(text, match.end("value"))
            if second is not None and _is_code(second["value"]):
                yield Span(*second.span("value"), "password", "<secret:password>")


def _is_of_meeting(text: str, place: int) -> bool:
    """Whether what is before the word for a password speaks of a meeting by video."""
    return _MEETING.search(text, max(0, place - 80), place) is not None


def _is_code(value: str) -> bool:
    """Whether a number is drawn, and no year."""
    digits = "".join(filter(str.isdecimal, value))
    return (
        len(digits) >= _FEWEST_DIGITS
        and len(set(digits)) > 1
        and digits not in _COUNTED
        and not _YEAR.match(value)
    )


def _is_joined(text: str, match: re.Match[str]) -> bool:
    """Whether what joins a name to a number leaves no other reading."""
    value, end = match["value"], match.end("value")
    if match["near"] is not None:
        is_remark = match["near"].endswith(", ")
        if (is_remark and match["pin"] is None) or not _CLAUSE_END.match(text, end):
            return False
    if match["pin"] is not None:
        near = (match["near"] or "").strip()
        if near.isascii() and near.replace(" ", "").isalpha():
            return False
        if _OF_HARDWARE.search(text, max(0, match.start() - 40), end):
            return False
    if "-" in value and match["code"] is None:
        return False
    if match["pin"] is not None and _POSTAL.match(value):
        line = text[max(0, match.start() - 40) : match.start("value")]
        return _OF_SECRET.search(line) is not None
    return True


_RECOVERY_HINTS = (
    *("ecovery code", "ackup code", "cratch code", "mergency code", "ecovery-code", "ackup-code"),
    *("erstellungscode", "otfallcode", "de secours", "de récupération", "de respaldo"),
    *("de recupera", "de reserva", "de backup", "di backup", "di recupero", "di emergenza"),
    *("erstelcode", "eservekode", "eservkod", "jenoprettelseskod", "terställningskod", "arakood"),
    *(
        "apasow",
        "odzyskiwania",
        "áložní k",
        "езервны",
        "восстановления",
        "відновлення",
        "yedek kod",
    ),
    *(
        "备用码",
        "备用验证码",
        "恢复码",
        "恢复代码",
        "備用碼",
        "備用驗證碼",
        "復原碼",
        "バックアップコード",
    ),
    *(
        "リカバリーコード",
        "リカバリコード",
        "백업 코드",
        "복구 코드",
        "kode cadangan",
        "mã dự phòng",
    ),
)
_RECOVERY = Literals([hint.encode() for hint in _RECOVERY_HINTS])
_RECOVERY_LIST = re.compile(
    r"[^\n:：]{0,80}(?:[:：][^\S\n]*(?:\r?\n\s{0,8})?|\r?\n(?:[-=*]{3,40}\r?\n)?\s{0,8})",
    re.IGNORECASE,
)
_BETWEEN = re.compile(
    r"(?:[,;|]?[ \t]{1,12}|[ \t]*(?:\r?\n){1,2}[ \t]*)(?:(?:[-*•]|[0-9]{1,2}[.):])[ \t]{1,4})?"
)
_RECOVERY_CODE = re.compile(
    r"(?P<value>[0-9]{4} [0-9]{4}(?: [0-9]{4})?|[a-z0-9]{4,6}(?:-[a-z0-9]{4,6}){1,3}|[a-z0-9]{8,16}"
    r"|[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){1,3}|[A-Z0-9]{8,16})(?![\w@/:-]|\.\w)"
)
_FEWEST_CODES, _MOST_CODES = 2, 24


def _find_recovery_codes(text: str, place: int) -> Iterator[Span]:
    """The codes of one form, most with a digit, below or behind the words at `place`."""
    heading = _RECOVERY_LIST.match(text, place)
    if heading is None:
        return
    end, codes = heading.end(), list[re.Match[str]]()
    for _ in range(_MOST_CODES):
        between = _BETWEEN.match(text, end) if codes else _ITEM_SIGN.match(text, end)
        code = _RECOVERY_CODE.match(text, between.end()) if between is not None else None
        if code is None or (codes and _form(code[0]) != _form(codes[0][0])):
            break
        codes.append(code)
        end = code.end()
    drawn = sum(any(map(str.isdigit, code[0])) for code in codes)
    if len(codes) >= _FEWEST_CODES and 4 * drawn >= 3 * len(codes):
        for code in codes:
            yield Span(*code.span("value"), "password", "<secret:password>")


_ITEM_SIGN = re.compile(r"[ \t]*(?:(?:[-*•]|[0-9]{1,2}[.):])[ \t]{1,4})?")


def _form(code: str) -> str:
    """The length of a code and the places of its signs."""
    return "".join("a" if sign.isalnum() else sign for sign in code)
