"""Words and token forms that the makers of `secrets.py` draw from."""

from __future__ import annotations

ADJECTIVES = (
    *("amber", "brisk", "cobalt", "dusty", "early", "foggy", "grand", "hazel", "ivory", "jolly"),
    *("kind", "lunar", "mellow", "noble", "olive", "polar", "quiet", "rapid", "silver", "tidal"),
)
NOUNS = (
    *("anchor", "bakery", "canyon", "depot", "engine", "ferry", "garden", "harbor", "island"),
    *("kiosk", "ledger", "market", "needle", "orchard", "parcel", "quarry", "relay", "summit"),
    *("tracker", "valley", "wharf", "yard"),
)
TOP_LEVELS = (
    "com",
    "net",
    "io",
    "org",
    "de",
    "fr",
    "pl",
    "nl",
    "ru",
    "com.br",
    "co.jp",
    "es",
    "se",
)
DATABASES = (
    *("orders", "billing", "inventory", "crm", "shop", "analytics", "wiki", "tickets", "payroll"),
    *("catalog", "telemetry", "events", "forum", "warehouse", "booking", "library"),
)
ROLES = (
    *("app", "reader", "etl", "backup", "deploy", "report", "webapp", "service", "batch", "ingest"),
    *("monitor", "sync", "owner", "api", "worker"),
)
FIRST_NAMES = (
    *("jonas", "amelie", "pawel", "lucia", "matteo", "ingrid", "yusuf", "hanako", "minh", "olena"),
    *("sven", "tomas", "beatriz", "rahul", "chloe", "dmitri", "femke", "nadia", "carlos", "elif"),
)
PASSWORD_WORDS = (
    *("falcon", "mango", "winter", "kaffee", "sommer", "bosque", "estrella", "soleil", "tulipe"),
    *("cavallo", "nuvola", "jablko", "kocham", "zamek", "fiets", "kaas", "sverige", "sjukhus"),
    *("borsch", "moskva", "yildiz", "sakura", "tanuki", "panda", "dragon", "hoanglan", "merdeka"),
    *("rooster", "pickle", "granite", "lantern", "copper", "bicycle", "thunder", "velvet"),
    *("walnut", "harbour", "monkey", "sunshine", "liverpool", "ferrari", "pepper", "buster"),
    *("ginger", "saudade", "cachorro", "abacaxi", "schatz", "fussball", "maison", "chaton"),
)
FORMS = {
    "pat": "github_pat_ up22 _ alnum59",
    "glpat": "glpat- url20",
    "xoxb": "xoxb- dig12 - dig13 - alnum24",
    "xapp": "xapp-1-A up10 - dig13 - hex64",
    "sklive": "sk_live_ alnum24",
    "sklong": "sk_live_51 alnum97",
    "rklive": "rk_live_ alnum24",
    "sg": "SG. url22 . url43",
    "aiza": "AIzaSy url33",
    "hf": "hf_ alpha34",
    "pypi": "pypi-AgEIcHlwaS5vcmc url150",
    "ant": "sk-ant-api03- url93 AA",
    "proj": "sk-proj- alnum74 T3BlbkFJ alnum74",
    "openai": "sk- alnum20 T3BlbkFJ alnum20",
    "dop": "dop_v1_ hex64",
    "shpat": "shpat_ hex32",
    "ya29": "ya29.a0Af url120",
    "lin": "lin_api_ alnum40",
    "figd": "figd_ url40",
    "whsec": "whsec_ alnum32",
    "dckr": "dckr_pat_ url27",
    "tskey": "tskey-auth-k alnum10 CNTRL- alnum32",
    "hvs": "hvs.CAESI url90",
    "dp": "dp.pt. alnum43",
    "sbp": "sbp_ hex40",
    "r8": "r8_ alnum37",
    "gsk": "gsk_ alnum52",
    "airtable": "pat alnum14 . hex64",
    "atatt": "ATATT3xFfGF0 url172 = hexup8",
    "gems": "rubygems_ hex48",
    "pul": "pul- hex40",
    "ntn": "ntn_ dig11 alnum35",
    "secret": "secret_ alnum43",
    "eaa": "EAA alnum180",
    "goog": "GOCSPX- url28",
    "xkeysib": "xkeysib- hex64 - alnum16",
    "glsa": "glsa_ alnum32 _ hex8",
    "telegram": "6 dig9 :AA url33",
    "pscale": "pscale_tkn_ url43",
    "sntrys": "sntryu_ hex64",
    "pplx": "pplx- alnum48",
    "sanctum": "dig2 | alnum40",
    "twitter": "AAAAAAAAAAAAAAAAAAAAA alnum91",
    "nrak": "NRAK- up27",
}
