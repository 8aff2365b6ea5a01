"""What surrounds a value in the eleventh set: people, firms, hosts, dates, numbers, identifiers."""

from __future__ import annotations

import datetime
import random
import string

from tests.benchmarks.blind_set import Maker, Scene


def split_words(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


FIRST = split_words(
    "Amara Anouk Bastian Beatriz Callum Carmen Daan Delphine Edith Emeka Farid Fenna Giulia "
    "Hamish Ilse Imran Jonas Jules Katya Kiran Lars Leonor Magnus Marisol Nadia Niall Olena "
    "Oskar Paloma Piotr Quentin Rafael Rosalind Sanne Sergio Tamsin Tobias Ursula Vikram Wanda "
    "Yusuf Zofia"
)
LAST = split_words(
    "Abernathy Aldous Berglund Bertolini Castellanos Chaudhry Dahl Desmarais Eberhart Ferreira "
    "Fontaine Gallagher Grabowski Haverkamp Hollander Ibarra Jankowski Kettering Kowalczyk "
    "Lindqvist Lombardi Marchetti Mbeki Nakagawa Northcott Okonkwo Ostrander Pemberton Quispe "
    "Rademacher Romero Sandoval Stokkan Thackeray Ueda Vandermeer Villanueva Wexford Winther "
    "Zielinski"
)
PARTS = split_words(
    "alder amber arbor beacon birch brook canyon cedar clover copper coral delta ember fern "
    "field flint forge garnet glade harbor hazel heron iron juniper kestrel lake larch linden "
    "lumen maple meadow mill north oak orchard pebble pine quarry raven ridge river sage slate "
    "stone summit thistle tide vale willow"
)
TRADES = split_words(
    "works labs tools optik media print bikes data garden foods travel audio books care"
)
APPS = split_words(
    "billing intranet shop portal tracker wiki reports scheduler catalog gateway inventory "
    "mailer payments search staging telemetry webhooks worker backup metrics"
)
CITIES = split_words(
    "Aarhus Bologna Bristol Bremen Cork Denver Dijon Gdansk Ghent Graz Halifax Kassel Leeds "
    "Lyon Malmo Nantes Omaha Oslo Porto Salzburg Sevilla Tampa Torino Utrecht Winnipeg Zagreb"
)
STREETS = (
    "Mill Lane",
    "Station Road",
    "Bahnhofstr.",
    "rue des Lilas",
    "Via Garibaldi",
    "Harbour Street",
    "Lindenallee",
    "Oak Avenue",
    "Calle Mayor",
    "Kerkstraat",
)
TLDS = ("com", "com", "com", "org", "net", "io", "de", "de", "fr", "co.uk", "nl", "it", "ch", "eu")
FREE_MAIL = (
    *("gmail.com", "gmail.com", "gmail.com", "outlook.com", "hotmail.com", "yahoo.com", "gmx.de"),
    *("web.de", "orange.fr", "proton.me", "icloud.com", "libero.it"),
)
ALNUM = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"
URLSAFE = ALNUM + "-_"
BASE64 = ALNUM + "+/"
PLACEHOLDERS = (
    *("your-api-key", "YOUR_API_KEY", "<your-token>", "xxxxxxxxxxxxxxxx", "changeme", "CHANGE_ME"),
    *("your_secret_here", "<API_KEY>", "********", "insert-key-here", "REPLACE_ME", "yourpassword"),
    *("<password>", "...", "TODO", "my-secret-token", "[REDACTED]", "REDACTED", "example-key"),
    *("put your unique phrase here", "dein-passwort", "votre_mot_de_passe", "<YOUR SECRET>"),
)


def pick(rng: random.Random, alphabet: str, length: int) -> str:
    """So many characters of an alphabet."""
    return "".join(rng.choices(alphabet, k=length))


def domain(rng: random.Random) -> str:
    """A domain that somebody could have registered."""
    joint = rng.choice(("", "", "-"))
    second = rng.choice(TRADES if rng.random() < 0.6 else PARTS)
    return f"{rng.choice(PARTS)}{joint}{second}.{rng.choice(TLDS)}"


def moment(rng: random.Random) -> datetime.datetime:
    """A time of the last years."""
    start = datetime.datetime(2017, 1, 1)
    return start + datetime.timedelta(seconds=rng.randrange(9 * 365 * 86400))


def uuid(rng: random.Random) -> str:
    """A version 4 UUID."""
    text = pick(rng, HEX, 32)
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"


def _host(scene: Scene, argument: str) -> str:
    """A domain, with a name before it if asked for one (`app`, `db`, ...)."""
    head = {"": "", "app": f"{scene.rng.choice(APPS)}."}.get(argument, f"{argument}.")
    return head + domain(scene.rng)


def _amount(scene: Scene, argument: str) -> str:
    whole, cents = scene.rng.randrange(12, 4800), scene.rng.randrange(100)
    return f"{whole},{cents:02}" if argument == "eu" else f"{whole}.{cents:02}"


def _date(scene: Scene, argument: str) -> str:
    form = {
        "": "%Y-%m-%d",
        "de": "%d.%m.%Y",
        "long": "%d %B %Y",
        "clf": "%d/%b/%Y:%H:%M:%S +0000",
        "syslog": "%b %d %H:%M:%S",
        "iso": "%Y-%m-%dT%H:%M:%SZ",
        "log": "%Y-%m-%d %H:%M:%S",
        "mail": "%a, %d %b %Y %H:%M:%S +0000",
        "nginx": "%Y/%m/%d %H:%M:%S",
        "slash": "%m/%d/%Y",
        "card": "%m/%y",
        "time": "%H:%M:%S",
        "compact": "%Y%m%d",
    }[argument]
    return moment(scene.rng).strftime(form)


def _digits(scene: Scene, argument: str) -> str:
    return str(scene.rng.randrange(1, 10)) + pick(scene.rng, string.digits, int(argument) - 1)


def _version(scene: Scene, argument: str) -> str:
    count = int(argument or 3)
    return ".".join(str(scene.rng.randrange(0 if at else 1, 20)) for at in range(count))


def _choice(*values: str) -> Maker:
    return lambda scene, argument: scene.rng.choice(values)


FILLERS: dict[str, Maker] = {
    "first": _choice(*FIRST),
    "last": _choice(*LAST),
    "person": lambda scene, _: f"{scene.rng.choice(FIRST)} {scene.rng.choice(LAST)}",
    "user": lambda scene, _: (
        scene.rng.choice(LAST).lower()[:8] + scene.rng.choice(("", "", "_w", "7"))
    ),
    "firm": lambda scene, _: (
        f"{scene.rng.choice(PARTS).title()} {scene.rng.choice(TRADES).title()}"
        f"{scene.rng.choice(('', ' GmbH', ' Ltd', ' S.r.l.', ' SARL', ' Inc.'))}"
    ),
    "city": _choice(*CITIES),
    "street": lambda scene, _: f"{scene.rng.choice(STREETS)} {scene.rng.randrange(1, 180)}",
    "app": _choice(*APPS),
    "word": _choice(*PARTS),
    "host": _host,
    "amount": _amount,
    "date": _date,
    "num": _digits,
    "int": lambda scene, argument: str(scene.rng.randrange(1, int(argument or 100))),
    "hex": lambda scene, argument: pick(scene.rng, HEX, int(argument)),
    "b64": lambda scene, argument: pick(scene.rng, BASE64, int(argument)),
    "upper": lambda scene, argument: pick(scene.rng, string.ascii_uppercase, int(argument)),
    "alnum": lambda scene, argument: pick(scene.rng, ALNUM, int(argument)),
    "version": _version,
    "uuid": lambda scene, _: uuid(scene.rng),
    "port": _choice("3306", "5432", "5433", "6379", "8080", "8443", "27017", "5672", "1433"),
    "eport": lambda scene, _: str(scene.rng.randrange(1024, 65536)),
    "pid": lambda scene, _: str(scene.rng.randrange(300, 60000)),
    "hole": _choice(*PLACEHOLDERS),
    "path": _choice(
        "/api/v1/orders",
        "/login",
        "/wp-login.php",
        "/index.html",
        "/assets/app.js",
        "/search?q=lamp",
    ),
}
