"""E-mail addresses that are nobody's, and the ends that a domain may have.

Forms and manuals show an address in every language: `name@domain.com`, `tucorreo@tudominio.com`,
`votre-email@votre-domaine.fr`. What the standards reserve is nobody's as well.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_LOCAL_DOMAINS = frozenset(
    ("corp", "example", "home", "internal", "intranet", "lan", "local", "localdomain", "private")
)
_NOBODYS = (
    *(
        ".localdomain",
        ".example",
        ".example.com",
        ".example.net",
        ".example.org",
        ".example.edu",
        ".test",
    ),
    *(".invalid", ".localhost", ".local", ".internal"),
)
"""What RFC 2606, 6761 and 6762 and ICANN (`internal`) reserve: no letter reaches anybody there."""

_EXAMPLE_HOST = re.compile(
    r"s\.whatsapp\.net|(?:.*\.)?(?:example|ex[ae]mpl[eo]|ejemplo|esempio|beispiel|voorbeeld|mail\.gmail)\.[a-z]{2,4}(?:\.[a-z]{2})?",
    re.IGNORECASE,
)
"""`example` under any country, in some languages; `mail.gmail.com` makes numbers of messages,
and before `@s.whatsapp.net` is the number of a phone."""

_SAMPLE = re.compile(
    r"(?:(?:your|my|user|some|first|full)?[._-]?(?:name|user(?:name)?|e?mail|you|me|someone|address|id|login"
    r"|account|person|john\.?doe|jane\.?doe|max\.?mustermann|erika\.?mustermann))@(?:(?:your|my|some|the)-?(?:domain|company|organi[sz]ation"
    r"|email|mail|site|website|provider|host|server|business|firm|school)|domain|company|email|foo|bar)"
    r"\.(?:com|org|net|tld|edu|io|co)|(?:foo|bar|baz|a|abc|test)@(?:foo|bar|baz|b|abc|xyz|test)\.(?:com|org|net|io|de)",
    re.IGNORECASE,
)
"""What forms show as an address: `name@domain.com`, `you@company.com`."""

_YOUR = (
    r"(?:your?|yours|votre|vos|ton|mon|ihre?|deine?|meine?|tu|su|mi|seu|sua|meu|teu|tuo|il-?tuo|suo|vostro|twoj[ae]?|moj[ae]?"
    r"|jouw|uw|mijn|din|ditt?|deres|sizin|senin|v[aá][sš][ae]?|tv[oů]j[ea]?|a-?te|az-?on)"
)
_PLACES = (
    r"(?:domain[es]?|dom[ií]nio|domena|domeny|domeniu|domein|domene|dom[aä]ne?|dom[eé]na|company|compagnie|firma|firm[ey]?"
    r"|entreprise|societe|empresa|azienda|bedrijf|unternehmen|organi[sz]ation|business|site|sito|sitio"
    r"|website|web|school|host|server|university|agency|brand|shop|store|startup|app)"
)
_SAMPLE_DOMAIN = re.compile(
    rf"(?:{_YOUR}[-_]?(?:own)?[-_]?{_PLACES}|x{{3,12}}|dom[ií]nio|domena|domaine|domein|musterfirma|musterdomain"
    r"|firma-?muster|przyk[lł]ad|mojafirma)\.[a-z]{2,5}(?:\.[a-z]{2})?\Z",
    re.IGNORECASE,
)
"""`yourdomain.com`, `votre-domaine.fr`: nobody's, whatever stands before it."""

_SAMPLE_LOCAL = re.compile(
    r"(?:your?|votre|ihre?|deine?|tu|su|seu|tuo|twoj|jouw|uw|din)[._-]?"
    r"(?:e-?mail|mail|correo|adresse|address|account|name|username|user|nome|nom|nombre|naam|imie|navn)"
    r"|(?:vorname|vname)[._-]?(?:nachname|name)|pr[eé]nom[._-]?nom|nombre[._-]?apellidos?"
    r"|nome[._-]?(?:cognome|sobrenome)|imi[eę][._-]?nazwisko|voornaam[._-]?achternaam"
    r"|fornavn[._-]?et(?:t)?ernavn|f[oö]rnamn[._-]?efternamn|jm[eé]no[._-]?p[rř][ií]jmen[ií]",
    re.IGNORECASE,
)
"""What stands for the name of whoever reads: `prenom.nom@…`, `youremail@gmail.com`."""


@cache
def _top_level_domains() -> frozenset[str]:
    """Last labels of the rules of the public suffix list, and names that local networks use."""
    rules = files("tld").joinpath("res/effective_tld_names_public_only.dat.txt")
    lines = rules.read_text(encoding="utf-8").splitlines()
    names = {line.strip().rsplit(".", 1)[-1].lower() for line in lines if line[:2] != "//"}
    return frozenset(names | _LOCAL_DOMAINS) - {""}


def is_top_level(label: str) -> bool:
    """Whether a label, in small letters, may be the last of a domain."""
    return label in _top_level_domains() or label.startswith("xn--")


def is_sample(local: str, host: str) -> bool:
    """Whether an address is reserved, or one that stands for any."""
    if f".{host.lower()}".endswith(_NOBODYS) or _EXAMPLE_HOST.fullmatch(host):
        return True
    return (
        _SAMPLE.fullmatch(f"{local}@{host}") is not None
        or _SAMPLE_DOMAIN.match(host) is not None
        or _SAMPLE_LOCAL.fullmatch(local) is not None
    )
