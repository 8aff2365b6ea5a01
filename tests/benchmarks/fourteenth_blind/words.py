"""Fillers of the fourteenth blind set: people, firms, hosts, dates, numbers, identifiers."""

from __future__ import annotations

import base64
import string
import unicodedata
import uuid
from random import Random

from tests.benchmarks.blind_set import Maker, Scene

FIRST_NAMES = {
    "en": "Olivia Grace Nathan Ethan Megan Harriet Callum Derek Joanna Priya Owen Tessa Marcus",
    "de": "Anke Jürgen Sabine Torsten Heike Lukas Miriam Jörg Annika Detlef Katrin Bernd",
    "es": "Lucía Javier Marta Íñigo Rocío Álvaro Pilar Sergio Noelia Ramón Ximena Tomás",
    "fr": "Élodie Thibault Camille Benoît Maëlle Guillaume Sylvie Étienne Aurore Fabrice",
    "pt": "João Beatriz Thiago Letícia Rafael Conceição Vítor Larissa Márcio Inês",
    "it": "Chiara Lorenzo Giulia Matteo Ilaria Davide Nicolò Serena Fabio Alessia",
    "pl": "Agnieszka Paweł Małgorzata Krzysztof Zofia Łukasz Dorota Wojciech Ewelina",
    "tr": "Ayşe Mehmet Elif Burak Zeynep Emre Gülşen Serkan Derya Çağlar",
    "nl": "Sanne Joost Marieke Bram Femke Ruben Lotte Wouter",
    "ru": "Ирина|irina Алексей|aleksey Светлана|svetlana Дмитрий|dmitriy Ольга|olga Павел|pavel",
    "ja": "美咲|misaki 健太|kenta 直樹|naoki 由美|yumi 翔太|shota",
    "zh": "伟|wei 静|jing 磊|lei 敏|min 建国|jianguo",
    "ar": "محمد|mohammed فاطمة|fatima خالد|khaled ليلى|layla",
    "hi": "अनीता|anita राजेश|rajesh सुनील|sunil पूजा|pooja",
}
LAST_NAMES = {
    "en": "Whitcombe Hargrove Pembley Tanner Oakes Lindqvist Farrow Mbeki Castell Drummond Nair",
    "de": "Hölzer Brandstetter Kessler Wiegand Pohlmann Schürmann Ritzke Obermaier Lüdtke",
    "es": "Carrasco Ibáñez Montalvo Quiroga Zamora Peñalver Urrutia Olmedo Salcedo",
    "fr": "Marchand Lefranc Delorme Garnier Rousselot Péron Vasseur Chabrol",
    "pt": "Figueiredo Nogueira Teixeira Brandão Queiroz Sampaio Moura Assunção",
    "it": "Bellandi Colombari Ferretti Marchesi Galvani Santoro Orlandini",
    "pl": "Wiśniewska Kowalczyk Zawadzki Gajewski Lipińska Sobczak Pietrzak",
    "tr": "Yıldırım Aksoy Korkmaz Öztürk Bayraktar Şimşek",
    "nl": "Verhoeven Dijkstra Hoekstra Kuipers Terpstra",
    "ru": "Соколов|sokolov Громов|gromov Лебедев|lebedev Титов|titov Зайцев|zaytsev",
    "ja": "高橋|takahashi 渡辺|watanabe 石川|ishikawa 松本|matsumoto",
    "zh": "张|zhang 李|li 陈|chen 赵|zhao 黄|huang",
    "ar": "الحداد|alhaddad منصور|mansour العلي|alali نجار|najjar",
    "hi": "शर्मा|sharma वर्मा|verma गुप्ता|gupta मिश्रा|mishra",
}
FREE_MAIL = {
    "en": "gmail.com gmail.com outlook.com yahoo.com hotmail.com icloud.com",
    "de": "gmx.de web.de t-online.de gmail.com posteo.de", "es": "gmail.com hotmail.es yahoo.es",
    "fr": "orange.fr free.fr gmail.com laposte.net", "pt": "gmail.com uol.com.br sapo.pt",
    "it": "libero.it gmail.com virgilio.it", "pl": "wp.pl o2.pl gmail.com onet.pl",
    "tr": "gmail.com hotmail.com", "nl": "gmail.com ziggo.nl", "ru": "mail.ru yandex.ru gmail.com",
    "ja": "gmail.com yahoo.co.jp", "zh": "qq.com sina.com foxmail.com",
    "ar": "gmail.com yahoo.com", "hi": "gmail.com rediffmail.com",
}  # fmt: skip
_TOP = {
    "en": "com com org co.uk net io", "de": "de de com at ch", "es": "es com com.ar mx cl",
    "fr": "fr fr be ca", "pt": "com.br pt com", "it": "it it eu", "pl": "pl com.pl",
    "tr": "com.tr com", "nl": "nl be", "ru": "ru ru org", "ja": "co.jp jp", "zh": "com.cn cn com",
    "ar": "com ae sa", "hi": "in co.in org",
}  # fmt: skip
_STEMS = (
    "alder brill cobalt delta ember fjord granit harbor inova juniper kestrel lumen meridian "
    "nordhof opal pinar quarz ribera solaris tamar umbra vertex weald xylo yarrow zenit"
)
_TAILS = "tech lab soft data group media works bau logistik verlag clinic tours net systems"
_ROLES = {
    "de": "info kontakt vertrieb buchhaltung verein", "es": "info contacto ventas secretaria",
    "fr": "contact accueil mairie secretariat", "pt": "contato atendimento vendas",
    "it": "info segreteria ufficio.stampa", "pl": "biuro kontakt sekretariat",
    "tr": "bilgi iletisim", "ru": "info sales priem", "ja": "info contact soumu",
    "nl": "info administratie", "zh": "service hr",
}  # fmt: skip
_ROLES_EN = "info sales office press bookings admissions membership enquiries"
_CITIES = (
    "Leeds Portland Aarhus Freiburg Zaragoza Nantes Braga Bologna Gdynia Izmir Utrecht Ghent "
    "Linz Osaka Pune Tampere Malmö Cork Halifax Adelaide"
)
_APPS = (
    "inventory billing shop tracker portal crm scheduler reports gateway blog wiki warehouse "
    "helpdesk metrics ledger backoffice notifier catalog"
)
_USERS = (
    "mwerner kdrake svc_report appuser jdoyle rsilva nightowl42 tomasz_k bluebird deploy etl "
    "webadmin lgarcia hkim backup_agent pixelfox marek sysop readonly analytics"
)
_HOSTS = "db01 db-prod web-3 cache-1 mail app02 pgsql-main broker node7 gw build-04 files"
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"


