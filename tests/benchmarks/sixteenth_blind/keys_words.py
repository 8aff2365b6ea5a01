"""Names, forms of numbers, claims of tokens and forms of keys that the makers of `keys.py` use."""

from __future__ import annotations

from typing import Any

ACCOUNTS: dict[str, tuple[str, ...]] = {
    "AE": ("033{d16}", "026000{d13}", "035{d16}"),
    "AT": ("12000{d11}", "20111{d11}", "32000{d11}", "60000{d11}"),
    "AZ": ("NABZ{u20}", "AIIB{d20}"),
    "BA": ("161000{d10}", "338320{d10}"),
    "BE": ("363{d9}", "0014{d8}", "7340{d8}", "9731{d8}"),
    "BG": ("UNCR7000{d10}", "STSA9300{d10}", "FINV9150{d10}"),
    "BY": ("ALFA3012{d16}", "PJCB3014{d16}"),
    "CH": ("00762{d12}", "09000000{d9}", "00230{d12}", "80808{d12}"),
    "CY": ("002001{d18}", "005001{d18}"),
    "CZ": ("0100000019{d10}", "0800{d16}", "2010000000{d10}", "0300000000{d10}"),
    "DE": ("37050198{d10}", "10050000{d10}", "50010517{d10}", "43060967{d10}", "70051540{d10}"),
    "DK": ("3000{d10}", "2000{d10}", "6695{d10}"),
    "EE": ("2200221{d9}", "1010220{d9}", "7700771{d9}"),
    "ES": ("21000418{d10}", "00491500{d10}", "01825322{d10}", "20852066{d10}", "14650100{d10}"),
    "FI": ("131430{d8}", "572302{d8}", "405500{d8}"),
    "FR": ("30004008{d15}", "20041010{d15}", "10278022{d15}", "30066100{d15}"),
    "GB": ("BARC20{d12}", "LOYD30{d12}", "NWBK60{d12}", "HBUK40{d12}", "REVO00997{d9}"),
    "GE": ("TB{d16}", "BG{d16}"),
    "GR": ("0110{d19}", "0172{d19}", "0140{d19}"),
    "HR": ("23600001{d9}", "24020061{d9}", "23400091{d9}"),
    "HU": ("11773{d19}", "10402{d19}", "1160000600000000{d8}"),
    "IE": ("AIBK93{d12}", "BOFI90{d12}", "IPBS99{d12}"),
    "IL": ("010800000{d10}", "0126120000{d9}"),
    "IS": ("0159{d18}", "0133{d18}"),
    "IT": ("X0306909606{d12}", "X0200801600{d12}", "X0503401633{d12}", "X05018032000{d11}"),
    "KZ": ("722S00000{d7}", "601A86100{d7}", "998{d13}"),
    "LT": ("73000{d11}", "70440600{d8}", "32500{d11}"),
    "LU": ("0019{d12}", "0030{d12}", "1111{d12}"),
    "LV": ("HABA055{d10}", "UNLA005{d10}", "PARX00{d11}"),
    "MC": ("12739000{d15}",),
    "MD": ("AG0000022{d11}", "ML0000022{d11}"),
    "MT": ("VALL22013{d15}{u3}", "MMEB44{d21}"),
    "NL": ("ABNA04{d8}", "INGB000{d7}", "RABO03{d8}", "TRIO02{d8}", "BUNQ20{d8}"),
    "NO": ("1503{d7}", "6005{d7}", "3624{d7}"),
    "PK": ("HABB00{d14}", "MEZN000{d13}"),
    "PL": ("10500000{d16}", "11400000{d16}", "10200000{d16}", "24900000{d16}"),
    "PT": ("0035{d17}", "0010{d17}", "0033{d17}", "0007{d17}"),
    "RO": ("BTRLRONCRT{d10}", "INGB00009999{d8}", "RNCB0{d15}"),
    "RS": ("160{d15}", "265{d15}"),
    "SA": ("80000{d15}", "0500006{d13}", "2000000{d13}"),
    "SE": ("5000000005{d10}", "8000081{d13}", "1200000001{d10}"),
    "SI": ("02922{d10}", "6100000{d8}"),
    "SK": ("0900000000{d10}", "1100000000{d10}", "0200000000{d10}"),
    "TR": ("0006200{d15}", "0001000{d15}", "0004600{d15}", "0006400000{d12}"),
    "UA": ("305299{d19}", "322001{d19}", "300335{d19}"),
}

