"""Values of persons in the third blind set: names, mail and network addresses, phones, accounts.

Every number is of a range that its numbering plan assigns (`phonenumbers` decides for telephones)
and holds the check digits that the real world computes: Luhn for cards (ISO/IEC 7812), modulo 97
for accounts (ISO 13616) and the national check digits of BE, ES, FR, IT, NL, NO and PT.
"""

from __future__ import annotations

import ipaddress
import random
import string
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

import phonenumbers

from tests.benchmarks.blind_standards import luhn_digit

Make = Callable[[random.Random, str], str]

NAMES = {
    "en": (
        "Harriet Owen Maisie Callum Beatrix Desmond Leona Tobias Winifred Marcus Odette Rufus",
        "Thackeray Pemberton Okafor Whitlock Ashdown Marlowe Castellan Birdsall Hargrove Quill",
    ),
    "de": (
        "Annelie Jörg Friederike Lennart Wiebke Torsten Gesine Uwe Henrike Bastian Käthe Volker",
        "Brinkmann Löffler Aigner Stolzenberg Rüther Oberhuber Kleinschmidt Wiedemann Zöllner",
    ),
    "fr": (
        "Élodie Bastien Maëlle Thibault Corentin Solène Gaspard Océane Loïc Capucine Yann Noémie",
        "Lefranc Boisvert Garnier Tessier Delaunay Roussillon Chevallier Peltier Marchadier",
    ),
    "es": (
        "Ximena Rodrigo Itziar Álvaro Nuria Gonzalo Rocío Íñigo Candela Joaquín Maite Hernán",
        "Etxeberria Montalbán Quiroga Zúñiga Carrascosa Villanueva Ordóñez Peñalver Salcedo",
    ),
    "it": (
        "Ginevra Lorenzo Fiammetta Tommaso Ludovica Riccardo Benedetta Ettore Ilaria Saverio",
        "Bevilacqua Tagliaferri Montanari Pellegrino Santoro Galimberti Rinaldi Zanetti",
    ),
    "nl": (
        "Sanne Joris Femke Thijs Marloes Wouter Lieke Bram Anouk Gijs Rianne Sjoerd",
        "Hoekstra Dijkman Vermeulen Zijlstra Brouwer Kuipers Schipper Veenstra Molenaar",
    ),
    "pl": (
        "Zofia Wojciech Agnieszka Krzysztof Małgorzata Paweł Bożena Stanisław Kinga Łukasz",
        "Wiśniewska Zieliński Kaczmarek Sikora Piotrowski Dąbrowska Grabowski Jasiński",
    ),
    "pt": (
        "Thaís Vinícius Rafaela Otávio Letícia Caio Mariana Heitor Beatriz Afonso Lívia",
        "Nogueira Vasconcelos Figueiredo Sardinha Pacheco Teixeira Bragança Monteiro",
    ),
    "ru": (
        "Svetlana Arkady Ludmila Gennady Ksenia Timofey Zinaida Maksim Yulia Rodion",
        "Belyaeva Voronin Krylova Lebedev Tarasova Gusev Makarova Filippov Zhukova",
    ),
    "tr": (
        "Ayşegül Serkan Zeynep Tolga Gülşen Barış Elif Kerem Nazlı Orhan",
        "Karataş Yıldırım Özkan Aydoğan Çetinkaya Demirci Erdoğdu Şimşek Koçak",
    ),
    "in": (
        "Lakshmi Arvind Meenakshi Rohan Shalini Vikram Pooja Karthik Ananya Suresh",
        "Chaturvedi Subramanian Bhattacharya Deshpande Kulkarni Menon Rastogi Banerjee",
    ),
    "ja": (
        "Haruka Takeshi Ayumi Daisuke Mariko Kenta Nanami Shinji Yukari Ryota",
        "Kobayakawa Shimizu Hasegawa Morimoto Ogawa Nishikawa Fujiwara Takagi",
    ),
    "sv": (
        "Linnéa Håkan Ebba Torbjörn Saga Göran Tuva Anders Malin Rasmus",
        "Sjöström Lindqvist Bergdahl Hedlund Åkesson Nyström Wallin Öberg",
    ),
}
FREE_MAIL = {
    "de": "gmx.de web.de t-online.de posteo.de freenet.de",
    "fr": "orange.fr free.fr laposte.net wanadoo.fr",
    "it": "libero.it virgilio.it tiscali.it",
    "pl": "wp.pl onet.pl interia.pl o2.pl",
    "ru": "mail.ru yandex.ru rambler.ru bk.ru",
    "pt": "uol.com.br bol.com.br terra.com.br sapo.pt",
    "ja": "yahoo.co.jp docomo.ne.jp",
    "in": "rediffmail.com yahoo.co.in",
    "nl": "ziggo.nl xs4all.nl kpnmail.nl",
    "": "gmail.com gmail.com gmail.com outlook.com hotmail.com yahoo.com icloud.com proton.me",
}
SUFFIXES = {
    "en": "com com co.uk org net io dev us ca com.au",
    "de": "de de de at ch",
    "fr": "fr fr be",
    "es": "es es com.mx cl com.ar",
    "it": "it",
    "nl": "nl nl be",
    "pl": "pl pl com.pl",
    "pt": "com.br com.br pt",
    "ru": "ru ru su",
    "tr": "com.tr",
    "in": "in co.in",
    "ja": "co.jp ne.jp jp",
    "sv": "se se",
}
_STEMS = "brackwell feldmoor kestrelune orvanta tamberlin halvicon nordaskil quillhaven veltrana"
_STEMS += " sorrelby mantovar glimwerk pelloria dunstermark avelko zindrel coppermere luftena"
_STEMS += " trevanno ostrelle kibosana marquett wendelbo fjallby rotholme sabriko ulvendal perigo"
_TRADES = "labs media bau design tech foto logistik consult energie garden press shop werke studio"
_NICKS = "nightowl pixelfox teaspoon blauwal gatonegro moonpie zugvogel rainmaker mintgum lobo77"
_ROLES = {
    "de": "kontakt info vertrieb bewerbung datenschutz",
    "fr": "contact accueil reservation",
    "es": "contacto ventas info",
    "it": "info prenotazioni segreteria",
    "": "info office sales hello press jobs security webmaster",
}