def pick(rng: Random, characters: str, count: int) -> str:
    """So many characters of an alphabet."""
    return "".join(rng.choice(characters) for _ in range(count))


def random_hex(rng: Random, count: int) -> str:
    """So many lower-case hexadecimal digits."""
    return pick(rng, "0123456789abcdef", count)


def alphanumeric(rng: Random, count: int) -> str:
    """So many letters and digits."""
    return pick(rng, string.ascii_letters + string.digits, count)


def ascii_name(text: str) -> str:
    """A name as it stands in an address: lower case, Latin letters without marks."""
    text = text.lower().translate(str.maketrans("łıøß", "lios"))
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return "".join(one for one in plain if one.isalnum())


def draw_name(scene: Scene, lang: str, table: dict[str, str], key: str) -> str:
    """A first or last name of a language; its Latin form is kept for addresses."""
    native, _, latin = scene.rng.choice(table[lang or "en"].split()).partition("|")
    german = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"} if lang == "de" else {})
    scene.memory[key] = latin or ascii_name(native.lower().translate(german))
    return native


def _first(scene: Scene, lang: str) -> str:
    return draw_name(scene, lang, FIRST_NAMES, "first")


def _last(scene: Scene, lang: str) -> str:
    return draw_name(scene, lang, LAST_NAMES, "last")


def _name(scene: Scene, lang: str) -> str:
    first, last = _first(scene, lang), _last(scene, lang)
    return (
        last + first if lang == "zh" else f"{last} {first}" if lang == "ja" else f"{first} {last}"
    )