COMMON_COUNTRIES = tuple(
    country
    for country, share in {"DE": 4, "FR": 1, "ES": 1, "IT": 1, "NL": 2, "AT": 1, "PL": 1}.items()
    for _ in range(share)
)
"""Countries of the texts that do not name one, by their share of pages with an account number."""

_PUBLISHED = """
    AD1200012030200359100100 AE070331234567890123456 AL47212110090000000235698741
    AT483200000012345864 AT611904300234573201 BA391290079401028494 BE68539007547034
    BE71096123456769 BG80BNBG96611020345678 BH67BMAG00001299123456
    BR1800360305000010009795493C1 CH9300762011623852957 CH5604835012345678009
    CY17002001280000001200527600 CZ6508000000192000145399 CZ5508000000001234567899
    DE89370400440532013000 DE02120300000000202051 DE75512108001245126199 DE12500105170648489890
    DE62370400440532013001
    DK5000400440116243 EE382200221020145685 ES9121000418450200051332 ES7921000813610123456789
    FI2112345600000785 FR1420041010050500013M02606 FR7630006000011234567890189
    GB29NWBK60161331926819 GB82WEST12345698765432 GE29NB0000000101904917
    GI75NWBK000000007099453 GR1601101250000000012300695 HR1210010051863000160
    HU42117730161111101800000000 IE29AIBK93115212345678 IL620108000000099999999
    IS140159260076545510730339 IT60X0542811101000000123456 KW81CBKU0000000000001234560101
    KZ86125KZT5004100100 LB62099900000001001901229114 LI21088100002324013AA
    LT121000011101001000 LU280019400644750000 LV80BANK0000435195001
    MC5811222000010123456789030 MT84MALT011000012345MTLCAST001S NL91ABNA0417164300
    NL39RABO0300065264 NO9386011117947 PK36SCBL0000001123456702 PL61109010140000071219812874
    PT50000201231234567890154 QA58DOHB00001234567890ABCDEFG RO49AAAA1B31007593840000
    RS35260005601001611379 SA0380000000608010167519 SE4550000000058398257466
    SI56263300012039086 SK3112000000198742637541 SM86U0322509800000000270100
    TN5910006035183598478831 TR330006100519786457841326 UA213223130000026007233566001
    VG96VPVG0000012345678901
"""
PUBLISHED_IBANS = tuple(_PUBLISHED.split())
"""Examples of the registry of ISO 13616, of Wikipedia and of test data of payment services."""

NAMES: dict[str, tuple[str, ...]] = {
    "en": ("Hannah Whitfield", "Tom Okafor", "Priya Raman", "Callum Reid", "Megan Doyle"),
    "de": ("Jürgen Pfeiffer", "Anke Vollmer", "Matthias Kerber", "Silke Brandstätter"),
    "fr": ("Élodie Marchand", "Guillaume Perrot", "Nathalie Rousselin", "Yann Le Goff"),
    "es": ("Marta Ibáñez", "Joaquín Serrano", "Lucía Paredes", "Iván Quiroga"),
    "it": ("Chiara Bellini", "Davide Moretti", "Francesca Galli", "Luca Ferraris"),
    "nl": ("Sanne de Wit", "Joost Verhoeven", "Marieke Bakker", "Bram Hendriks"),
    "pl": ("Agnieszka Wrona", "Tomasz Zieliński", "Katarzyna Mazur", "Paweł Dudek"),
    "cs": ("Jana Dvořáková", "Petr Sedláček", "Lenka Malá", "Ondřej Kučera"),
    "sv": ("Annika Lindqvist", "Johan Bergström", "Karin Ekholm", "Mats Nyberg"),
    "pt": ("Beatriz Nogueira", "Rui Tavares", "Inês Carvalho", "Tiago Moura"),
    "tr": ("Elif Karaca", "Murat Aydın", "Zeynep Korkmaz", "Hakan Yıldız"),
    "uk": ("Олена Ткаченко", "Андрій Мельник", "Ірина Бондар", "Тарас Гнатюк"),
    "ru": ("Ольга Савельева", "Дмитрий Кузнецов", "Анна Рябова"),
}
USERS = (
    "mkessler",
    "deploy",
    "jtanaka",
    "anna.w",
    "rsilva",
    "ops",
    "k.novak",
    "ci-bot",
    "leo",
    "sgupta",
)
DOMAINS = (
    *("northlake.io", "brightfjord.com", "kaffeewerk.de", "tandemo.app", "lumenport.net"),
    *("quillstack.dev", "veloroute.eu", "grainhub.org", "moritz-lab.de", "castelnova.it"),
)
COMPANIES: dict[str, tuple[str, ...]] = {
    "CZ": ("Kvant Software s.r.o.", "Truhlářství Beran s.r.o.", "SDH Lhota z.s."),
    "DE": ("Holzbau Reuter GmbH", "Verein Stadtgarten e.V.", "Tierheim Auental e.V."),
    "ES": ("Talleres Herrero SL", "Asociación Vecinal El Olivar", "AMPA CEIP Las Encinas"),
    "FR": ("Atelier Mercier SARL", "Les Amis du Moulin", "Club Alpin du Vercors"),
    "GB": ("Oakridge Lettings Ltd", "Penrose Village Hall Trust", "Harbour Rowing Club"),
    "IT": ("Bianchi Serramenti Srl", "Pro Loco Valfresca", "ASD Nuoto Brenta"),
    "NL": ("De Groene Kade BV", "Stichting Oude Molen", "Tennisvereniging De Linde"),
    "PL": ("Zielony Dom sp. z o.o.", "Fundacja Nasza Rzeka", "OSP Dąbrówka"),
    "SE": ("Fjordline Media AB", "Byalaget Norrgården"),
}