@dataclass(frozen=True)
class Person:
    """Someone who does not exist, with the country whose names, domains and mail they use."""

    locale: str
    first: str
    last: str
    company: str
    suffix: str

    @property
    def name(self) -> str:
        return f"{self.first} {self.last}"

    @property
    def domain(self) -> str:
        return f"{self.company}.{self.suffix}"


def make_person(rng: random.Random, locale: str = "") -> Person:
    """Draw a person of a locale of `NAMES`, or of any."""
    locale = locale or rng.choice(sorted(NAMES))
    first, last = (rng.choice(names.split()) for names in NAMES[locale])
    company = rng.choice(_STEMS.split())
    if rng.random() < 0.6:
        company += rng.choice(["", "-"]) + rng.choice(_TRADES.split())
    return Person(locale, first, last, company, rng.choice(SUFFIXES[locale].split()))


def to_ascii(name: str) -> str:
    """Return a name as its bearer writes it in an address: ä is ae, other marks are dropped."""
    pairs = ("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("ß", "ss"), ("ł", "l"), ("ı", "i"), ("ø", "o")
    name = name.lower()
    for letter, ascii_form in pairs:
        name = name.replace(letter, ascii_form)
    return unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()


def make_email(rng: random.Random, person: Person) -> str:
    """Draw the mail address of a person: at work, at a university or at a free provider."""
    first, last = to_ascii(person.first), to_ascii(person.last)
    if (at := rng.random()) < 0.36:
        local = rng.choice(
            [
                f"{first}.{last}",
                f"{first}{last}{rng.randint(1, 99)}",
                f"{first[0]}{last}{rng.randint(1960, 2006)}",
                f"{last}.{first}",
                f"{first}_{last}",
                f"{rng.choice(_NICKS.split())}{rng.randint(2, 999)}",
                f"{first}.{last}+{rng.choice(['news', 'shop', 'lists', 'github'])}",
            ]
        )
        own = FREE_MAIL.get(person.locale, "") if rng.random() < 0.5 else ""
        return f"{local}@{rng.choice((own or FREE_MAIL['']).split())}"
    if at < 0.5:
        place = to_ascii(rng.choice(_STEMS.split()))
        host = {"en": f"cs.{place}.edu", "de": f"uni-{place}.de", "fr": f"univ-{place}.fr"}.get(
            person.locale, f"{place}-univ.{person.suffix}"
        )
        return f"{rng.choice([f'{first}.{last}', first[0] + last, last])}@{host}"
    if at < 0.64:
        roles = _ROLES.get(person.locale, _ROLES[""]) if rng.random() < 0.7 else _ROLES[""]
        return f"{rng.choice(roles.split())}@{person.domain}"
    if at < 0.67 and person.first.lower() != first:
        return f"{person.first.lower()}@{person.domain}"  # RFC 6531: a local part in UTF-8
    forms = [f"{first}.{last}", f"{first[0]}.{last}", first, f"{first[0]}{last}"]
    forms += [f"{last}{first[0]}", f"{first.title()}.{last.title()}"]
    return f"{rng.choice(forms)}@{rng.choice(['', '', '', '', 'mail.'])}{person.domain}"


PHONES = {
    "US": "(212) NXX-XXXX|312-NXX-XXXX|415.NXX.XXXX|(650) NXX-XXXX|206-NXX-XXXX|1-800-NXX-XXXX",
    "GB": "020 7XXX XXXX|0161 4XX XXXX|07700 XXXXXX|079XX XXXXXX|(01865) XXXXXX|0117 9XX XXXX",
    "DE": "030 2XXXXXXX|089/5XXXXXX|0221 - 9X XX XX XX|0171 3XXXXXX|0151-2XXXXXXX|(040) 3XXXXXX",
    "AT": "01 5XXXXXX|0664 3XXXXXX|0316/8XXXXX",
    "CH": "044 2XX XX XX|079 3XX XX XX|031 3XX XX XX",
    "FR": "01 4X XX XX XX|06 1X XX XX XX|04.72.XX.XX.XX|0561XXXXXX|07 8X XX XX XX",
    "ES": "91 5XX XX XX|6XX XX XX XX|93 4XX XX XX|6XX XXX XXX|954 XXX XXX",
    "IT": "06 4XXX XXXX|02 7XXXXXX|338 XXXXXXX|347/XXXXXXX|055 2XX XXX",
    "NL": "020 6XX XX XX|06-2XXXXXXX|010-4XXXXXX|06 1XXX XXXX",
    "PL": "22 6XX XX XX|601 XXX XXX|512-XXX-XXX|12 4XX XX XX",
    "PT": "21 3XX XXXX|912 XXX XXX|22 6XX XXXX",
    "BR": "(11) 9XXXX-XXXX|(21) 2XXX-XXXX|(31) 9XXXX-XXXX|(51) 3XXX-XXXX",
    "MX": "55 5XXX XXXX|(33) 3XXX XXXX|81 8XXX XXXX",
    "AR": "011 4XXX-XXXX|(0351) 4XX-XXXX",
    "IN": "98XXX XXXXX|98XXXXXXXX|080-2XXXXXXX|022 2XXX XXXX",
    "JP": "03-3XXX-XXXX|090-XXXX-XXXX|06-6XXX-XXXX|080-XXXX-XXXX",
    "CN": "010-6XXXXXXX|138 XXXX XXXX|139XXXXXXXX|021-5XXXXXXX",
    "RU": "8 (495) XXX-XX-XX|8 916 XXX-XX-XX|8(812)XXX-XX-XX|8-903-XXX-XX-XX",
    "TR": "0532 XXX XX XX|(0212) 2XX XX XX|0312 4XX XX XX",
    "SE": "08-6XX XX XX|070-XXX XX XX|031-7X XX XX",
    "AU": "(02) 9XXX XXXX|0412 XXX XXX|03 9XXX XXXX|1300 XXX XXX",
    "KR": "02-7XX-XXXX|010-XXXX-XXXX|031-2XX-XXXX",
    "ZA": "021 4XX XXXX|082 XXX XXXX|011 7XX XXXX",
}
"""National forms as people write them; X is a digit, N one from 2 to 9."""

ABROAD = {
    "US": "+1 NXX-NXX-XXXX|+1 (NXX) NXX-XXXX|+1NXXNXXXXXX|+1.NXX.NXX.XXXX|001-NXX-NXX-XXXX",
    "GB": "+44 20 7XXX XXXX|+44 (0)20 7XXX XXXX|+4479XXXXXXXX|+44 7XXX XXXXXX|0044 161 4XX XXXX",
    "DE": "+49 30 2XXXXXXX|+49 (0)89 5XXXXXX|+491713XXXXXX|+49-40-3XXXXXX|0049 221 9XXXXXX",
    "FR": "+33 1 4X XX XX XX|+33 (0)6 1X XX XX XX|+3361XXXXXXX|+33.4.72.XX.XX.XX",
    "ES": "+34 91 5XX XX XX|+34 6XX XXX XXX|+346XXXXXXXX|0034 93 4XX XX XX",
    "IT": "+39 06 4XXX XXXX|+39 338 XXX XXXX|+39347XXXXXXX",
    "NL": "+31 20 6XX XX XX|+31 (0)6 2XXX XXXX|+316XXXXXXXX",
    "PL": "+48 22 6XX XX XX|+48 601 XXX XXX|+48512XXXXXX",
    "BR": "+55 11 9XXXX-XXXX|+55 (21) 2XXX-XXXX|+55119XXXXXXXX",
    "IN": "+91 98XXX XXXXX|+91-80-2XXXXXXX|+9198XXXXXXXX",
    "JP": "+81 3-3XXX-XXXX|+81-90-XXXX-XXXX|+8190XXXXXXXX",
    "CN": "+86 138 XXXX XXXX|+86-10-6XXXXXXX|+86139XXXXXXXX",
    "RU": "+7 (495) XXX-XX-XX|+7 916 XXX-XX-XX|+7903XXXXXXX",
    "SE": "+46 8 6XX XX XX|+46 (0)70 XXX XX XX",
    "CH": "+41 44 2XX XX XX|+4179XXXXXXX|+41 (0)31 3XX XX XX",
    "AU": "+61 2 9XXX XXXX|+61 412 XXX XXX|+61 (0)3 9XXX XXXX",
    "UA": "+380 44 4XX XX XX|+38067XXXXXXX",
    "IL": "+972 3 6XX XXXX|+972-52-XXX-XXXX",
    "NG": "+234 803 XXX XXXX|+2348XXXXXXXXX",
    "AE": "+971 4 3XX XXXX|+971 50 XXX XXXX",
    "SG": "+65 6XXX XXXX|+659XXXXXXX",
    "KE": "+254 7XX XXX XXX|+2547XXXXXXXX",
    "GR": "+30 21X XXX XXXX|+3069XXXXXXXX",
    "CZ": "+420 2XX XXX XXX|+420 60X XXX XXX",
}


def _digits(rng: random.Random, form: str) -> str:
    pools = {"X": string.digits, "N": "23456789"}
    return "".join(rng.choice(pools[sign]) if sign in pools else sign for sign in form)


def make_phone(rng: random.Random, place: str) -> str:
    """Draw a number that exists in a numbering plan.

    `DE` gives a German number as it is written there, `intl` one with its country code, `e164`
    one with its country code and nothing between the digits, `US-ext` an extension after it.
    """
    place, _, extension = place.partition("-")
    if extension:
        words = rng.choice([" ext. ", " x", " ext "])
        return f"{make_phone(rng, place)}{words}{rng.randint(10, 9999)}"
    while True:
        country = place
        if place in ("intl", "e164"):
            country = rng.choice(sorted(ABROAD))
            form = rng.choice(ABROAD[country].split("|"))
        else:
            form = rng.choice(PHONES[country].split("|"))
        number = _digits(rng, form)
        parsed = phonenumbers.parse(number, country)
        if phonenumbers.is_valid_number(parsed):
            return phonenumbers.format_number(parsed, 0) if place == "e164" else number


def make_ipv4(rng: random.Random, _: str = "") -> str:
    """Draw a public address."""
    while True:
        address = ipaddress.IPv4Address(rng.getrandbits(32))
        if address.is_global and not address.is_multicast and address.packed[3] not in (0, 255):
            return str(address)


def make_ipv6(rng: random.Random, _: str = "") -> str:
    """Draw an address of a network that registries handed out, as hosts write it (RFC 5952)."""
    start = rng.choice(
        [0x2001_0470, 0x2A00_1450, 0x2A02_8108, 0x2603_6080, 0x2804_014C, 0x2409_8A20]
    )
    low = rng.choice([rng.getrandbits(64), rng.getrandbits(64), rng.randint(1, 0xFFFF)])
    return str(ipaddress.IPv6Address(start << 96 | rng.getrandbits(32) << 64 | low))


NETWORKS = ("4", 16), ("4", 16), ("5N", 16), ("22", 16), ("34", 15), ("37", 15), ("6011", 16)
NETWORKS += ("3528", 16), ("36", 14), ("622", 16), ("2200", 16)


def make_card(rng: random.Random, between: str = "") -> str:
    """Draw a card number; `between` stands between its groups (`any` draws what)."""
    prefix, size = rng.choice(NETWORKS)
    prefix = prefix.replace("N", rng.choice("12345"))
    if prefix == "22":
        prefix = str(rng.randint(2221, 2720))
    body = prefix + _digits(rng, "X" * (size - 1 - len(prefix)))
    number = body + luhn_digit(body)
    if between == "any":
        between = rng.choice([" ", " ", " ", "-", "", "", "\N{NO-BREAK SPACE}"])
    sizes = {16: (4, 4, 4, 4), 15: (4, 6, 5), 14: (4, 6, 4)}[size]
    starts = [sum(sizes[:at]) for at in range(len(sizes))]
    return between.join(number[at : at + size] for at, size in zip(starts, sizes, strict=True))


def remainder_97(text: str) -> int:
    """Return a number of digits and letters (A is 10) modulo 97, as ISO 7064 does."""
    return int("".join(str(int(sign, 36)) for sign in text)) % 97


def _belgian(rng: random.Random) -> str:
    body = _digits(rng, "X" * 10)
    return f"{body}{int(body) % 97 or 97:02}"


def _spanish(rng: random.Random) -> str:
    bank, account = _digits(rng, "0" + "X" * 7), _digits(rng, "X" * 10)
    weights = (1, 2, 4, 8, 5, 10, 9, 7, 3, 6)

    def check(number: str) -> str:
        digit = 11 - sum(w * int(d) for w, d in zip(weights, number, strict=True)) % 11
        return str({11: 0, 10: 1}.get(digit, digit))

    return bank + check("00" + bank) + check(account) + account


def _french(rng: random.Random) -> str:
    bank, branch, account = (_digits(rng, "X" * size) for size in (5, 5, 11))
    key = 97 - (89 * int(bank) + 15 * int(branch) + 3 * int(account)) % 97
    return f"{bank}{branch}{account}{key:02}"


def _italian(rng: random.Random) -> str:
    body = _digits(rng, "0" + "X" * 21)
    odd = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21)
    total = sum(int(d) if at % 2 else odd[int(d)] for at, d in enumerate(body))
    return string.ascii_uppercase[total % 26] + body


