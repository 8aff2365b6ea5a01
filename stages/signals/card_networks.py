"""Numbers of payment cards by the networks that issue them, and numbers that are for tests.

A card number has a length and first digits that a network issues (ISO/IEC 7812) and Luhn's sum,
which one number in ten passes.
"""

from __future__ import annotations

import re

from stdnum import luhn

# First digits of the networks that check with Luhn, by length of the number (ISO/IEC 7812-1).
_AMEX = re.compile(r"3[47]")
_OLD_JCB = re.compile(r"2131|1800")
_DINERS = re.compile(r"30[0-5]|3095|3[689]")
_VISA = re.compile(r"4")
_MAESTRO = re.compile(r"50[0-9]|5[6-8]|6304|6390|67")
_SIXTEEN = re.compile(
    r"4|5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720|220[0-4]|6[0-5]|35(?:2[89]|[3-8])"
    r"|3[068]|50[0-9]|5[6-9]|6390|67|8600|9860|9792|9112|9704|817[1-9]|81[89]|820[01]"
)
"""Beside the networks of the world those of a country: Uzcard, Humo, Troy, Belkart, Napas, RuPay,
Cabal, Shetab and others."""

_WORLDWIDE = re.compile(
    r"4|5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720|220[0-4]|6011|6[45]|62|35(?:2[89]|[3-8])"
    r"|3[04678]|50[0-9]|5[6-8]|6304|6390|67|2131|1800"
)
_LONG = re.compile(r"4|62|6011|6[45]|50[0-9]|5[6-8]|6304|6390|67|9704|81[7-9]|820")
_ISSUED = {
    12: (_MAESTRO,),
    13: (_VISA, _MAESTRO),
    14: (_DINERS, _MAESTRO),
    15: (_AMEX, _OLD_JCB, _MAESTRO),
    16: (_SIXTEEN,),
    17: (_LONG,),
    18: (_LONG,),
    19: (_LONG,),
}

_OF_CODE = {
    "VI": _VISA,
    "CA": re.compile(r"5[1-5]|2[2-7]"),
    "MC": re.compile(r"5[1-5]|2[2-7]"),
    "AX": _AMEX,
    "DC": _DINERS,
    "DS": re.compile(r"6"),
    "JC": re.compile(r"35"),
}
"""The codes of IATA for the networks, which tickets and bookings write right before the number."""


def is_card(number: str, *, named: bool = False) -> bool:
    """Whether digits are a number that a network issues, by its beginning, length and Luhn sum.

    Of 15 and 16 digits that are `named` a card the sum alone decides: networks grow.
    """
    if not (named and 15 <= len(number) <= 16) and not any(
        issued.match(number) for issued in _ISSUED.get(len(number), ())
    ):
        return False
    return bool(luhn.is_valid(number))


def is_of_code(code: str, number: str) -> bool:
    """Whether a network's code in a booking (`VI`, `AX`) is that of the number."""
    return _OF_CODE[code].match(number) is not None


def is_worldwide(number: str) -> bool:
    """Whether digits begin as cards of the world's networks do: others need groups or a name."""
    return _WORLDWIDE.match(number) is not None


_ZEROS = re.compile(r"[2-6][0-9]*?0{6,}[0-9]{0,4}")
"""Of issued numbers one in a hundred thousand has so many zeros in a row."""

_FEWEST_DIGITS = 15
_DIFFERENT = 4
"""Of numbers of fifteen digits and more one in ten thousand has only four different ones."""


def is_test_number(number: str) -> bool:
    """Whether a card number is published for tests, or made of few different digits."""
    if number in _PUBLISHED or _ZEROS.fullmatch(number):
        return True
    return len(set(number)) <= _DIFFERENT - 2 * (len(number) < _FEWEST_DIGITS)


_PUBLISHED = frozenset(
    (
        *("4012888888881881", "5200828282828210", "378282246310005", "371449635398431"),
        *("378734493671000", "6011000990139424", "3566002020360505", "30569309025904"),
        *("4000002500003155", "38520000023237", "3056930009020004", "5019717010103742"),
        *("36227206271667", "6555900000604105", "5506900490000436", "5506900490000444"),
        *("4548812049400004", "5576440022788500", "4918019160034602", "4918019199883839"),
        *("4235647728025682", "5031755734530604", "371180303257522", "5067268650517446"),
        *("4509953566233704", "5474925432670366", "4170068810108020", "4168818844447115"),
        *("5254133674403564", "5413330089600119", "5413330089020011", "5413330089010012"),
        *("5413330089099130", "6759649826438453", "6304939304310009610", "4917484589897107"),
        *("4988438843884305", "5424180279791732", "2223000048400011", "2223520043560014"),
        *("2223577120017656", "2223016768739313", "5061050254756707864", "5061460410120223210"),
        *("507850785078507812", "5399838383838381", "5438898014560229", "5531886652142950"),
        *("5258585922666506", "4187427415564246", "5590131743294314", "5143010522339965"),
        *("4751763236699647", "5451951574925480", "374245455400126", "6250941006528599"),
        *("60115564485789458", "5425233430109903", "4263982640269299", "5218271952100000"),
        *("4355084355084358", "5406675406675403", "9792030394440796", "4508034508034509"),
        *(
            "5555341244441115",
            "5019555544445555",
            "4009348888881881",
            "5272697132101976",
            "5457210001000019",
            "5457210001000001",
        ),
        *("4761739001010010", "4761739001010119", "4761739001010267", "374245001751006"),
        *("36148900647913", "3569990010095841", "6011000991300009", "6011000991543426"),
        *("5436031030606378", "5123456789012346", "4012000033330026", "4012000077777777"),
        *("4159282222222221", "4124939999999990", "4871049999999910", "5019994000124034"),
        *("4508750015741019", "345678901234564", "5610591081018250", "6331101999990016"),
        *("5204740009900014", "6220123456789008", "6223164991230014", "4000002760003184"),
        *("4000003800000446", "4000008400001629", "4000008260003178", "4000008400001280"),
        *("4000000320000021", "4000058260000005", "4000056655665556"),
    )
)
"""Numbers that Stripe, PayPal, Adyen, Mercado Pago, Redsys, EMVCo and others publish for tests:
everybody's, as `EXAMPLES` are."""