_TIMES = {"iat": "IAT", "exp": "EXP"}
_HS = {"alg": "HS256", "typ": "JWT"}
_RS = {"alg": "RS256", "typ": "JWT"}
CLAIMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "api": (_HS, {"sub": "{g}", "scope": "read write", **_TIMES}),
    "user": (_HS, {"id": "INT {d4}", "username": "USER", "role": "admin", **_TIMES}),
    "login": (_HS, {"user_id": "INT {d5}", "email": "USER@HOST", **_TIMES}),
    "node": (_HS, {"_id": "{h24}", **_TIMES}),
    "nested": (_HS, {"user": {"id": "{h24}", "name": "NAME"}, **_TIMES}),
    "mini": (_HS, {"id": "INT {d3}", **_TIMES}),
    "typ": ({"typ": "JWT", "alg": "HS256"}, {"iss": "https://HOST/api/login", "iat": "IAT",
            "exp": "EXP", "nbf": "IAT", "jti": "{a16}", "sub": "INT {d3}", "prv": "{h40}"}),
    "django": ({"typ": "JWT", "alg": "HS256"}, {"token_type": "access", "exp": "EXP", "iat": "IAT",
               "jti": "{h32}", "user_id": "INT {d3}"}),
    "wp": ({"typ": "JWT", "alg": "HS256"}, {"iss": "https://HOST", **_TIMES, "nbf": "IAT",
           "data": {"user": {"id": "{d2}"}}}),
    "hs512": ({"alg": "HS512"}, {"sub": "USER", **_TIMES, "auth": "ROLE_USER"}),
    "spring": ({"alg": "HS256"}, {"sub": "USER", "roles": ["ROLE_ADMIN"], **_TIMES}),
    "supabase": (_HS, {"iss": "supabase", "ref": "{l20}", "role": "anon", **_TIMES}),
    "service": (_HS, {"iss": "supabase", "ref": "{l20}", "role": "service_role", **_TIMES}),
    "auth0": ({**_RS, "kid": "{b21}"}, {"iss": "https://dev-{x8}.eu.auth0.com/",
              "sub": "auth0|{h24}", "aud": "https://api.HOST", **_TIMES, "azp": "{a32}",
              "scope": "openid profile email"}),
    "keycloak": ({"alg": "RS256", "typ": "JWT", "kid": "{b43}"}, {**_TIMES, "jti": "{g}",
                 "iss": "https://sso.HOST/realms/main", "aud": "account", "sub": "{g}",
                 "typ": "Bearer", "preferred_username": "USER"}),
    "google": ({"alg": "RS256", "kid": "{h40}", "typ": "JWT"}, {
               "iss": "https://accounts.google.com",
               "aud": "{d12}-{x32}.apps.googleusercontent.com",
               "sub": "{d21}", "email": "USER@HOST", "email_verified": True, **_TIMES}),
    "firebase": ({"alg": "RS256", "kid": "{h40}", "typ": "JWT"}, {
                 "iss": "https://securetoken.google.com/app-{x5}", "aud": "app-{x5}",
                 "user_id": "{a28}", "sub": "{a28}", **_TIMES}),
    "azure": ({"typ": "JWT", "alg": "RS256", "x5t": "{b27}", "kid": "{b27}"}, {
              "aud": "api://{g}", "iss": "https://sts.windows.net/{g}/", **_TIMES, "tid": "{g}",
              "appid": "{g}", "ver": "1.0"}),
    "cognito": ({"kid": "{s43}=", "alg": "RS256"}, {"sub": "{g}", "token_use": "access",
                "iss": "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_{a9}", **_TIMES,
                "client_id": "{x26}", "username": "USER"}),
    "k8s": ({"alg": "RS256", "kid": "{b43}"}, {"aud": ["https://kubernetes.default.svc"], **_TIMES,
            "iss": "https://kubernetes.default.svc", "sub": "system:serviceaccount:default:USER"}),
    "es256": ({"alg": "ES256", "kid": "{B10}", "typ": "JWT"}, {"iss": "{g}", **_TIMES,
              "aud": "appstoreconnect-v1"}),
    "vapid": ({"typ": "JWT", "alg": "ES256"}, {"aud": "https://fcm.googleapis.com", **_TIMES,
              "sub": "mailto:USER@HOST"}),
    "hass": (_HS, {"iss": "{h32}", **_TIMES}),
    "github": ({"alg": "RS256"}, {**_TIMES, "iss": "INT {d6}"}),
    "zoom": (_HS, {"iss": "{b22}", **_TIMES}),
    "n8n": (_HS, {"sub": "{g}", "iss": "n8n", "aud": "public-api", **_TIMES}),
    "tmdb": ({"alg": "HS256"}, {"aud": "{h32}", "sub": "{h24}", "scopes": ["api_read"],
             "version": 1, **_TIMES}),
    "cn": ({"alg": "HS512"}, {"login_user_key": "{g}", **_TIMES}),
    "livekit": (_HS, {"video": {"room": "room-{x4}", "roomJoin": True}, "sub": "USER",
                "iss": "API{a12}", **_TIMES}),
    "pinata": (_HS, {"userInformation": {"id": "{g}", "email": "USER@HOST"},
               "scopedKeyKey": "{h20}", "scopedKeySecret": "{h64}", **_TIMES}),
    "moralis": (_HS, {"nonce": "{g}", "orgId": "{d6}", "userId": "{d6}", "typeId": "{g}",
                "type": "PROJECT", **_TIMES}),
    "ghost": ({"alg": "HS256", "typ": "JWT", "kid": "{h24}"}, {**_TIMES, "aud": "/admin/"}),
    "sanctum": ({"typ": "JWT", "alg": "RS256"}, {"aud": "{d1}", "jti": "{h80}", **_TIMES,
                "nbf": "IAT", "sub": "{d3}", "scopes": []}),
}  # fmt: skip
"""Head and claims of tokens by who issues them; words in capitals and patterns are drawn."""

