"""Words of ordinary content: people, firms, places, hosts, dates, versions, digests.

Nothing here is a value of a kind, so that every maker of this module may fill a hard negative.
"""

from __future__ import annotations

import base64
import random
import string
import unicodedata
import uuid
from datetime import UTC, datetime, timedelta

from tests.benchmarks.blind_set import Maker, Scene

ALNUM = string.ascii_letters + string.digits
URLSAFE = ALNUM + "-_"
HEX = "0123456789abcdef"


def split(text: str) -> tuple[str, ...]:
    """The words of a text, so that a long list stays a few lines."""
    return tuple(text.split())


FIRSTS = split(
    """
    Amaru Beatriz Cillian Dorota Ebba Fadwa Gergő Halina Imanol Jelena Kwabena Ludmila Mbali Nikos
    Odalys Paavo Qadir Rosalía Steinar Tereza Ulrike Vesna Wiremu Xiomara Ylva Zeynep Andrius
    Blanka Colm Delphine Eszter Fintan Gudrun Hyejin Ignazio Jarosław Kerstin Lorcan Maite Nobuko
    """
)
LASTS = split(
    """
    Abrahamsen Bielecki Cazalet Dragićević Echeverri Fogarty Gundersen Havlíček Ishizaki Janssens
    Kowalczyk Lindqvist Mwangi Nyström Oberländer Pospíšil Quiroga Riemersma Szabados Tsakiris
    Ubeda Villanueva Weissenborn Yamanaka Zografos Achterberg Bouchet Cuevas Dembélé Eriksen
    Ferrand Grigoryan Hussain Ilves Jørgensen Kettunen Laskaris Moretti Ngubane Ostrowski
    """
)
FIRMS = split(
    """
    Altamar Birkenhof Corvid Deltawind Ellipsis Fjordline Greywater Hollin Isobar Juniper Kestrel
    Lanterna Mooring Nordhaus Osprey Pinyon Quarzo Ravelin Saltmarsh Tessera Umbral Veldt Windrose
    Zephyrus Brasswork Cobaltum Driftwood Emberly Fernhill Glasspoint
    """
)
ENDINGS = ("GmbH", "Ltd", "S.L.", "s.r.o.", "AB", "Oy", "Inc.", "BV", "SAS", "Sp. z o.o.", "ApS")
CITIES = split(
    """
    Aarhus Bilbao Brno Cork Debrecen Esbjerg Freiburg Gdynia Hobart Izmir Jelgava Kaunas Leuven
    Málaga Namur Oulu Plovdiv Rouen Szeged Tampere Utrecht Varna Wellington Zadar Mombasa Kyoto
    """
)
DOMAINS = split(
    """
    altamar.es birkenhof.de corvid-labs.io deltawind.dk ellipsis.press fjordline-data.no hollin.ie
    greywater.co.uk isobar-meteo.fr junipernet.pl kestrelapps.dev lanterna.it mooring.nl
    tessera.pt nordhaus.se osprey-gis.ca pinyon.us quarzo.com.ar ravelin-tools.eu saltmarsh.org.au
    umbral.mx veldt.co.za windrose.fi zephyrus.gr brasswork.co.nz cobaltum.cz driftwood.studio
    emberly.at fernhill.school glasspoint.cl
    """
)
MAILERS = split(
    """
    gmail.com outlook.com gmx.net web.de orange.fr libero.it seznam.cz wp.pl proton.me icloud.com
    fastmail.com uol.com.br mail.ru ukr.net naver.com posteo.de telenet.be bluewin.ch yahoo.co.uk
    """
)
NOUNS = split(
    """
    ledger invoice parcel billing shuttle orchard gateway beacon harvest catalog roster tracker
    lookup courier booking sensor payroll archive notifier scheduler thermostat metrics
    """
)
TOOLS = split(
    """
    rclone borgmatic traefik keycloak nextcloud gitea paperless immich homeassistant mosquitto
    zammad airflow dagster superset metabase minio vaultwarden matrix-synapse jellyfin woodpecker
    """
)
PACKAGES = split(
    """
    @fastify/helmet @tanstack/query @sveltejs/kit left-pad zod drizzle-orm vite esbuild astro
    undici @nestjs/core @types/node pino lodash-es prisma typescript rollup postcss @babel/runtime
    turbo
    """
)
COMMON = split(
    """
    river copper lantern meadow harbour velvet cactus tunnel granite whistle marble thistle saddle
    quiver pelican mustard lattice gravel hazel tundra walnut ginger breeze kettle magnet orbit
    """
)


