"""Words of ordinary content: people, places, hosts, dates, versions, digests and plain noise.

Nothing here is a value of a kind, so that every maker of this module may fill a hard negative.
"""

from __future__ import annotations

import base64
import random
import re
import string
import unicodedata
from datetime import UTC, datetime, timedelta

from tests.benchmarks.blind_set import Maker, Scene

ALNUM = string.ascii_letters + string.digits
URLSAFE = ALNUM + "-_"
HEX = "0123456789abcdef"
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text, so that a long list stays a few lines."""
    return tuple(text.split())


PEOPLE = tuple(
    tuple(name.split("_"))
    for name in words_of(
        """
    Oihana_Etxeberria Tiago_Figueiredo Marzena_Wróblewska Eoghan_Mulvihill Sinem_Karaaslan
    Thandeka_Mabaso Ruairí_Keaveney Dagny_Halvorsen Pálma_Szentesi Vojtěch_Hruška Ioana_Dumitrache
    Kerttu_Laaksonen Akosua_Boateng Nguyet_Truong Hemant_Kulkarni Giulia_Santangelo Xabier_Olano
    Bronwen_Prosser Yusra_Haddad Leopold_Wagenknecht Mathilde_Courtois Sander_Hoekstra Ilze_Kalnina
    Rokas_Petrauskas Zdenka_Blažević Petar_Dragomirov Anikó_Farkas Jiho_Seong Haruka_Minegishi
    Camila_Arévalo Joaquín_Saldívar Florencia_Iturbe Wambui_Kariuki Chidera_Okonjo Lerato_Dlamini
    Siobhan_Devane Gethin_Llewellyn Freja_Thorsen Emre_Yıldırım Eleni_Katsaros Noam_Berkowitz
    Parisa_Rahmani Tomasz_Grzelak Liisi_Tamm Veera_Niskanen Arnaud_Delvaux Benedikt_Oberhofer
    Rafaela_Antunes Sushma_Iyer Callum_Strachan Marit_Kvamme Dovilė_Jankauskaitė Ondřej_Matoušek
    Beatriz_Quintela Hugo_Lindqvist Shanelle_Baptiste Winston_Achterberg Kavita_Deshmukh
    """
    )
)
CITIES = words_of(
    "Gdynia Setúbal Tampere Ostrava Bergamo Galway Uppsala Pécs Leuven Mombasa Cuenca Hobart "
    "Trondheim Klaipėda Graz Cluj Durban Sligo Plovdiv Groningen Oviedo Winterthur Aarhus "
    "Rosario Busan Kumasi Pune"
)
PROJECTS = words_of(
    "tidegauge barnowl quillpress larkmap moss-queue fernbase pilotage kelpie-sync sandglass "
    "copperline ringworm-stats hedgerow lodestar-ui brinewatch ploughshare tern-router marrow-db "
    "willowbark stoat-cache peatland osprey-agent rookery thornapple"
)
NOUNS = words_of(
    "invoice parcel gateway sensor ledger turbine schedule archive batch webhook shipment tenant "
    "mailer exporter scheduler replica dashboard sandbox warehouse receipt bucket crawler index "
    "session worker cluster importer voucher roster meter telemetry"
)
STEMS = words_of(
    "brattvik nordhamn casalunga velmora hruska-stav puutarha keltec ardfinnan mirabeau osterwald "
    "lindhoek quintela sampaio zelenka tornquist calderwood balmaha eikeland montsegur varkonyi "
    "silverthorn glenmorrow petrovac ouwerkerk haldane carrowbeg solstrand wexmoor"
)
TRADES = words_of(
    "marine bau energy legal clinic print foods logistik textil optik data cycles "
    "verlag stone dental farm"
)
TLDS = words_of(
    "no pt it cz fi ie fr de nl es pl hu ro se co.uk com.au co.za com.br io dev eu org net com "
    "ch at be dk lt lv ee coop studio"
)
_HOSTS = words_of(
    "web api db mq cache build edge vpn nas relay cron ldap git wiki stage mon backup"
)
_FILES = words_of(
    "loader.py routes.rb handler.go settings.toml values.yaml report.csv notes.md Dockerfile "
    "schema.sql inventory.ini package.json main.tf bootstrap.sh client.ts Parser.java"
)
_RANGE = re.compile(r"(\w)-(\w)")
_START = datetime(2019, 1, 4, tzinfo=UTC)


def ascii_of(text: str) -> str:
    """Lower-case ASCII letters of a name: `Dovilė` gives `dovile`."""
    plain = unicodedata.normalize("NFD", text.replace("ı", "i")).encode("ascii", "ignore").decode()
    return plain.lower()


def draw_from(rng: random.Random, alphabet: str, size: int) -> str:
    """So many characters of an alphabet."""
    return "".join(rng.choice(alphabet) for _ in range(size))


def draw_pattern(rng: random.Random, pattern: str) -> str:
    """A pattern with its signs drawn.

    `#` is a digit, `^` one from 1 to 9, `?` and `!` a small and a capital letter, `*` a hexadecimal
    digit, `[a-c]` or `[abc]` one of the characters in it; all else stays.
    """
    alphabets = {
        "#": string.digits,
        "^": "123456789",
        "?": string.ascii_lowercase,
        "!": string.ascii_uppercase,
        "*": HEX,
    }

    def draw(sign: re.Match[str]) -> str:
        if not sign[1]:
            return rng.choice(alphabets[sign[0]])
        return rng.choice(_RANGE.sub(_expand, sign[1]))

    return re.sub(r"\[([^\]]+)\]|[#^?!*]", draw, pattern)


def _expand(ends: re.Match[str]) -> str:
    return "".join(chr(code) for code in range(ord(ends[1]), ord(ends[2]) + 1))


def person_of(scene: Scene) -> tuple[str, str]:
    """First and last name of the person whom a text is about."""
    first, last = scene.once("person", lambda: "_".join(scene.rng.choice(PEOPLE))).split("_")
    return first, last


def make_domain(rng: random.Random) -> str:
    """The domain of a firm, made of words and so not a reserved one."""
    joint = rng.choice(["-", "", "-"])
    name = rng.choice(STEMS) + (joint + rng.choice(TRADES) if rng.random() < 0.6 else "")
    return f"{name}.{rng.choice(TLDS)}"


def make_moment(rng: random.Random) -> datetime:
    """A second between 2019 and 2025."""
    return _START + timedelta(seconds=rng.randrange(6 * 365 * 86400))


def make_uuid(rng: random.Random) -> str:
    """A random UUID, version 4."""
    return draw_pattern(rng, "********-****-4***-[89ab]***-************")


def make_base64(rng: random.Random, size: int) -> str:
    """The base64 of so many random bytes."""
    return base64.b64encode(rng.randbytes(size)).decode()


def _number(scene: Scene, argument: str) -> str:
    low, high = argument.split("-")
    return str(scene.rng.randint(int(low), int(high)))


def _from(*words: str) -> Maker:
    return lambda scene, argument: scene.rng.choice(words)


def _moment(form: str) -> Maker:
    return lambda scene, argument: make_moment(scene.rng).strftime(form)


def _host(scene: Scene, argument: str) -> str:
    return draw_pattern(scene.rng, f"{scene.rng.choice(_HOSTS)}-0^")


def _version(scene: Scene, argument: str) -> str:
    rng = scene.rng
    return f"{rng.randrange(0, 12)}.{rng.randrange(0, 30)}.{rng.randrange(0, 20)}"


def _handle(scene: Scene, argument: str) -> str:
    first, last = (ascii_of(part) for part in scene.rng.choice(PEOPLE))
    return scene.rng.choice([f"{first}{last[0]}", f"{last}_{first[:2]}", f"{first}{last[:4]}"])


FILLERS: dict[str, Maker] = {
    "pick": lambda scene, argument: scene.rng.choice(argument.split("|")),
    "num": _number,
    "pat": lambda scene, argument: draw_pattern(scene.rng, argument),
    "hex": lambda scene, argument: draw_from(scene.rng, HEX, int(argument)),
    "dig": lambda scene, argument: draw_pattern(scene.rng, "^" + "#" * (int(argument) - 1)),
    "alnum": lambda scene, argument: draw_from(scene.rng, ALNUM, int(argument)),
    "b64": lambda scene, argument: make_base64(scene.rng, int(argument)),
    "uuid": lambda scene, argument: make_uuid(scene.rng),
    "first": lambda scene, argument: person_of(scene)[0],
    "last": lambda scene, argument: person_of(scene)[1],
    "person": lambda scene, argument: " ".join(person_of(scene)),
    "other": lambda scene, argument: " ".join(scene.rng.choice(PEOPLE)),
    "handle": _handle,
    "city": _from(*CITIES),
    "org": lambda scene, argument: f"{scene.rng.choice(STEMS)} {scene.rng.choice(TRADES)}".title(),
    "project": _from(*PROJECTS),
    "noun": _from(*NOUNS),
    "host": _host,
    "site": lambda scene, argument: make_domain(scene.rng),
    "file": _from(*_FILES),
    "ver": _version,
    "date": _moment("%Y-%m-%d"),
    "eurodate": _moment("%d.%m.%Y"),
    "clock": _moment("%H:%M:%S"),
    "hm": _moment("%H:%M"),
    "stamp": _moment("%Y-%m-%dT%H:%M:%SZ"),
    "syslog": _moment("%b %d %H:%M:%S"),
    "clf": _moment("%d/%b/%Y:%H:%M:%S +0000"),
    "epoch": lambda scene, argument: str(int(make_moment(scene.rng).timestamp())),
    "sum": lambda scene, argument: draw_pattern(scene.rng, "^##.#[05]"),
    "env": _from("prod", "staging", "preprod", "qa", "demo"),
    "ticket": lambda scene, argument: draw_pattern(scene.rng, "[OFSH][PIU][SB]-^###"),
}