FORMS: dict[str, str] = {
    "aws_id": "AKIA{B16}",
    "aws_temp": "ASIA{B16}",
    "aws_secret": "{a7}+{a15}/{a16}|{a11}/{a28}|{a19}+{a20}",
    "github": "ghp_{crc}",
    "github_other": "gho_{crc}|ghs_{crc}|ghu_{crc}",
    "github_fine": "github_pat_11{u20}_{a59}",
    "gitlab": "glpat-{b20}",
    "gitlab_other": "glrt-{b20}",
    "slack_bot": "xoxb-{d12}-{d13}-{a24}|xoxb-{d12}-{d12}-{a24}",
    "slack_user": "xoxp-{d12}-{d12}-{d13}-{h32}",
    "slack_app": "xapp-1-A0{u9}-{d13}-{h64}",
    "slack_hook": "https://hooks.slack.com/services/T{u8}/B{u10}/{a24}",
    "stripe": "sk_live_{a24}|sk_live_51{a97}",
    "stripe_restricted": "rk_live_51{a97}",
    "stripe_hook": "whsec_{a32}",
    "google": "AIzaSy{b33}",
    "google_secret": "GOCSPX-{b28}",
    "google_access": "ya29.a0A{b164}",
    "google_refresh": "1//0{a1}{b96}",
    "openai_old": "sk-{a20}T3BlbkFJ{a20}",
    "openai": "sk-proj-{b74}T3BlbkFJ{b74}",
    "anthropic": "sk-ant-api03-{b93}AA",
    "huggingface": "hf_{L34}",
    "sendgrid": "SG.{b22}.{b43}",
    "mailgun": "key-{h32}",
    "mailchimp": "{h32}-us{d1}|{h32}-us1{d1}",
    "telegram": "7{d9}:AAH{b32}|6{d9}:AAF{b32}|5{d9}:AAE{b32}|1{d9}:AAG{b32}|8{d8}:AAH{b32}",
    "discord": "{id}.G{b5}.{b38}",
    "discord_hook": "https://discord.com/api/webhooks/1{d18}/{b68}",
    "npm": "npm_{crc}",
    "pypi": "pypi-AgEIcHlwaS5vcmc{b140}",
    "rubygems": "rubygems_{h48}",
    "docker": "dckr_pat_{b27}",
    "digitalocean": "dop_v1_{h64}",
    "heroku": "HRKU-AA{b58}",
    "shopify": "shpat_{h32}",
    "shopify_secret": "shpss_{h32}",
    "square": "sq0atp-{b22}|EAAA{b60}",
    "airtable": "pat{a14}.{h64}",
    "notion": "secret_{a43}|ntn_{d11}{a35}",
    "linear": "lin_api_{a40}",
    "figma": "figd_{b40}",
    "dropbox": "sl.{b136}",
    "databricks": "dapi{h32}",
    "newrelic": "NRAK-{u27}",
    "grafana": "glsa_{a32}_{h8}",
    "postman": "PMAK-{h24}-{h34}",
    "pulumi": "pul-{h40}",
    "terraform": "{a14}.atlasv1.{b67}",
    "vault": "hvs.CAESI{b90}",
    "doppler": "dp.pt.{a43}",
    "supabase": "sbp_{h40}",
    "planetscale": "pscale_tkn_{b43}",
    "netlify": "nfp_{a36}",
    "atlassian": "ATATT3xFfGF0{b171}={H8}",
    "bitbucket": "ATBB{a28}{H8}",
    "azure_storage": "{s40}+{s43}/{a1}==",
    "azure_secret": "{a3}8Q~{b34}",
    "facebook": "EAA{a170}",
    "mapbox": "sk.eyJ1Ijoi{a40}.{b22}",
    "groq": "gsk_{a52}",
    "replicate": "r8_{a37}",
    "perplexity": "pplx-{a48}",
    "openrouter": "sk-or-v1-{h64}",
    "deepseek": "sk-{h32}",
    "xai": "xai-{a80}",
    "tavily": "tvly-dev-{a32}",
    "langsmith": "lsv2_pt_{h32}_{h10}",
    "pinecone": "pcsk_{a6}_{a63}",
    "resend": "re_{a8}_{a24}",
    "brevo": "xkeysib-{h64}-{a16}",
    "hubspot": "pat-na1-{g}|pat-eu1-{g}",
    "alibaba": "LTAI5t{a18}",
    "tencent": "AKID{a32}",
    "razorpay": "rzp_live_{a14}",
    "flutterwave": "FLWSECK-{h32}-X",
    "adafruit": "aio_{a28}",
    "buildkite": "bkua_{h40}",
    "circleci": "CCIPAT_{a22}_{h40}",
    "sonar": "sqp_{h40}|squ_{h40}",
    "tailscale": "tskey-auth-k{a11}CNTRL-{a32}",
    "nvidia": "nvapi-{b64}",
    "firecrawl": "fc-{h32}",
    "apify": "apify_api_{a36}",
    "elevenlabs": "sk_{h48}",
    "sentry": "sntrys_eyJpYXQiOjE{a120}_{s43}",
    "contentful": "CFPAT-{b43}",
    "yandex": "AQVN{b35}",
    "duffel": "duffel_live_{b43}",
    "readme": "rdme_{x70}",
    "typeform": "tfp_{b44}_{b14}",
    "artifactory": "AKCp{a69}",
    "openshift": "sha256~{b43}",
    "easypost": "EZAK{a54}",
}  # fmt: skip
"""Forms of keys by service; several stand apart by a bar.

`{crc}` is 30 characters and their CRC, `{id}` is base64 of a number of 19 digits.
"""

JOINTS = {
    "nl": "\n",
    "esc": "\\n",
    "esc2": "\\\\n",
    "crlf": "\\r\\n",
    "one": "",
    "blank": " ",
    "tab": "\n\t",
    "gt": "\n> ",
    "hash": "\n# ",
    "slash": "\n// ",
    "star": "\n * ",
    "diff": "\n+",
    "minus": "\n-",
    "py": '\\n"\n    "',
    "py1": "\\n'\n    '",
    "plus": '\\n" +\n    "',
    "js": "\\n' +\n  '",
    "php": '\\n" .\n    "',
    "list": '",\n  "',
    "amp": '" & _\n    "',
    "cont": "\\n\\\n",
    "go": '\\n" +\n\t"',
    "br": "<br>\n",
    "none2": "\n\n",
}
"""What stands between two lines of a key, by the place where it is printed."""