def _dutch(rng: random.Random) -> str:
    while True:
        account = _digits(rng, "0XXXXXXXXX")
        if sum((10 - at) * int(digit) for at, digit in enumerate(account)) % 11 == 0:
            return rng.choice(["INGB", "ABNA", "RABO", "TRIO", "SNSB"]) + account


def _norwegian(rng: random.Random) -> str:
    while True:
        body = _digits(rng, "NXXXXXXXXX")
        digit = -sum(w * int(d) for w, d in zip((5, 4, 3, 2, 7, 6, 5, 4, 3, 2), body, strict=True))
        if digit % 11 < 10:
            return f"{body}{digit % 11}"


def _portuguese(rng: random.Random) -> str:
    body = _digits(rng, "00" + "X" * 17)
    return f"{body}{98 - int(body) * 100 % 97:02}"


def _plain(form: str) -> Callable[[random.Random], str]:
    return lambda rng: _digits(rng, form)


ACCOUNTS: dict[str, Callable[[random.Random], str]] = {
    "DE": _plain("NXXXXXXXXXXXXXXXXX"),
    "AT": _plain("NXXXXXXXXXXXXXXX"),
    "CH": _plain("00XXXXXXXXXXXXXXX"),
    "GB": lambda rng: rng.choice(["BARC", "NWBK", "LOYD", "MIDL"]) + _digits(rng, "X" * 14),
    "IE": lambda rng: rng.choice(["AIBK", "BOFI"]) + _digits(rng, "9XXXXXXXXXXXXX"),
    "PL": _plain("10" + "X" * 22),
    "SE": _plain("5000" + "X" * 16),
    "DK": _plain("NXXXXXXXXXXXXX"),
    "LU": _plain("00XXXXXXXXXXXXXX"),
    "CZ": _plain("0800" + "X" * 16),
    "TR": _plain("000NX0" + "X" * 16),
    "BE": _belgian,
    "ES": _spanish,
    "FR": _french,
    "IT": _italian,
    "NL": _dutch,
    "NO": _norwegian,
    "PT": _portuguese,
}


def make_iban(rng: random.Random, place: str = "") -> str:
    """Draw an account of a country, in groups of four or solid; `FR-solid`, `any`, `any-solid`."""
    country, _, form = place.partition("-")
    if country in ("", "any"):
        country = rng.choice(sorted(ACCOUNTS))
    body = ACCOUNTS[country](rng)
    number = f"{country}{98 - remainder_97(body + country + '00'):02}{body}"
    between = "" if form == "solid" else rng.choice([" ", " ", " ", "", "\N{NO-BREAK SPACE}"])
    return between.join(number[at : at + 4] for at in range(0, len(number), 4))