def plain(text: str) -> str:
    """A name in ASCII letters, as it stands in an address or an account."""
    swapped = text.translate(str.maketrans("łŁøØıđĐ", "lLoOidD")).replace("ß", "ss")
    return unicodedata.normalize("NFKD", swapped).encode("ascii", "ignore").decode()


def pick(rng: random.Random, alphabet: str, count: int) -> str:
    """So many drawn characters."""
    return "".join(rng.choice(alphabet) for _ in range(count))


def mixed(rng: random.Random, alphabet: str, count: int) -> str:
    """So many drawn characters, with a digit and both cases where the alphabet has them."""
    wanted = [
        set(group) & set(alphabet)
        for group in (string.digits, string.ascii_lowercase, string.ascii_uppercase)
    ]
    while True:
        text = pick(rng, alphabet, count)
        if all(not group or group & set(text) for group in wanted):
            return text


def moment(rng: random.Random) -> datetime:
    """A time of the years 2019 to 2025."""
    return datetime(2019, 1, 1, tzinfo=UTC) + timedelta(seconds=rng.randrange(220_000_000))


def _int(scene: Scene, argument: str) -> str:
    low, _, high = argument.partition("-")
    return str(scene.rng.randint(int(low), int(high)))


def _full(scene: Scene, _: str) -> str:
    return f"{scene.rng.choice(FIRSTS)} {scene.rng.choice(LASTS)}"


def _host(scene: Scene, _: str) -> str:
    rng = scene.rng
    return rng.choice(
        [
            f"{rng.choice(NOUNS)}-{rng.randint(1, 9):02d}.{rng.choice(DOMAINS)}",
            f"{rng.choice(NOUNS)}.{rng.choice(['internal', 'svc.cluster.local', 'lan'])}",
            f"{rng.choice(['db', 'mq', 'cache', 'app'])}{rng.randint(1, 30)}.{rng.choice(DOMAINS)}",
        ]
    )


def _version(scene: Scene, _: str) -> str:
    rng = scene.rng
    return f"{rng.randint(0, 19)}.{rng.randint(0, 40)}.{rng.randint(0, 30)}"


def _amount(scene: Scene, _: str) -> str:
    rng = scene.rng
    return f"{rng.randint(11, 4800)}{rng.choice([',', '.'])}{rng.randint(0, 99):02d}"


def _path(scene: Scene, _: str) -> str:
    rng = scene.rng
    root = rng.choice(["/etc", "/opt", "/srv", "/var/lib", "~/src", "/home/ci", "C:/apps"])
    return f"{root}/{rng.choice(TOOLS)}/{rng.choice(NOUNS)}"


def _account(scene: Scene, _: str) -> str:
    rng = scene.rng
    return rng.choice(
        [
            f"svc_{rng.choice(NOUNS)}",
            f"{plain(rng.choice(FIRSTS)).lower()}",
            f"{rng.choice(NOUNS)}_rw",
            f"{rng.choice(NOUNS)}-app",
        ]
    )


def _b64(scene: Scene, argument: str) -> str:
    return base64.b64encode(scene.rng.randbytes(int(argument))).decode()


def _integrity(scene: Scene, _: str) -> str:
    return "sha512-" + base64.b64encode(scene.rng.randbytes(64)).decode()