def draw_domain(scene: Scene, lang: str) -> str:
    """An invented registered domain, the same in all of a text."""

    def make() -> str:
        rng = scene.rng
        stem = rng.choice(_STEMS.split()) + rng.choice(["", "-", ""]) + rng.choice(_TAILS.split())
        return f"{stem}.{rng.choice(_TOP[lang or 'en'].split())}"

    return scene.once("domain", make)


def draw_role(scene: Scene, lang: str) -> str:
    """The local part of a firm's or an office's address."""
    return scene.rng.choice(_ROLES.get(lang, _ROLES_EN).split())


def _firm(scene: Scene, lang: str) -> str:
    form = {"de": "GmbH", "es": "S.L.", "fr": "SARL", "pt": "Ltda.", "it": "S.r.l.",
            "pl": "Sp. z o.o.", "tr": "A.Ş.", "nl": "B.V.",
            "ru": "ООО"}.get(lang, "Ltd")  # fmt: skip
    name = (scene.rng.choice(_STEMS.split()) + " " + scene.rng.choice(_TAILS.split())).title()
    return f"{form} «{name}»" if lang == "ru" else f"{name} {form}"


def _date(scene: Scene, style: str) -> str:
    rng = scene.rng
    year, month, day = rng.randint(2014, 2025), rng.randint(1, 12), rng.randint(1, 28)
    if style == "de":
        return f"{day:02}.{month:02}.{year}"
    if style == "en":
        return f"{_MONTHS.split()[month - 1]} {day}, {year}"
    if style == "log":
        return f"{day:02}/{_MONTHS.split()[month - 1]}/{year}:{_time(scene, '')} +0000"
    if style == "sys":
        return f"{_MONTHS.split()[month - 1]} {day:2} {_time(scene, '')}"
    if style == "http":
        return f"{day:02} {_MONTHS.split()[month - 1]} {year} {_time(scene, '')} GMT"
    return f"{year}-{month:02}-{day:02}"


def _time(scene: Scene, _: str) -> str:
    rng = scene.rng
    return f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}"


def _digits(scene: Scene, size: str) -> str:
    return pick(scene.rng, "123456789", 1) + pick(scene.rng, string.digits, int(size or 4) - 1)


def _integer(scene: Scene, bounds: str) -> str:
    low, _, high = bounds.partition("-")
    return str(scene.rng.randint(int(low), int(high)))


def _version(scene: Scene, _: str) -> str:
    rng = scene.rng
    return f"{rng.randint(0, 14)}.{rng.randint(0, 30)}.{rng.randint(0, 19)}"


def _uuid(scene: Scene, _: str) -> str:
    return str(uuid.UUID(int=scene.rng.getrandbits(128), version=4))


def _base64(scene: Scene, size: str) -> str:
    return base64.b64encode(scene.rng.randbytes(int(size))).decode()


def _wrapped(scene: Scene, shape: str) -> str:
    """Random Base64 over lines; the argument is bytes, width and the indent of later lines."""
    size, width, indent = (int(one) for one in shape.split(","))
    text = base64.b64encode(scene.rng.randbytes(size)).decode()
    lines = [text[at : at + width] for at in range(0, len(text), width)]
    return ("\n" + " " * indent).join(lines)


def _choice(scene: Scene, options: str) -> str:
    return scene.rng.choice(options.split("|"))


FILLERS: dict[str, Maker] = {
    "first": _first,
    "last": _last,
    "name": _name,
    "domain": draw_domain,
    "firm": _firm,
    "city": lambda scene, _: scene.rng.choice(_CITIES.split()),
    "app": lambda scene, _: scene.rng.choice(_APPS.split()),
    "user": lambda scene, _: scene.rng.choice(_USERS.split()),
    "host": lambda scene, _: scene.rng.choice(_HOSTS.split()),
    "fqdn": lambda scene, lang: f"{scene.rng.choice(_HOSTS.split())}.{draw_domain(scene, lang)}",
    "date": _date,
    "time": _time,
    "n": _digits,
    "int": _integer,
    "ver": _version,
    "uuid": _uuid,
    "hex": lambda scene, size: random_hex(scene.rng, int(size)),
    "HEX": lambda scene, size: random_hex(scene.rng, int(size)).upper(),
    "b62": lambda scene, size: alphanumeric(scene.rng, int(size)),
    "b64": _base64,
    "wrapped": _wrapped,
    "pick": _choice,
}