def _reference(scene: Scene, _: str) -> str:
    rng = scene.rng
    name = f"{rng.choice(NOUNS)}_{rng.choice(['password', 'token', 'secret', 'key'])}"
    return rng.choice(
        [
            f"${{{name.upper()}}}",
            f"${name.upper()}",
            f"{{{{ {name} }}}}",
            f"${{{{ secrets.{name.upper()} }}}}",
            f"os.environ['{name.upper()}']",
            f"process.env.{name.upper()}",
            f"vault:secret/data/{rng.choice(NOUNS)}#{name}",
            f"op://infra/{rng.choice(NOUNS)}/{name}",
            f"%({name})s",
            f"%{name.upper()}%",
        ]
    )


def _placeholder(scene: Scene, _: str) -> str:
    rng = scene.rng
    noun = rng.choice(["token", "api-key", "secret", "password", "key"])
    return rng.choice(
        [
            f"<your-{noun}>",
            f"<{noun.upper()}>",
            f"YOUR_{noun.upper().replace('-', '_')}",
            f"your-{noun}-here",
            f"[{noun}]",
            "xxxxxxxxxxxxxxxx",
            "********",
            "REPLACE_ME",
            "changeme",
            "...",
            f"<insert {noun} here>",
            "<redacted>",
            f"INSERT-{noun.upper()}-HERE",
        ]
    )


FILLERS: dict[str, Maker] = {
    "first": lambda scene, _: scene.rng.choice(FIRSTS),
    "last": lambda scene, _: scene.rng.choice(LASTS),
    "full": _full,
    "firm": lambda scene, _: f"{scene.rng.choice(FIRMS)} {scene.rng.choice(ENDINGS)}",
    "city": lambda scene, _: scene.rng.choice(CITIES),
    "site": lambda scene, _: scene.rng.choice(DOMAINS),
    "host": _host,
    "noun": lambda scene, _: scene.rng.choice(NOUNS),
    "tool": lambda scene, _: scene.rng.choice(TOOLS),
    "pkg": lambda scene, _: scene.rng.choice(PACKAGES),
    "word": lambda scene, _: scene.rng.choice(COMMON),
    "int": _int,
    "hex": lambda scene, argument: pick(scene.rng, HEX, int(argument)),
    "alnum": lambda scene, argument: mixed(scene.rng, ALNUM, int(argument)),
    "date": lambda scene, _: f"{moment(scene.rng):%Y-%m-%d}",
    "dmy": lambda scene, _: f"{moment(scene.rng):%d.%m.%Y}",
    "time": lambda scene, _: f"{moment(scene.rng):%H:%M}",
    "iso": lambda scene, _: f"{moment(scene.rng):%Y-%m-%dT%H:%M:%SZ}",
    "clf": lambda scene, _: f"{moment(scene.rng):%d/%b/%Y:%H:%M:%S} +0000",
    "epoch": lambda scene, _: str(int(moment(scene.rng).timestamp())),
    "ver": _version,
    "amount": _amount,
    "path": _path,
    "account": _account,
    "uuid": lambda scene, _: str(uuid.UUID(int=scene.rng.getrandbits(128), version=4)),
    "sha": lambda scene, _: pick(scene.rng, HEX, 40),
    "sha256": lambda scene, _: pick(scene.rng, HEX, 64),
    "b64": _b64,
    "integrity": _integrity,
    "ref": _reference,
    "placeholder": _placeholder,
    "ticket": lambda scene, _: (
        f"{scene.rng.choice(['OPS', 'WEB', 'SUP', 'NET', 'FIN'])}-{scene.rng.randint(12, 9800)}"
    ),
    "slug": lambda scene, _: f"{scene.rng.choice(COMMON)}-{scene.rng.choice(NOUNS)}",
    "mailer": lambda scene, _: scene.rng.choice(MAILERS),
}
